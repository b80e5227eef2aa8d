"""Linear layers of the same input, optionally followed by ReLU."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from glassformer.kernels.training import MAX_PIECES
from glassformer.nn import cpu_training
from glassformer.nn.ops.operation import Implementation, Operation

ROW_MULTIPLE = 4
"""Inputs with few rows are padded to a multiple of this: for fewer rows, matrix libraries select kernels that sum in
another order."""

PACKED_WEIGHTS = WeakTensorKeyDictionary()
"""Cache of weights in oneDNN's packed layout: weight -> (source tensor, its version, packed tensor)."""

Outputs = tuple[Float[Tensor, "*batch _"], ...]


def torch_linear(
    x: Float[Tensor, "*batch d_in"],
    weights: Sequence[Float[Tensor, "_ d_in"]],
    biases: Sequence[Float[Tensor, " _"]],
    relu: bool = False,
) -> Outputs:
    """x W^T + b for each weight, optionally followed by ReLU.

    Without gradients, the result of a row does not depend on the other rows, bit for bit (fp32): inputs with few rows
    are padded to a multiple of ROW_MULTIPLE, so that a sentence decoded alone gives the same result as in a batch.

    Args:
        biases: one for each weight, or none.
    """
    if torch.is_grad_enabled():
        if weights[0].device.type == "cpu" and not torch.compiler.is_compiling():
            invalidate_packed_weights(*weights)  # the compiler would divide its graph here; Model.train does it as well
        outputs = tuple(F.linear(x, weight, bias) for weight, bias in with_biases(weights, biases))
    else:
        rows = padded_rows(x)
        outputs = unpadded([F.linear(rows, weight, bias) for weight, bias in with_biases(weights, biases)], rows, x)
    return tuple(map(F.relu, outputs)) if relu else outputs


def with_biases(weights: Sequence[Tensor], biases: Sequence[Tensor]) -> Iterable[tuple[Tensor, Tensor | None]]:
    """Each weight and its bias."""
    return zip(weights, biases or (None,) * len(weights), strict=True)


def padded_rows(x: Tensor) -> Tensor:
    """The input, or if it has few rows, their matrix padded to a multiple of ROW_MULTIPLE."""
    n_rows = x.numel() // x.size(-1)
    if n_rows >= 4 * ROW_MULTIPLE or n_rows % ROW_MULTIPLE == 0:
        return x
    return F.pad(x.reshape(n_rows, -1), (0, 0, 0, -n_rows % ROW_MULTIPLE))


def unpadded(outputs: list[Tensor], rows: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    """The outputs for x of those for `rows`, which are `padded_rows(x)`."""
    if rows is x:
        return tuple(outputs)
    n_rows = x.numel() // x.size(-1)
    return tuple(y[:n_rows].reshape(*x.shape[:-1], -1) for y in outputs)


def concatenated(
    x: Float[Tensor, "*batch d_in"],
    weights: Sequence[Float[Tensor, "_ d_in"]],
    biases: Sequence[Float[Tensor, " _"]],
    relu: bool = False,
) -> Outputs:
    """One matrix product for several weights."""
    y = F.linear(x, torch.cat(tuple(weights)), torch.cat(tuple(biases)) if biases else None)
    return torch.split(F.relu(y) if relu else y, [len(weight) for weight in weights], dim=-1)


def invalidate_packed_weights(*weights: Tensor) -> None:
    """Remove weights from the cache of packed weights. Fused optimizers change weights without a new version."""
    for weight in weights:
        PACKED_WEIGHTS.pop(weight, None)


def packed_linear(
    x: Float[Tensor, "*batch d_in"],
    weights: Sequence[Float[Tensor, "_ d_in"]],
    biases: Sequence[Float[Tensor, " _"]],
    relu: bool = False,
) -> Outputs:
    """As `torch_linear` without gradients, with weights that are packed for oneDNN once instead of at every call."""
    rows = padded_rows(x)
    activation, outputs = "relu" if relu else "none", []
    for weight, bias in with_biases(weights, biases):
        source, version, packed = PACKED_WEIGHTS.get(weight) or (None, None, None)
        if source is None or (source.data_ptr(), version) != (weight.data_ptr(), weight._version):
            packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach())
            PACKED_WEIGHTS[weight] = (weight.detach(), weight._version, packed)
        outputs.append(torch.ops.mkldnn._linear_pointwise(rows, packed, bias, activation, [], ""))
    return unpadded(outputs, rows, x)


def packed_supports(x: Tensor, weights: Sequence[Tensor], *_: object, **__: object) -> bool:
    """Whether oneDNN has packed weights for these types."""
    if torch.is_grad_enabled() or x.device.type != "cpu" or not torch._C._has_mkldnn:
        return False
    dtype = x.dtype
    if dtype == torch.float32:
        is_supported = True
    elif dtype == torch.bfloat16:
        is_supported = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    else:
        is_supported = dtype == torch.float16 and torch.ops.mkldnn._is_mkldnn_fp16_supported()
    return is_supported and all(weight.dtype == dtype for weight in weights)


def fused_dtype(x: Tensor) -> torch.dtype | None:
    """The type in which a function for training on a CPU would compute the products; None: there is none.

    bf16 under autocast if the processor has instructions for it, else fp32.
    """
    if x.device.type != "cpu" or torch.compiler.is_compiling():  # the compiler does not know the functions
        return None
    if not torch.is_autocast_enabled("cpu"):
        return torch.float32 if x.dtype == torch.float32 else None
    has_bf16 = torch._C._has_mkldnn and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return torch.bfloat16 if has_bf16 and torch.get_autocast_dtype("cpu") == torch.bfloat16 else None


def keep_sizes(ctx: Any, x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor]) -> None:
    """Keep what `parameter_gradients` needs."""
    ctx.x_dtype, ctx.n_biases, ctx.sizes = x.dtype, len(biases), [len(weight) for weight in weights]
    ctx.dtypes = [parameter.dtype for parameter in (*weights, *biases)]


def input_and_parameter_gradients(
    ctx: Any, d_x: Tensor | None, d_weight: Tensor, d_bias: Tensor | None
) -> tuple[Tensor | None, ...]:
    """Gradients of the arguments of the functions below, from those of the concatenated weights and biases."""
    d_parameters = [part for whole in (d_weight, d_bias) if whole is not None for part in torch.split(whole, ctx.sizes)]
    return (
        None if d_x is None else d_x.to(ctx.x_dtype),
        None,
        None,
        *(gradient.to(dtype) for gradient, dtype in zip(d_parameters, ctx.dtypes, strict=True)),
    )


class KernelLinear(torch.autograd.Function):
    """Linear layers by the matrix product in C (`cpu_training.product`), in fp32 or bf16."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, relu: bool, n_weights: int, *parameters: Tensor) -> Tensor | tuple[Tensor, ...]:
        weights, biases = parameters[:n_weights], parameters[n_weights:]
        keep_sizes(ctx, x, weights, biases)
        dtype = fused_dtype(x)
        assert dtype is not None
        x = x.to(dtype)
        y = x.new_empty(len(x), sum(ctx.sizes))
        cpu_training.product(x, weights, y, transpose_b=True, bias=biases, relu=relu)
        ctx.save_for_backward(x, y if relu else None, *weights)
        return y if n_weights == 1 else torch.split(y, ctx.sizes, dim=1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, y, *weights = ctx.saved_tensors
        grad = grads[0] if len(grads) == 1 else cpu_training.adjacent_columns(grads)
        d_out = grad.size(1)
        d_x = None
        if ctx.needs_input_grad[0]:
            dtype = torch.float32 if ctx.x_dtype == torch.float32 else x.dtype
            d_x = cpu_training.product(grad, weights, x.new_empty(x.shape, dtype=dtype), positive=y)
        d_bias = x.new_empty(d_out, dtype=torch.float32) if ctx.n_biases else None
        d_weight = x.new_empty(d_out, x.size(1), dtype=torch.float32)
        cpu_training.product(grad, [x], d_weight, transpose_a=True, positive=y, row_sums=d_bias)
        return input_and_parameter_gradients(ctx, d_x, d_weight, d_bias)


class OneDnnLinear(torch.autograd.Function):
    """Linear layers by the matrix products of oneDNN, in bf16."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, relu: bool, n_weights: int, *parameters: Tensor) -> Tensor | tuple[Tensor, ...]:
        weights, biases = parameters[:n_weights], parameters[n_weights:]
        keep_sizes(ctx, x, weights, biases)
        x, weight = x.bfloat16(), joined(weights).bfloat16()
        bias = joined(biases).bfloat16() if biases else None
        y = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "relu" if relu else "none", [], "")
        ctx.save_for_backward(x, y if relu else None, weight)
        return y if n_weights == 1 else torch.split(y, ctx.sizes, dim=1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, y, weight = ctx.saved_tensors
        grad = grads[0] if len(grads) == 1 else cpu_training.adjacent_columns(grads)
        if y is not None:
            grad = torch.ops.aten.threshold_backward(grad, y, 0)
        d_x = grad @ weight if ctx.needs_input_grad[0] else None
        return input_and_parameter_gradients(ctx, d_x, grad.t() @ x, grad.sum(0) if ctx.n_biases else None)


def joined(parts: Sequence[Tensor]) -> Tensor:
    """Tensors one after the other. A single tensor is not copied."""
    return parts[0] if len(parts) == 1 else torch.cat(tuple(parts))


def fused(function: type[torch.autograd.Function]) -> Any:
    """A linear layer by one of the functions above."""

    def compute(
        x: Float[Tensor, "*batch d_in"],
        weights: Sequence[Float[Tensor, "_ d_in"]],
        biases: Sequence[Float[Tensor, " _"]],
        relu: bool = False,
    ) -> Outputs:
        invalidate_packed_weights(*weights)
        outputs = function.apply(x.flatten(0, -2), relu, len(weights), *weights, *biases)
        return tuple(y.view(*x.shape[:-1], -1) for y in (outputs if len(weights) > 1 else (outputs,)))

    return compute


def product_supports(x: Tensor, weights: Sequence[Tensor], *_: object, **__: object) -> bool:
    """Whether `cpu_training.product` computes products of these inputs with these weights."""
    dtype = fused_dtype(x)
    return (
        dtype is not None
        and cpu_training.has_product(dtype)
        and len(weights) <= MAX_PIECES
        and weights[0].dtype in (dtype, torch.float32)
        and all(weight.dtype == weights[0].dtype for weight in weights)
    )


def has_gradients(*_: object, **__: object) -> bool:
    """Whether gradients are enabled."""
    return torch.is_grad_enabled()


linear = Operation(
    torch_linear,
    Implementation("packed", packed_linear, packed_supports),
    Implementation("kernels", fused(KernelLinear), product_supports, prefers=has_gradients),
    Implementation(
        "onednn",
        fused(OneDnnLinear),
        lambda x, *_, **__: fused_dtype(x) == torch.bfloat16,
        prefers=has_gradients,
    ),
    Implementation(
        "concatenated",
        concatenated,
        prefers=lambda x, weights, *_, **__: x.is_cuda and len(weights) > 1 and torch.is_grad_enabled(),
    ),
    name="linear",
)
"""Outputs of linear layers, one for each weight."""
