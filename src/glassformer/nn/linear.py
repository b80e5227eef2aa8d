"""Linear layer whose result for a row does not depend on the other rows."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from glassformer.nn.overridable import overridable

ROW_MULTIPLE = 4
"""Inputs with few rows are padded to a multiple of this: for fewer rows, matrix libraries select kernels that sum in
another order."""

PACKED_WEIGHTS = WeakTensorKeyDictionary()
"""Cache of weights in oneDNN's packed layout: weight -> (source tensor, its version, packed tensor)."""


@overridable
def batch_invariant_linear(
    x: Float[Tensor, "*batch d_in"], weight: Float[Tensor, "d_out d_in"], bias: Float[Tensor, " d_out"] | None = None
) -> Float[Tensor, "*batch d_out"]:
    """x W^T + b, bit-identical for each row whatever other rows are in the batch (fp32, without gradients).

    Inputs with few rows are padded to a multiple of ROW_MULTIPLE, so that a sentence decoded alone gives the
    same result as in a batch.
    """
    if torch.is_grad_enabled():
        if weight.device.type != "cpu":
            return F.linear(x, weight, bias)
        invalidate_packed_weight(weight)
        return bf16_linear(x, weight, bias) if uses_bf16(x) else F.linear(x, weight, bias)
    n_rows = x.numel() // x.size(-1)
    if n_rows >= 4 * ROW_MULTIPLE or n_rows % ROW_MULTIPLE == 0:
        return packed_linear(x, weight, bias)
    rows = F.pad(x.reshape(n_rows, -1), (0, 0, 0, -n_rows % ROW_MULTIPLE))
    return packed_linear(rows, weight, bias)[:n_rows].reshape(*x.shape[:-1], -1)


def invalidate_packed_weight(weight: Tensor) -> None:
    """Remove a weight from the cache of packed weights. Fused optimizers change weights without a new version."""
    PACKED_WEIGHTS.pop(weight, None)  # type: ignore[no-untyped-call]


def packed_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`F.linear`; on a CPU with the weight packed for oneDNN once instead of at every call."""
    if x.device.type != "cpu" or not x.dtype == weight.dtype != torch.float64 or not torch._C._has_mkldnn:
        return F.linear(x, weight, bias)
    source, version, packed = PACKED_WEIGHTS.get(weight) or (None, None, None)  # type: ignore[no-untyped-call]
    if source is None or (source.data_ptr(), version) != (weight.data_ptr(), weight._version):
        packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach())
        PACKED_WEIGHTS[weight] = (weight.detach(), weight._version, packed)
    return torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")


def uses_bf16(x: Tensor) -> bool:
    """Whether linear layers compute in bf16 by oneDNN: under autocast on a CPU that has instructions for it."""
    return (
        x.device.type == "cpu"
        and not torch.compiler.is_compiling()  # the compiler does not know oneDNN's function
        and torch.is_autocast_enabled("cpu")
        and torch.get_autocast_dtype("cpu") == torch.bfloat16
        and torch._C._has_mkldnn
        and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    )


class Bf16Linear(torch.autograd.Function):
    """x W^T + b in bf16 on a CPU, optionally followed by ReLU. oneDNN computes both within the product."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, relu: bool) -> Tensor:
        ctx.dtypes = x.dtype, weight.dtype, None if bias is None else bias.dtype
        x, weight = x.bfloat16(), weight.bfloat16()
        bias = None if bias is None else bias.bfloat16()
        y = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "relu" if relu else "none", [], "")
        ctx.save_for_backward(x, weight, *([y] if relu else []))
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor, Tensor | None, None]:
        x, weight, *activations = ctx.saved_tensors
        for y in activations:
            grad = torch.ops.aten.threshold_backward(grad, y, 0)
        x_dtype, weight_dtype, bias_dtype = ctx.dtypes
        return (
            (grad @ weight).to(x_dtype) if ctx.needs_input_grad[0] else None,
            (grad.t() @ x).to(weight_dtype),
            None if bias_dtype is None else grad.sum(0).to(bias_dtype),
            None,
        )


def bf16_linear(
    x: Float[Tensor, "*batch d_in"],
    weight: Float[Tensor, "d_out d_in"],
    bias: Float[Tensor, " d_out"] | None,
    *,
    relu: bool = False,
) -> Float[Tensor, "*batch d_out"]:
    """x W^T + b in bf16 for training on a CPU, optionally followed by ReLU."""
    y = Bf16Linear.apply(x.flatten(0, -2), weight, bias, relu)  # type: ignore[no-untyped-call]
    return y.view(*x.shape[:-1], -1)


def linear_relu(x: Float[Tensor, "*batch d_in"], layer: "Linear") -> Float[Tensor, "*batch d_out"]:
    """A linear layer followed by ReLU. In training in bf16 on a CPU, one function computes both."""
    if torch.is_grad_enabled() and uses_bf16(x):
        return bf16_linear(x, layer.weight, layer.bias, relu=True)
    return F.relu(layer(x))


def linear_layers(x: Float[Tensor, "*batch d_in"], *layers: "Linear") -> tuple[Float[Tensor, "*batch d_out"], ...]:
    """Outputs of several linear layers of the same input. In training in 16 bits, they are one matrix product."""
    if not (torch.is_grad_enabled() and (x.is_cuda or uses_bf16(x))):
        return tuple(layer(x) for layer in layers)
    biases = tuple(layer.bias for layer in layers if layer.bias is not None)
    weight, bias = torch.cat(tuple(layer.weight for layer in layers)), torch.cat(biases) if biases else None
    outputs = batch_invariant_linear(x, weight, bias)
    return torch.split(outputs, [layer.out_features for layer in layers], dim=-1)


class Linear(nn.Linear):
    """`nn.Linear` computed by `batch_invariant_linear`."""

    def forward(self, x: Float[Tensor, "*batch d_in"]) -> Float[Tensor, "*batch d_out"]:
        return batch_invariant_linear(x, self.weight, self.bias)
