"""The tables of lowered programs, as the kernels read them: computed from weights, or read from a folder."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from glassformer.errors import CheckpointError
from glassformer.kernels.program import PANEL, Array, Kind, padded
from glassformer.kernels.quantize import half_table, pack, quantize_weight, unpack
from glassformer.manifest import COPY_AGAIN
from glassformer.runtime.graph import Floats, Table
from glassformer.runtime.lowering import Matrix, Node

PREFIX = "int8."
"""Prefix of the names of tables in a folder."""

Shapes = Sequence[tuple[tuple[int, ...], type[np.generic]]]
Key = tuple[object, ...]


class Tables:
    """The tables of the instructions of a model's programs, in the order in which the programs are made.

    Args:
        array: the numbers of a table of the graph.
        stored: the tables read from a folder, by name. None: tables are computed from the weights.
    """

    def __init__(self, array: Callable[[Table], Floats], stored: Mapping[str, Array] | None = None) -> None:
        self.array, self.stored = array, stored
        self.arrays: list[Array] = []
        self.shared: dict[Key, tuple[Node, tuple[Array, ...]]] = {}
        """By kind, width and tables of a node: the first such node, and its tables, which several programs use."""
        self.bytes: dict[Key, tuple[Matrix, tuple[Array, ...]]] = {}
        """By the weights of a matrix: the first such matrix, and its tables, which do not depend on the bias."""

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
        array: Array = self.stored.get(name, np.empty(0))
        size = int(np.prod(shape, dtype=object))
        if array.dtype != dtype or array.ndim != 1 or len(array) != stored_size(size, array.itemsize):
            raise CheckpointError(f"the table {name} does not match the sizes in config.json.{COPY_AGAIN}")
        self.arrays.append(array)
        return array[:size].reshape(shape)

    def to_store(self) -> dict[str, Array]:
        """The tables by name, with zeros at the end, so that each begins at a multiple of 64 bytes in a file."""
        flat = [
            np.pad(table.ravel(), (0, stored_size(table.size, table.itemsize) - table.size)) for table in self.arrays
        ]
        return {f"{PREFIX}{i}": table for i, table in enumerate(flat)}

    def of_node(self, node: Node) -> tuple[Array, ...]:
        """The tables of an instruction that is not a product."""
        key = node.kind, node.width, *(table and table.name for table in node.tables)
        if key not in self.shared:
            self.shared[key] = node, self.add(*self.shapes_and_tables(node))
        return self.shared[key][1]

    def shapes_and_tables(self, node: Node) -> tuple[Shapes, Callable[[], tuple[Array, ...]]]:
        """The shapes of a node's tables, and a function that computes the tables."""
        tables = [table for table in node.tables if table is not None]
        if node.kind == Kind.GATHER:
            n, width = tables[0].shape
            return [((n, width + -width % 16), np.float16)], lambda: (half_table(self.array(tables[0])),)
        if node.kind == Kind.NORMALIZE:
            shapes: Shapes = [((padded(node.width),), np.float32)] * 2
            return shapes, lambda: tuple(
                self.vector(table, node.width, fill=float(i == 0)) for i, table in enumerate(node.tables)
            )
        if node.kind == Kind.ATTEND:  # [heads, distances]
            return [(tables[0].shape[::-1], np.float32)], lambda: (np.ascontiguousarray(self.array(tables[0]).T),)
        shapes = [(table.shape, np.float32) for table in tables]
        return shapes, lambda: tuple(np.ascontiguousarray(self.array(table)) for table in tables)

    def vector(self, table: Table | None, width: int, fill: float) -> Floats:
        """A table with a number for each feature, or without one, `fill`; features beyond the width are 0."""
        values = np.full(width, fill, np.float32) if table is None else self.array(table)
        return np.pad(values, (0, padded(width) - width))

    def of_embedding(self, node: Node) -> tuple[Array, ...]:
        """Bytes and scales of a token embedding: a linear layer from one-hot vectors. Those of the output layer are the
        same if they share the weight."""
        (table,) = node.tables
        assert table is not None
        panels, scale, _ = self.bytes_of(Matrix(((table, None),)))
        return panels, scale

    def of_matrix(self, matrix: Matrix, *, fill: float) -> tuple[Array, ...]:
        """The tables of a product.

        Args:
            fill: bias of the outputs that are added to fill the last panel.
        """
        panels, scale, offset = self.bytes_of(matrix)
        n = padded(matrix.width)
        (bias,) = self.add([((n,), np.float32)], lambda: (self.bias(matrix, fill=fill),))
        return panels, scale, bias, offset

    def bias(self, matrix: Matrix, *, fill: float) -> Floats:
        """The biases of a matrix, with zeros between the layers."""
        bias = np.zeros(padded(matrix.width), np.float32)
        bias[matrix.width :] = fill
        for (_, table), column in zip(matrix.layers, matrix.columns, strict=True):
            if table is not None:
                bias[column : column + table.shape[0]] = self.array(table)
        return bias

    def weight(self, matrix: Matrix) -> Floats:
        """The weights of a matrix, with zeros between the layers."""
        weight = np.zeros((matrix.width, matrix.n_inputs), np.float32)
        for (table, _), column in zip(matrix.layers, matrix.columns, strict=True):
            weight[column : column + table.shape[0]] = self.array(table)
        return weight

    def floats_of_matrix(self, matrix: Matrix, *, fill: float) -> tuple[Array | None, ...]:
        """The tables of a product in fp32."""
        return self.floats_of(matrix.layers[0][0]), None, self.bias(matrix, fill=fill), None

    def floats_of(self, table: Table | None) -> Array:
        """A weight of the model, not copied unless the length of its rows is not a multiple of 16."""
        assert table is not None
        array = np.ascontiguousarray(self.array(table))
        return np.pad(array, ((0, 0), (0, -array.shape[1] % 16))) if array.shape[1] % 16 else array

    def bytes_of(self, matrix: Matrix) -> tuple[Array, ...]:
        """Bytes, scales and sums of the bytes of a product's weight."""
        key = tuple(weight.name for weight, _ in matrix.layers)
        if key not in self.bytes:

            def packed() -> tuple[Array, ...]:
                panels, scale, _, offset = pack(*quantize_weight(self.weight(matrix)), None)
                return panels, scale, offset

            n, k = padded(matrix.width), padded(matrix.n_inputs)
            shapes: Shapes = [((n // PANEL, k // 4, PANEL, 4), np.int8), ((n,), np.float32), ((n,), np.int32)]
            self.bytes[key] = matrix, self.add(shapes, packed)
        return self.bytes[key][1]

    def dense(self, table: Table) -> Floats:
        """A weight of a linear layer in fp32; of a folder in int8, rounded."""
        if self.stored is None:
            return self.array(table)
        for matrix, (panels, scale, _) in self.bytes.values():
            for (weight, _), column in zip(matrix.layers, matrix.columns, strict=True):
                if weight.name == table.name:
                    rows = slice(column, column + weight.shape[0])
                    scales = np.asarray(scale, np.float32)[rows, None]
                    return unpack(panels, matrix.width, matrix.n_inputs)[rows] * scales
        raise KeyError(table.name)


def stored_size(n: int, itemsize: int) -> int:
    """Number of elements of a table in a file: a multiple of 64 bytes."""
    return -(-n * itemsize // 64) * 64 // itemsize
