"""Records the computation of a model as a graph, while the model runs once on a small example.

A row is one token of one sequence: all tensors that depend on the tokens become values of shape [rows, features]. Views
of such tensors, such as the split into heads, do not change this layout and are not recorded.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._pytree import tree_leaves

from glassformer.models.t5 import T5, relative_position_bucket
from glassformer.nn.attention import Attention, KeyValueCache
from glassformer.nn.linear import batch_invariant_linear
from glassformer.nn.positions import position_ids, rotary_embedding, rotate
from glassformer.runtime.graph import (
    Activate,
    Add,
    Attend,
    Function,
    Gather,
    Integers,
    Linear,
    Multiply,
    Normalize,
    Operation,
    Rotate,
    Scale,
    Side,
    Store,
    Table,
)


class UnsupportedError(Exception):
    """The computation contains a function that has no kernel."""


@dataclass(frozen=True, slots=True)
class Index:
    """Integers of the rows: token ids, positions or token types, possibly mapped to other integers."""

    by: Integers
    mapping: Callable[[Tensor], Tensor] | None = None


@dataclass(frozen=True, slots=True)
class Cached:
    """Keys or values in a cache. `side`: "own" if a row attends to the tokens of its own sequence."""

    cache: int
    side: Side


class PaddingMask:
    """Mask of the padding. Rows have no padding."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """Cosines and sines of rotary positions, one row for each position."""

    cosines: Table
    sines: Table


@dataclass(frozen=True, slots=True)
class Bias:
    """Bias of the attention scores for each distance from -reach to reach of key and query: [2 reach + 1, heads]."""

    table: Table


class Tables:
    """The tables of the graph of a model: its weights, rows of them, and constants."""

    def __init__(self, model: nn.Module) -> None:
        self.names = {id(parameter): name for name, parameter in model.named_parameters()}
        self.constants: dict[str, np.ndarray] = {}
        self.selected: dict[tuple[str, tuple[int, ...]], Table] = {}

    def weight(self, tensor: Tensor | None) -> Table | None:
        """The table of a tensor; of a tensor that is no parameter, a constant."""
        if tensor is None:
            return None
        if id(tensor) in self.names:
            return Table(self.names[id(tensor)], tuple(tensor.shape))
        array = tensor.detach().float().contiguous().numpy()
        for name, constant in self.constants.items():
            if np.array_equal(constant, array):
                return Table(name, constant.shape)
        name = f"constant.{len(self.constants)}"
        self.constants[name] = array
        return Table(name, array.shape)

    def rows(self, weight: Tensor, rows: Sequence[int]) -> Table:
        """Some rows of a weight."""
        name = self.names[id(weight)]
        key = name, tuple(rows)
        if key not in self.selected:
            alias = f"rows.{len(self.selected)}"
            self.selected[key] = Table(alias, (len(rows), *weight.shape[1:]), name, tuple(rows))
        return self.selected[key]


class Recorder(TorchFunctionMode):
    """Mode in which functions of torch, and those marked as `overridable`, are recorded.

    Args:
        tables: those of the model.
        n_positions: number of positions for which tables of positions are made.
        caches: caches of the state that the model uses; their index is that of the program's caches.
    """

    def __init__(self, tables: Tables, n_positions: int, caches: Sequence[KeyValueCache] = ()) -> None:
        super().__init__()
        self.tables, self.n_positions, self.caches = tables, n_positions, list(caches)
        self.program: list[Operation] = []
        self.values: dict[int, tuple[Tensor, object]] = {}
        """By id of a tensor: the tensor, and what it stands for."""

    def track(self, tensor: Tensor, value: object) -> None:
        """Declare what a tensor stands for."""
        self.values[id(tensor)] = tensor, value

    def value(self, x: object) -> object:
        """What an argument stands for; the argument itself if it does not depend on the rows."""
        return self.values[id(x)][1] if id(x) in self.values else x

    def add(self, operation: type[Operation], *inputs: object, **fields: object) -> Operation:
        """Append an operation."""
        if not all(isinstance(x, Operation) for x in inputs):
            raise UnsupportedError(
                f"{operation.__name__.lower()} of something that is not a feature vector of the rows"
            )
        added = operation(*inputs, **fields)
        self.program.append(added)
        return added

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        kwargs = kwargs or {}
        compute: Callable[..., object] = linear_shape if func is batch_invariant_linear else func
        result = compute(*args, **kwargs)
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


def same(recorder: Recorder, x: object, *args: object, **kwargs: object) -> object:
    """Views, and copies that change only the memory layout."""
    return x


def embedding(recorder: Recorder, index: object, weight: Tensor, *args: object, **kwargs: object) -> Operation:
    """`F.embedding`."""
    if not isinstance(index, Index):
        raise UnsupportedError("embedding of something that is not a token id, a position or a token type")
    if index.mapping is None:
        return recorder.add(Gather, table=recorder.tables.weight(weight), by=index.by)
    n = recorder.n_positions if index.by == "position" else weight.size(0)
    return recorder.add(
        Gather, table=recorder.tables.rows(weight, index.mapping(torch.arange(n)).tolist()), by=index.by
    )


def add(recorder: Recorder, x: object, y: object, **kwargs: object) -> Operation | Index:
    """x + y, for two values of the rows, or an index and an integer."""
    if isinstance(x, Index) and isinstance(y, int):
        return mapped(x, lambda values: values + y)
    return recorder.add(Add, x, y)


def multiply(recorder: Recorder, x: object, y: object) -> Operation:
    """x * y, for two values of the rows, or one and a number."""
    if isinstance(x, float | int):
        x, y = y, x
    if isinstance(y, float | int) and isinstance(x, Operation):
        return recorder.add(Scale, x, factor=float(y))
    return recorder.add(Multiply, x, y)


def mapped(index: Index, function: Callable[[Tensor], Tensor]) -> Index:
    """An index to which a function is applied."""
    previous = index.mapping
    return Index(index.by, function if previous is None else lambda values: function(previous(values)))


def clamp(recorder: Recorder, x: object, *args: int, **kwargs: int) -> Index:
    """`Tensor.clamp` of an index."""
    if not isinstance(x, Index):
        raise UnsupportedError("clamp of a feature vector")
    return mapped(x, lambda values: values.clamp(*args, **kwargs))


def not_equal(recorder: Recorder, x: object, y: object) -> type[PaddingMask]:
    """ids != pad_id."""
    if not isinstance(x, Index) or x.by != "token":
        raise UnsupportedError("a comparison of something that is not a token id")
    return PaddingMask


def activation(name: Function) -> Callable[..., Operation]:
    """Handler of an activation function."""

    def handler(recorder: Recorder, x: object, approximate: str = "none", **kwargs: object) -> Operation:
        return recorder.add(Activate, x, function="gelu_tanh" if approximate == "tanh" else name)

    return handler


def layer_norm(
    recorder: Recorder,
    x: object,
    shape: object,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Operation:
    """`F.layer_norm`."""
    gain, offset = map(recorder.tables.weight, (weight, bias))
    return recorder.add(Normalize, x, gain=gain, bias=offset, epsilon=eps, norm="layer")


def rms_norm(
    recorder: Recorder, x: object, shape: object, weight: Tensor | None = None, eps: float | None = None
) -> Operation:
    """`F.rms_norm`."""
    eps = torch.finfo(torch.float32).eps if eps is None else eps
    return recorder.add(Normalize, x, gain=recorder.tables.weight(weight), bias=None, epsilon=eps, norm="rms")


def linear(recorder: Recorder, x: object, weight: Tensor, bias: Tensor | None = None) -> Operation:
    """`batch_invariant_linear`."""
    return recorder.add(Linear, x, weight=recorder.tables.weight(weight), bias=recorder.tables.weight(bias))


def linear_shape(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Zeros of the shape of `batch_invariant_linear`, which would keep a second copy of the weights."""
    return x.new_zeros(*x.shape[:-1], weight.size(0))


def append(recorder: Recorder, cache: KeyValueCache, k: object, v: object) -> tuple[Cached, Cached]:
    """`KeyValueCache.append`."""
    index = recorder.caches.index(cache)
    recorder.add(Store, k, v, cache=index, side="own")
    return Cached(index, "own"), Cached(index, "own")


def sdpa(
    recorder: Recorder,
    module: Attention,
    q: object,
    k: object,
    v: object,
    mask: object,
    causal: bool,
    position_bias: object,
) -> Operation:
    """`Attention.sdpa`. Self-attention without a cache of its own, in an encoder, shares cache 0 of all layers."""
    if module.additive is not None:
        raise UnsupportedError("additive attention has no kernel")
    if causal or not (mask is None or mask is PaddingMask):
        raise UnsupportedError("attention with a mask other than that of the padding has no kernel")
    if isinstance(k, Operation):
        recorder.add(Store, k, v, cache=0, side="own")
        k = v = Cached(0, "own")
    if not isinstance(k, Cached) or k != v:
        raise UnsupportedError("attention to something that is not in a cache")
    if not (position_bias is None or isinstance(position_bias, Bias)):
        raise UnsupportedError("a bias of the attention scores that is not a function of the distance has no kernel")
    return recorder.add(
        Attend, q, cache=k.cache, side=k.side, d_head=module.d_head, n_kv_heads=module.n_kv_heads,
        scale=module.scale, distance_bias=position_bias.table if position_bias else None,
    )  # fmt: skip


def positions_of(recorder: Recorder, ids: object, start: int = 0) -> Index:
    """`position_ids`."""
    return Index("position")


def relative_bias(recorder: Recorder, model: T5, table: nn.Embedding, query_positions: object, n_keys: int) -> Bias:
    """`T5.compute_bias`: from `max_distance` on, the bias is constant."""
    c, reach = model.config, model.config.max_distance
    is_encoder = table is model.encoder_position_bias
    with torch._C.DisableTorchFunction():
        buckets = relative_position_bucket(
            torch.arange(-reach, reach + 1)[None],
            n_buckets=c.n_buckets, max_distance=reach, bidirectional=is_encoder,
        )  # fmt: skip
    return Bias(recorder.tables.rows(table.weight, buckets[0].tolist()))


def rotation(recorder: Recorder, index: object, d_head: int, theta: float = 10_000.0) -> tuple[Rotation, Rotation]:
    """`rotary_embedding`."""
    tables = [t[0] for t in rotary_embedding(torch.arange(recorder.n_positions), d_head, theta)]
    cosines, sines = (recorder.tables.weight(table) for table in tables)
    assert cosines is not None
    assert sines is not None
    return Rotation(cosines, sines), Rotation(cosines, sines)


def rotated(recorder: Recorder, x: object, rotary: Rotation, _: Rotation) -> Operation:
    """`rotate`."""
    return recorder.add(Rotate, x, cosines=rotary.cosines, sines=rotary.sines)


IGNORED = {Tensor.new_full, Tensor.new_empty, Tensor.zero_}
"""Functions whose result does not depend on the values of a tensor."""

HANDLERS: dict[Callable[..., object], Callable[..., object]] = {
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
