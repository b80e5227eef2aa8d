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
    "positions": ("position", "width"),
    "encoder_bias": ("query", "key", "head"),
    "decoder_bias": ("query", "key", "head"),
}
"""What is looked up for all texts of a batch at once."""

LOGITS = ("logits", "word_logits", "label_logits")
"""Methods of models that make logits."""


class Tape(Mapping[str, Tensor]):
    """Named tensors of everything that ran while it recorded, in the order in which they first came.

    `tape["decoder.3.cross_attention.weights"]` is the tensor of the last time that it was made, `tape.calls(name)` has
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
def record(model: Any) -> Iterator[Tape]:
    """Record what a model, or a task's model, makes of whatever it is given inside the `with` block.

    Every module's output goes by the module's name; of attention there are `queries`, `keys`, `values`, `weights` and
    `heads` (what each head takes of the values), and `logits` of the whole. Nothing is looked for while none records:
    a recorded model has its modules' methods replaced, and attention goes the explicit way.
    """
    model = getattr(model, "model", model)
    tape = Tape()
    with ExitStack() as undo:
        for name, module in model.named_modules():
            if isinstance(module, Attention):
                undo.enter_context(replaced(module, "look", looking(module, name, tape)))
                undo.enter_context(replaced(module, "weights", weighing(module, name, tape)))
            if name and not isinstance(module, (Dropout, nn.Identity, nn.ModuleList)):
                handle = module.register_forward_hook(hearing(name, tape))
                undo.callback(handle.remove)
        for name in LOGITS:
            if hasattr(model, name):
                undo.enter_context(replaced(model, name, saying(getattr(model, name), tape)))
        yield tape


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


def looking(module: Attention, name: str, tape: Tape) -> Callable[..., Tensor]:
    """`Attention.look`, the explicit way."""

    look_before = module.look if "look" in vars(module) else module.look_explicitly  # another tape may be recording

    def look(q: Tensor, k: Tensor, v: Tensor, *options: Any) -> Tensor:
        for kind, tensor in (("queries", q), ("keys", k), ("values", v)):
            tape.add(f"{name}.{kind}", tensor, HEADS)
        heads = look_before(q, k, v, *options)
        tape.add(f"{name}.heads", heads, HEADS)
        return heads

    return look


def weighing(module: Attention, name: str, tape: Tape) -> Callable[..., Tensor]:
    """`Attention.weights`, remembered."""
    weights_of = module.weights

    def weights(*given: Any) -> Tensor:
        weights = weights_of(*given)
        tape.add(f"{name}.weights", weights, WEIGHTS)
        return weights

    return weights


def saying(logits_of: Callable[..., Tensor], tape: Tape) -> Callable[..., Tensor]:
    """What makes logits, remembered."""

    def logits(*given: Any) -> Tensor:
        logits = logits_of(*given)
        tape.add("logits", logits, STREAM)
        return logits

    return logits


def hearing(name: str, tape: Tape) -> Callable[..., None]:
    """A hook that remembers a module's output; of an LSTM's cell its state."""

    def hook(module: nn.Module, given: Any, output: Any) -> None:
        if isinstance(output, Tensor):
            tape.add(name, output, TABLES.get(name, STREAM))
        elif isinstance(module, nn.LSTMCell):
            for kind, tensor in zip(("hidden", "cell"), output, strict=True):
                tape.add(f"{name}.{kind}", tensor, ("batch", "width"))
        elif isinstance(module, nn.LSTM):
            (packed, _) = output
            tape.add(name, nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)[0], STREAM)

    return hook
