"""Objectives of decoder-only models: causal language modeling."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from glassformer.data.batch import Batch, extend, extend_positions, flat_positions, pad
from glassformer.data.dataset import Dataset
from glassformer.data.ragged import Row
from glassformer.learning.base import Objective
from glassformer.learning.documents import MAX_VALIDATED, DocumentObjective
from glassformer.nn.ops.loss import linear_cross_entropy
from glassformer.tasks.base import ExampleT
from glassformer.tasks.causal_lm import DecoderTask, LanguageModel
from glassformer.tasks.documents import Document


@dataclass(frozen=True, slots=True)
class CausalLMBatch(Batch):
    """Padded sequences of decoder input ids, with targets and the loss weight of each target."""

    ids: Int[Tensor, "batch length"]
    targets: Int[Tensor, "batch length"]
    weights: Float[Tensor, "batch length"]
    target_positions: Int[Tensor, " targets"]
    """Indices of the targets with a weight greater than 0, in the flattened `targets`."""
    segments: Int[Tensor, "batch length"] | None = None
    """Index of the text that each token belongs to, if several texts are packed into a sequence."""

    def pad_to(self, n_rows: int, length: int, pad_id: int) -> "CausalLMBatch":
        shape = n_rows, length - 1  # the last token of a row is a target only
        weights = extend(self.weights, *shape, 0)
        weights[len(self.weights) :] = 0.0
        return replace(
            self,
            ids=extend(self.ids, *shape, pad_id),
            targets=extend(self.targets, *shape, pad_id),
            weights=weights,
            target_positions=extend_positions(
                self.target_positions, self.weights.size(1), weights, filler=int(weights.argmin())
            ),
            segments=None if self.segments is None else extend(self.segments, *shape, -1),
        )


class DecoderObjective(Objective[ExampleT, CausalLMBatch]):
    """Base class of objectives of decoder-only models: weighted cross-entropy of the next token."""

    task: DecoderTask[ExampleT]
    static_shapes = True

    def loss(self, batch: CausalLMBatch, *, label_smoothing: float = 0.0) -> Tensor:
        hidden = self.model(batch.ids, batch.segments)
        positions = batch.target_positions
        return linear_cross_entropy(
            hidden.flatten(0, 1).index_select(0, positions),
            self.model.output_weight,
            batch.targets.flatten().index_select(0, positions),
            label_smoothing=label_smoothing,
            token_weights=batch.weights.flatten().index_select(0, positions),
        )


def length_mask(lengths: Sequence[int]) -> Float[Tensor, "rows length"]:
    """1 at the positions of each sequence, 0 after its end."""
    return (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).float()


class CausalLMObjective(DocumentObjective[CausalLMBatch], DecoderObjective[Document]):
    """Cross-entropy of the next token of text."""

    task_type = LanguageModel
    task: LanguageModel
    add_prefix_space = False
    # After three minutes on 1 MB of Shakespeare, `tiny` has 2.24 bits per byte with 1,000 tokens, 2.50 with 4,000.
    vocabulary_by_bytes = False

    def lengths(self, data: Dataset) -> NDArray[np.int64]:
        return data.fields["ids"].lengths.clip(max=self.model.config.max_len + 1)

    def n_tokens(self, data: Dataset) -> list[int]:
        return [int(self.lengths(data).sum())]

    def sample_window(self, row: Sequence[int]) -> Sequence[int]:
        """Sample a window of the maximum length from a longer row, with torch's random state."""
        n_excess = len(row) - 1 - self.model.config.max_len
        if n_excess <= 0:
            return row
        start = int(torch.randint(n_excess + 1, ()))
        return [row[0], *row[start + 1 : len(row) - n_excess + start]]

    def batch(self, rows: Sequence[Row]) -> CausalLMBatch:
        pad_id = self.tokenizer.pad_id
        windows = [self.sample_window(row) for (row,) in rows]
        ids = pad([window[:-1] for window in windows], pad_id)
        weights = length_mask([len(window) - 1 for window in windows])
        return CausalLMBatch(
            n_targets=sum(len(window) - 1 for window in windows),
            ids=ids,
            targets=pad([window[1:] for window in windows], pad_id),
            weights=weights,
            target_positions=flat_positions(weights > 0),
            segments=self.segments(ids),
        )

    def segments(self, ids: Int[Tensor, "batch length"]) -> Int[Tensor, "batch length"] | None:
        """Index of the text that each token belongs to. None: each sequence is one text."""
        t = self.tokenizer
        is_start = (ids == t.bos_id) if t.bos_id != t.eos_id else (ids == t.eos_id).roll(1, dims=1)
        segments = is_start.cumsum(-1)
        return segments if bool((segments != segments[:, :1]).any()) else None

    def validate(self, examples: Sequence[Document]) -> dict[str, float]:
        """Loss per token of about MAX_VALIDATED tokens, in evenly spaced rows."""
        rows = self.task.rows(examples)
        rows = rows[:: max(1, len(rows) * self.model.config.max_len // MAX_VALIDATED)]
        sums = self.map_parts(self.task.row_nlls, rows)
        return {"loss": sum(nll for nll, _ in sums) / sum(n for _, n in sums)}
