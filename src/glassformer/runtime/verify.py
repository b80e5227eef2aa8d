"""Verifies graphs: after it, no graph can make the kernels in C read or write outside of their memory.

One pass over the operations, like a bytecode verifier. `glassformer.runtime.lowering` assigns buffers and slots, so a
graph contains no addresses, only sizes. The sizes of tables and inputs must fit together; what is attended to must have
been stored, in a cache of the same side and width; limits are kept. The numbers in tables need no check: no
kernel uses one as an index.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from glassformer.runtime.graph import (
    Activate,
    Add,
    Attend,
    Gather,
    Graph,
    Input,
    Linear,
    Multiply,
    Normalize,
    Operation,
    ProgramName,
    Rotate,
    Scale,
    Side,
    Store,
    Table,
)

MAX_OPERATIONS = 10_000
MAX_WIDTH = 1 << 21
"""Largest number of features of a result, and largest sum of all in a program: memory for each row."""

HEADS: tuple[ProgramName, ...] = "head", "next"

RANKS = {"table": 2, "weight": 2, "cosines": 2, "sines": 2, "gain": 1, "bias": 1, "distance_bias": 2}
"""Field of an operation -> number of dimensions of its table."""

Stored = dict[tuple[Side, int], int]
"""Side and number of a cache -> number of features of its keys."""


class ProgramError(Exception):
    """A graph that must not be executed."""


def need(condition: bool, what: str) -> None:
    """Raise an error unless a condition holds."""
    if not condition:
        raise ProgramError(what)


def verify(graph: Graph) -> None:
    """Verify all programs of a graph.

    Raises:
        ProgramError: it must not be executed.
    """
    need("encode" in graph.programs or set(graph.programs) == {"step"}, "the set of programs")
    need("step" not in graph.programs or set(graph.programs) <= {"encode", "step"}, "the set of programs")
    for name, array in graph.constants.items():
        need(name in graph.tables and name not in graph.weights, f"the name of the constant {name!r}")
        need(array.dtype == "float32", f"the type of the constant {name!r}")
    for table in graph.tables.values():
        check_table(table, graph)
    for operation in graph.operations():
        for field in fields(operation):
            if isinstance(table := getattr(operation, field.name), Table):
                need(len(table.shape) == RANKS[field.name], f"the number of dimensions of {table.name!r}")
    of_source: Stored = {}
    if "encode" in graph.programs:
        stored = verify_program(graph, "encode", {})
        of_source = {key: width for key, width in stored.items() if key[0] == "source"}
        need(bool(of_source) == ("step" in graph.programs), "the caches of the source")
        n_own = sum(side == "own" for side, _ in stored)
        need(not of_source or n_own == 1, "an encoder before a decoder has one cache of its own")
    if "step" in graph.programs:
        stored = verify_program(graph, "step", of_source)
        n_layers = sum(side == "own" for side, _ in stored)
        need(len(of_source) in (0, n_layers), "the number of caches")
        need(isinstance(graph.programs["step"][-1], Linear), "the last operation of `step` is not the output layer")
    for name in HEADS:
        if name in graph.programs:
            head = graph.programs[name]
            size = graph.programs["encode"][-1].width
            need(isinstance(head[0], Input) and head[0].size == size, f"the input of {name}")
            verify_program(graph, name, {})
            need(isinstance(head[-1], Linear), f"the last operation of {name} is not its output layer")


def check_table(table: Table, graph: Graph) -> None:
    """Check that a table has as many numbers as its shape says."""
    what = f"the shape of the table {table.name!r}"
    need(len(table.shape) in (1, 2) and min(table.shape) > 0, what)
    if table.rows is not None:
        of = graph.weights.get(table.of, ())
        need(len(of) == 2 and table.name not in {*graph.weights, *graph.constants}, what)
        need(table.shape == (len(table.rows), of[1]) and max(table.rows) < of[0], f"the rows of {table.name!r}")
    elif table.name in graph.constants:
        need(graph.constants[table.name].shape == table.shape, what)
    else:
        need(graph.weights.get(table.name) == table.shape, what)


def verify_program(graph: Graph, name: ProgramName, of_source: Stored) -> Stored:
    """Verify a program. Returns the caches.

    Args:
        of_source: the caches of the source.
    """
    program = graph.programs[name]
    need(sum(operation.width for operation in program if not isinstance(operation, Store)) <= MAX_WIDTH, "the widths")
    stored = dict(of_source)
    for i, operation in enumerate(program):
        try:
            need(not any(isinstance(x, Store) for x in operation.inputs), "uses the result of a store, which has none")
            need(isinstance(operation, Input) == (name in HEADS and i == 0), "the position of the input")
            need(name not in HEADS or not isinstance(operation, Gather), "a table of tokens in a head")
            if isinstance(operation, Store | Attend):
                need(name not in HEADS, "a cache in a head")
                need(name == "step" or operation.side == "own" or isinstance(operation, Store), "the side of a cache")
            CHECKS[type(operation)](operation, stored)
            if isinstance(operation, Store):
                need(name == "encode" or operation.side == "own", "a step stores in a cache of the source")
        except ProgramError as error:
            raise ProgramError(f"{name} {i} ({type(operation).__name__.lower()}): {error}") from None
    need(sum(stored.values()) <= MAX_WIDTH, "the widths of the caches")
    for side in ("own", "source"):
        numbers = sorted(number for s, number in stored if s == side)
        need(numbers == list(range(len(numbers))), f"the numbers of the caches of {name}")
    return stored


def check_input(operation: Input, stored: Stored) -> None:
    """The size is limited."""
    need(0 < operation.size <= MAX_WIDTH, "its size")


def check_gather(operation: Gather, stored: Stored) -> None:
    """Any table."""


def check_scale(operation: Scale, stored: Stored) -> None:
    """Any factor."""


def check_pair(operation: Add | Multiply, stored: Stored) -> None:
    """Equal widths."""
    need(operation.x.width == operation.y.width, "the widths of its inputs")


def check_activate(operation: Activate, stored: Stored) -> None:
    """Any input."""


def check_normalize(operation: Normalize, stored: Stored) -> None:
    """Tables of the width."""
    check_vector(operation.gain, operation.width)
    check_vector(operation.bias, operation.width)
    need(operation.epsilon >= 0, "epsilon")


def check_rotate(operation: Rotate, stored: Stored) -> None:
    """Whole heads."""
    need(operation.cosines.shape == operation.sines.shape, "its tables")
    need(operation.width % operation.d_head == 0, "the size of a head")


def check_linear(operation: Linear, stored: Stored) -> None:
    """The weight has the width of the input."""
    need(operation.weight.shape[1] == operation.x.width, "the shape of its weight")
    check_vector(operation.bias, operation.width)


def check_store(operation: Store, stored: Stored) -> None:
    """Keys and values of one width. Layers of an encoder share a cache, one after the other, also with other widths."""
    need(operation.keys.width == operation.values.width, "the widths of keys and values")
    stored[operation.side, operation.cache] = operation.keys.width


def check_attend(operation: Attend, stored: Stored) -> None:
    """Whole heads, and keys that were stored."""
    d_head, n_kv_heads = operation.d_head, operation.n_kv_heads
    need(d_head > 0 and operation.width % d_head == 0, "the size of a head")
    need(n_kv_heads > 0 and operation.n_heads % n_kv_heads == 0, "the number of heads")
    need(stored.get((operation.side, operation.cache)) == n_kv_heads * d_head, "attends to what was not stored")
    if operation.distance_bias is not None:
        n_distances, n_heads = operation.distance_bias.shape
        need(n_distances % 2 == 1 and n_heads == operation.n_heads, "the shape of its bias")


def check_vector(table: Table | None, width: int) -> None:
    """Check a table with one number for each feature."""
    need(table is None or table.shape == (width,), "the shape of a table")


CHECKS: dict[type[Operation], Callable[[Any, Stored], None]] = {
    Input: check_input,
    Gather: check_gather,
    Scale: check_scale,
    Add: check_pair,
    Multiply: check_pair,
    Activate: check_activate,
    Normalize: check_normalize,
    Rotate: check_rotate,
    Linear: check_linear,
    Store: check_store,
    Attend: check_attend,
}
"""What each operation requires."""


def n_positions(graph: Graph) -> int | None:
    """Number of positions of which the tables have entries. None: the graph has no tables of positions."""
    sizes = [
        operation.table.shape[0] if isinstance(operation, Gather) else operation.cosines.shape[0]
        for operation in graph.operations()
        if isinstance(operation, Rotate) or (isinstance(operation, Gather) and operation.by == "position")
    ]
    return min(sizes, default=None)


def n_entries(graph: Graph, by: str) -> int:
    """Number of tokens or token types of which the tables have entries; 0: there are no such tables."""
    sizes = [x.table.shape[0] for x in graph.operations() if isinstance(x, Gather) and x.by == by]
    return min(sizes, default=0)
