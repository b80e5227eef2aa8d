"""Recording of activations: every intermediate tensor of a model, by module name."""

import difflib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, ParamSpec

from torch import Tensor, nn

from glassformer.nn.attention import Attention
from glassformer.nn.dropout import Dropout
from glassformer.tasks.base import AnyTask, Task

Axes = tuple[str, ...]
"""Names of the axes of a tensor."""

HIDDEN: Axes = ("batch", "position", "feature")
PER_HEAD: Axes = ("batch", "head", "position", "feature")
ATTENTION_WEIGHTS: Axes = ("batch", "head", "query", "key")
"""Axes of the output of a module, of queries, keys, values and head outputs, and of attention weights."""

EMBEDDING_AXES: dict[str, Axes] = {
    "position_embedding": ("position", "feature"),
    "encoder_position_bias": ("query", "key", "head"),
    "decoder_position_bias": ("query", "key", "head"),
}
"""Axes of position embeddings and position biases, which have no batch axis."""

LOGITS_METHODS = ("logits", "mlm_logits", "label_logits")
"""Methods of models that compute logits."""


P = ParamSpec("P")


class ActivationCache(Mapping[str, Tensor]):
    """Tensors recorded during forward passes, by name, in the order of their first computation.

    `cache["decoder.3.cross_attention.weights"]` is the most recent tensor of this name. `cache.calls(name)` lists the
    tensors of all calls: incremental decoding makes one call per step.
    """

    def __init__(self) -> None:
        self.tensors: dict[str, list[Tensor]] = {}
        """Tensors of each name, oldest first."""
        self.axis_names: dict[str, Axes] = {}
        """Axis names of the tensors of each name."""

    def add(self, name: str, tensor: Tensor, axes: Axes) -> None:
        """Append a tensor to those of a name."""
        self.tensors.setdefault(name, []).append(tensor)
        self.axis_names[name] = axes

    def axes(self, name: str, call: int = -1) -> Axes:
        """Axis names of a recorded tensor. A tensor of one decoding step may have fewer axes: the axis before
        the last one (position) is omitted."""
        full = self.axis_names[name]
        return (*full[: self.calls(name)[call].dim() - 1], full[-1])

    def calls(self, name: str) -> list[Tensor]:
        """All tensors of a name, oldest first.

        Raises:
            KeyError: no tensor of this name was recorded; the message lists similar names.
        """
        if name not in self.tensors:
            similar = difflib.get_close_matches(name, self.tensors, n=5) or [*self.tensors][:5]
            raise KeyError(f"no tensor named {name!r} was recorded; there are {len(self)} names, such as {similar}")
        return self.tensors[name]

    def __getitem__(self, name: str) -> Tensor:
        return self.calls(name)[-1]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)


@contextmanager
def record_activations(model: nn.Module | AnyTask) -> Iterator[ActivationCache]:
    """Record all activations of a model, or of a task's model, inside the `with` block.

    The output of each module is recorded under the module's name. Attention modules also record `queries`, `keys`,
    `values`, `weights` and `heads` (the attention output of each head); the model records `logits`.

    Recording replaces methods of this model's modules and restores them afterwards, so a model that is not recorded has
    no overhead. A recorded model computes attention weights explicitly instead of with a fused kernel.
    """
    network: nn.Module = model.model if isinstance(model, Task) else model
    cache = ActivationCache()
    with ExitStack() as undo:
        for name, module in network.named_modules():
            if isinstance(module, Attention):
                undo.enter_context(replaced(module, "sdpa", attention_hook(module, name, cache)))
                undo.enter_context(replaced(module, "attention_weights", weights_hook(module, name, cache)))
            if name and not isinstance(module, (Dropout, nn.Identity, nn.ModuleList)):
                handle = module.register_forward_hook(output_hook(name, cache))
                undo.callback(handle.remove)
        for name in LOGITS_METHODS:
            if hasattr(network, name):
                undo.enter_context(replaced(network, name, logits_hook(getattr(network, name), cache)))
        yield cache


@contextmanager
def replaced(module: nn.Module, method: str, replacement: Callable[..., object]) -> Iterator[None]:
    """Replace a method of one module inside the `with` block."""
    original = vars(module).get(method)
    setattr(module, method, replacement)
    try:
        yield
    finally:
        if original is None:
            delattr(module, method)
        else:
            setattr(module, method, original)


def attention_hook(module: Attention, name: str, cache: ActivationCache) -> Callable[..., Tensor]:
    """Replacement of `Attention.sdpa` that computes weights explicitly and records queries, keys, values and heads."""

    inner_sdpa = module.sdpa if "sdpa" in vars(module) else module.eager_attention  # recorders can be nested

    def recorded_sdpa(q: Tensor, k: Tensor, v: Tensor, *options: Any) -> Tensor:
        for projection, tensor in (("queries", q), ("keys", k), ("values", v)):
            cache.add(f"{name}.{projection}", tensor, PER_HEAD)
        heads = inner_sdpa(q, k, v, *options)
        cache.add(f"{name}.heads", heads, PER_HEAD)
        return heads

    return recorded_sdpa


def weights_hook(module: Attention, name: str, cache: ActivationCache) -> Callable[..., Tensor]:
    """Replacement of `Attention.attention_weights` that records the result."""
    compute_weights = module.attention_weights

    def weights(*args: Any) -> Tensor:
        weights = compute_weights(*args)
        cache.add(f"{name}.weights", weights, ATTENTION_WEIGHTS)
        return weights

    return weights


def logits_hook(compute_logits: Callable[P, Tensor], cache: ActivationCache) -> Callable[P, Tensor]:
    """Replacement of a method that computes logits, which records the result."""

    def logits(*args: P.args, **kwargs: P.kwargs) -> Tensor:
        logits = compute_logits(*args, **kwargs)
        cache.add("logits", logits, HIDDEN)
        return logits

    return logits


def output_hook(name: str, cache: ActivationCache) -> Callable[..., None]:
    """Forward hook that records a module's output, or the hidden and cell state of an LSTM cell."""

    def hook(module: nn.Module, args: object, output: Any) -> None:
        if isinstance(output, Tensor):
            cache.add(name, output, EMBEDDING_AXES.get(name, HIDDEN))
        elif isinstance(module, nn.LSTMCell):
            for state, tensor in zip(("hidden", "cell"), output, strict=True):
                cache.add(f"{name}.{state}", tensor, ("batch", "feature"))
        elif isinstance(module, nn.LSTM):
            (packed, _) = output
            cache.add(name, nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)[0], HIDDEN)

    return hook
