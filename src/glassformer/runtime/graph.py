"""The computation of a model, as a graph of operations on rows: what a model folder stores beside the weights.

A row is one token of one sequence. The graph of a model consists of programs, lists of operations in the order of
their execution. An operation takes the results of earlier ones, [rows, width]; tables, which are weights by name; and
numbers. There are no loops and no addresses, so that a graph from a stranger can be checked completely
(`glassformer.runtime.verify`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Integers = Literal["token", "position", "type"]
"""What a row is looked up by: token id, position, token type."""

Function = Literal["relu", "gelu", "gelu_tanh", "silu", "tanh"]
"""Activation functions."""

Side = Literal["own", "source"]
"""Whose keys and values a cache holds: those of the row's own sequence, or of the source of a decoder."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of numbers: a weight, some rows of a weight, or a constant of the graph."""

    name: str
    shape: tuple[int, ...]
    of: str = ""
    """Name of the weight, if the table consists of rows of it."""
    rows: tuple[int, ...] | None = None
    """The rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """An operation on rows. Fields: results of other operations, tables, numbers."""

    @property
    def inputs(self) -> tuple["Operation", ...]:
        """The operations whose results are used."""
        values = (getattr(self, f.name) for f in fields(self))
        return tuple(value for value in values if isinstance(value, Operation))

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables that are used."""
        values = (getattr(self, f.name) for f in fields(self))
        return tuple(value for value in values if isinstance(value, Table))

    @property
    def width(self) -> int:
        """Number of features of the result."""
        return self.inputs[0].width


@dataclass(frozen=True, slots=True, eq=False)
class Input(Operation):
    """Features that the caller gives."""

    size: int

    @property
    def width(self) -> int:
        return self.size


@dataclass(frozen=True, slots=True, eq=False)
class Gather(Operation):
    """Embedding: a row of a table."""

    table: Table
    by: Integers

    @property
    def width(self) -> int:
        return self.table.shape[1]


@dataclass(frozen=True, slots=True, eq=False)
class Scale(Operation):
    """x * factor."""

    x: Operation
    factor: float


@dataclass(frozen=True, slots=True, eq=False)
class Add(Operation):
    """x + y."""

    x: Operation
    y: Operation


@dataclass(frozen=True, slots=True, eq=False)
class Multiply(Operation):
    """x * y."""

    x: Operation
    y: Operation


@dataclass(frozen=True, slots=True, eq=False)
class Activate(Operation):
    """An activation function of x."""

    x: Operation
    function: Function


@dataclass(frozen=True, slots=True, eq=False)
class Normalize(Operation):
    """LayerNorm or RMSNorm of x."""

    x: Operation
    gain: Table | None
    bias: Table | None
    epsilon: float
    norm: Literal["layer", "rms"]


@dataclass(frozen=True, slots=True, eq=False)
class Rotate(Operation):
    """Rotary position embedding of the heads of x. Tables: [positions, d_head / 2]."""

    x: Operation
    cosines: Table
    sines: Table

    @property
    def d_head(self) -> int:
        """Features of a head."""
        return 2 * self.cosines.shape[1]


@dataclass(frozen=True, slots=True, eq=False)
class Linear(Operation):
    """x W^T + bias. Tables: [outputs, inputs], [outputs]."""

    x: Operation
    weight: Table
    bias: Table | None

    @property
    def width(self) -> int:
        return self.weight.shape[0]


@dataclass(frozen=True, slots=True, eq=False)
class Store(Operation):
    """Store keys and values in a cache, at the slot of the row. It has no result."""

    keys: Operation
    values: Operation
    cache: int
    side: Side


@dataclass(frozen=True, slots=True, eq=False)
class Attend(Operation):
    """Attention with queries over the keys and values that a cache has for the row. Heads share keys in groups.

    `distance_bias`: added to the score of a key, by its distance from the query, from -reach to reach, and by head:
    [2 reach + 1, heads].
    """

    queries: Operation
    cache: int
    side: Side
    d_head: int
    n_kv_heads: int
    scale: float
    distance_bias: Table | None

    @property
    def n_heads(self) -> int:
        """Number of heads of the queries."""
        return self.width // self.d_head


OPERATIONS: dict[str, type[Operation]] = {
    operation.__name__.lower(): operation
    for operation in (Input, Gather, Scale, Add, Multiply, Activate, Normalize, Rotate, Linear, Store, Attend)
}
"""Name in a file -> operation."""

ProgramName = Literal["encode", "step", "head", "next"]
"""`encode`: the rows of a text or a source. `step`: the next token of a decoder, up to its logits. `head`: the outputs
of an encoder for a row of features. `next`: those of its second head, for next-sentence prediction."""


@dataclass(frozen=True, slots=True)
class Graph:
    """The programs of a model."""

    programs: Mapping[ProgramName, Sequence[Operation]]
    weights: Mapping[str, tuple[int, ...]]
    """Name -> shape of each weight of the model, also of those that no program uses."""
    constants: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    """Tables that are neither weights nor rows of them, such as sinusoids."""

    def operations(self) -> Iterator[Operation]:
        """All operations."""
        for program in self.programs.values():
            yield from program

    @property
    def tables(self) -> dict[str, Table]:
        """All tables by name."""
        return {table.name: table for operation in self.operations() for table in operation.tables}


Floats = NDArray[np.float32]

Weights = Mapping[str, Floats]
"""Name -> weight."""


def array_of(table: Table, weights: Weights, graph: Graph) -> Floats:
    """The numbers of a table."""
    if table.name in graph.constants:
        return graph.constants[table.name]
    if table.rows is None:
        return weights[table.name]
    return weights[table.of][list(table.rows)]
