"""Executes programs with PyTorch where there is no C library: the same quantization, and exact integer products. The
only module of the runtime that imports torch.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from glassformer.kernels.program import ACTIVATIONS, PANEL, Array, Batch, Instruction, Kind
from glassformer.kernels.quantize import unpack
from glassformer.runtime.lowering import Step

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "": lambda x: x,
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "tanh": torch.tanh,
}


class EagerProgram:
    """A program with its weights as tensors."""

    def __init__(self, instructions: Sequence[Instruction], steps: Sequence[Step]) -> None:
        self.tensors: dict[int, tuple[Array, Tensor]] = {}
        """By id of a table that cannot be written to: the table, and a copy."""
        self.weights: dict[tuple[int, int], tuple[Tensor, Tensor, Tensor]] = {}
        """By `key_of` an instruction; see `run_eagerly`."""
        for instruction, step in zip(instructions, steps, strict=True):
            if step.matrix is None:
                continue
            weight, scale, bias, _ = instruction.tables
            assert weight is not None
            assert bias is not None
            n, k = step.matrix.width, step.matrix.n_inputs
            if scale is None:
                arrays: list[Array] = [weight[:, :k], np.empty(0, np.float32), bias[:n]]
            else:
                arrays = [unpack(weight, n, k), scale[:n].copy(), bias[:n].copy()]
            first, second, third = map(self.tensor, arrays)
            self.weights[key_of(instruction)] = first, second, third

    def tensor(self, table: Array) -> Tensor:
        """The tensor of a table. Those of files, which cannot be written to, are copied once."""
        if table.flags.writeable:
            return torch.from_numpy(table)
        if id(table) not in self.tensors:
            self.tensors[id(table)] = table, torch.from_numpy(table.copy())
        return self.tensors[id(table)][1]

    def run(
        self, batch: Batch, caches: Sequence[tuple[Array, Array]], instructions: Sequence[Instruction]
    ) -> NDArray[np.float32]:
        """Execute instructions. Returns the result of the last."""
        with torch.inference_mode():
            return run_eagerly(instructions, self.weights, batch, caches, self.tensor)[-1].numpy()

    def run_for(
        self,
        batch: Batch,
        caches: Sequence[tuple[Array, Array]],
        instructions: Sequence[Instruction],
        buffers: Sequence[int],
    ) -> list[NDArray[np.float32]]:
        """Execute instructions. Returns the content of buffers."""
        with torch.inference_mode():
            results = run_eagerly(instructions, self.weights, batch, caches, self.tensor)
        return [results[buffer].numpy() for buffer in buffers]

    def best(
        self,
        batch: Batch,
        caches: Sequence[tuple[Array, Array]],
        instructions: Sequence[Instruction],
        k: int,
        banned: tuple[int, ...],
    ) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """As `Program.best`."""
        logits = torch.from_numpy(self.run(batch, caches, instructions))
        logits[:, list(banned)] = -torch.inf
        for row, index in enumerate([] if batch.shortlist is None else batch.shortlist.tolist()):
            if index >= 0:
                is_excluded = torch.ones(logits.size(1), dtype=torch.bool)
                is_excluded[batch.shortlists[index].ids] = False
                logits[row, is_excluded] = -torch.inf
        values, ids = logits.log_softmax(-1).topk(k)
        return values.numpy(), ids.int().numpy()


def key_of(instruction: Instruction) -> tuple[int, int]:
    """What identifies the weights of a product."""
    return id(instruction.tables[0]), id(instruction.tables[2])


def quantize(x: Tensor, is_positive: bool) -> tuple[Tensor, Tensor]:
    """Bytes of each row without the 128 that the kernel adds, as int8, and their scale."""
    top = 255.0 if is_positive else 127.0
    largest = x.abs().amax(-1, keepdim=True).clamp(min=1e-30)
    rounded = (x * (top / largest)).round() - (128 if is_positive else 0)
    return rounded.to(torch.int8), largest / top


def run_eagerly(
    instructions: Sequence[Instruction],
    weights: Mapping[tuple[int, int], tuple[Tensor, Tensor, Tensor]],
    batch: Batch,
    caches: Sequence[tuple[Array, Array]],
    tensor: Callable[[Array], Tensor],
) -> dict[int, Tensor]:
    """Execute a program. Returns the content of each buffer, and under -1 the result of the last operation.

    Args:
        weights: `key_of` an instruction -> quantized weight, scale of each output feature, bias. If the weight is not
            int8, the product is computed in its precision instead.
        tensor: the tensor of a table.
    """
    buffers: dict[int, Tensor] = {}
    cached = [tuple(map(torch.from_numpy, pair)) for pair in caches]
    indices = [torch.from_numpy(x).long() for x in (batch.ids, batch.positions, batch.types)]
    slots = torch.from_numpy(batch.slots).long()
    result = torch.empty(0, 0)
    for op in instructions:
        # Results of linear layers are wider than their parts.
        a = buffers.get(op.a.buffer, result)[:, op.a.column :]
        b = buffers.get(op.b.buffer, result)[:, op.b.column :]
        tables = [tensor(table) for table in op.tables if table is not None]
        match op.kind:
            case Kind.GATHER:
                index = indices[op.option]
                if len(tables) == 1:
                    result = tables[0][index, : op.n].float()
                else:
                    panels, scale = tables
                    fours = panels[index // PANEL, :, index % PANEL]  # [rows, n / 4, 4]
                    result = fours.flatten(1)[:, : op.n].float() * scale[index, None]
            case Kind.SCALE:
                result = a[:, : op.n] * op.number
            case Kind.ADD:
                result = a[:, : op.n] + b[:, : op.n]
            case Kind.MULTIPLY:
                result = a[:, : op.n] * b[:, : op.n]
            case Kind.ACTIVATE:
                result = FUNCTIONS[ACTIVATIONS[op.activation]](a[:, : op.n])
            case Kind.NORMALIZE:
                gain, bias = (table[: op.n] for table in tables)
                if op.option:
                    result = F.rms_norm(a[:, : op.n], (op.n,), gain, op.number)
                else:
                    result = F.layer_norm(a[:, : op.n], (op.n,), gain, bias, op.number)
            case Kind.ROTATE:
                heads = a[:, : op.n].view(len(a), -1, 1, op.m)
                cos, sin = (table[indices[1]][:, None, None] for table in tables)
                first, second = heads.chunk(2, dim=-1)
                rotated = torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
                result = rotated.flatten(1)
            case Kind.QUANTIZE:
                result = a[:, : op.n]
            case Kind.STORE:
                for cache, x in zip(cached[op.cache], (a, b), strict=True):
                    cache[slots, : op.n] = x[:, : op.n].to(cache.dtype)
                continue
            case Kind.PRODUCT:
                weight, scale, bias = weights[key_of(op)]
                if weight.dtype != torch.int8:
                    result = F.linear(a, weight, bias)
                else:
                    result = byte_product(a, bool(op.option), weight, scale, bias)
                result = FUNCTIONS[ACTIVATIONS[op.activation]](result)
                result = result if op.b.buffer < 0 else result + b
            case Kind.ATTEND:
                result = attend(op, a, cached[op.cache], batch, tables[0] if tables else None)
            case _:
                raise AssertionError(op.kind)
        buffers[op.out.buffer] = result
    buffers[-1] = result
    return buffers


def byte_product(x: Tensor, is_positive: bool, weight: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    """Linear layer of quantized rows. The integer product is exact."""
    bytes_, row_scale = quantize(x, is_positive)
    sums = torch._int_mm(bytes_, weight.T)
    if is_positive:
        sums += 128 * weight.sum(1, dtype=torch.int32)
    return sums * (row_scale * scale) + bias


def attend(op: Instruction, q: Tensor, cache: tuple[Tensor, ...], batch: Batch, bias: Tensor | None) -> Tensor:
    """Attention of each row over the slots in its list.

    Rows of equal length are computed together, without padding and with sums in a fixed order, so that the result of a
    row does not depend on the others.
    """
    lists, begins, lengths = (torch.from_numpy(x[op.option]).long() for x in (batch.lists, batch.begins, batch.lengths))
    n_heads = op.n // op.m
    width = n_heads // op.group * op.m
    result = torch.zeros(len(q), op.n)
    for n in sorted(set(lengths.tolist())):
        rows = (lengths == n).nonzero()[:, 0]
        index = torch.arange(n)
        slots = lists[begins[rows, None] + index]
        keys, values = (half[:, :width][slots].float().view(len(rows), n, -1, 1, op.m) for half in cache)
        queries = q[rows, None, : op.n].view(len(rows), 1, -1, op.group, op.m) * op.number
        scores = (queries * keys).sum(-1).flatten(2)  # [rows, keys, heads]
        if bias is not None:
            distance = index - torch.from_numpy(batch.positions).long()[rows, None]
            scores = scores + bias[:, distance.clamp(-op.reach, op.reach) + op.reach].permute(1, 2, 0)
        weights = scores.softmax(1).view(len(rows), n, -1, op.group, 1)
        result[rows] = (weights * values).sum(1).flatten(1)
    return result
