"""Spoiling a text so that a model may learn to mend it."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

MASK_FRACTION, RANDOM_FRACTION = 0.8, 0.1
"""Of the chosen tokens, how many become the mask and how many another token; the rest stay as they are."""


def mask_tokens(
    ids: Int[Tensor, "batch length"],
    maskable: Bool[Tensor, "batch length"],
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
    order = torch.rand(ids.shape, device=ids.device).masked_fill(~maskable, 2.0).argsort(1)
    n_chosen = (maskable.sum(1, keepdim=True) * share).round().clamp(min=1)
    chosen = (order.argsort(1) < n_chosen) & maskable
    fate = torch.rand(ids.shape, device=ids.device)
    others = words[torch.randint(len(words), ids.shape, device=ids.device)]
    spoiled = torch.where(
        fate < MASK_FRACTION, mask_id, torch.where(fate < MASK_FRACTION + RANDOM_FRACTION, others, ids)
    )
    return torch.where(chosen, spoiled, ids), chosen


def span_mask(n: int, share: float = 0.15, mean_length: float = 3.0) -> Bool[Tensor, " n"]:
    """Which of n tokens are left out, in spans: `share` of them, spans of `mean_length` on the average.

    Spans and what stands between are cut at random; the first token is never left out. The random numbers are those
    of torch's global state.

    Raises:
        ValueError: fewer than 2 tokens: nothing would stay.

    Source: Raffel et al. 2019, section 3.1.4, and its published code.
    """
    if n < 2:
        raise ValueError(f"{n} tokens: too few to leave one out")
    n_out = min(max(round(n * share), 1), n - 1)
    n_spans = min(max(round(n_out / mean_length), 1), n_out, n - n_out)
    lengths = torch.stack([random_partition(n - n_out, n_spans), random_partition(n_out, n_spans)], dim=1).flatten()
    return torch.repeat_interleave(torch.arange(2 * n_spans) % 2 == 1, lengths)


def random_partition(n: int, n_parts: int) -> Int[Tensor, " parts"]:
    """n cut at random into parts of at least 1, all ways of cutting alike."""
    cuts = torch.randperm(n - 1)[: n_parts - 1].sort().values + 1
    return torch.diff(torch.cat([torch.zeros(1, dtype=cuts.dtype), cuts, torch.full((1,), n)]))


def corrupt_spans(
    ids: Int[Tensor, " n"], noise_mask: Bool[Tensor, " n"], sentinels: Int[Tensor, " sentinels"]
) -> tuple[Int[Tensor, " src"], Int[Tensor, " tgt"]]:
    """The text with a sentinel for each span left out, and the spans, each behind its sentinel.

    Source: Raffel et al. 2019, section 3.1.1 and figure 2.
    """
    begins = noise_mask & ~torch.cat([noise_mask.new_zeros(1), noise_mask[:-1]])
    named = sentinels[(begins.cumsum(0) - 1).clamp(min=0)]
    src = torch.where(begins, named, ids)[~noise_mask | begins]
    spans = torch.stack([named, ids], dim=1)
    return src, spans[torch.stack([begins, noise_mask], dim=1)]
