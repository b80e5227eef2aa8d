"""Masks: True means that a query may look there, as in `scaled_dot_product_attention`."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def padding_mask(ids: Int[Tensor, "batch k"], pad_id: int) -> Bool[Tensor, "batch 1 1 k"]:
    """True where a query may look. The first token is never padding, so no row is empty."""
    return (ids != pad_id)[:, None, None, :]


def causal_mask(n_queries: int, n_keys: int | None = None, device: torch.device | None = None) -> Bool[Tensor, "q k"]:
    """True at and before each query's place, where the queries are the last of the keys: `causal` of attention."""
    n_keys = n_queries if n_keys is None else n_keys
    return torch.ones(n_queries, n_keys, dtype=torch.bool, device=device).tril(n_keys - n_queries)
