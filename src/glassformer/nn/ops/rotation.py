"""Rotation of queries and keys by the angles of their positions."""

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.nn import cpu_training
from glassformer.nn.ops.operation import Implementation, Operation


def torch_rotation(
    x: Float[Tensor, "batch heads length d_head"],
    cos: Float[Tensor, "*#batch 1 length half"],
    sin: Float[Tensor, "*#batch 1 length half"],
) -> Float[Tensor, "batch heads length d_head"]:
    """Rotate each pair (x_i, x_(i + d_head/2)) by the angle of its position."""
    first, second = x.chunk(2, dim=-1)
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def kernel_supports(x: Tensor, cos: Tensor, sin: Tensor) -> bool:
    """Whether the kernels in C support rotation of heads of this size."""
    return cpu_training.supports(x) and x.size(-1) % (2 * cpu_training.COLUMN_MULTIPLE) == 0


rotation = Operation(
    torch_rotation,
    Implementation("kernels", cpu_training.rotate, kernel_supports, prefers=lambda x, cos, sin: x.requires_grad),
    name="rotation",
)
"""Heads, rotated by the angles of their positions."""
