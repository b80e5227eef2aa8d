"""Lowers the programs of a graph to instructions of the kernels: fuses operations, merges linear layers, and assigns
buffers.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from typing import get_args

from glassformer.kernels.program import ACTIVATIONS, PANEL, Instruction, Kind, Place, padded
from glassformer.runtime.graph import (
    Activate,
    Add,
    Attend,
    Gather,
    Input,
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


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """An operation as the kernels have it. Fields as in `kernels.program.Instruction`, with the names of tables."""

    kind: Kind
    width: int
    """Number of features of the result."""
    inputs: tuple["Node", ...] = ()
    tables: tuple[Table | None, ...] = ()
    m: int = 0
    option: int = 0
    cache: int = 0
    number: float = 0.0
    group: int = 1
    reach: int = 0
    activation: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """Linear layers with the same input, as one matrix. The outputs of each layer begin at a multiple of 64."""

    layers: tuple[tuple[Table, Table | None], ...]
    """Weight and bias of each."""

    @property
    def columns(self) -> list[int]:
        """First output feature of each layer."""
        return list(accumulate((padded(weight.shape[0]) for weight, _ in self.layers[:-1]), initial=0))

    @property
    def width(self) -> int:
        """Number of output features, with the zeros between the layers."""
        return self.columns[-1] + self.layers[-1][0].shape[0]

    @property
    def n_inputs(self) -> int:
        """Number of input features."""
        return self.layers[0][0].shape[1]

    def padded_inputs(self, is_quantized: bool) -> int:
        """Number of inputs that the kernels read."""
        multiple = PANEL if is_quantized else 16
        return -(-self.n_inputs // multiple) * multiple


def nodes_of(program: Sequence[Operation], n_own: int) -> list[Node]:
    """The operations of a program of a graph as nodes.

    Args:
        n_own: number of caches of the own sequence, which come before those of the source.
    """
    nodes: dict[Operation, Node] = {}
    for operation in program:
        nodes[operation] = node_of(operation, tuple(nodes[x] for x in operation.inputs), n_own)
    return list(nodes.values())


def node_of(operation: Operation, inputs: tuple[Node, ...], n_own: int) -> Node:
    """The node of an operation."""
    node = partial(Node, width=operation.width, inputs=inputs)
    match operation:
        case Input():
            return node(Kind.GATHER)
        case Gather():
            return node(Kind.GATHER, tables=(operation.table,), option=get_args(Integers).index(operation.by))
        case Scale():
            return node(Kind.SCALE, number=operation.factor)
        case Add():
            return node(Kind.ADD)
        case Multiply():
            return node(Kind.MULTIPLY)
        case Activate():
            return node(Kind.ACTIVATE, activation=ACTIVATIONS.index(operation.function))
        case Normalize():
            tables = operation.gain, operation.bias
            return node(Kind.NORMALIZE, tables=tables, number=operation.epsilon, option=int(operation.norm == "rms"))
        case Rotate():
            return node(Kind.ROTATE, tables=(operation.cosines, operation.sines), m=operation.d_head)
        case Linear():
            return node(Kind.PRODUCT, tables=(operation.weight, operation.bias))
        case Store():
            return node(Kind.STORE, width=operation.keys.width, cache=number_of(operation, n_own))
        case Attend():
            bias = operation.distance_bias
            return node(
                Kind.ATTEND, tables=() if bias is None else (bias,), m=operation.d_head, number=operation.scale,
                cache=number_of(operation, n_own), option=get_args(Side).index(operation.side),
                group=operation.n_heads // operation.n_kv_heads, reach=0 if bias is None else bias.shape[0] // 2,
            )  # fmt: skip
    raise AssertionError(operation)


def number_of(operation: Store | Attend, n_own: int) -> int:
    """The number of a cache."""
    return operation.cache + (n_own if operation.side == "source" else 0)


def layer_of(node: Node) -> tuple[Table, Table | None]:
    """Weight and bias of a linear layer."""
    weight, bias = node.tables
    assert weight is not None
    return weight, bias


@dataclass(slots=True)
class Step:
    """A node with the steps that compute its inputs."""

    node: Node
    inputs: list[tuple[int, int]]
    """Index of a step, and first column of the input in its result."""
    matrix: Matrix | None = None


def fuse(nodes: Sequence[Node]) -> list[Node]:
    """Make an activation function of a linear layer's output, or a residual connection, part of the linear layer."""
    n_uses = Counter(x for node in nodes for x in node.inputs)
    fused: dict[Node, Node] = {}
    result: list[Node] = []
    for node in nodes:
        inputs = tuple(fused.get(x, x) for x in node.inputs)
        plain = [x for x in inputs if is_mergeable(x) and n_uses[x] == 1]
        residual = tuple(x for x in inputs if x is not plain[-1]) if plain else ()
        # The kernel reads a residual as it writes the result: it cannot be a part of a merged result.
        if node.kind in (Kind.ADD, Kind.ACTIVATE) and plain and not any(map(is_mergeable, residual)):
            product = plain[-1]
            result.remove(product)
            fused[node] = replace(product, inputs=product.inputs + residual, activation=node.activation)
        else:
            fused[node] = replace(node, inputs=inputs)
        n_uses[fused[node]] = n_uses[node]
        result.append(fused[node])
    return result


def is_mergeable(node: Node) -> bool:
    """Whether `merge_linears` may make the result of a node a part of another."""
    return node.kind == Kind.PRODUCT and len(node.inputs) == 1 and not node.activation


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
            inputs = [results[x], *(results[r] for r in residual)]
            steps.append(Step(node, inputs, Matrix((layer_of(node),))))
            continue
        if x not in quantized:
            quantized[x] = len(steps)
            is_relu = ACTIVATIONS[x.activation] == "relu"
            steps.append(Step(Node(Kind.QUANTIZE, x.width, (x,), option=is_relu), [results[x]]))
        group = [node]
        for other in nodes[i + 1 :]:
            is_plain = is_mergeable(node) and is_mergeable(other)
            if is_plain and other.inputs == node.inputs and other not in results:
                if sum(padded(n.width) for n in [*group, other]) > MAX_MERGED * padded(x.width):
                    break
                group.append(other)
        matrix = Matrix(tuple(map(layer_of, group)))
        results |= {n: (len(steps), column) for n, column in zip(group, matrix.columns, strict=True)}
        steps.append(Step(node, [(quantized[x], 0), *(results[r] for r in residual)], matrix))
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
        width = step.matrix.width if step.matrix else node.width
        dying = [s for s in dict.fromkeys(s for s, _ in step.inputs) if last_use[s] == i]
        released = {s: (steps[s].node.kind == Kind.QUANTIZE, lowered.widths[buffers[s]]) for s in dying}
        read_late = step.inputs[0][0] if step.matrix else -1  # a product reads a row while it writes it
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
        n_inputs = step.matrix.padded_inputs(is_quantized) if step.matrix else 0
        lowered.steps.append(step)
        lowered.instructions.append(
            Instruction(
                node.kind, Place(buffers[i]), a, b, n=width, m=n_inputs or node.m,
                option=int(steps[step.inputs[0][0]].node.option if step.matrix else node.option), cache=node.cache,
                number=node.number, group=node.group, reach=node.reach, activation=node.activation,
            )
        )  # fmt: skip
    return lowered
