"""Sinusoidal and rotary position encoding."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.nn.ops.rotation import rotation
from glassformer.nn.overridable import overridable


def sinusoids(n_positions: int, d_model: int) -> Float[Tensor, "positions d_model"]:
    """Sinusoidal position encoding: PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(pos / 10000^(2i/d)).

    Computed in double precision and rounded to fp32.

    Source: Vaswani et al. 2017, section 3.5.
    """
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64)
    angles = torch.arange(n_positions, dtype=torch.float64)[:, None] / 10000 ** (two_i / d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :d_model].float()


@overridable
def position_ids(ids: Int[Tensor, "... length"], start: int = 0) -> Int[Tensor, " length"]:
    """Positions of the tokens: start, start + 1, ..."""
    return torch.arange(start, start + ids.size(-1), device=ids.device)


@overridable
def rotary_embedding(
    positions: Int[Tensor, "*batch length"], d_head: int, theta: float = 10_000.0
) -> tuple[Float[Tensor, "*batch 1 length half"], Float[Tensor, "*batch 1 length half"]]:
    """Cosines and sines of the rotation angles of rotary position embeddings: pos / theta^(2i / d_head).

    Args:
        positions: position of each token, counted from 0.
        d_head: dimension of each head; even.
        theta: base of the angles. Larger values rotate more slowly.

    Source: Su et al. 2021, section 3.2.
    """
    two_i = torch.arange(0, d_head, 2, device=positions.device).float()
    angles = positions[..., None, :, None].float() / theta ** (two_i / d_head)
    return angles.cos(), angles.sin()


@overridable
def rotate(
    x: Float[Tensor, "batch heads length d_head"],
    cos: Float[Tensor, "*#batch 1 length half"],
    sin: Float[Tensor, "*#batch 1 length half"],
) -> Float[Tensor, "batch heads length d_head"]:
    """Rotate each pair (x_i, x_(i + d_head/2)) by the angle of its position."""
    return rotation(x, cos, sin)
