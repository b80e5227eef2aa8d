"""Masks: True means that a query may look there, as in `scaled_dot_product_attention`."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def padding_mask(ids: Int[Tensor, "batch k"], pad_id: int) -> Bool[Tensor, "batch 1 1 k"]:
    """True where a query may look. The first token is never padding, so no row is empty."""
    return (ids != pad_id)[:, None, None, :]


def causal_mask(n_positions: int, device: torch.device | None = None) -> Bool[Tensor, "q k"]:
    """True at and before each position: what `causal=True` of attention stands for."""
    return torch.ones(n_positions, n_positions, dtype=torch.bool, device=device).tril()
