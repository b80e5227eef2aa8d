"""Objective of extractive question answering."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from glassformer.corpora.squad import QAExample
from glassformer.data.batch import Batch, pad
from glassformer.data.dataset import IDS, INTS, Dataset
from glassformer.data.ragged import Row
from glassformer.learning.base import Objective
from glassformer.metrics.answers import answer_f1, exact_match
from glassformer.tasks.question_answering import QuestionAnswerer
from glassformer.tasks.texts import no_op


@dataclass(frozen=True, slots=True)
class SpanBatch(Batch):
    """Padded questions with contexts, and the first and last token position of each answer; 0 and 0 for no answer."""

    ids: Int[Tensor, "batch length"]
    token_type_ids: Int[Tensor, "batch length"]
    spans: Int[Tensor, "batch 2"]


MAX_ROWS = 20_000
"""Number of rows in which questions without an answer are counted."""


class QuestionAnsweringObjective(Objective[QAExample, SpanBatch]):
    """Cross-entropy of the first and the last token of each answer.

    Source: Devlin et al. 2018, sections 4.2 and 4.3.
    """

    task_type = QuestionAnswerer
    task: QuestionAnswerer
    targets_name = "positions"
    fields = {"question": IDS, "context": IDS, "span": INTS}
    metric = "f1"
    options = ()

    @classmethod
    def key(cls, example: QAExample) -> str:
        return example.context

    def encode(self, examples: Sequence[QAExample]) -> tuple[list[Row], list[QAExample]]:
        rows: list[Row] = []
        for example in examples:
            question_ids, windows_of_context, ids, offsets = self.task.encode_parts(example.question, example.context)
            for start, end in windows_of_context:
                first, last = self.answer_span(example, offsets, start, end)
                rows.append((question_ids, ids[start:end], [first, last]))
        return rows, []

    def answer_span(
        self, example: QAExample, offsets: Sequence[tuple[int, int]], start: int, end: int
    ) -> tuple[int, int]:
        """First and last token of the first answer, counted from 1 at the start of the window; 0 and 0 if the window
        does not contain the answer.
        """
        if not example.answers:
            return 0, 0
        text, answer_start = example.answers[0]
        inside = [
            i
            for i, (char_start, char_end) in enumerate(offsets)
            if char_start < answer_start + len(text) and char_end > answer_start and char_end > char_start
        ]
        if not inside or inside[0] < start or inside[-1] >= end:
            return 0, 0
        return inside[0] - start + 1, inside[-1] - start + 1

    def fit_statistics(self, data: Dataset) -> None:
        """Find how many questions have no answer. A long context is several rows, of which one may have the answer."""
        n = n_unanswerable = 0
        indices = np.arange(min(len(data), MAX_ROWS))
        questions, spans = (data.fields[name].take(indices).lists() for name in ("question", "span"))
        for _, group in groupby(zip(questions, spans, strict=True), key=itemgetter(0)):
            n += 1
            n_unanswerable += not any(span[1] for _, span in group)
        self.task.unanswerable = (str(round(100 * n_unanswerable / n)),)

    def lengths(self, data: Dataset) -> NDArray[np.int64]:
        return data.fields["question"].lengths + data.fields["context"].lengths + self.task.n_specials

    def batch(self, rows: Sequence[Row]) -> SpanBatch:
        sequences = [self.task.add_special_tokens(question, context) for question, context, _ in rows]
        spans = [
            [position and position + len(question) + self.task.n_separators for position in span]
            for question, _, span in rows
        ]
        return SpanBatch(
            n_targets=2 * len(rows),
            ids=pad([ids for ids, _ in sequences], self.tokenizer.pad_id),
            token_type_ids=pad([token_type_ids for _, token_type_ids in sequences], 0),
            spans=torch.tensor(spans),
        )

    def loss(self, batch: SpanBatch, *, label_smoothing: float = 0.0) -> Tensor:
        logits = self.model.label_logits(self.model(batch.ids, batch.token_type_ids), batch.ids).float()
        logits = logits.masked_fill((batch.ids == self.tokenizer.pad_id)[..., None], -torch.inf)
        return F.cross_entropy(logits.transpose(1, 2)[:, 0], batch.spans[:, 0], reduction="sum") + F.cross_entropy(
            logits.transpose(1, 2)[:, 1], batch.spans[:, 1], reduction="sum"
        )

    def validate(self, examples: Sequence[QAExample]) -> dict[str, float]:
        predicted = self.map_parts(
            lambda questions: [best[0].text for best in self.task.answers(questions, warn=no_op)],
            [(example.question, example.context) for example in examples],
        )
        pairs = list(zip(predicted, self.task.references(examples), strict=True))
        return {
            "f1": sum(answer_f1(*pair) for pair in pairs) / len(pairs),
            "em": sum(exact_match(*pair) for pair in pairs) / len(pairs),
        }
