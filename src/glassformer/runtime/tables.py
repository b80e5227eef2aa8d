"""The tables of compiled programs, as the kernels read them: computed from weights, or read from a folder."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from glassformer.errors import CheckpointError
from glassformer.kernels.program import PANEL, Array, Kind, padded
from glassformer.kernels.quantize import half_table, pack, quantize_weight, unpack
from glassformer.runtime.recorder import Node

PREFIX = "int8."
"""Prefix of the names of tables in a folder."""

Shapes = Sequence[tuple[tuple[int, ...], type[np.generic]]]


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """Linear layers with the same input, as one matrix. The outputs of each layer begin at a multiple of 64."""

    layers: tuple[tuple[Tensor, Tensor | None], ...]
    """Weight and bias of each."""

    @property
    def columns(self) -> list[int]:
        """First output feature of each layer."""
        return np.cumsum([0, *(padded(weight.size(0)) for weight, _ in self.layers[:-1])]).tolist()

    @property
    def width(self) -> int:
        """Number of output features, with the zeros between the layers."""
        return self.columns[-1] + self.layers[-1][0].size(0)

    @property
    def n_inputs(self) -> int:
        """Number of input features."""
        return self.layers[0][0].size(1)

    def padded_inputs(self, is_quantized: bool) -> int:
        """Number of inputs that the kernels read."""
        multiple = PANEL if is_quantized else 16
        return -(-self.n_inputs // multiple) * multiple

    def weight(self) -> Tensor:
        """The weight in fp32, with zeros between the layers."""
        weight = torch.zeros(self.width, self.n_inputs)
        for (w, _), column in zip(self.layers, self.columns, strict=True):
            weight[column : column + len(w)] = w.detach()
        return weight

    def bias(self) -> Tensor:
        """The bias in fp32, with zeros between the layers."""
        bias = torch.zeros(self.width)
        for (_, b), column in zip(self.layers, self.columns, strict=True):
            if b is not None:
                bias[column : column + len(b)] = b.detach()
        return bias


class Tables:
    """The tables of the instructions of a model's programs, in the order in which the programs are made.

    Args:
        stored: the tables read from a folder, by name. None: tables are computed from the weights.
    """

    def __init__(self, stored: Mapping[str, Tensor] | None = None) -> None:
        self.stored = stored
        self.arrays: list[Array] = []
        self.shared: dict[tuple[int, ...], tuple[Node, tuple[Array, ...]]] = {}
        """By kind, width and tensors of a node: the first such node, and its tables, which several programs use."""
        self.bytes: dict[tuple[int, ...], tuple[Linear, tuple[Array, ...]]] = {}
        """By the weights of a linear layer: the first such layer, and its tables, which do not depend on the bias."""
        self.origins: list[tuple[Linear | Node, tuple[Array, ...]]] = []
        """What the other tables are made of: of a linear layer, the bias."""

    def add(self, shapes: Shapes, compute: Callable[[], tuple[Array, ...]]) -> tuple[Array, ...]:
        """The next tables.

        Raises:
            CheckpointError: the folder does not contain them.
        """
        tables = compute() if self.stored is None else tuple(self.read(*shape) for shape in shapes)
        if self.stored is None:
            self.arrays += tables
        return tables

    def read(self, shape: tuple[int, ...], dtype: type[np.generic]) -> Array:
        """The next table of the folder."""
        assert self.stored is not None
        name = f"{PREFIX}{len(self.arrays)}"
        array: Array = self.stored[name].numpy() if name in self.stored else np.empty(0)
        size = int(np.prod(shape))
        if array.dtype != dtype or array.ndim != 1 or len(array) != stored_size(size, array.itemsize):
            raise CheckpointError(f"the table {name} does not match the sizes in config.json.")
        self.arrays.append(array)
        return array[:size].reshape(shape)

    def to_store(self) -> dict[str, Tensor]:
        """The tables by name, with zeros at the end, so that each begins at a multiple of 64 bytes in a file."""
        flat = [
            np.pad(table.ravel(), (0, stored_size(table.size, table.itemsize) - table.size)) for table in self.arrays
        ]
        return {f"{PREFIX}{i}": torch.from_numpy(table) for i, table in enumerate(flat)}

    def of_node(self, node: Node) -> tuple[Array, ...]:
        """The tables of an instruction that is not a product."""
        key = node.kind, node.width, *map(id, node.tensors)
        if key not in self.shared:
            self.shared[key] = node, self.add(*shapes_and_tables(node))
            self.origins.append((node, self.shared[key][1]))
        return self.shared[key][1]

    def of_embedding(self, node: Node) -> tuple[Array, ...]:
        """Bytes and scales of a token embedding: a linear layer from one-hot vectors. Those of the output layer are the
        same if they share the weight."""
        (weight,) = (tensor for tensor in node.tensors if tensor is not None)
        panels, scale, _ = self.bytes_of(Linear(((weight, None),)))
        return panels, scale

    def of_linear(self, linear: Linear, *, fill: float) -> tuple[Array, ...]:
        """The tables of a product.

        Args:
            fill: bias of the outputs that are added to fill the last panel.
        """
        panels, scale, offset = self.bytes_of(linear)
        n = padded(linear.width)

        def padded_bias() -> tuple[Array]:
            return (np.pad(linear.bias().numpy(), (0, n - linear.width), constant_values=fill),)

        (bias,) = self.add([((n,), np.float32)], padded_bias)
        self.origins.append((linear, (bias,)))
        return panels, scale, bias, offset

    def floats_of_linear(self, linear: Linear, *, fill: float) -> tuple[Array | None, ...]:
        """The tables of a product in fp32."""
        bias = np.pad(linear.bias().numpy(), (0, -linear.width % PANEL), constant_values=fill)
        return self.floats_of(linear.layers[0][0]), None, bias, None

    def floats_of(self, weight: Tensor | None) -> Array:
        """A weight of the model, not copied unless the length of its rows is not a multiple of 16."""
        assert weight is not None
        array = weight.detach().float().contiguous().numpy()
        return np.pad(array, ((0, 0), (0, -array.shape[1] % 16))) if array.shape[1] % 16 else array

    def bytes_of(self, linear: Linear) -> tuple[Array, ...]:
        """Bytes, scales and sums of the bytes of a product's weight."""
        key = tuple(id(weight) for weight, _ in linear.layers)
        if key not in self.bytes:

            def packed() -> tuple[Array, ...]:
                panels, scale, _, offset = pack(*quantize_weight(linear.weight().numpy()), None)
                return panels, scale, offset

            n, k = padded(linear.width), padded(linear.n_inputs)
            shapes: Shapes = [((n // PANEL, k // 4, PANEL, 4), np.int8), ((n,), np.float32), ((n,), np.int32)]
            self.bytes[key] = linear, self.add(shapes, packed)
        return self.bytes[key][1]

    def tensors(self) -> Iterator[Tensor]:
        """The tensors of which the tables were made."""
        for linear, _ in self.bytes.values():
            yield from (weight for weight, _ in linear.layers)
        for origin, _ in self.origins:
            tensors = [bias for _, bias in origin.layers] if isinstance(origin, Linear) else origin.tensors
            yield from (tensor for tensor in tensors if tensor is not None)

    def weights(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Each tensor of which the tables were made, and its values in them: weights rounded to int8."""
        for linear, (panels, scale, _) in self.bytes.values():
            quantized = torch.from_numpy(unpack(panels, linear.width, linear.n_inputs))
            dense = quantized * torch.from_numpy(scale[: linear.width])[:, None]
            for (weight, _), column in zip(linear.layers, linear.columns, strict=True):
                yield weight, dense[column : column + len(weight)]
        for origin, arrays in self.origins:
            if isinstance(origin, Linear):
                for (_, b), column in zip(origin.layers, origin.columns, strict=True):
                    if b is not None:
                        yield b, torch.from_numpy(arrays[0][column : column + len(b)])
                continue
            is_norm = origin.kind == Kind.NORMALIZE
            tensors = origin.tensors if is_norm else [t for t in origin.tensors if t is not None]
            for tensor, array in zip(tensors, arrays, strict=True):
                if tensor is not None:
                    yield tensor, torch.from_numpy(array[..., : tensor.size(-1)].astype(np.float32))


def shapes_and_tables(node: Node) -> tuple[Shapes, Callable[[], tuple[Array, ...]]]:
    """The shapes of a node's tables, and a function that computes the tables."""
    tensors = [t.detach() for t in node.tensors if t is not None]
    if node.kind == Kind.GATHER:
        n, width = tensors[0].shape
        return [((n, width + -width % 16), np.float16)], lambda: (half_table(tensors[0].numpy()),)
    if node.kind == Kind.NORMALIZE:  # features beyond the width stay 0
        width = padded(node.width)
        parts = [torch.full((node.width,), float(i == 0)) if t is None else t for i, t in enumerate(node.tensors)]
        pad = 0, width - node.width
        return [((width,), np.float32)] * 2, lambda: tuple(np.pad(t.detach().float().numpy(), pad) for t in parts)
    shapes = [(tuple(t.shape), np.float32) for t in tensors]
    return shapes, lambda: tuple(np.ascontiguousarray(t.float().numpy()) for t in tensors)


def stored_size(n: int, itemsize: int) -> int:
    """Number of elements of a table in a file: a multiple of 64 bytes."""
    return -(-n * itemsize // 64) * 64 // itemsize
