"""Programs for the kernels: instructions on named buffers, and their execution by the C library on numpy arrays."""

import ctypes
import enum
from collections.abc import Sequence
from ctypes import c_float, c_int32, c_int64, c_void_p
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.kernels.library import Kernels

Array = NDArray[np.generic]

PANEL = 64
"""Widths of buffers are multiples of this number of features."""

IDS, POSITIONS, TYPES = range(3)
"""Integers of a row that `GATHER` can use, as `option`: token id, position, token type."""

ACTIVATIONS = ("", "relu", "gelu", "gelu_tanh", "silu", "tanh")
"""Activation functions, in the order of `enum Activation` in rows.h."""

PIECES = 16
"""Parts of the vocabulary in `BEST` (topk.h)."""


class Kind(enum.IntEnum):
    """Kinds of operations, in the order of `enum Kind` in program.h."""

    GATHER = 0
    SCALE = 1
    ADD = 2
    MULTIPLY = 3
    ACTIVATE = 4
    NORMALIZE = 5
    ROTATE = 6
    QUANTIZE = 7
    STORE = 8
    PRODUCT = 9
    ATTEND = 10
    BEST = 11


class COp(ctypes.Structure):
    """`Op` of program.h."""

    _fields_ = [
        *((name, c_int32) for name in ("kind", "out", "a", "b", "out_at", "a_at", "b_at", "n", "m", "option", "cache")),
        ("number", c_float),
        ("group", c_int32),
        ("reach", c_int32),
        ("activation", c_int32),
        ("tables", c_void_p * 4),
    ]


class CRows(ctypes.Structure):
    """`Rows` of program.h."""

    _fields_ = [
        ("n_rows", c_int64),
        ("index", c_void_p * 3),
        ("slot", c_void_p),
        ("list", c_void_p * 2),
        ("begin", c_void_p * 2),
        ("length", c_void_p * 2),
        ("shortlists", c_void_p),
        ("shortlist", c_void_p),
    ]


class CProgram(ctypes.Structure):
    """`Program` of program.h."""

    _fields_ = [
        *((name, c_int64) for name in ("n_ops", "n_buffers", "k", "scratch_size", "has_halves")),
        *((name, c_void_p) for name in ("ops", "buffers", "strides", "caches", "cache_strides")),
        *((name, c_void_p) for name in ("phases", "scratch", "workspace", "least", "best", "best_ids")),
    ]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value is: a buffer, and its first column there."""

    buffer: int
    column: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Instruction:
    """One operation of a program. Fields as in `Op` of program.h."""

    kind: Kind
    out: Place = Place(0)
    a: Place = Place(0)
    b: Place = Place(-1)  # none
    n: int = 0
    m: int = 0
    option: int = 0
    cache: int = 0
    number: float = 0.0
    group: int = 1
    reach: int = 0
    activation: int = 0
    tables: tuple[Array | None, ...] = ()
    """C-contiguous arrays."""


class Columns:
    """Some columns of the weight of `BEST`: `Shortlist` of program.h."""

    def __init__(self, ids: NDArray[np.int32], tables: Sequence[Array | None]) -> None:
        """
        Args:
            ids: columns, ascending.
            tables: those of a `PRODUCT`, for these columns.
        """
        self.ids, self.tables = ids, tables
        self.padded_ids = np.zeros(padded(len(ids)), np.int32)
        self.padded_ids[: len(ids)] = ids
        addresses = [address(self.padded_ids), *map(address, tables)]
        self.record = np.array([len(ids), *(a or 0 for a in addresses)], np.int64)
        """The structure in C."""


@dataclass(slots=True)
class Batch:
    """The rows that a program is executed for: one token each. Arrays of int32, one number per row."""

    ids: Array
    positions: Array
    types: Array
    """Token types."""
    slots: Array
    """Where keys and values are stored."""
    lists: tuple[Array, Array]
    """Slots that rows attend to in self-attention and in cross-attention."""
    begins: tuple[Array, Array]
    lengths: tuple[Array, Array]
    """Part of `lists` that each row attends to. In self-attention, entry i is the slot of position i."""
    shortlists: Sequence[Columns] = ()
    shortlist: NDArray[np.int32] | None = None
    """Of each row, an index of `shortlists`; -1: all columns. None: so for all rows."""

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, rows: slice) -> "Batch":
        """Some of the rows."""
        ids, positions, types, slots = (x[rows] for x in (self.ids, self.positions, self.types, self.slots))
        (begin, other_begin), (length, other_length) = self.begins, self.lengths
        shortlist = None if self.shortlist is None else self.shortlist[rows]
        return Batch(
            ids, positions, types, slots, self.lists, (begin[rows], other_begin[rows]),
            (length[rows], other_length[rows]), self.shortlists, shortlist,
        )  # fmt: skip


def padded(width: int) -> int:
    """Width of a buffer that holds `width` features."""
    return -(-width // PANEL) * PANEL


def aligned(shape: tuple[int, ...], dtype: type[np.generic]) -> Array:
    """An array of zeros whose memory begins at a multiple of 64 bytes. Memory is used only when it is written."""
    n_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    memory = np.zeros(n_bytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + n_bytes].view(dtype).reshape(shape)


def aligned_rows(features: NDArray[np.float32]) -> Array:
    """Features as a table of a `GATHER` in floats: rows of a multiple of 16 numbers."""
    n, width = features.shape
    rows = aligned((n, width + -width % 16), np.float32)
    rows[:, :width] = features
    return rows


def address(array: Array | None) -> int | None:
    """Address of the memory of an array."""
    return None if array is None else array.__array_interface__["data"][0]


def pointers(arrays: Sequence[Array]) -> ctypes.Array[c_void_p]:
    """C array of the addresses of arrays."""
    return (c_void_p * len(arrays))(*map(address, arrays))


@dataclass(slots=True)
class Executable:
    """A program in the C library's structures, with its buffers.

    Args:
        widths: number of features of each buffer. The buffer after one that `QUANTIZE` writes holds the scales.
        cache_widths: number of features of the keys of each cache.
    """

    kernels: Kernels
    instructions: Sequence[Instruction]
    widths: Sequence[int]
    cache_widths: Sequence[int]
    capacity: int = 0
    """Rows that the buffers have memory for."""
    buffers: list[Array] = field(default_factory=list)
    kept: dict[str, Any] = field(default_factory=dict)
    """Memory that the structures point to, by name."""
    caches: Sequence[tuple[Array, Array]] = ()
    """The caches of the last call."""
    ops: ctypes.Array[COp] = field(init=False)
    sizes: list[tuple[int, int]] = field(init=False)
    """Number of heads and d_head of each attention."""
    wide_size: int = field(init=False)
    program: CProgram = field(default_factory=CProgram)

    def __post_init__(self) -> None:
        self.ops = (COp * len(self.instructions))()
        for op, i in zip(self.ops, self.instructions, strict=True):
            op.kind, op.out, op.a, op.b = i.kind, i.out.buffer, i.a.buffer, i.b.buffer
            op.out_at, op.a_at, op.b_at = i.out.column, i.a.column, i.b.column
            op.n, op.m, op.option, op.cache = i.n, i.m, i.option, i.cache
            op.number, op.group, op.reach, op.activation = i.number, i.group, i.reach, i.activation
            op.tables[: len(i.tables)] = [address(table) for table in i.tables]
        self.kept["strides"] = np.array([padded(width) for width in self.widths], np.int64)
        self.kept["cache_strides"] = np.array([padded(width) for width in self.cache_widths], np.int64)
        p = self.program
        p.n_ops, p.n_buffers, p.ops = len(self.ops), len(self.widths), ctypes.addressof(self.ops)
        p.strides, p.cache_strides = address(self.kept["strides"]), address(self.kept["cache_strides"])
        # A panel of weights and some rows in 16 bits; see product.h.
        inputs = [i.m for i in self.instructions if i.kind in (Kind.PRODUCT, Kind.BEST)]
        self.wide_size = (PANEL + 6) * max(inputs, default=0) // 2
        self.sizes = [(i.n // i.m, i.m) for i in self.instructions if i.kind == Kind.ATTEND]

    def set_table(self, index: int, which: int, table: Array) -> None:
        """Replace a table of an instruction."""
        self.kept[f"table {index}.{which}"] = table
        self.ops[index].tables[which] = address(table)

    def result(self, buffer: int, n_rows: int, width: int) -> NDArray[np.float32]:
        """A copy of the content of a buffer after a run."""
        return self.buffers[buffer][:n_rows, :width].copy()  # type: ignore[return-value]

    def reserve(self, n_rows: int) -> None:
        """Allocate the buffers for a number of rows, unless they have memory for it."""
        if n_rows > self.capacity:
            self.capacity = max(n_rows, 2 * self.capacity)
            self.buffers = [aligned((self.capacity, padded(width)), np.float32) for width in self.widths]
            self.kept["buffers"] = pointers(self.buffers)
            self.program.buffers = ctypes.addressof(self.kept["buffers"])

    def memory(self, name: str, n: int) -> int | None:
        """Address of memory for n floats, kept for the next call."""
        if name not in self.kept or len(self.kept[name]) < n:
            self.kept[name] = aligned((2 * n,), np.float32)
        return address(self.kept[name])

    def run(
        self, batch: Batch, caches: Sequence[tuple[Array, Array]], n_threads: int, k: int = 0
    ) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Execute the program. Returns the log-probabilities and ids of the k best tokens, if it ends with `BEST`.

        Args:
            caches: keys and values, [slots, padded width], in half precision or fp32.
        """
        n, p = len(batch), self.program
        self.reserve(n)
        if caches is not self.caches:
            self.caches, self.kept["caches"] = caches, pointers([array for pair in caches for array in pair])
            p.caches = ctypes.addressof(self.kept["caches"])
            p.has_halves = not caches or caches[0][0].dtype == np.float16
        longest = max((int(length.max()) for length in batch.lengths), default=0)
        # Scores of all heads, and queries of all heads; see attention.h.
        attention = max((heads * (longest + 16 + d_head + 16) for heads, d_head in self.sizes), default=0)
        p.scratch_size = padded(max(attention, self.wide_size))
        p.scratch = self.memory("scratch", n_threads * p.scratch_size)
        p.phases = self.memory("phases", 16 * (len(self.ops) + 1) * (n_threads + 1))
        best, best_ids = np.empty((n, k), np.float32), np.empty((n, k), np.int32)
        least = np.full(n, -np.inf, np.float32)
        p.k, p.best, p.best_ids, p.least = k, address(best), address(best_ids), address(least)
        p.workspace = self.memory("workspace", n * PIECES * (2 * 16 + 2 * k))  # LogSumExp, values and ids of topk.h
        records = np.concatenate([shortlist.record for shortlist in batch.shortlists]) if batch.shortlists else None
        rows = CRows(
            n, tuple(map(address, (batch.ids, batch.positions, batch.types))), address(batch.slots),
            *(tuple(map(address, pair)) for pair in (batch.lists, batch.begins, batch.lengths)),
            address(records), address(batch.shortlist),
        )  # fmt: skip
        self.kernels.run(p, rows, n_threads)
        return best, best_ids
