"""An example of a parallel corpus, and the selection of examples that have text."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence pair, with its file (of two, the source file) and its line, counted from 1."""

    src: str
    tgt: str
    path: str
    line: int
    marked: tuple[str, str] | None = None
    """Both texts with a character for each code, if the file has codes in them."""

    @property
    def has_both_sides(self) -> bool:
        """Whether neither side is blank."""
        return bool(self.src.strip() and self.tgt.strip())


class Located(Protocol):
    """An example with its file and its line, counted from 1."""

    @property
    def path(self) -> str: ...

    @property
    def line(self) -> int: ...


LocatedT = TypeVar("LocatedT", bound=Located)


def usable(
    examples: Iterable[LocatedT],
    is_usable: Callable[[LocatedT], bool],
    defect: str,
    log: Callable[[str], None] | None,
) -> Iterator[LocatedT]:
    """The examples that can be used, in order.

    Args:
        defect: what the others lack; completes "3 lines … were left out".
        log: called after the last example with the number of the others, if there are any, and where the first is.
    """
    n_unusable, first = 0, ""
    for example in examples:
        if is_usable(example):
            yield example
        else:
            n_unusable, first = n_unusable + 1, first or f"{example.path}:{example.line}"
    if log and n_unusable:
        log(f"warning: {n_unusable:,} lines {defect} were left out (first: {first})")


def with_both_sides(pairs: Iterable[Example], log: Callable[[str], None] | None) -> Iterator[Example]:
    """The pairs with text on both sides. `log` is called as in `usable`."""
    return usable(pairs, lambda pair: pair.has_both_sides, "that are blank on one side or both", log)
