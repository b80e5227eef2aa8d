"""Attention masks. True = may attend, as in `torch.nn.functional.scaled_dot_product_attention`."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def padding_mask(ids: Int[Tensor, "batch k"], pad_id: int) -> Bool[Tensor, "batch 1 1 k"]:
    """Padding mask: True at tokens, False at padding. The first token is never padding, so no row is all False."""
    return (ids != pad_id)[:, None, None, :]


def causal_mask(n_queries: int, n_keys: int | None = None, device: torch.device | None = None) -> Bool[Tensor, "q k"]:
    """Causal mask: True at and before each query's position. The queries are the last `n_queries` key positions."""
    n_keys = n_queries if n_keys is None else n_keys
    return torch.ones(n_queries, n_keys, dtype=torch.bool, device=device).tril(n_keys - n_queries)
