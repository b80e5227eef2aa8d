"""Input corruption for denoising objectives: masked language modeling (MLM) and span corruption."""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.data.batch import Batch, extend, extend_positions
from glassformer.data.pairs import PairBatch

MASK_FRACTION, RANDOM_FRACTION = 0.8, 0.1
"""Fractions of the selected tokens that are replaced by the mask and by a random token; the others are unchanged."""


@dataclass(frozen=True, slots=True)
class MaskedLMBatch(Batch):
    """Padded texts with masked tokens, the positions to predict, and the original tokens at these positions."""

    ids: Int[Tensor, "batch length"]
    token_type_ids: Int[Tensor, "batch length"]
    target_positions: Int[Tensor, " targets"]
    """Indices of the masked tokens, in the flattened `ids`."""
    targets: Int[Tensor, " targets"]
    target_weights: Float[Tensor, " targets"] | None = None
    """Weight of the loss of each target: 0 for those added by `pad_to`. None: 1."""
    nsp_labels: Int[Tensor, " batch"] | None = None
    """Next-sentence labels of pairs: 0 if the second text follows the first, 1 if it was sampled at random."""

    def pad_to(self, n_rows: int, length: int, pad_id: int) -> "MaskedLMBatch":
        ids = extend(self.ids, n_rows, length, pad_id)
        n, positions = len(self.targets), extend_positions(self.target_positions, self.ids.size(1), ids)
        return replace(
            self,
            ids=ids,
            token_type_ids=extend(self.token_type_ids, n_rows, length, 0),
            target_positions=positions,
            targets=F.pad(self.targets, (0, len(positions) - n)),
            target_weights=(torch.arange(len(positions)) < n).float(),
        )


def mask_tokens(
    ids: Int[Tensor, "batch length"],
    maskable: Bool[Tensor, "batch length"],
    mask_id: int,
    random_ids: Int[Tensor, " random_ids"],
    fraction: float = 0.15,
) -> tuple[Int[Tensor, "batch length"], Bool[Tensor, "batch length"]]:
    """Corrupt token ids for masked language modeling (MLM). Uses torch's global random state.

    Args:
        ids: token ids of each sequence.
        maskable: True where a token may be selected: neither padding nor a special token.
        mask_id: id of the mask token.
        random_ids: ids from which random replacements are drawn.
        fraction: fraction of the maskable tokens of each sequence to select, at least one token.

    Returns:
        The corrupted ids, and a mask that is True at the tokens to predict.

    Source: Devlin et al. 2018, section 3.1, task 1.
    """
    order = torch.rand(ids.shape, device=ids.device).masked_fill(~maskable, 2.0).argsort(1)
    n_selected = (maskable.sum(1, keepdim=True) * fraction).round().clamp(min=1)
    selected = (order.argsort(1) < n_selected) & maskable
    u = torch.rand(ids.shape, device=ids.device)
    replacements = random_ids[torch.randint(len(random_ids), ids.shape, device=ids.device)]
    corrupted = torch.where(
        u < MASK_FRACTION, mask_id, torch.where(u < MASK_FRACTION + RANDOM_FRACTION, replacements, ids)
    )
    return torch.where(selected, corrupted, ids), selected


def noise_counts(n: int, fraction: float = 0.15, mean_length: float = 3.0) -> tuple[int, int]:
    """Number of tokens that span corruption removes from n tokens, and number of spans.

    Args:
        fraction: fraction of the tokens to remove.
        mean_length: mean length of the spans, in tokens.

    Raises:
        ValueError: n < 2, where no token would be left.
    """
    if n < 2:
        raise ValueError(f"{n} tokens: span corruption requires at least 2")
    n_noise = min(max(round(n * fraction), 1), n - 1)
    return n_noise, min(max(round(n_noise / mean_length), 1), n_noise, n - n_noise)


def span_mask(n: int) -> Bool[Tensor, " n"]:
    """Random mask of the spans to remove in span corruption: True at noise tokens. Uses torch's global random state.

    The lengths of the spans and of the text between them are random. The first token is never removed.

    Args:
        n: number of tokens, at least 2.

    Source: Raffel et al. 2019, section 3.1.4, and its published code.
    """
    n_noise, n_spans = noise_counts(n)
    lengths = torch.stack([random_partition(n - n_noise, n_spans), random_partition(n_noise, n_spans)], dim=1).flatten()
    return torch.repeat_interleave(torch.arange(2 * n_spans) % 2 == 1, lengths)


def random_partition(n: int, n_parts: int) -> Int[Tensor, " parts"]:
    """Split n into `n_parts` positive integers that sum to n; every such sequence is equally likely."""
    cuts = torch.randperm(n - 1)[: n_parts - 1].sort().values + 1
    return torch.diff(torch.cat([torch.zeros(1, dtype=cuts.dtype), cuts, torch.full((1,), n)]))


def corrupt_spans(
    ids: Int[Tensor, " n"], noise_mask: Bool[Tensor, " n"], sentinels: Int[Tensor, " sentinels"]
) -> tuple[Int[Tensor, " src"], Int[Tensor, " tgt"]]:
    """Span corruption: source and target ids.

    In the source, each noise span is replaced by a sentinel. The target consists of the spans, each after its sentinel.

    Source: Raffel et al. 2019, section 3.1.1 and figure 2.
    """
    starts = noise_mask & ~torch.cat([noise_mask.new_zeros(1), noise_mask[:-1]])
    sentinel_ids = sentinels[(starts.cumsum(0) - 1).clamp(min=0)]
    src = torch.where(starts, sentinel_ids, ids)[~noise_mask | starts]
    spans = torch.stack([sentinel_ids, ids], dim=1)
    return src, spans[torch.stack([starts, noise_mask], dim=1)]


class CorruptedBatch(PairBatch):
    """Sources without their spans, and the spans as targets."""

    __slots__ = ()

    def pad_to(self, n_rows: int, length: int, pad_id: int) -> "CorruptedBatch":
        n = max(2, length - 1)  # without the end token
        n_noise, n_spans = noise_counts(n)
        return self.pad_sides(n_rows, n - n_noise + n_spans + 1, n_noise + n_spans + 1, pad_id)
