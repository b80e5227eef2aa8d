"""Linear layer whose result for a row does not depend on the other rows."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from glassformer.kernels.training import MAX_PIECES
from glassformer.nn import cpu_training
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
        if dtype := fused_dtype(x, (weight,)):
            return fused_linear(x, (weight,), () if bias is None else (bias,), dtype)[0]
        invalidate_packed_weight(weight)
        return F.linear(x, weight, bias)
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


def fused_dtype(x: Tensor, weights: Sequence[Tensor]) -> torch.dtype | None:
    """The type in which `FusedLinear` computes linear layers in training; None: PyTorch's functions do.

    On a CPU, bf16 under autocast if the processor has instructions for it, fp32 if `cpu_training.product` has it.
    """
    if x.device.type != "cpu" or torch.compiler.is_compiling():  # the compiler does not know the functions
        return None
    if not torch.is_autocast_enabled("cpu"):
        return torch.float32 if x.dtype == torch.float32 and supports_weights(weights, torch.float32) else None
    has_bf16 = torch._C._has_mkldnn and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return torch.bfloat16 if has_bf16 and torch.get_autocast_dtype("cpu") == torch.bfloat16 else None


class FusedLinear(torch.autograd.Function):
    """x W^T + b on a CPU for several weights, optionally followed by ReLU.

    Where the processor has the instructions, `cpu_training.product` computes the products, elsewhere, in bf16, oneDNN.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, dtype: torch.dtype, relu: bool, n_weights: int, *parameters: Tensor
    ) -> Tensor | tuple[Tensor, ...]:
        weights, biases = parameters[:n_weights], parameters[n_weights:]
        ctx.x_dtype, ctx.dtypes, ctx.n_biases = x.dtype, [p.dtype for p in parameters], len(biases)
        ctx.sizes = [len(weight) for weight in weights]
        ctx.uses_kernel = supports_weights(weights, dtype)
        x = x.to(dtype)
        if ctx.uses_kernel:
            y = x.new_empty(len(x), sum(ctx.sizes))
            cpu_training.product(x, weights, y, transpose_b=True, bias=biases, relu=relu)
        else:
            weights = (joined(weights).bfloat16(),)
            bias = joined(biases).bfloat16() if biases else None
            y = torch.ops.mkldnn._linear_pointwise(x, weights[0], bias, "relu" if relu else "none", [], "")
        ctx.save_for_backward(x, y if relu else None, *weights)
        return y if n_weights == 1 else torch.split(y, ctx.sizes, dim=1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, y, *weights = ctx.saved_tensors
        grad = grads[0] if len(grads) == 1 else cpu_training.adjacent_columns(grads)
        d_out = grad.size(1)
        d_x = d_bias = None
        if ctx.uses_kernel:
            if ctx.needs_input_grad[0]:
                dtype = torch.float32 if ctx.x_dtype == torch.float32 else x.dtype
                d_x = cpu_training.product(grad, weights, x.new_empty(x.shape, dtype=dtype), positive=y)
            d_bias = x.new_empty(d_out, dtype=torch.float32) if ctx.n_biases else None
            d_weight = x.new_empty(d_out, x.size(1), dtype=torch.float32)
            cpu_training.product(grad, [x], d_weight, transpose_a=True, positive=y, row_sums=d_bias)
        else:
            if y is not None:
                grad = torch.ops.aten.threshold_backward(grad, y, 0)
            d_x = grad @ weights[0] if ctx.needs_input_grad[0] else None
            d_weight, d_bias = grad.t() @ x, grad.sum(0) if ctx.n_biases else None
        d_parameters = [*d_weight.split(ctx.sizes), *(() if d_bias is None else d_bias.split(ctx.sizes))]
        return (
            None if d_x is None else d_x.to(ctx.x_dtype),
            None,
            None,
            None,
            *(gradient.to(dtype) for gradient, dtype in zip(d_parameters, ctx.dtypes, strict=True)),
        )


def supports_weights(weights: Sequence[Tensor], dtype: torch.dtype) -> bool:
    """Whether `cpu_training.product` computes products of inputs of this type with these weights."""
    return (
        cpu_training.supports_product(dtype)
        and len(weights) <= MAX_PIECES
        and weights[0].dtype in (dtype, torch.float32)
        and all(weight.dtype == weights[0].dtype for weight in weights)
    )


def joined(parts: Sequence[Tensor]) -> Tensor:
    """Tensors one after the other. A single tensor is not copied."""
    return parts[0] if len(parts) == 1 else torch.cat(tuple(parts))


def fused_linear(
    x: Float[Tensor, "*batch d_in"],
    weights: Sequence[Float[Tensor, "_ d_in"]],
    biases: Sequence[Float[Tensor, " _"]],
    dtype: torch.dtype,
    *,
    relu: bool = False,
) -> tuple[Float[Tensor, "*batch _"], ...]:
    """x W^T + b for each weight, for training on a CPU, optionally followed by ReLU.

    Args:
        biases: one for each weight, or none.
        dtype: type in which the products are computed, and of the result.
    """
    for weight in weights:
        invalidate_packed_weight(weight)
    outputs = FusedLinear.apply(x.flatten(0, -2), dtype, relu, len(weights), *weights, *biases)  # type: ignore[no-untyped-call]
    return tuple(y.view(*x.shape[:-1], -1) for y in (outputs if len(weights) > 1 else (outputs,)))


def linear_relu(x: Float[Tensor, "*batch d_in"], layer: "Linear") -> Float[Tensor, "*batch d_out"]:
    """A linear layer followed by ReLU. In training on a CPU, one function may compute both."""
    if torch.is_grad_enabled() and layer.training and (dtype := fused_dtype(x, (layer.weight,))):
        return fused_linear(x, (layer.weight,), () if layer.bias is None else (layer.bias,), dtype, relu=True)[0]
    return F.relu(layer(x))


def linear_layers(x: Float[Tensor, "*batch d_in"], *layers: "Linear") -> tuple[Float[Tensor, "*batch d_out"], ...]:
    """Outputs of several linear layers of the same input. In training, they may be one matrix product."""
    weights = tuple(layer.weight for layer in layers)
    dtype = fused_dtype(x, weights) if layers[0].training else None
    if not (torch.is_grad_enabled() and (x.is_cuda or dtype)):
        return tuple(layer(x) for layer in layers)
    biases = tuple(layer.bias for layer in layers if layer.bias is not None)
    if dtype:
        return fused_linear(x, weights, biases, dtype)
    outputs = F.linear(x, torch.cat(weights), torch.cat(biases) if biases else None)
    return torch.split(outputs, [layer.out_features for layer in layers], dim=-1)


class Linear(nn.Linear):
    """`nn.Linear` computed by `batch_invariant_linear`."""

    def forward(self, x: Float[Tensor, "*batch d_in"]) -> Float[Tensor, "*batch d_out"]:
        return batch_invariant_linear(x, self.weight, self.bias)
