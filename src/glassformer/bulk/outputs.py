"""Outputs of items: those of equal items are computed once, and an item that fails does not stop the others."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from glassformer.bulk.cache import Cache
from glassformer.bulk.chunks import Item, Outputs
from glassformer.errors import ConfigError, UserError
from glassformer.tasks.texts import Warn

Compute = Callable[[list[Item], Warn], list[str]]
"""Computes the output of each item, given the function that is called with the position of an item and a warning."""

MAX_KNOWN_BYTES = 64 << 20
"""About how much memory the items and outputs that are kept may take."""
ENTRY_BYTES = 330
"""What an item takes besides its characters."""


@dataclass(slots=True)
class Known:
    """What is known of an item."""

    text: str = ""
    failed: str | None = None
    warned: tuple[str, ...] = ()


class Processor:
    """Computes the outputs of chunks of items."""

    def __init__(
        self,
        compute: Compute,
        failed: Callable[[Item, str], str] = lambda item, why: "",
        *,
        keep: bool = True,
        max_bytes: int = MAX_KNOWN_BYTES,
        cache: Cache | None = None,
    ) -> None:
        """
        Args:
            failed: the output for an item that failed, given the reason.
            keep: an output depends on its item alone, so that those of equal items are equal.
            cache: outputs on disk.
        """
        self.compute, self.failed, self.keep, self.max_bytes, self.cache = compute, failed, keep, max_bytes, cache
        self.known: OrderedDict[Hashable, Known] = OrderedDict()
        self.n_bytes = 0

    def __call__(self, items: list[Item]) -> Outputs:
        """The outputs of items.

        Raises:
            ConfigError, OSError, MemoryError: those of `compute`.
            Exception: one that is not the user's, for each of several items.
        """
        if not self.keep:
            return outputs_of(self.computed(items))
        keys: list[Hashable] = [item if isinstance(item, str) else tuple(item) for item in items]
        items_of = dict(zip(keys, items, strict=True))
        found = {key: self.known[key] for key in items_of if key in self.known}
        found |= self.cached({key: item for key, item in items_of.items() if key not in found})
        missing = [key for key in items_of if key not in found]
        new = dict(zip(missing, self.computed([items_of[key] for key in missing]), strict=True))
        if self.cache and (good := [key for key in missing if new[key].failed is None]):
            self.cache.put([items_of[key] for key in good], [(new[key].text, new[key].warned) for key in good])
        found |= new
        self.remember(found)
        outputs = outputs_of([found[key] for key in keys])
        outputs.n_known = len(items) - len(missing)
        return outputs

    def cached(self, items: dict[Hashable, Item]) -> dict[Hashable, Known]:
        """What the cache has of items."""
        if not self.cache or not items:
            return {}
        outputs = zip(items, self.cache.get(list(items.values())), strict=True)
        return {key: Known(output[0], None, output[1]) for key, output in outputs if output is not None}

    def remember(self, found: dict[Hashable, Known]) -> None:
        """Keep what is known of items; what was not used for longest is dropped."""
        for key, known in found.items():
            if key not in self.known:
                self.n_bytes += size(key, known)
            self.known[key] = known
            self.known.move_to_end(key)
        while self.n_bytes > self.max_bytes:
            self.n_bytes -= size(*self.known.popitem(last=False))

    def computed(self, items: list[Item]) -> list[Known]:
        """What becomes of items. If they cannot be computed together, they are halved, to find those that fail.

        Raises:
            Exception: see `__call__`.
        """
        errors: list[Exception] = []
        found = self.halved(items, errors)
        if len(errors) == len(items) > 1 and not isinstance(errors[0], UserError):
            raise errors[0]
        return found

    def halved(self, items: list[Item], errors: list[Exception]) -> list[Known]:
        """`computed`, with the errors of the items that fail."""
        if not items:
            return []
        warned: dict[int, list[str]] = {}
        try:
            texts = self.compute(items, lambda i, what: warned.setdefault(i, []).append(what))
        except (ConfigError, OSError, MemoryError):
            raise
        except Exception as error:
            if len(items) > 1:
                middle = len(items) // 2
                return self.halved(items[:middle], errors) + self.halved(items[middle:], errors)
            errors.append(error)
            why = str(error).removeprefix("line 1: ") or type(error).__name__  # who reads it knows which line it is
            return [Known(self.failed(items[0], why.partition("\n")[0]), why)]
        return [Known(text, None, tuple(warned.get(i, ()))) for i, text in enumerate(texts)]


def size(key: Hashable, known: Known) -> int:
    """About how much memory an item and its output take."""
    n = len(key) if isinstance(key, str) else sum(map(len, key))  # type: ignore[call-overload]
    return int(n) + len(known.text) + ENTRY_BYTES


def outputs_of(found: list[Known]) -> Outputs:
    """The outputs of a chunk."""
    return Outputs(
        [known.text for known in found],
        [(i, known.failed) for i, known in enumerate(found) if known.failed is not None],
        [(i, what) for i, known in enumerate(found) for what in known.warned],
    )
