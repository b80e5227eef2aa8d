"""Objectives of masked language modeling and of BERT pretraining."""

from collections.abc import Sequence

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from glassformer.data.dataset import IDS, INTS, Dataset
from glassformer.data.ragged import Row
from glassformer.learning.documents import MAX_VALIDATED, DocumentObjective
from glassformer.nn.ops.loss import linear_cross_entropy
from glassformer.objectives.denoise import MaskedLMBatch
from glassformer.tasks.documents import Document
from glassformer.tasks.masked_lm import BertPretraining, MaskedLM
from glassformer.tokens.tokenizer import MASK


class MaskedLMObjective(DocumentObjective[MaskedLMBatch]):
    """Cross-entropy of the masked tokens of a text.

    Source: Devlin et al. 2018, section 3.1.
    """

    task_type = MaskedLM
    task: MaskedLM
    add_prefix_space = False
    extra_special_tokens = (MASK,)
    static_shapes = True

    def lengths(self, data: Dataset) -> NDArray[np.int64]:
        texts = [field.lengths for name, field in data.fields.items() if self.fields[name] == IDS]
        return np.sum(texts, axis=0) + self.task.n_specials

    def batch(self, rows: Sequence[Row]) -> MaskedLMBatch:
        return self.task.masked_batch(rows)

    def loss(self, batch: MaskedLMBatch, *, label_smoothing: float = 0.0) -> Tensor:
        return self.mlm_loss(batch, self.model(batch.ids, batch.token_type_ids), label_smoothing)

    def mlm_loss(self, batch: MaskedLMBatch, hidden: Tensor, label_smoothing: float = 0.0) -> Tensor:
        """Summed cross-entropy of the masked tokens, in nats."""
        m = self.model
        return linear_cross_entropy(
            m.mlm_head(hidden.flatten(0, 1).index_select(0, batch.target_positions)),
            m.embedding.weight,
            batch.targets,
            bias=m.mlm_bias,
            label_smoothing=label_smoothing,
            token_weights=batch.target_weights,
        )

    def validate(self, examples: Sequence[Document]) -> dict[str, float]:
        """Metrics of about MAX_VALIDATED tokens, in evenly spaced rows."""
        rows = self.task.rows(examples)
        rows = rows[:: max(1, sum(len(row[0]) for row in rows) // MAX_VALIDATED)]
        return self.task.metrics(self.map_parts(self.task.sums, self.task.fixed_batches(rows)))


class BertPretrainingObjective(MaskedLMObjective):
    """Masked language modeling and next-sentence prediction.

    Source: Devlin et al. 2018, section 3.1, task 2.
    """

    task_type = BertPretraining
    task: BertPretraining
    fields = {"ids": IDS, "ids2": IDS, "nsp_labels": INTS}
    static_shapes = False  # copies of a row would count in the mean of the next-sentence losses

    def loss(self, batch: MaskedLMBatch, *, label_smoothing: float = 0.0) -> Tensor:
        """Sum of the losses of both objectives. Their means have equal weights."""
        hidden = self.model(batch.ids, batch.token_type_ids)
        assert batch.nsp_labels is not None
        pairs = F.cross_entropy(self.model.label_logits(hidden, batch.ids).float(), batch.nsp_labels)
        return self.mlm_loss(batch, hidden, label_smoothing) + pairs * batch.n_targets
