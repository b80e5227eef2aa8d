"""Sampling of skip-gram pairs and negative samples from text."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from glassformer.data.batch import Batch

WINDOW = 5
"""Maximum window size in words on each side; the size at each position is sampled uniformly from 1 to WINDOW."""
N_NEGATIVES = 5
"""Negative samples per pair."""
SUBSAMPLING_THRESHOLD = 1e-3
"""Threshold t of subsampling: a word of frequency f > t is dropped with probability 1 - (sqrt(f/t) + 1) t/f, as in
word2vec."""


@dataclass(frozen=True, slots=True)
class SkipGramBatch(Batch):
    """Center words, a context word of each, and negative samples."""

    center_ids: Int[Tensor, " pairs"]
    context_ids: Int[Tensor, " pairs"]
    negative_ids: Int[Tensor, "pairs negatives"]


class PairSampler:
    """Samples (center, context) pairs and negative samples, by the counts of the words.

    Source: Mikolov et al. 2013 (1310.4546): negative sampling from unigram^0.75, subsampling of frequent words.
    """

    def __init__(self, counts: NDArray[np.int64] | NDArray[np.float64]) -> None:
        """
        Args:
            counts: how often each word of the vocabulary occurs.
        """
        frequency = np.maximum(counts, 1) / max(1, counts.sum())
        self.keep_probs = np.minimum(
            1.0, (np.sqrt(frequency / SUBSAMPLING_THRESHOLD) + 1) * SUBSAMPLING_THRESHOLD / frequency
        )
        """Probability of each word that subsampling keeps it."""
        self.negative_cdf = np.cumsum(counts.astype(np.float64) ** 0.75)
        """Cumulative distribution of the negative samples."""
        self.negative_cdf /= self.negative_cdf[-1]

    def sample(self, rows: Sequence[Sequence[int]], seed: int) -> SkipGramBatch:
        """Sample pairs and negative samples from rows of token ids."""
        rng = np.random.default_rng(seed)
        center_ids, context_ids = [], []
        for row in rows:
            ids = np.asarray(row)
            ids = ids[rng.random(len(ids)) < self.keep_probs[ids]]
            window_sizes = rng.integers(1, WINDOW + 1, len(ids))
            for distance in range(1, WINDOW + 1):
                if distance < len(ids):
                    # Pairs of words at this distance. A word is a center if its own window reaches the other.
                    left, right = ids[:-distance], ids[distance:]
                    left_is_center = window_sizes[:-distance] >= distance
                    right_is_center = window_sizes[distance:] >= distance
                    center_ids += [left[left_is_center], right[right_is_center]]
                    context_ids += [right[left_is_center], left[right_is_center]]
        if not center_ids:  # subsampling dropped all words
            center_ids, context_ids = [np.asarray(rows[0][:1])], [np.asarray(rows[0][1:2])]
        center = torch.from_numpy(np.concatenate(center_ids).astype(np.int64))
        negative_ids = np.searchsorted(self.negative_cdf, rng.random((len(center), N_NEGATIVES)), side="right")
        return SkipGramBatch(
            n_targets=len(center),
            center_ids=center,
            context_ids=torch.from_numpy(np.concatenate(context_ids).astype(np.int64)),
            negative_ids=torch.from_numpy(negative_ids.clip(max=len(self.negative_cdf) - 1)),
        )
