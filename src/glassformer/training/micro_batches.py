"""Micro-batches: the parts of a batch that a process computes one after another."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from glassformer.data.batch import Batch
from glassformer.data.dataset import Dataset
from glassformer.data.ragged import Row
from glassformer.data.sampler import BatchSampler, PackingSampler, length_buckets
from glassformer.learning.base import AnyObjective
from glassformer.nn.packing import MAX_LENGTH
from glassformer.training.step import TrainingStep

MAX_TOKENS = 8192
"""Default of --micro-batch-tokens. On a GPU: per 8 GiB of its memory."""

GROWTH_SAMPLE = 1000
"""Number of examples that are varied to know by how much they grow."""

MARGIN = 0.04
"""Part of a packed batch that is free for varied examples that grow by more than the mean."""

MIN_SAVED = 0.15
"""Rows of different lengths are computed apart if that saves this fraction of their tokens, with padding."""

TOKEN_MULTIPLE = 64
"""Packed batches have a multiple of this number of tokens: their matrix products are faster."""

Indices = NDArray[np.int64]
"""Indices of examples of the training set."""


def random_generators(seed: int, step: int, indices: Iterable[int]) -> list[np.random.Generator]:
    """Random numbers of examples in an update, the same whichever process or micro-batch computes them."""
    return [np.random.Generator(np.random.Philox(key=[seed, step << 32 | i])) for i in indices]


def growth(objective: AnyObjective, data: Dataset, seed: int) -> float:
    """Mean number of tokens of the varied examples for each token of the examples, from GROWTH_SAMPLE of them."""
    if not objective.varies:
        return 1.0
    rows = list(data.rows(np.linspace(0, len(data) - 1, min(len(data), GROWTH_SAMPLE)).astype(np.int64)))
    generators = random_generators(seed, 0, range(len(rows)))
    varied = objective.varied(rows, generators, objective.model.config.max_len - 1)
    n_before, n_after = (sum(len(field) for row in part for field in row) for part in (rows, varied))
    return max(1.0, n_after / n_before)


def make_sampler(
    step: TrainingStep, data: Dataset, lengths: Indices, batch_tokens: int, seed: int, *, growth: float = 1.0
) -> BatchSampler:
    """The sampler of batches. For CUDA graphs, their shapes are few: they are packed, or padded to a few lengths.

    Args:
        lengths: padded length of each example, varied as it is on average.
        growth: number of tokens of a varied example for each token of the example.
    """
    if not step.packs:
        lengths = length_buckets(lengths) if step.graphs else lengths
        return BatchSampler(lengths, batch_tokens, seed, longest_first=step.graphs is not None)
    is_long = lengths > MAX_LENGTH
    if is_long.any():
        lengths[is_long] = length_buckets(lengths[is_long])
    sides = data.side_lengths if growth == 1 else np.ceil((growth + MARGIN) * data.side_lengths).astype(np.int64)
    return PackingSampler(sides, lengths, batch_tokens, seed, longest=MAX_LENGTH)


def default_max_tokens(device: torch.device) -> int:
    """Default of --micro-batch-tokens."""
    n_parts = torch.cuda.get_device_properties(device).total_memory >> 33 if device.type == "cuda" else 1
    return MAX_TOKENS * max(1, n_parts)


class MicroBatches:
    """Makes the micro-batches of a process. With CUDA graphs, they are packed or padded to a fixed shape."""

    def __init__(self, step: TrainingStep, data: Dataset, sampler: BatchSampler, max_tokens: int | None) -> None:
        """
        Args:
            data: the training set.
            sampler: the sampler of the batches.
            max_tokens: maximum number of tokens per micro-batch and side, including padding. A longer example is a
                micro-batch by itself. None: by the memory of the device.
        """
        self.step, self.data, self.sampler = step, data, sampler
        self.max_tokens = max_tokens or default_max_tokens(step.device)
        self.on_made: Callable[[Sequence[Batch], Sequence[Batch]], None] | None = None
        """Called with the micro-batches, and the same with the padding of the fixed shape."""

    def __call__(self, indices: Indices, step: int = 0) -> list[Batch]:
        """Collate the examples of a batch that this process computes.

        Args:
            step: the update; with the seed and the example, it determines how the example is varied.
        """
        if not len(indices):
            return []
        objective = self.step.objective
        rows = [part for indices_of_part in self.split(indices) for part in self.rows(indices_of_part, step)]
        if self.is_packed(indices):
            n_tokens, n_examples = self.packed_size()
            n_sequences = n_examples + -(-n_tokens // MAX_LENGTH)
            batches: list[Batch] = [objective.packed_batch(own, n_tokens, n_sequences, MAX_LENGTH) for own in rows]
        else:
            batches = list(map(objective.batch, rows))
        final = batches
        if self.step.graphs and not self.is_packed(indices):
            _, length = self.padded_size(indices)
            of_batch = -(-(self.sampler.batch_tokens // length) // self.step.processes.size)
            n_rows = max(1, min(self.max_tokens // length, of_batch))
            final = [batch.pad_to(n_rows, length, objective.tokenizer.pad_id) for batch in batches]
        if self.on_made:
            self.on_made(batches, final)
        return final

    def rows(self, indices: Indices, step: int) -> list[Sequence[Row]]:
        """The examples of a micro-batch as an update is trained on them. Padded ones whose lengths became different are
        two micro-batches, if that has less padding.
        """
        rows, objective = self.data.rows(indices), self.step.objective
        if not objective.varies:
            return [rows]
        generators = random_generators(self.sampler.seed, step, indices.tolist())
        if self.is_packed(indices):
            varied = objective.varied(rows, generators, MAX_LENGTH - 1)
            n_tokens, _ = self.packed_size()
            fits = max(sum(map(len, field)) for field in zip(*varied, strict=True)) + len(indices) <= n_tokens
            return [varied if fits else rows]
        longest = self.padded_size(indices)[1] if self.step.graphs else objective.model.config.max_len
        varied = objective.varied(rows, generators, longest - 1)
        return [varied] if self.step.graphs else split_by_length(varied)

    def split(self, indices: Indices) -> list[Indices]:
        """The examples of each micro-batch of a batch: the fewest parts of at most `max_tokens` tokens."""
        if not self.is_packed(indices):
            n_rows, _ = self.padded_size(indices)
            return [indices[start : start + n_rows] for start in range(0, len(indices), n_rows)]
        assert isinstance(self.sampler, PackingSampler)
        sides, (n_tokens, n_examples) = self.sampler.sides, self.packed_size()
        n_parts = 1
        while True:
            # The examples are sorted by length, so the parts have about equal numbers of tokens.
            parts = [indices[i::n_parts] for i in range(n_parts)]
            if all(len(part) <= n_examples and sides[part].sum(0).max() <= n_tokens for part in parts):
                return parts
            n_parts += 1

    def divisible_tokens(self, indices: Indices) -> int:
        """Number of tokens per side of the largest micro-batch of a batch; 0 if it cannot be smaller."""
        if self.is_packed(indices):
            n_tokens, _ = self.packed_size()
            return n_tokens if n_tokens > MAX_LENGTH and len(indices) > 1 else 0
        n_rows, length = self.padded_size(indices)
        return n_rows * length if n_rows > 1 else 0

    # Shapes

    def is_packed(self, indices: Indices) -> bool:
        """Whether the examples of a batch are packed."""
        return isinstance(self.sampler, PackingSampler) and bool(self.sampler.is_packed[indices[0]])

    def padded_size(self, indices: Indices) -> tuple[int, int]:
        """Number of rows of the largest micro-batch of a batch that is padded, and the length of its longest row."""
        length = int(self.sampler.lengths[indices].max())
        return min(len(indices), max(1, self.max_tokens // length)), length

    def packed_size(self) -> tuple[int, int]:
        """Number of tokens per side of a packed micro-batch, and the maximum number of its examples."""
        assert isinstance(self.sampler, PackingSampler)
        batch_tokens, n_processes = self.sampler.batch_tokens, self.step.processes.size
        # The parts of the processes differ by about the length of an example.
        own_tokens = batch_tokens // n_processes + (2 * MAX_LENGTH if n_processes > 1 else 0)
        n_tokens = -(-max(MAX_LENGTH, min(self.max_tokens, own_tokens)) // TOKEN_MULTIPLE) * TOKEN_MULTIPLE
        return n_tokens, int(self.sampler.n_examples * n_tokens / batch_tokens) + 32


def split_by_length(rows: Sequence[Row]) -> list[Sequence[Row]]:
    """The rows, or if that has much less padding, the shorter and the longer ones."""
    lengths = np.array([max(map(len, row)) + 1 for row in rows])
    order = np.argsort(lengths, kind="stable")
    ordered = lengths[order]
    n_short = np.arange(1, len(rows) + 1)
    n_tokens = n_short * ordered + (len(rows) - n_short) * ordered[-1]
    best = int(n_tokens.argmin()) + 1
    if n_tokens[best - 1] > (1 - MIN_SAVED) * n_tokens[-1]:
        return [rows]
    return [[rows[i] for i in part] for part in (order[:best], order[best:])]
