"""Sinusoidal position encoding."""

import torch
from jaxtyping import Float
from torch import Tensor


def sinusoids(n_positions: int, d_model: int) -> Float[Tensor, "positions d_model"]:
    """Sinusoidal position encoding: PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(pos / 10000^(2i/d)).

    Computed in double precision and rounded to fp32.

    Source: Vaswani et al. 2017, section 3.5.
    """
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64)
    angles = torch.arange(n_positions, dtype=torch.float64)[:, None] / 10000 ** (two_i / d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :d_model].float()
