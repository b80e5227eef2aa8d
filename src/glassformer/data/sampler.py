"""Which examples are in a batch, in a reproducible order that can be resumed at any position."""

import copy
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

MAX_PADDING, MAX_BUCKETS = 0.05, 12
"""Largest fraction of padding added by length buckets, where MAX_BUCKETS of them suffice."""


def length_buckets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Lengths rounded up to a few values: the fewest for which the added padding is at most MAX_PADDING of all tokens.

    The values are optimal: no others of the same number add less padding. At most MAX_BUCKETS values.
    """
    longest = int(lengths.max())
    step = 1 + longest // 512
    values, counts = np.unique((-(-lengths // step) * step).clip(max=longest), return_counts=True)
    ends = np.cumsum(counts)
    # tokens[i, j]: number of tokens of the examples with the lengths values[i] to values[j], padded to values[j].
    tokens = np.where(np.tri(len(values), dtype=bool).T, values * (ends - (ends - counts)[:, None]), np.inf)
    fewest = tokens[0]
    splits: list[NDArray[np.int64]] = []
    while fewest[-1] > (1 + MAX_PADDING) * lengths.sum() and len(splits) + 1 < min(MAX_BUCKETS, len(values)):
        # One more bucket: the one before the last ends at values[i].
        with_split = fewest[:-1, None] + tokens[1:]
        splits.append(with_split.argmin(0))
        fewest = with_split.min(0)
    last = len(values) - 1
    buckets = [last]
    for split in reversed(splits):
        last = int(split[last])
        buckets.append(last)
    edges = values[buckets[::-1]]
    return edges[np.searchsorted(edges, lengths)]


def batch_by_tokens(order: NDArray[np.int64], lengths: NDArray[np.int64], batch_tokens: int) -> list[NDArray[np.int64]]:
    """Split the example indices `order` into consecutive batches of at most `batch_tokens` tokens including padding. A
    longer example is a batch by itself.
    """
    ordered = lengths[order]
    run_ends = [*(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist(), len(order)]
    run_lengths = ordered[[end - 1 for end in run_ends]].tolist()
    starts, max_length, run_start = [0], 0, 0
    for run_end, length in zip(run_ends, run_lengths, strict=True):  # a run: consecutive examples of equal length
        # The batch that contains examples before this run, then batches of this run only.
        max_length = max(max_length, length, 1)
        full = max(starts[-1] + batch_tokens // max_length, starts[-1] + 1, run_start)
        if full < run_end:
            starts.extend(range(full, run_end, max(1, batch_tokens // max(1, length))))
            max_length = length
        run_start = run_end
    return [order[start:end] for start, end in zip(starts, [*starts[1:], len(order)], strict=True)]


def pack_by_tokens(
    order: NDArray[np.int64], lengths: NDArray[np.int64], n_tokens: int, n_examples: int
) -> list[NDArray[np.int64]]:
    """Split the example indices `order` into consecutive batches of at most `n_examples` examples, and on each side at
    most `n_tokens` tokens. A longer example is a batch by itself.

    Args:
        lengths: length of each example on each side [examples, sides].
    """
    ends = np.cumsum(lengths[order], axis=0)
    batches, start = [], 0
    while start < len(order):
        before = ends[start - 1] if start else np.zeros_like(ends[0])
        fitting = [np.searchsorted(side, n_tokens + n, side="right") for side, n in zip(ends.T, before, strict=True)]
        end = max(start + 1, min(start + n_examples, *map(int, fitting)))
        batches.append(order[start:end])
        start = end
    return batches


class BatchSampler:
    """Infinite sampler of batches of example indices. A batch is a pure function of (seed, epoch, position).

    In each epoch the examples are sorted by length with random order among ties, split into batches by number of
    tokens, and the batches are shuffled. The state consists of these three integers only.
    """

    def __init__(
        self, lengths: NDArray[np.int64], batch_tokens: int, seed: int, *, longest_first: bool = False
    ) -> None:
        """
        Args:
            lengths: padded length of each example, including special tokens.
            batch_tokens: maximum number of tokens per batch, including padding.
            seed: seed of the random numbers.
            longest_first: split from the longest example on. The number of examples in a batch then depends on its
                padded length only, but for the last batch.
        """
        self.lengths, self.batch_tokens, self.seed, self.longest_first = lengths, batch_tokens, seed, longest_first
        self.examples = np.arange(len(lengths))
        """Indices of the examples that are sampled."""
        self.epoch = self.position = 0
        self.batches = self.plan(0)

    def only(self, examples: NDArray[np.int64]) -> "BatchSampler":
        """A new sampler of some of the examples, whose batches have the shapes of this one."""
        sampler = copy.copy(self)
        sampler.examples = examples
        sampler.epoch = sampler.position = 0
        sampler.batches = sampler.plan(0)
        return sampler

    @property
    def n_shapes(self) -> int:
        """Number of shapes of the batches, if the length determines the number of examples."""
        return len(np.unique(self.lengths))

    def plan(self, epoch: int) -> list[NDArray[np.int64]]:
        """Batches of an epoch, in order."""
        rng = np.random.Generator(np.random.Philox(key=[self.seed, epoch]))
        order = self.examples[rng.random(len(self.examples)).argsort(kind="stable")]
        # The smallest integer type: NumPy sorts integers of at most two bytes in linear time.
        lengths = self.lengths.astype(np.min_scalar_type(self.lengths.max()))[order]
        order = order[lengths.argsort(kind="stable")]
        batches = batch_by_tokens(order[::-1] if self.longest_first else order, self.lengths, self.batch_tokens)
        return [batches[i] for i in rng.permutation(len(batches))]

    def __next__(self) -> NDArray[np.int64]:
        if self.position == len(self.batches):
            self.epoch, self.position = self.epoch + 1, 0
            self.batches = self.plan(self.epoch)
        self.position += 1
        return self.batches[self.position - 1]

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        return self

    @property
    def epochs_done(self) -> float:
        """Number of passes over the examples, including the fraction of the current one."""
        return self.epoch + self.position / len(self.batches)

    def state_dict(self) -> dict[str, int]:
        return {"seed": self.seed, "epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.seed, self.epoch, self.position = state["seed"], state["epoch"], state["position"]
        self.batches = self.plan(self.epoch)


class PackingSampler(BatchSampler):
    """Infinite sampler of batches that are packed: as many examples as fit without padding, in random order.

    Examples that are too long to be packed are in batches of their own, as those of `BatchSampler`.
    """

    def __init__(
        self, sides: NDArray[np.int64], lengths: NDArray[np.int64], batch_tokens: int, seed: int, *, longest: int
    ) -> None:
        """
        Args:
            sides: length of each example on each side, with special tokens [examples, sides].
            lengths: padded length of each example that is too long to be packed. The others may be any.
            batch_tokens: maximum number of tokens per batch and side.
            longest: length of the longest example that is packed.
        """
        self.sides, self.is_packed = sides, sides.max(1) <= longest
        # Batches have almost the same number of examples: their standard deviation is a few percent.
        mean_length = sides[self.is_packed].mean(0).max() if self.is_packed.any() else longest
        self.n_examples = int(1.05 * batch_tokens / mean_length) + 32
        """Maximum number of examples in a packed batch."""
        super().__init__(lengths, batch_tokens, seed, longest_first=True)

    @property
    def n_shapes(self) -> int:
        return len(np.unique(self.lengths[~self.is_packed])) + bool(self.is_packed.any())

    def plan(self, epoch: int) -> list[NDArray[np.int64]]:
        rng = np.random.Generator(np.random.Philox(key=[self.seed, epoch]))
        order = rng.permutation(self.examples)
        packed, others = order[self.is_packed[order]], order[~self.is_packed[order]]
        batches = pack_by_tokens(packed, self.sides, self.batch_tokens, self.n_examples)
        # From the longest on, so that parts of equal numbers of examples have about equal numbers of tokens.
        batches = [batch[np.argsort(-self.lengths[batch], kind="stable")] for batch in batches]
        if len(others):
            others = others[np.argsort(-self.lengths[others], kind="stable")]
            batches += batch_by_tokens(others, self.lengths, self.batch_tokens)
        return [batches[i] for i in rng.permutation(len(batches))]
