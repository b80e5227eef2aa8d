"""Graphs of ONNX, written from the operations that `runtime.recorder` records.

Values are [batch, length, features]; keys and values of attention are [batch, heads, length, d_head].
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from glassformer.kernels.program import ACTIVATIONS, POSITIONS, Kind
from glassformer.runtime.recorder import Node

OPSET = 17
IR_VERSION = 8
"""Versions of the format: those of ONNX 1.12, of 2022, and newer."""

MAX_BYTES = 1 << 30
"""Weights above this size are written to a file beside the graph. The format allows 2 GiB in one file."""

MASKED = -10_000.0
"""Added to the scores of masked keys. A softmax in fp32 gives them the weight 0."""


class Graph:
    """A graph that is being written."""

    def __init__(self, model: nn.Module) -> None:
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.n_names = 0
        self.parameter_names = {id(tensor): name for name, tensor in model.named_parameters()}

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

    def weight(self, tensor: Tensor, *, is_transposed: bool = False) -> str:
        """A weight under the name that it has in the model. Weights that are used several times are stored once."""
        name = self.parameter_names.setdefault(id(tensor), self.name("table"))
        if name in self.initializers and is_transposed:
            return str(self.op("Transpose", name, perm=[1, 0]))
        if is_transposed:
            tensor, name = tensor.T, f"{name}.T"
        if name not in self.initializers:
            array = np.ascontiguousarray(tensor.detach().float().cpu().numpy())
            self.initializers[name] = numpy_helper.from_array(array, name)
        return name

    def linear(self, x: str, weight: Tensor, bias: Tensor | None) -> str:
        """x W^T + b."""
        product = self.op("MatMul", x, self.weight(weight, is_transposed=True))
        return str(product if bias is None else self.op("Add", product, self.weight(bias)))

    def normalize(self, x: str, weight: Tensor, bias: Tensor | None, eps: float) -> str:
        """LayerNorm, or without bias RMSNorm."""
        if bias is not None:
            return str(self.op("LayerNormalization", x, self.weight(weight), self.weight(bias), epsilon=eps))
        mean = self.op("ReduceMean", self.op("Mul", x, x), axes=[-1], keepdims=1)
        root = self.op("Sqrt", self.op("Add", mean, self.constant(eps)))
        return str(self.op("Mul", self.op("Div", x, root), self.weight(weight)))

    def activate(self, x: str, name: str) -> str:
        """Activation function by its name in `kernels.program.ACTIVATIONS`."""
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


class Writer:
    """Writes recorded nodes as operators of ONNX.

    Args:
        indices: IDS, POSITIONS and TYPES -> name of the integers, [batch, length] or [length].
        masks: what is added to the scores of attention to the own sequence, and to those of attention to the source.
        query_positions: positions of the tokens, [length].
        key_positions: positions of all tokens of the sequence, [keys].
        d_heads: cache -> dimension of each head.
        past: cache -> keys and values of earlier tokens, which those of the tokens are appended to.
        caches: cache -> keys and values of the source.
    """

    def __init__(
        self,
        graph: Graph,
        indices: dict[int, str],
        masks: Sequence[str],
        query_positions: str,
        key_positions: str,
        d_heads: dict[int, int],
        past: dict[int, Pair] | None = None,
        caches: dict[int, Pair] | None = None,
    ) -> None:
        self.graph, self.indices, self.masks, self.d_heads = graph, indices, masks, d_heads
        self.query_positions, self.key_positions = query_positions, key_positions
        self.past, self.caches = past or {}, caches or {}

    def write(self, nodes: Sequence[Node]) -> str:
        """Write all nodes. Returns the name of the last result, [batch, length, features]."""
        values: dict[Node, str] = {}
        result = ""
        for node in nodes:
            inputs = [values[x] for x in node.inputs]
            if node.kind == Kind.STORE:
                self.caches[node.cache] = self.store(node, *inputs)
            else:
                result = values[node] = self.compute(node, *inputs)
        return result

    def compute(self, node: Node, *inputs: str) -> str:
        """Write one operation. Returns the name of its result, [batch, length, features]."""
        g, tensors, x = self.graph, node.tensors, inputs[0] if inputs else ""
        match node.kind:
            case Kind.GATHER:
                return str(g.op("Gather", g.weight(given(tensors[0])), self.indices[node.option]))
            case Kind.SCALE:
                return str(g.op("Mul", x, g.constant(node.number)))
            case Kind.ADD:
                return str(g.op("Add", *inputs))
            case Kind.MULTIPLY:
                return str(g.op("Mul", *inputs))
            case Kind.ACTIVATE:
                return g.activate(x, ACTIVATIONS[node.activation])
            case Kind.NORMALIZE:
                return g.normalize(x, given(tensors[0]), tensors[1], node.number)
            case Kind.PRODUCT:
                return g.linear(x, given(tensors[0]), tensors[1])
            case Kind.ROTATE:
                return self.rotate(node, x)
            case Kind.ATTEND:
                return self.attend(node, x)
        raise AssertionError(node.kind)

    def rotate(self, node: Node, x: str) -> str:
        """Rotary positions: each pair (x_i, x_(i + d_head/2)) is rotated by the angle of its position."""
        g = self.graph
        heads = g.op("Reshape", x, g.shape(0, 0, node.width // node.m, node.m))
        first, second = g.op("Split", heads, n_outputs=2, axis=-1)
        tables = [g.op("Gather", g.weight(given(tensor)), self.indices[POSITIONS]) for tensor in node.tensors]
        cos, sin = (g.op("Unsqueeze", table, g.shape(-2)) for table in tables)
        rotated = (
            g.op("Sub", g.op("Mul", first, cos), g.op("Mul", second, sin)),
            g.op("Add", g.op("Mul", second, cos), g.op("Mul", first, sin)),
        )
        return str(g.op("Reshape", g.op("Concat", *rotated, axis=-1), g.shape(0, 0, node.width)))

    def store(self, node: Node, k: str, v: str) -> Pair:
        """Keys and values of the tokens, after those of earlier tokens."""
        pair = tuple(self.graph.split_heads(x, node.width, self.d_heads[node.cache]) for x in (k, v))
        if node.cache in self.past:
            pair = tuple(
                self.graph.op("Concat", *both, axis=2) for both in zip(self.past[node.cache], pair, strict=True)
            )
        return pair[0], pair[1]

    def attend(self, node: Node, queries: str) -> str:
        """Attention to the keys and values of a cache."""
        g, n_heads = self.graph, node.width // node.m
        q = g.split_heads(queries, node.width, node.m)
        k, v = (self.repeat_heads(x, n_heads, node) for x in self.caches[node.cache])
        scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
        if node.number != 1:
            scores = g.op("Div", scores, g.constant(1 / node.number))
        if node.tensors:
            scores = g.op("Add", scores, self.position_bias(node))
        weights = g.op("Softmax", g.op("Add", scores, self.masks[node.option]), axis=-1)
        heads = g.op("Transpose", g.op("MatMul", weights, v), perm=[0, 2, 1, 3])
        return str(g.op("Reshape", heads, g.shape(0, 0, node.width)))

    def repeat_heads(self, x: str, n_heads: int, node: Node) -> str:
        """Give each of the query heads of a group the key/value head of the group."""
        if node.group == 1:
            return x
        g = self.graph
        repeated = g.op("Expand", g.op("Unsqueeze", x, g.shape(2)), g.shape(1, 1, node.group, 1, 1))
        return str(g.op("Reshape", repeated, g.shape(0, n_heads, -1, node.m)))

    def position_bias(self, node: Node) -> str:
        """Bias of the scores by the distance of key and query, [heads, length, keys]."""
        g = self.graph
        keys = g.op("Unsqueeze", self.key_positions, g.shape(0))
        queries = g.op("Unsqueeze", self.query_positions, g.shape(1))
        reach, limit = (g.constant(limit, np.int64) for limit in (node.reach, 2 * node.reach))
        index = g.op("Clip", g.op("Add", g.op("Sub", keys, queries), reach), g.constant(0, np.int64), limit)
        return str(g.op("Gather", g.weight(given(node.tensors[0])), index, axis=1))


def given(tensor: Tensor | None) -> Tensor:
    """A tensor that this kind of node has."""
    assert tensor is not None
    return tensor
