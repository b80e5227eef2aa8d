"""A tape of what happens inside a model: every tensor by its name, while it runs."""

import difflib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn

from glassformer.nn.attention import Attention
from glassformer.nn.dropout import Dropout

Axes = tuple[str, ...]

STREAM: Axes = ("batch", "position", "width")
HEADS: Axes = ("batch", "head", "position", "width")
WEIGHTS: Axes = ("batch", "head", "query", "key")

TABLES: dict[str, Axes] = {
    "position_embedding": ("position", "width"),
    "encoder_bias": ("query", "key", "head"),
    "decoder_bias": ("query", "key", "head"),
}
"""What is looked up for all texts of a batch at once."""

LOGITS = ("logits", "mlm_logits", "label_logits")
"""Methods of models that make logits."""


class ActivationCache(Mapping[str, Tensor]):
    """Named tensors of everything that ran while it recorded, in the order in which they first came.

    `cache["decoder.3.cross_attention.weights"]` is the tensor of the last time that it was made, `cache.calls(name)` has
    one of each time: a decoder makes one a step.
    """

    def __init__(self) -> None:
        self.found: dict[str, list[Tensor]] = {}
        self.kinds: dict[str, Axes] = {}

    def add(self, name: str, tensor: Tensor, axes: Axes) -> None:
        """Remember one more tensor of a name."""
        self.found.setdefault(name, []).append(tensor)
        self.kinds[name] = axes

    def axes(self, name: str, call: int = -1) -> Axes:
        """What the axes of a name's tensor count; a step of decoding lacks some of the whole's."""
        kind = self.kinds[name]
        return (*kind[: self.calls(name)[call].dim() - 1], kind[-1])

    def calls(self, name: str) -> list[Tensor]:
        """The tensors of a name, oldest first.

        Raises:
            KeyError: nothing of that name was recorded; with the names that are like it.
        """
        if name not in self.found:
            near = difflib.get_close_matches(name, self.found, n=5) or [*self.found][:5]
            raise KeyError(f"nothing named {name!r} was recorded; there are {len(self)} names, such as {near}")
        return self.found[name]

    def __getitem__(self, name: str) -> Tensor:
        return self.calls(name)[-1]

    def __iter__(self) -> Iterator[str]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)


@contextmanager
def record(model: Any) -> Iterator[ActivationCache]:
    """Record what a model, or a task's model, makes of whatever it is given inside the `with` block.

    Every module's output goes by the module's name; of attention there are `queries`, `keys`, `values`, `weights` and
    `heads` (what each head takes of the values), and `logits` of the whole. Nothing is looked for while none records:
    a recorded model has its modules' methods replaced, and attention goes the explicit way.
    """
    model = getattr(model, "model", model)
    cache = ActivationCache()
    with ExitStack() as undo:
        for name, module in model.named_modules():
            if isinstance(module, Attention):
                undo.enter_context(replaced(module, "sdpa", attention_hook(module, name, cache)))
                undo.enter_context(replaced(module, "weights", weights_hook(module, name, cache)))
            if name and not isinstance(module, (Dropout, nn.Identity, nn.ModuleList)):
                handle = module.register_forward_hook(output_hook(name, cache))
                undo.callback(handle.remove)
        for name in LOGITS:
            if hasattr(model, name):
                undo.enter_context(replaced(model, name, logits_hook(getattr(model, name), cache)))
        yield cache


@contextmanager
def replaced(module: nn.Module, method: str, by: Callable[..., Any]) -> Iterator[None]:
    """Another method on this one module."""
    before = vars(module).get(method)
    setattr(module, method, by)
    try:
        yield
    finally:
        if before is None:
            delattr(module, method)
        else:
            setattr(module, method, before)


def attention_hook(module: Attention, name: str, cache: ActivationCache) -> Callable[..., Tensor]:
    """`Attention.sdpa`, the explicit way."""

    inner_sdpa = module.sdpa if "sdpa" in vars(module) else module.eager_attention  # another tape may be recording

    def recorded_sdpa(q: Tensor, k: Tensor, v: Tensor, *options: Any) -> Tensor:
        for kind, tensor in (("queries", q), ("keys", k), ("values", v)):
            cache.add(f"{name}.{kind}", tensor, HEADS)
        heads = inner_sdpa(q, k, v, *options)
        cache.add(f"{name}.heads", heads, HEADS)
        return heads

    return recorded_sdpa


def weights_hook(module: Attention, name: str, cache: ActivationCache) -> Callable[..., Tensor]:
    """`Attention.weights`, remembered."""
    weights_of = module.weights

    def weights(*given: Any) -> Tensor:
        weights = weights_of(*given)
        cache.add(f"{name}.weights", weights, WEIGHTS)
        return weights

    return weights


def logits_hook(logits_of: Callable[..., Tensor], cache: ActivationCache) -> Callable[..., Tensor]:
    """What makes logits, remembered."""

    def logits(*given: Any) -> Tensor:
        logits = logits_of(*given)
        cache.add("logits", logits, STREAM)
        return logits

    return logits


def output_hook(name: str, cache: ActivationCache) -> Callable[..., None]:
    """A hook that remembers a module's output; of an LSTM's cell its state."""

    def hook(module: nn.Module, given: Any, output: Any) -> None:
        if isinstance(output, Tensor):
            cache.add(name, output, TABLES.get(name, STREAM))
        elif isinstance(module, nn.LSTMCell):
            for kind, tensor in zip(("hidden", "cell"), output, strict=True):
                cache.add(f"{name}.{kind}", tensor, ("batch", "width"))
        elif isinstance(module, nn.LSTM):
            (packed, _) = output
            cache.add(name, nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)[0], STREAM)

    return hook
