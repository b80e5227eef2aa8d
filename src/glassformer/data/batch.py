"""Batches of about equally long examples, in an order that can be taken up anywhere."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Batch:
    """What one step of training reads: of each record its tensors, padded."""

    n_targets: int | float
    """What the summed loss is divided by: tokens to predict, or their weights, or labels."""

    def to(self, device: torch.device) -> Any:
        moved: dict[str, Any] = {name: value.to(device) for name, value in self.tensors().items()}
        return replace(self, **moved)

    def tensors(self) -> dict[str, Tensor]:
        """Its tensors by name."""
        return {f.name: value for f in fields(self) if isinstance(value := getattr(self, f.name), Tensor)}


@dataclass(frozen=True, slots=True)
class PairBatch(Batch):
    """Padded ids of some pairs. The decoder reads tgt_in and is to say tgt_out."""

    src: Int[Tensor, "batch src"]
    tgt_in: Int[Tensor, "batch tgt"]
    tgt_out: Int[Tensor, "batch tgt"]


def pad(rows: Sequence[Sequence[int]], pad_id: int, pad_to_multiple_of: int = 1) -> Int[Tensor, "rows length"]:
    """Rows of ids side by side, each filled up behind to the longest, or to the next multiple of `pad_to_multiple_of`."""
    length = -(-max(map(len, rows)) // pad_to_multiple_of) * pad_to_multiple_of
    filled = np.full((len(rows), length), pad_id, dtype=np.int64)
    for row, ids in zip(filled, rows, strict=True):
        row[: len(ids)] = ids
    return torch.from_numpy(filled)


def make_batch(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    *,
    pad_id: int,
    bos_id: int,
    eos_id: int,
) -> PairBatch:
    """The batch of some pairs of ids without special tokens: the source gets an end, the target both."""
    return PairBatch(
        n_targets=sum(len(tgt) + 1 for _, tgt in pairs),
        src=pad([[*src, eos_id] for src, _ in pairs], pad_id),
        tgt_in=pad([[bos_id, *tgt] for _, tgt in pairs], pad_id),
        tgt_out=pad([[*tgt, eos_id] for _, tgt in pairs], pad_id),
    )


def batch_by_tokens(order: NDArray[np.int64], lengths: NDArray[np.int64], batch_tokens: int) -> list[NDArray[np.int64]]:
    """Cut a sequence of items so that longest x number of items stays within batch_tokens (or is one item)."""
    batches, start, longest = [], 0, 0
    for end, length in enumerate(lengths[order].tolist()):
        longest = max(longest, length)
        if longest * (end - start + 1) > batch_tokens and end > start:
            batches.append(order[start:end])
            start, longest = end, length
    batches.append(order[start:])
    return batches


class BatchSampler:
    """Which examples make up each batch: a pure function of (seed, epoch, position).

    Each epoch the examples are sorted by length, ties broken anew, cut by tokens, and the batches shuffled. The state
    is therefore three integers, and going on from it needs nothing else.
    """

    def __init__(self, lengths: NDArray[np.int64], batch_tokens: int, seed: int) -> None:
        """lengths: of each example, what it takes in a padded batch."""
        self.lengths, self.batch_tokens, self.seed = lengths, batch_tokens, seed
        self.epoch = self.position = 0
        self.batches = self.plan(0)

    def plan(self, epoch: int) -> list[NDArray[np.int64]]:
        """The batches of an epoch, in order."""
        rng = np.random.Generator(np.random.Philox(key=[self.seed, epoch]))
        order = np.lexsort((rng.random(len(self.lengths)), self.lengths))
        batches = batch_by_tokens(order, self.lengths, self.batch_tokens)
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
        return self.epoch + self.position / len(self.batches)

    def state_dict(self) -> dict[str, int]:
        return {"seed": self.seed, "epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.seed, self.epoch, self.position = state["seed"], state["epoch"], state["position"]
        self.batches = self.plan(self.epoch)
