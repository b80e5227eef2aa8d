"""Programs of a graph, executed by the C library, or by PyTorch where it is absent."""

import threading
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from glassformer.kernels.library import Kernels
from glassformer.kernels.program import IDS, Array, Batch, Columns, Executable, Instruction, Kind, aligned_rows
from glassformer.kernels.quantize import EXCLUDED, aligned_copy, select
from glassformer.runtime.graph import Attend, Operation, Side, Store
from glassformer.runtime.lowering import Step, lower, nodes_of
from glassformer.runtime.tables import Tables
from glassformer.threads import n_threads

if TYPE_CHECKING:
    from glassformer.runtime.eager import EagerProgram

Caches = Sequence[tuple[Array, Array]]
"""Keys and values of each cache: [slots, padded width]."""


def cache_widths_of(operations: Sequence[Operation], side: Side) -> list[int]:
    """Number of features of the keys in each cache of a side. The attention kernel reads whole vectors of 16."""
    widths: dict[int, int] = {}
    for operation in operations:
        if isinstance(operation, Attend) and operation.side == side:
            width = operation.n_kv_heads * operation.d_head + (15 if operation.d_head % 16 else 0)
            widths[operation.cache] = max(width, widths.get(operation.cache, 0))
        elif isinstance(operation, Store) and operation.side == side:
            widths[operation.cache] = max(operation.keys.width, widths.get(operation.cache, 0))
    return [widths[cache] for cache in sorted(widths)]


class Program:
    """A program of a graph that can be executed for any number of rows.

    Args:
        operations: the program, of a verified graph.
        source_widths: number of features of the keys in the caches of the source, which come after the own ones.
        kernels: the C library. None: PyTorch, with the same quantization.
        tables: where the tables of the instructions come from.
        is_quantized: False: fp32, with the weights themselves.
    """

    def __init__(
        self,
        operations: Sequence[Operation],
        source_widths: Sequence[int],
        kernels: Kernels | None,
        tables: Tables,
        *,
        is_quantized: bool = True,
    ) -> None:
        own_widths = cache_widths_of(operations, "own")
        nodes = nodes_of(operations, len(own_widths))
        self.lowered, self.is_quantized = lower(nodes, is_quantized=is_quantized), is_quantized
        self.cache_widths, self.kernels = [*own_widths, *source_widths], kernels
        self.cache_dtype: type[np.floating] = np.float16 if is_quantized else np.float32
        self.lock = threading.Lock()
        """The buffers are used by one call at a time."""
        self.width = nodes[-1].width
        self.executables: dict[Kind | None, Executable] = {}
        self.biases: dict[tuple[int, ...], Array] = {}
        steps = self.lowered.steps
        self.instructions = [
            replace(instruction, tables=self.tables_of(step, tables, is_last=step is steps[-1]))
            for instruction, step in zip(self.lowered.instructions, steps, strict=True)
        ]
        self.eager: EagerProgram | None = None
        if kernels is None:
            from glassformer.runtime import eager

            self.eager = eager.EagerProgram(self.instructions, steps)

    def tables_of(self, step: Step, tables: Tables, *, is_last: bool) -> tuple[Array | None, ...]:
        """The tables of an instruction."""
        node, fill = step.node, EXCLUDED if is_last else 0.0
        if step.matrix is not None:
            of_matrix = tables.of_matrix if self.is_quantized else tables.floats_of_matrix
            return of_matrix(step.matrix, fill=fill)
        if node.kind != Kind.GATHER or not node.tables:
            return tables.of_node(node) if node.tables else ()
        if not self.is_quantized:
            return None, None, tables.floats_of(node.tables[0])
        return tables.of_embedding(node) if node.option == IDS else tables.of_node(node)

    def executable(self, last: Kind | None) -> Executable:
        """The program for the C library. `last`: kind of the last operation; None: without it."""
        assert self.kernels is not None
        if last not in self.executables:
            instructions = self.instructions[:-1]
            if last is not None:
                instructions.append(replace(self.instructions[-1], kind=last))
            self.executables[last] = Executable(self.kernels, instructions, self.lowered.widths, self.cache_widths)
        return self.executables[last]

    def store(self, batch: Batch, caches: Caches) -> None:
        """Execute the program for its effect on the caches, without a linear layer at its end."""
        last = self.instructions[-1].kind
        if self.eager:
            self.eager.run(batch, caches, self.instructions[: -1 if last == Kind.PRODUCT else None])
            return
        with self.lock:
            executable = self.executable(None if last == Kind.PRODUCT else last)
            executable.run(batch, caches, n_threads())

    def run(self, batch: Batch, caches: Caches) -> NDArray[np.float32]:
        """Execute the program. Returns the result of its last operation."""
        if self.eager:
            return self.eager.run(batch, caches, self.instructions)
        with self.lock:
            executable = self.executable(self.instructions[-1].kind)
            executable.run(batch, caches, n_threads())
            return executable.result(self.instructions[-1].out.buffer, len(batch), self.width)

    def run_head(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Execute a program that begins with an input.

        Args:
            features: the input, [rows, features].
        """
        rows = aligned_rows(features)
        index, slots = np.arange(len(rows), dtype=np.int32), np.zeros(len(rows), np.int32)
        batch = Batch(index, slots, slots, slots, (slots, slots), (slots, slots), (slots, slots))
        first = replace(self.instructions[0], tables=(None, None, rows))
        if self.eager:
            return self.eager.run(batch, (), [first, *self.instructions[1:]])
        with self.lock:
            executable = self.executable(self.instructions[-1].kind)
            executable.set_table(0, 2, rows)
            executable.run(batch, (), n_threads())
            return executable.result(self.instructions[-1].out.buffer, len(batch), self.width)

    def changed(self, instructions: list[Instruction], widths: list[int]) -> "Program":
        """A program with other instructions, which use tables of this one, and other buffers."""
        other = copy(self)
        other.instructions, other.executables, other.lock = instructions, {}, threading.Lock()
        other.lowered = replace(self.lowered, widths=widths)
        return other

    def run_for(self, batch: Batch, caches: Caches, buffers: Sequence[int]) -> list[NDArray[np.float32]]:
        """Execute the program. Returns the content of buffers."""
        if self.eager:
            return self.eager.run_for(batch, caches, self.instructions, buffers)
        with self.lock:
            executable = self.executable(self.instructions[-1].kind)
            executable.run(batch, caches, n_threads())
            widths = self.lowered.widths
            return [executable.result(buffer, len(batch), widths[buffer]) for buffer in buffers]

    def columns(self, ids: NDArray[np.int32]) -> Columns:
        """Some columns of the last linear layer.

        Args:
            ids: the columns, ascending.
        """
        return Columns(ids, select(self.instructions[-1].tables, ids) if self.kernels else ())

    def best(
        self, batch: Batch, caches: Caches, k: int, banned: tuple[int, ...] = ()
    ) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Execute the program. Returns log-probabilities and ids of the k best tokens of each row, best first.

        Args:
            banned: ids of tokens with probability 0.
        """
        if self.eager:
            return self.eager.best(batch, caches, self.instructions, k, banned)
        with self.lock:
            executable = self.executable(Kind.BEST)
            if banned not in self.biases:
                bias = np.array(self.instructions[-1].tables[2])
                bias[list(banned)] = EXCLUDED
                self.biases[banned] = aligned_copy(bias)
            executable.set_table(-1, 2, self.biases[banned])
            return executable.run(batch, caches, n_threads(), k)
