"""Word vectors: skip-gram with negative sampling. `--embeddings` initializes other models with them."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy import ndarray

from glassformer.data.ragged import Row
from glassformer.decode_config import DecodeConfig
from glassformer.devices import require_torch
from glassformer.errors import UserError
from glassformer.metrics import Score
from glassformer.shapes import Float
from glassformer.tasks.documents import Document, DocumentTask
from glassformer.tasks.texts import Warn, python_warning

if TYPE_CHECKING:
    from glassformer.objectives.skip_gram import PairSampler

EMBEDDING = "embedding.weight"
"""Name of the weight that has the vectors."""

MAX_WORDS_PER_ROW = 200
"""Texts are split into rows of at most this many words; windows do not cross rows."""
MAX_EVALUATED_ROWS = 200
"""Maximum number of rows that the loss is evaluated on."""


class WordVectors(DocumentTask):
    """Skip-gram word vectors.

    Source: Mikolov et al. 2013 (1310.4546): negative sampling from unigram^0.75, subsampling of frequent words.
    """

    name = "skip-gram"
    kind = "word-vectors"

    def rows(self, examples: Sequence[Document]) -> list[Row]:
        rows: list[Row] = []
        for ids in self.tokenizer.encode_batch([e.text for e in examples]):
            rows += [(ids[i : i + MAX_WORDS_PER_ROW],) for i in range(0, len(ids), MAX_WORDS_PER_ROW)]
        return [row for row in rows if len(row[0]) > 1]

    def mean_loss(self, examples: Sequence[Document], sampler: "PairSampler") -> float:
        """Loss per pair of the first rows of examples, in nats. The pairs are the same in every call."""
        import torch

        batch = sampler.sample([row for (row,) in self.rows(examples)[:MAX_EVALUATED_ROWS]], seed=0).to(
            torch.device(self.device)
        )
        with torch.inference_mode():
            return float(self.model(batch.center_ids, batch.context_ids, batch.negative_ids)) / batch.n_targets

    def evaluate(
        self, examples: Sequence[Document], options: DecodeConfig | None = None
    ) -> tuple[list[str], list[Score]]:
        require_torch(f"The evaluation of {self.name}")
        from glassformer.objectives.skip_gram import PairSampler

        sampler = PairSampler(np.ones(self.tokenizer.vocab_size))  # the counts of the training are not stored
        return [], [Score("loss", self.mean_loss(examples, sampler), "nats:pair")]

    def __call__(self, text: str) -> Float[ndarray, " d_model"]:
        """Vector of a word; mean of the vectors if the text has several words.

        Raises:
            TypeError: not a text.
            UserError: the text has no words.
        """
        if not isinstance(text, str):
            raise TypeError(f"WordVectors(…) takes a text (str); got {type(text).__name__}.")
        ids = self.tokenizer.encode(text)
        if not ids:
            raise UserError(f"{text!r}: contains no word.")
        return self.source.array(EMBEDDING)[ids].mean(0)

    def run(
        self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = python_warning
    ) -> list[str]:
        """A JSON list of numbers for each line: the mean of the vectors of its words."""
        return [
            json.dumps([round(x, 6) for x in self(line).tolist()]) if self.tokenizer.encode(line) else ""
            for line in lines
        ]
