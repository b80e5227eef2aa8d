"""Residual connection with dropout and normalization."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.nn import cpu_training
from glassformer.nn.dropout import Dropout
from glassformer.nn.ops.operation import Implementation, Operation


def torch_residual(
    x: Float[Tensor, "batch length d_model"],
    z: Float[Tensor, "batch length d_model"],
    norm: nn.Module | None,
    dropout: Dropout,
    training: bool,
) -> Float[Tensor, "batch length d_model"]:
    """x + dropout(z), normalized. In training under autocast in 16 bits: reading and writing it takes time.

    Args:
        x: input of a sub-layer.
        z: its output.
        norm: the normalization. None: none.
        training: the layer is part of a model that is trained.
    """
    total = x + dropout(z)
    result: Tensor = total if norm is None else norm(total)
    device = result.device.type
    if torch.is_grad_enabled() and torch.is_autocast_enabled(device):
        return result.to(torch.get_autocast_dtype(device))
    return result


def kernel_residual(
    x: Float[Tensor, "batch length d_model"],
    z: Float[Tensor, "batch length d_model"],
    norm: nn.Module | None,
    dropout: Dropout,
    training: bool,
) -> Float[Tensor, "batch length d_model"]:
    """x + dropout(z), in the precision of z, and its LayerNorm, by the kernels in C."""
    return cpu_training.residual(x, z, norm, dropout.p if training else 0.0)


def kernel_supports(x: Tensor, z: Tensor, norm: nn.Module | None, dropout: Dropout, training: bool) -> bool:
    """Whether the kernels in C support these vectors, and the normalization is LayerNorm."""
    return (
        cpu_training.supports(z)
        and z.size(-1) % cpu_training.COLUMN_MULTIPLE == 0
        and (norm is None or type(norm) is nn.LayerNorm)
    )


residual = Operation(
    torch_residual,
    Implementation("kernels", kernel_residual, kernel_supports, prefers=lambda x, z, norm, dropout, training: training),
    name="residual",
)
"""Output of a residual connection."""
