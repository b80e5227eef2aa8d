"""Objective of word vectors: skip-gram with negative sampling."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from glassformer.data.dataset import Dataset
from glassformer.data.ragged import Row
from glassformer.learning.documents import DocumentObjective
from glassformer.objectives.skip_gram import PairSampler, SkipGramBatch
from glassformer.tasks.documents import Document
from glassformer.tasks.skip_gram import WordVectors


class SkipGramObjective(DocumentObjective[SkipGramBatch]):
    """Skip-gram with negative sampling."""

    task_type = WordVectors
    task: WordVectors
    add_prefix_space = False
    default_tokenizer = "word"
    options = ()

    def __init__(self, task: WordVectors) -> None:
        super().__init__(task)
        self.sampler = PairSampler(np.ones(self.tokenizer.vocab_size))

    def fit_statistics(self, data: Dataset) -> None:
        """Set the distributions of subsampling and negative sampling from the word counts of the training set."""
        self.sampler = PairSampler(np.bincount(data.fields["ids"].values, minlength=self.tokenizer.vocab_size))

    def lengths(self, data: Dataset) -> NDArray[np.int64]:
        return data.fields["ids"].lengths.clip(max=self.model.config.max_len + 1)

    def n_tokens(self, data: Dataset) -> list[int]:
        return [int(self.lengths(data).sum())]

    def batch(self, rows: Sequence[Row]) -> SkipGramBatch:
        return self.sampler.sample([row for (row,) in rows], int(torch.randint(1 << 62, ())))

    def loss(self, batch: SkipGramBatch, *, label_smoothing: float = 0.0) -> Tensor:
        return self.model(batch.center_ids, batch.context_ids, batch.negative_ids)

    def validate(self, examples: Sequence[Document]) -> dict[str, float]:
        return {"loss": self.task.mean_loss(examples, self.sampler)}
