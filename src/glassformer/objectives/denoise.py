"""Spoiling a text so that a model may learn to mend it."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

MASKED, RANDOM = 0.8, 0.1
"""Of the chosen tokens, how many become the mask and how many another token; the rest stay as they are."""


def mask_tokens(
    ids: Int[Tensor, "batch length"],
    may: Bool[Tensor, "batch length"],
    mask_id: int,
    words: Int[Tensor, " words"],
    share: float = 0.15,
) -> tuple[Int[Tensor, "batch length"], Bool[Tensor, "batch length"]]:
    """Masked ids, and where the tokens stand that are to be predicted: `share` of each row's, at least one.

    The random numbers are those of torch's global state.

    Args:
        may: True where a token may be chosen: no padding, no special token.
        words: ids that a random token is drawn from.

    Source: Devlin et al. 2018, section 3.1, task 1.
    """
    order = torch.rand(ids.shape, device=ids.device).masked_fill(~may, 2.0).argsort(1)
    n_chosen = (may.sum(1, keepdim=True) * share).round().clamp(min=1)
    chosen = (order.argsort(1) < n_chosen) & may
    fate = torch.rand(ids.shape, device=ids.device)
    others = words[torch.randint(len(words), ids.shape, device=ids.device)]
    spoiled = torch.where(fate < MASKED, mask_id, torch.where(fate < MASKED + RANDOM, others, ids))
    return torch.where(chosen, spoiled, ids), chosen
