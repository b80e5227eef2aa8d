"""Records the computation of a model as a list of nodes, while the model runs once on a small example.

A row is one token of one sequence: all tensors that depend on the tokens become values of shape [rows, features]. Views
of such tensors, such as the split into heads, do not change this layout and are not recorded.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._pytree import tree_leaves

from glassformer.kernels.program import ACTIVATIONS, IDS, POSITIONS, Kind
from glassformer.models.t5 import T5
from glassformer.nn.attention import Attention, KeyValueCache
from glassformer.nn.linear import batch_invariant_linear
from glassformer.nn.positions import position_ids, rotary_embedding, rotate


class UnsupportedError(Exception):
    """The computation contains a function that has no kernel."""


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One operation on rows. Fields as in `kernels.program.Instruction`, with tensors instead of packed tables."""

    kind: Kind
    width: int
    """Number of features of the result."""
    inputs: tuple["Node", ...] = ()
    tensors: tuple[Tensor | None, ...] = ()
    m: int = 0
    option: int = 0
    cache: int = 0
    number: float = 0.0
    group: int = 1
    reach: int = 0
    activation: int = 0


@dataclass(frozen=True, slots=True)
class Index:
    """Integers of the rows: token ids, positions or token types, possibly mapped to other integers."""

    which: int
    mapping: Callable[[Tensor], Tensor] | None = None

    def table(self, weight: Tensor, n_positions: int) -> Tensor:
        """The vectors of an embedding in the order of the unmapped integers."""
        if self.mapping is None:
            return weight
        n = n_positions if self.which == POSITIONS else weight.size(0)
        return weight[self.mapping(torch.arange(n))]


@dataclass(frozen=True, slots=True)
class Cached:
    """Keys or values in a cache. `side`: 0 if a row attends to the tokens of its own sequence, 1 for the source's."""

    cache: int
    side: int


class PaddingMask:
    """Mask of the padding. Rows have no padding."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """Cosines and sines of rotary positions, one row for each position."""

    cosines: Tensor
    sines: Tensor


@dataclass(frozen=True, slots=True)
class Bias:
    """Bias of the attention scores for each distance from -reach to reach of key and query: [heads, 2 reach + 1]."""

    table: Tensor
    reach: int


class Recorder(TorchFunctionMode):
    """Mode in which functions of torch, and those marked as `overridable`, are recorded.

    Args:
        n_positions: number of positions for which tables of positions are made.
        caches: caches of the state that the model uses; their index is that of the program's caches.
        own_cache: cache of self-attention without a cache of its own: in an encoder, where layers can share one.
    """

    def __init__(self, n_positions: int, caches: Sequence[KeyValueCache] = (), own_cache: int = 0) -> None:
        super().__init__()
        self.n_positions, self.caches, self.own_cache = n_positions, list(caches), own_cache
        self.nodes: list[Node] = []
        self.values: dict[int, tuple[Tensor, Any]] = {}
        """By id of a tensor: the tensor, and what it stands for."""

    def track(self, tensor: Tensor, value: Any) -> None:
        """Declare what a tensor stands for."""
        self.values[id(tensor)] = tensor, value

    def value(self, x: object) -> Any:
        """What an argument stands for; the argument itself if it does not depend on the rows."""
        return self.values[id(x)][1] if id(x) in self.values else x

    def add(self, kind: Kind, width: int, *inputs: Node, **fields: Any) -> Node:
        """Append a node."""
        if not all(isinstance(node, Node) for node in inputs):
            raise UnsupportedError(f"{kind.name.lower()} of something that is not a feature vector of the rows")
        node = Node(kind, width, inputs, **fields)
        self.nodes.append(node)
        return node

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = linear_shape(*args, **kwargs) if func is batch_invariant_linear else func(*args, **kwargs)
        outputs = [x for x in tree_leaves(result) if isinstance(x, Tensor)]
        is_tracked = any(id(x) in self.values for x in tree_leaves((args, kwargs)))
        if not outputs or not is_tracked or func in IGNORED:
            return result
        if func not in HANDLERS:
            raise UnsupportedError(f"{resolve_name(func) or getattr(func, '__name__', func)} has no kernel")
        arguments = [self.value(x) for x in args]
        values = HANDLERS[func](self, *arguments, **{name: self.value(x) for name, x in kwargs.items()})
        for output, value in zip(
            outputs, values if isinstance(values, tuple) else [values] * len(outputs), strict=True
        ):
            self.track(output, value)
        return result


# Handlers: the arguments of a function, with what they stand for -> what the result stands for.


def same(recorder: Recorder, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Views, and copies that change only the memory layout."""
    return x


def embedding(recorder: Recorder, index: Any, weight: Tensor, *args: Any, **kwargs: Any) -> Node:
    """`F.embedding`."""
    if not isinstance(index, Index):
        raise UnsupportedError("embedding of something that is not a token id, a position or a token type")
    table = index.table(weight, recorder.n_positions)
    return recorder.add(Kind.GATHER, weight.size(1), tensors=(table,), option=index.which)


def add(recorder: Recorder, x: Any, y: Any, **kwargs: Any) -> Any:
    """x + y, for two values of the rows, or an index and an integer."""
    if isinstance(x, Index):
        return mapped(x, lambda values: values + y)
    return recorder.add(Kind.ADD, getattr(x, "width", 0), x, y)


def multiply(recorder: Recorder, x: Any, y: Any) -> Node:
    """x * y, for two values of the rows, or one and a number."""
    if isinstance(x, float | int):
        x, y = y, x
    if isinstance(y, float | int) and isinstance(x, Node):
        return recorder.add(Kind.SCALE, x.width, x, number=float(y))
    return recorder.add(Kind.MULTIPLY, getattr(x, "width", 0), x, y)


def mapped(index: Index, function: Callable[[Tensor], Tensor]) -> Index:
    """An index to which a function is applied."""
    previous = index.mapping
    return Index(index.which, function if previous is None else lambda values: function(previous(values)))


def clamp(recorder: Recorder, x: Any, *args: Any, **kwargs: Any) -> Index:
    """`Tensor.clamp` of an index."""
    if not isinstance(x, Index):
        raise UnsupportedError("clamp of a feature vector")
    return mapped(x, lambda values: values.clamp(*args, **kwargs))


def not_equal(recorder: Recorder, x: Any, y: Any) -> type[PaddingMask]:
    """ids != pad_id."""
    if not isinstance(x, Index) or x.which != IDS:
        raise UnsupportedError("a comparison of something that is not a token id")
    return PaddingMask


def activation(name: str) -> Callable[..., Node]:
    """Handler of an activation function."""

    def handler(recorder: Recorder, x: Node, approximate: str = "none", **kwargs: Any) -> Node:
        which = "gelu_tanh" if approximate == "tanh" else name
        return recorder.add(Kind.ACTIVATE, getattr(x, "width", 0), x, activation=ACTIVATIONS.index(which))

    return handler


def layer_norm(
    recorder: Recorder, x: Node, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Node:
    """`F.layer_norm`."""
    return recorder.add(Kind.NORMALIZE, x.width, x, tensors=(weight, bias), number=eps)


def rms_norm(recorder: Recorder, x: Node, shape: Any, weight: Any = None, eps: float | None = None) -> Node:
    """`F.rms_norm`."""
    eps = torch.finfo(torch.float32).eps if eps is None else eps
    return recorder.add(Kind.NORMALIZE, x.width, x, tensors=(weight, None), number=eps, option=1)


def linear(recorder: Recorder, x: Node, weight: Tensor, bias: Tensor | None = None) -> Node:
    """`batch_invariant_linear`."""
    return recorder.add(Kind.PRODUCT, weight.size(0), x, tensors=(weight, bias))


def linear_shape(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Zeros of the shape of `batch_invariant_linear`, which would keep a second copy of the weights."""
    return x.new_zeros(*x.shape[:-1], weight.size(0))


def append(recorder: Recorder, cache: KeyValueCache, k: Node, v: Node) -> tuple[Cached, Cached]:
    """`KeyValueCache.append`."""
    index = recorder.caches.index(cache)
    recorder.add(Kind.STORE, k.width, k, v, cache=index)
    return Cached(index, 0), Cached(index, 0)


def sdpa(
    recorder: Recorder, module: Attention, q: Node, k: Any, v: Any, mask: Any, causal: bool, position_bias: Any
) -> Node:
    """`Attention.sdpa`."""
    if module.additive is not None:
        raise UnsupportedError("additive attention has no kernel")
    if causal or not (mask is None or mask is PaddingMask):
        raise UnsupportedError("attention with a mask other than that of the padding has no kernel")
    if isinstance(k, Node):
        recorder.add(Kind.STORE, k.width, k, v, cache=recorder.own_cache)
        k = v = Cached(recorder.own_cache, 0)
    if not isinstance(k, Cached) or k != v:
        raise UnsupportedError("attention to something that is not in a cache")
    if not (position_bias is None or isinstance(position_bias, Bias)):
        raise UnsupportedError("a bias of the attention scores that is not a function of the distance has no kernel")
    return recorder.add(
        Kind.ATTEND, module.n_heads * module.d_head, q, m=module.d_head, cache=k.cache, option=k.side,
        number=module.scale, group=module.n_heads // module.n_kv_heads,
        tensors=(position_bias.table,) if position_bias else (), reach=position_bias.reach if position_bias else 0,
    )  # fmt: skip


def positions_of(recorder: Recorder, ids: Any, start: int = 0) -> Index:
    """`position_ids`."""
    return Index(POSITIONS)


def relative_bias(recorder: Recorder, model: T5, table: Any, query_positions: Any, n_keys: int) -> Bias:
    """`T5.compute_bias`: from `max_distance` on, the bias is constant."""
    reach = model.config.max_distance
    with torch._C.DisableTorchFunction():
        bias = model.compute_bias(table, torch.tensor([reach]), 2 * reach + 1)
    return Bias(bias[0, :, 0], reach)


def rotation(recorder: Recorder, index: Any, d_head: int, theta: float = 10_000.0) -> tuple[Rotation, Rotation]:
    """`rotary_embedding`."""
    cosines, sines = (t[0] for t in rotary_embedding(torch.arange(recorder.n_positions), d_head, theta))
    return Rotation(cosines, sines), Rotation(cosines, sines)


def rotated(recorder: Recorder, x: Node, rotary: Rotation, _: Rotation) -> Node:
    """`rotate`."""
    tables = rotary.cosines, rotary.sines
    return recorder.add(Kind.ROTATE, x.width, x, tensors=tables, m=2 * rotary.cosines.size(1))


IGNORED = {Tensor.new_full, Tensor.new_empty, Tensor.zero_}
"""Functions whose result does not depend on the values of a tensor."""

HANDLERS: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys(
        (
            Tensor.view, Tensor.reshape, Tensor.transpose, Tensor.contiguous, Tensor.flatten, Tensor.__getitem__,
            Tensor.float, Tensor.to, Tensor.type_as, Tensor.repeat_interleave,
        ),
        same,
    ),
    **dict.fromkeys((Tensor.add, Tensor.__add__, torch.add), add),
    **dict.fromkeys((Tensor.mul, Tensor.__mul__, Tensor.__rmul__, torch.mul), multiply),
    **dict.fromkeys((Tensor.ne, Tensor.__ne__), not_equal),
    **dict.fromkeys((Tensor.relu, torch.relu, F.relu), activation("relu")),
    **dict.fromkeys((Tensor.tanh, torch.tanh), activation("tanh")),
    F.gelu: activation("gelu"),
    F.silu: activation("silu"),
    F.embedding: embedding,
    F.layer_norm: layer_norm,
    F.rms_norm: rms_norm,
    Tensor.clamp: clamp,
    batch_invariant_linear: linear,
    Attention.sdpa: sdpa,
    KeyValueCache.append: append,
    position_ids: positions_of,
    T5.compute_bias: relative_bias,
    rotary_embedding: rotation,
    rotate: rotated,
}  # fmt: skip
