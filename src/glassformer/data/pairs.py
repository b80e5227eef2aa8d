"""Batches of source-target pairs: padded, or packed into one row."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from glassformer.data.batch import Batch, extend, extend_positions, flat_positions
from glassformer.data.ragged import Ragged, Row, fields_of

PairBatchT = TypeVar("PairBatchT", bound="PairBatch")


@dataclass(frozen=True, slots=True)
class PairBatch(Batch):
    """Token ids of source-target pairs, padded or packed. The decoder input is tgt_in, its targets are tgt_out."""

    src: Int[Tensor, "batch src"]
    tgt_in: Int[Tensor, "batch tgt"]
    tgt_out: Int[Tensor, "batch tgt"]
    target_positions: Int[Tensor, " targets"]
    """Indices of the targets that are not padding, in the flattened `tgt_out`. Finding them on a GPU would make the CPU
    wait, so they are computed with the batch."""
    target_weights: Float[Tensor, " targets"] | None = None
    """Weight of the loss of each target: 0 for padding among them. None: 1."""
    src_spans: Int[Tensor, "2 sequences"] | None = None
    """Start and length of each source in a packed batch, whose tensors have one row."""
    tgt_spans: Int[Tensor, "2 sequences"] | None = None
    """The same for the targets."""

    def pad_to(self: PairBatchT, n_rows: int, length: int, pad_id: int) -> PairBatchT:
        return self.pad_sides(n_rows, length, length, pad_id)

    def pad_sides(self: PairBatchT, n_rows: int, src_length: int, tgt_length: int, pad_id: int) -> PairBatchT:
        """`pad_to`, with a length for each side."""
        tgt_out = extend(self.tgt_out, n_rows, tgt_length, pad_id)
        positions = extend_positions(self.target_positions, self.tgt_out.size(1), tgt_out)
        return replace(
            self,
            src=extend(self.src, n_rows, src_length, pad_id),
            tgt_in=extend(self.tgt_in, n_rows, tgt_length, pad_id),
            tgt_out=tgt_out,
            target_positions=positions,
            target_weights=(torch.arange(len(positions)) < len(self.target_positions)).float(),
        )


def lay_out(
    sequences: Ragged,
    starts: NDArray[np.int64],
    n_positions: int,
    pad_id: int,
    *,
    first_id: int | None = None,
    last_id: int | None = None,
) -> Int[Tensor, " positions"]:
    """Token ids of sequences in a row of positions, each with a special token before or after it.

    Args:
        starts: position of each sequence, special token included.
        pad_id: token at the positions without a sequence.
    """
    row = np.full(n_positions, pad_id, dtype=np.int64)
    row[sequences.indices(starts) + (first_id is not None)] = sequences.values
    if first_id is not None:
        row[starts] = first_id
    if last_id is not None:
        row[starts + sequences.lengths] = last_id
    return torch.from_numpy(row)


def make_batch(rows: Sequence[Row], *, pad_id: int, bos_id: int, eos_id: int) -> PairBatch:
    """Create a padded batch from pairs of token ids without special tokens.

    The source gets `eos_id`; the decoder input gets `bos_id` and the targets get `eos_id`.
    """
    src, tgt = fields_of(rows)
    n, src_length, tgt_length = len(rows), int(src.lengths.max()) + 1, int(tgt.lengths.max()) + 1
    src_starts, tgt_starts = np.arange(n) * src_length, np.arange(n) * tgt_length
    tgt_out = lay_out(tgt, tgt_starts, n * tgt_length, pad_id, last_id=eos_id).view(n, -1)
    return PairBatch(
        n_targets=len(tgt.values) + n,
        src=lay_out(src, src_starts, n * src_length, pad_id, last_id=eos_id).view(n, -1),
        tgt_in=lay_out(tgt, tgt_starts, n * tgt_length, pad_id, first_id=bos_id).view(n, -1),
        tgt_out=tgt_out,
        target_positions=flat_positions(tgt_out != pad_id),
    )


def pack_pairs(
    rows: Sequence[Row],
    n_tokens: int,
    n_sequences: int,
    longest: int,
    *,
    pad_id: int,
    bos_id: int,
    eos_id: int,
) -> PairBatch:
    """Create a packed batch from pairs of token ids without special tokens: laid end to end, without padding.

    The sequences are sorted by the larger of their two lengths, the longest first.

    Args:
        n_tokens: number of positions of each side. What the pairs leave is filled with sequences of padding.
        n_sequences: number of sequences with these, some of which may be empty.
        longest: number of positions of the longest sequence, special tokens included.

    Raises:
        ValueError: the pairs do not fit.
    """
    src, tgt = fields_of(rows)
    n_fillers = n_sequences - len(rows)
    lengths = np.stack([src.lengths, tgt.lengths]) + 1
    free = n_tokens - lengths.sum(1, keepdims=True)
    fillers = (free - longest * np.arange(max(0, n_fillers))).clip(0, longest)
    if n_fillers < 0 or (free < 0).any() or (fillers.sum(1, keepdims=True) < free).any():
        raise ValueError(f"{len(rows)} pairs cannot be packed into {n_tokens} tokens and {n_sequences} sequences")
    lengths = np.concatenate([lengths, fillers], axis=1)
    order = np.argsort(-lengths.max(0), kind="stable")
    sorted_lengths = lengths[:, order]
    spans = np.stack([np.cumsum(sorted_lengths, axis=1) - sorted_lengths, sorted_lengths], axis=1)
    starts = np.empty_like(lengths)
    starts[:, order] = spans[:, 0]
    src_starts, tgt_starts = starts[:, : len(rows)]
    tgt_out = lay_out(tgt, tgt_starts, n_tokens, pad_id, last_id=eos_id)
    src_spans, tgt_spans = torch.from_numpy(spans.astype(np.int32, order="C"))
    return PairBatch(
        n_targets=len(tgt.values) + len(rows),
        src=lay_out(src, src_starts, n_tokens, pad_id, last_id=eos_id)[None],
        tgt_in=lay_out(tgt, tgt_starts, n_tokens, pad_id, first_id=bos_id)[None],
        tgt_out=tgt_out[None],
        target_positions=torch.arange(n_tokens),
        target_weights=(tgt_out != pad_id).float(),
        src_spans=src_spans,
        tgt_spans=tgt_spans,
    )
