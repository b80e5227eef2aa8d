"""Graphs of ONNX, written from the graph of a model (`runtime.graph`).

Values are [batch, length, features]; keys and values of attention are [batch, heads, length, d_head].
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from glassformer.runtime.graph import (
    Activate,
    Add,
    Attend,
    Gather,
    Graph,
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
    Weights,
    array_of,
)

OPSET = 17
IR_VERSION = 8
"""Versions of the format: those of ONNX 1.12, of 2022, and newer."""

MAX_BYTES = 1 << 30
"""Weights above this size are written to a file beside the graph. The format allows 2 GiB in one file."""

MASKED = -10_000.0
"""Added to the scores of masked keys. A softmax in fp32 gives them the weight 0."""


class OnnxGraph:
    """A graph of ONNX that is being written.

    Args:
        graph: the graph of a model.
        weights: its weights.
    """

    def __init__(self, graph: Graph, weights: Weights) -> None:
        self.graph, self.weights = graph, weights
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.n_names = 0

    def name(self, prefix: str) -> str:
        """A name that is not used yet."""
        self.n_names += 1
        return f"{prefix}_{self.n_names}"

    def input(self, name: str, shape: Sequence[str | int], type_: int = TensorProto.INT64) -> str:
        """An input of the model. Axes with a name have any size."""
        self.inputs.append(helper.make_tensor_value_info(name, type_, shape))
        return name

    def output(self, name: str, value: str, shape: Sequence[str | int]) -> None:
        """Make a value an output of the model."""
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def op(self, kind: str, *inputs: str, n_outputs: int = 1, **attributes: Any) -> Any:
        """Apply an operator of ONNX. Returns the name of the result, or the names of several."""
        results = [self.name(kind) for _ in range(n_outputs)]
        self.nodes.append(helper.make_node(kind, inputs, results, **attributes))
        return results[0] if n_outputs == 1 else results

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        """A number or a list of numbers."""
        name = self.name("constant")
        self.initializers[name] = numpy_helper.from_array(np.array(value, dtype), name)
        return name

    def shape(self, *sizes: int) -> str:
        """A shape; 0 stands for the size of this axis in the input."""
        return self.constant(sizes, np.int64)

    def weight(self, table: Table, *, is_transposed: bool = False) -> str:
        """A table under the name that it has in the model. Those that are used several times are stored once."""
        name = table.name
        if name in self.initializers and is_transposed:
            return str(self.op("Transpose", name, perm=[1, 0]))
        array = array_of(table, self.weights, self.graph)
        if is_transposed:
            array, name = array.T, f"{name}.T"
        if name not in self.initializers:
            self.initializers[name] = numpy_helper.from_array(np.ascontiguousarray(array), name)
        return name

    def linear(self, x: str, weight: Table, bias: Table | None) -> str:
        """x W^T + b."""
        product = self.op("MatMul", x, self.weight(weight, is_transposed=True))
        return str(product if bias is None else self.op("Add", product, self.weight(bias)))

    def normalize(self, x: str, operation: Normalize) -> str:
        """LayerNorm or RMSNorm."""
        gain = self.vector(operation.gain, operation.width, 1)
        if operation.norm == "layer":
            bias = self.vector(operation.bias, operation.width, 0)
            return str(self.op("LayerNormalization", x, gain, bias, epsilon=operation.epsilon))
        mean = self.op("ReduceMean", self.op("Mul", x, x), axes=[-1], keepdims=1)
        root = self.op("Sqrt", self.op("Add", mean, self.constant(operation.epsilon)))
        return str(self.op("Mul", self.op("Div", x, root), gain))

    def vector(self, table: Table | None, width: int, fill: float) -> str:
        """A table with a number for each feature; without one, `fill` for each."""
        return self.constant([fill] * width) if table is None else self.weight(table)

    def activate(self, x: str, name: str) -> str:
        """Activation function by its name in `runtime.graph.Function`."""
        match name:
            case "relu" | "tanh":
                return str(self.op(name.capitalize(), x))
            case "silu":
                return str(self.op("Mul", x, self.op("Sigmoid", x)))
            case "gelu":
                inner = self.op("Erf", self.op("Div", x, self.constant(2**0.5)))
            case _:
                cubic = self.op("Mul", self.op("Pow", x, self.constant(3)), self.constant(0.044715))
                inner = self.op("Tanh", self.op("Mul", self.op("Add", x, cubic), self.constant((2 / np.pi) ** 0.5)))
        return str(self.op("Mul", self.op("Mul", x, self.op("Add", inner, self.constant(1))), self.constant(0.5)))

    def split_heads(self, x: str, width: int, d_head: int, perm: Sequence[int] = (0, 2, 1, 3)) -> str:
        """[batch, length, features] -> [batch, heads, length, d_head]."""
        heads = self.op("Reshape", x, self.shape(0, 0, width // d_head, d_head))
        return str(self.op("Transpose", heads, perm=perm))

    def size(self, x: str, axis: int) -> str:
        """Size of an axis."""
        return str(self.op("Gather", self.op("Shape", x), self.constant(axis, np.int64)))

    def range(self, start: str, end: str) -> str:
        """start, start + 1, ..., end - 1."""
        return str(self.op("Range", start, end, self.constant(1, np.int64)))

    def padding_mask(self, attention_mask: str) -> str:
        """1 for tokens and 0 for padding -> what is added to the scores, [batch, 1, 1, keys]."""
        mask = self.op("Unsqueeze", self.op("Unsqueeze", attention_mask, self.shape(1)), self.shape(2))
        is_masked = self.op("Sub", self.constant(1), self.op("Cast", mask, to=TensorProto.FLOAT))
        return str(self.op("Mul", is_masked, self.constant(MASKED)))

    def save(self, path: Path) -> None:
        """Write the model."""
        graph = helper.make_graph(self.nodes, "glassformer", self.inputs, self.outputs, [*self.initializers.values()])
        model = helper.make_model(
            graph, producer_name="glassformer", ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)]
        )
        is_large = sum(len(tensor.raw_data) for tensor in self.initializers.values()) > MAX_BYTES
        onnx.save_model(model, str(path), save_as_external_data=is_large, location=f"{path.name}.data")


Pair = tuple[str, str]
"""Names of keys and values, each [batch, heads, length, d_head]."""

Cache = tuple[Side, int]
"""Side and number of a cache."""


class Writer:
    """Writes the operations of a program as operators of ONNX.

    Args:
        graph: the graph that is being written.
        indices: name of the integers, [batch, length] or [length].
        masks: what is added to the scores of attention to the own sequence, and to those of attention to the source.
        query_positions: positions of the tokens, [length].
        key_positions: positions of all tokens of the sequence, [keys].
        d_heads: cache -> dimension of each head.
        past: cache -> keys and values of earlier tokens, which those of the tokens are appended to.
        caches: cache -> keys and values of the source.
    """

    def __init__(
        self,
        graph: OnnxGraph,
        indices: dict[Integers, str],
        masks: dict[Side, str],
        query_positions: str,
        key_positions: str,
        d_heads: dict[Cache, int],
        past: dict[Cache, Pair] | None = None,
        caches: dict[Cache, Pair] | None = None,
    ) -> None:
        self.graph, self.indices, self.masks, self.d_heads = graph, indices, masks, d_heads
        self.query_positions, self.key_positions = query_positions, key_positions
        self.past, self.caches = past or {}, caches or {}

    def write(self, program: Sequence[Operation]) -> str:
        """Write all operations. Returns the name of the last result, [batch, length, features]."""
        values: dict[Operation, str] = {}
        result = ""
        for operation in program:
            inputs = [values[x] for x in operation.inputs]
            if isinstance(operation, Store):
                self.caches[operation.side, operation.cache] = self.store(operation, *inputs)
            else:
                result = values[operation] = self.compute(operation, *inputs)
        return result

    def write_head(self, program: Sequence[Operation], x: str) -> str:
        """Write a program that begins with an input. Returns the name of the last result."""
        values = {program[0]: x}
        for operation in program[1:]:
            values[operation] = self.compute(operation, *(values[y] for y in operation.inputs))
        return values[program[-1]]

    def compute(self, operation: Operation, *inputs: str) -> str:
        """Write one operation. Returns the name of its result, [batch, length, features]."""
        g, x = self.graph, inputs[0] if inputs else ""
        match operation:
            case Gather():
                return str(g.op("Gather", g.weight(operation.table), self.indices[operation.by]))
            case Scale():
                return str(g.op("Mul", x, g.constant(operation.factor)))
            case Add():
                return str(g.op("Add", *inputs))
            case Multiply():
                return str(g.op("Mul", *inputs))
            case Activate():
                return g.activate(x, operation.function)
            case Normalize():
                return g.normalize(x, operation)
            case Linear():
                return g.linear(x, operation.weight, operation.bias)
            case Rotate():
                return self.rotate(operation, x)
            case Attend():
                return self.attend(operation, x)
        raise AssertionError(operation)

    def rotate(self, operation: Rotate, x: str) -> str:
        """Rotary positions: each pair (x_i, x_(i + d_head/2)) is rotated by the angle of its position."""
        g, width, d_head = self.graph, operation.width, operation.d_head
        heads = g.op("Reshape", x, g.shape(0, 0, width // d_head, d_head))
        first, second = g.op("Split", heads, n_outputs=2, axis=-1)
        positions = self.indices["position"]
        tables = [g.op("Gather", g.weight(table), positions) for table in (operation.cosines, operation.sines)]
        cos, sin = (g.op("Unsqueeze", table, g.shape(-2)) for table in tables)
        rotated = (
            g.op("Sub", g.op("Mul", first, cos), g.op("Mul", second, sin)),
            g.op("Add", g.op("Mul", second, cos), g.op("Mul", first, sin)),
        )
        return str(g.op("Reshape", g.op("Concat", *rotated, axis=-1), g.shape(0, 0, width)))

    def store(self, operation: Store, k: str, v: str) -> Pair:
        """Keys and values of the tokens, after those of earlier tokens."""
        cache = operation.side, operation.cache
        pair = tuple(self.graph.split_heads(x, operation.keys.width, self.d_heads[cache]) for x in (k, v))
        if cache in self.past:
            pair = tuple(self.graph.op("Concat", *both, axis=2) for both in zip(self.past[cache], pair, strict=True))
        return pair[0], pair[1]

    def attend(self, operation: Attend, queries: str) -> str:
        """Attention to the keys and values of a cache."""
        g = self.graph
        q = g.split_heads(queries, operation.width, operation.d_head)
        k, v = (self.repeat_heads(x, operation) for x in self.caches[operation.side, operation.cache])
        scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
        if operation.scale != 1:
            scores = g.op("Div", scores, g.constant(1 / operation.scale))
        if operation.distance_bias is not None:
            scores = g.op("Add", scores, self.position_bias(operation.distance_bias))
        weights = g.op("Softmax", g.op("Add", scores, self.masks[operation.side]), axis=-1)
        heads = g.op("Transpose", g.op("MatMul", weights, v), perm=[0, 2, 1, 3])
        return str(g.op("Reshape", heads, g.shape(0, 0, operation.width)))

    def repeat_heads(self, x: str, operation: Attend) -> str:
        """Give each of the query heads of a group the key/value head of the group."""
        group = operation.n_heads // operation.n_kv_heads
        if group == 1:
            return x
        g = self.graph
        repeated = g.op("Expand", g.op("Unsqueeze", x, g.shape(2)), g.shape(1, 1, group, 1, 1))
        return str(g.op("Reshape", repeated, g.shape(0, operation.n_heads, -1, operation.d_head)))

    def position_bias(self, bias: Table) -> str:
        """Bias of the scores by the distance of key and query, [heads, length, keys]."""
        g, reach = self.graph, bias.shape[0] // 2
        keys = g.op("Unsqueeze", self.key_positions, g.shape(0))
        queries = g.op("Unsqueeze", self.query_positions, g.shape(1))
        zero, offset, limit = (g.constant(number, np.int64) for number in (0, reach, 2 * reach))
        index = g.op("Clip", g.op("Add", g.op("Sub", keys, queries), offset), zero, limit)
        return str(g.op("Gather", g.weight(bias, is_transposed=True), index, axis=1))
