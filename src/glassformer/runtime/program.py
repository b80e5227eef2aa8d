"""Turns recorded nodes into a program of kernels, and executes it with the C library or with PyTorch."""

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from glassformer.kernels.library import Kernels
from glassformer.kernels.program import (
    ACTIVATIONS,
    IDS,
    Array,
    Batch,
    Executable,
    Instruction,
    Kind,
    Place,
    Shortlist,
    padded,
)
from glassformer.kernels.quantize import EXCLUDED, aligned_copy, select, unpack
from glassformer.runtime.eager import run_eagerly
from glassformer.runtime.recorder import Node
from glassformer.runtime.tables import Linear, Tables

MAX_MERGED = 4
"""Linear layers with the same input are merged up to this ratio of outputs to inputs."""

IN_PLACE: tuple[Kind, ...] = (
    Kind.SCALE,
    Kind.ADD,
    Kind.MULTIPLY,
    Kind.ACTIVATE,
    Kind.NORMALIZE,
    Kind.ROTATE,
    Kind.PRODUCT,
)
"""Operations that can write to the buffer of an input: for a product, that of its residual."""

Caches = Sequence[tuple[Array, Array]]
"""Keys and values of each cache: [slots, padded width]."""


@dataclass(slots=True)
class Step:
    """A node with the steps that compute its inputs."""

    node: Node
    inputs: list[tuple[int, int]]
    """Index of a step, and first column of the input in its result."""
    linear: Linear | None = None


def fuse(nodes: Sequence[Node]) -> list[Node]:
    """Make an activation function of a linear layer's output, or a residual connection, part of the linear layer."""
    n_uses = Counter(x for node in nodes for x in node.inputs)
    fused: dict[Node, Node] = {}
    result: list[Node] = []
    for node in nodes:
        inputs = tuple(fused.get(x, x) for x in node.inputs)
        plain = [x for x in inputs if x.kind == Kind.PRODUCT and len(x.inputs) == 1 and not x.activation]
        plain = [x for x in plain if n_uses[x] == 1]
        if node.kind in (Kind.ADD, Kind.ACTIVATE) and plain:
            product = plain[-1]
            result.remove(product)
            residual = tuple(x for x in inputs if x is not product)
            fused[node] = replace(product, inputs=product.inputs + residual, activation=node.activation)
        else:
            fused[node] = replace(node, inputs=inputs)
        n_uses[fused[node]] = n_uses[node]
        result.append(fused[node])
    return result


def merge_linears(nodes: Sequence[Node], *, is_quantized: bool) -> list[Step]:
    """Steps for nodes. If weights are quantized, linear layers with the same input become one, after a step that
    quantizes the input; in fp32 they stay separate and use the model's own weights."""
    steps: list[Step] = []
    results: dict[Node, tuple[int, int]] = {}
    quantized: dict[Node, int] = {}
    for i, node in enumerate(nodes):
        if node in results:
            continue
        if node.kind != Kind.PRODUCT:
            results[node] = len(steps), 0
            steps.append(Step(node, [results[x] for x in node.inputs]))
            continue
        x, *residual = node.inputs
        if not is_quantized:
            results[node] = len(steps), 0
            linear = Linear(((node.tensors[0], node.tensors[1]),))  # type: ignore[arg-type]
            steps.append(Step(node, [results[x], *(results[r] for r in residual)], linear))
            continue
        if x not in quantized:
            quantized[x] = len(steps)
            is_relu = ACTIVATIONS[x.activation] == "relu"
            steps.append(Step(Node(Kind.QUANTIZE, x.width, (x,), option=is_relu), [results[x]]))
        group = [node]
        for other in nodes[i + 1 :]:
            is_plain = other.kind == Kind.PRODUCT and not other.activation and not node.activation
            if is_plain and other.inputs == (x,) == node.inputs and other not in results:
                if sum(padded(n.width) for n in [*group, other]) > MAX_MERGED * padded(x.width):
                    break
                group.append(other)
        linear = Linear(tuple((n.tensors[0], n.tensors[1]) for n in group))  # type: ignore[misc]
        results |= {n: (len(steps), column) for n, column in zip(group, linear.columns, strict=True)}
        steps.append(Step(node, [(quantized[x], 0), *(results[r] for r in residual)], linear))
    return steps


@dataclass(slots=True)
class Lowered:
    """Instructions on buffers, without tables."""

    instructions: list[Instruction] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    """The step of each instruction."""
    widths: list[int] = field(default_factory=list)
    """Number of features of each buffer."""


def lower(nodes: Sequence[Node], *, is_quantized: bool) -> Lowered:
    """Assign buffers to the results of nodes. A buffer is used again after the last use of its content."""
    steps, lowered = merge_linears(fuse(nodes), is_quantized=is_quantized), Lowered()
    last_use = {step: i for i, s in enumerate(steps) for step, _ in s.inputs}
    buffers: list[int] = []  # of the steps
    free: dict[tuple[bool, int], list[int]] = {}
    for i, step in enumerate(steps):
        node, is_quantize = step.node, step.node.kind == Kind.QUANTIZE
        width = step.linear.width if step.linear else node.width
        dying = [s for s in dict.fromkeys(s for s, _ in step.inputs) if last_use[s] == i]
        released = {s: (steps[s].node.kind == Kind.QUANTIZE, lowered.widths[buffers[s]]) for s in dying}
        read_late = step.inputs[0][0] if step.linear else -1  # a product reads a row while it writes it
        if node.kind in IN_PLACE:
            for s, key in released.items():
                if s != read_late:
                    free.setdefault(key, []).append(buffers[s])
        available = free.setdefault((is_quantize, width), [])
        if node.kind == Kind.STORE:
            buffers.append(0)
        elif available:
            buffers.append(available.pop())
        else:
            buffers.append(len(lowered.widths))
            lowered.widths += [width, 1] if is_quantize else [width]
        for s, key in released.items():
            if node.kind not in IN_PLACE or s == read_late:
                free.setdefault(key, []).append(buffers[s])
        places = [Place(buffers[s], column) for s, column in step.inputs]
        a, b = [*places, *[Place(0), Place(-1)][len(places) :]]
        n_inputs = step.linear.padded_inputs(is_quantized) if step.linear else 0
        lowered.steps.append(step)
        lowered.instructions.append(
            Instruction(
                node.kind, Place(buffers[i]), a, b, n=width, m=n_inputs or node.m,
                option=int(steps[step.inputs[0][0]].node.option if step.linear else node.option), cache=node.cache,
                number=node.number, group=node.group, reach=node.reach, activation=node.activation,
            )
        )  # fmt: skip
    return lowered


def cache_widths_of(nodes: Sequence[Node]) -> list[int]:
    """Number of features of the keys in each cache. The attention kernel reads whole vectors of 16 features."""
    widths: dict[int, int] = {}
    for node in nodes:
        if node.kind in (Kind.STORE, Kind.ATTEND):
            width = node.width // node.group + (15 if node.m % 16 else 0)
            widths[node.cache] = max(width, widths.get(node.cache, 0))
    return [widths[cache] for cache in sorted(widths)]


class Program:
    """A recorded computation that can be executed for any number of rows.

    Args:
        kernels: the C library. None: PyTorch, with the same quantization.
        tables: where the tables of the instructions come from.
        is_quantized: False: fp32, with the model's own weights.
    """

    def __init__(
        self, nodes: Sequence[Node], kernels: Kernels | None, tables: Tables, *, is_quantized: bool = True
    ) -> None:
        self.lowered = lower(nodes, is_quantized=is_quantized)
        self.cache_widths, self.kernels = cache_widths_of(nodes), kernels
        self.cache_dtype: type[np.floating] = np.float16 if is_quantized else np.float32
        self.lock = threading.Lock()
        """The buffers are used by one call at a time."""
        self.width = nodes[-1].width
        self.executables: dict[Kind | None, Executable] = {}
        self.instructions: list[Instruction] = []
        self.quantized: dict[int, tuple[Tensor, Tensor, Tensor]] = {}
        self.biases: dict[tuple[int, ...], Array] = {}
        last = self.lowered.steps[-1]
        for i, (instruction, step) in enumerate(zip(self.lowered.instructions, self.lowered.steps, strict=True)):
            is_embedding = step.node.kind == Kind.GATHER
            if is_embedding and not is_quantized:
                instruction = replace(instruction, tables=(None, None, tables.floats_of(step.node.tensors[0])))
            elif is_embedding and step.node.option == IDS:
                instruction = replace(instruction, tables=tables.of_embedding(step.node))
            elif step.linear is None:
                instruction = replace(instruction, tables=tables.of_node(step.node))
            elif is_quantized:
                packed = tables.of_linear(step.linear, fill=EXCLUDED if step is last else 0.0)
                instruction = replace(instruction, tables=packed)
                if kernels is None:
                    n, k = step.linear.width, step.linear.n_inputs
                    panels, scale, bias, _ = packed
                    arrays = unpack(panels, n, k), scale[:n].copy(), bias[:n].copy()
                    self.quantized[i] = tuple(map(torch.from_numpy, arrays))  # type: ignore[assignment]
            else:
                fill = EXCLUDED if step is last else 0.0
                instruction = replace(instruction, tables=tables.floats_of_linear(step.linear, fill=fill))
                if kernels is None:
                    self.quantized[i] = step.linear.weight(), torch.empty(0), step.linear.bias()
            self.instructions.append(instruction)

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
        if self.kernels is None:
            end = -1 if last == Kind.PRODUCT else None
            run_eagerly(self.instructions[:end], self.quantized, batch, caches)
            return
        with self.lock:
            executable = self.executable(None if last == Kind.PRODUCT else last)
            executable.run(batch, caches, torch.get_num_threads())

    def run(self, batch: Batch, caches: Caches) -> Tensor:
        """Execute the program. Returns the result of its last operation."""
        last = self.instructions[-1]
        if self.kernels is None:
            return run_eagerly(self.instructions, self.quantized, batch, caches)
        with self.lock:
            executable = self.executable(last.kind)
            executable.run(batch, caches, torch.get_num_threads())
            buffer = executable.buffers[last.out.buffer]
            return torch.from_numpy(buffer[: len(batch), : self.width].copy())

    def shortlist(self, ids: NDArray[np.int32]) -> Shortlist:
        """Some columns of the last linear layer.

        Args:
            ids: the columns, ascending.
        """
        return Shortlist(ids, select(self.instructions[-1].tables, ids) if self.kernels else ())

    def best(
        self, batch: Batch, caches: Caches, k: int, banned: tuple[int, ...] = ()
    ) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Execute the program. Returns log-probabilities and ids of the k best tokens of each row, best first.

        Args:
            banned: ids of tokens with probability 0.
        """
        if self.kernels is None:
            logits = self.run(batch, caches)
            logits[:, list(banned)] = -torch.inf
            for row, index in enumerate([] if batch.shortlist is None else batch.shortlist.tolist()):
                if index >= 0:
                    is_excluded = torch.ones(self.width, dtype=torch.bool)
                    is_excluded[batch.shortlists[index].ids] = False
                    logits[row, is_excluded] = -torch.inf
            values, ids = logits.log_softmax(-1).topk(k)
            return values.numpy(), ids.int().numpy()
        with self.lock:
            executable = self.executable(Kind.BEST)
            if banned not in self.biases:
                bias = np.array(self.instructions[-1].tables[2])
                bias[list(banned)] = EXCLUDED
                self.biases[banned] = aligned_copy(bias)
            executable.set_table(-1, 2, self.biases[banned])
            return executable.run(batch, caches, torch.get_num_threads(), k)
