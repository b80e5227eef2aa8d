"""Answers to questions, as stretches of a given text."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from glassformer.corpora.read_options import DETECT, ReadOptions
from glassformer.corpora.squad import QAExample, read_questions
from glassformer.data.batch import Batch, pad
from glassformer.data.dataset import IDS, INTS, Dataset, Row
from glassformer.errors import CorpusError
from glassformer.metrics import Score
from glassformer.metrics.answers import (
    answer_f1,
    answer_f1_from,
    answer_scores,
    answer_statistics,
    exact_match,
    exact_match_from,
)
from glassformer.metrics.score import MetricFn
from glassformer.tasks.base import Log, Warn, map_nonblank, no_op
from glassformer.tasks.classification import EncoderTask
from glassformer.tasks.windows import windows

MAX_ANSWER_TOKENS = 30
"""Tokens of the longest answer that is looked for."""
MAX_QUESTION_TOKENS = 64
"""Tokens of a question that are read."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A stretch of a context, or no answer: ""."""

    text: str
    start: int
    """Where it stands in the context, in characters."""
    score: float
    """Probability of its first and of its last token, multiplied."""


@dataclass(frozen=True, slots=True)
class SpanBatch(Batch):
    """Padded questions with contexts, and the places of the answers' first and last tokens: 0 and 0 for none."""

    ids: Int[Tensor, "batch length"]
    token_type_ids: Int[Tensor, "batch length"]
    spans: Int[Tensor, "batch 2"]


class QuestionAnswerer(EncoderTask):
    """The stretch of a context that answers a question; [CLS] where none does.

    A context longer than the model reads is read in windows that overlap.

    Source: Devlin et al. 2018, sections 4.2 and 4.3.
    """

    name = "question-answering"
    example_type = QAExample
    examples_name = "questions"
    fields = {"question": IDS, "context": IDS, "span": INTS}
    metric = "f1"
    head = {"head": "span"}

    @classmethod
    def read(
        cls, src: Sequence[Path], tgt: Sequence[Path], options: ReadOptions = DETECT, log: Log | None = None
    ) -> Iterator[QAExample]:
        return read_questions(src)

    @classmethod
    def texts(cls, example: QAExample) -> Sequence[str]:
        return example.question, example.context

    @classmethod
    def key(cls, example: QAExample) -> str:
        return example.context

    @classmethod
    def n_labels(cls, labels: Sequence[str]) -> int:
        return 2

    def encode_parts(
        self, question: str, context: str
    ) -> tuple[list[int], list[tuple[int, int]], list[int], list[tuple[int, int]]]:
        """Ids of the question, windows of the context's tokens, its ids and their stretches of characters."""
        # At least half of what the model reads is for the context.
        asked = self.tokenizer.encode(question)[
            : min(MAX_QUESTION_TOKENS, (self.model.config.max_len - self.n_specials) // 2)
        ]
        ids, offsets = self.tokenizer.offsets(context)
        size = self.model.config.max_len - self.n_specials - len(asked)
        return asked, list(windows(len(ids), size, size // 3)), ids, offsets

    def encode(self, examples: Sequence[QAExample]) -> tuple[list[Row], list[QAExample]]:
        rows: list[Row] = []
        for example in examples:
            asked, stretches, ids, offsets = self.encode_parts(example.question, example.context)
            for start, end in stretches:
                first, last = self.tokens_of_answer(example, offsets, start, end)
                rows.append((asked, ids[start:end], [first, last]))
        return rows, []

    def tokens_of_answer(
        self, example: QAExample, offsets: Sequence[tuple[int, int]], start: int, end: int
    ) -> tuple[int, int]:
        """First and last token of the first answer within a window, counted from 1 at its start; 0 and 0: not there."""
        if not example.answers:
            return 0, 0
        text, begin = example.answers[0]
        inside = [i for i, (a, b) in enumerate(offsets) if a < begin + len(text) and b > begin and b > a]
        if not inside or inside[0] < start or inside[-1] >= end:
            return 0, 0
        return inside[0] - start + 1, inside[-1] - start + 1

    def lengths(self, data: Dataset) -> Any:
        return data.fields["question"].lengths + data.fields["context"].lengths + self.n_specials

    def batch(self, rows: Sequence[Any]) -> SpanBatch:
        joined = [self.add_special_tokens(question, context) for question, context, _ in rows]
        spans = [[place and place + len(question) + self.n_separators for place in span] for question, _, span in rows]
        return SpanBatch(
            n_targets=2 * len(rows),
            ids=pad([ids for ids, _ in joined], self.tokenizer.pad_id),
            token_type_ids=pad([token_type_ids for _, token_type_ids in joined], 0),
            spans=torch.tensor(spans),
        )

    def loss(self, batch: SpanBatch, *, label_smoothing: float = 0.0) -> Tensor:
        logits = self.model.label_logits(self.model(batch.ids, batch.token_type_ids), batch.ids).float()
        logits = logits.masked_fill((batch.ids == self.tokenizer.pad_id)[..., None], -torch.inf)
        return F.cross_entropy(logits.transpose(1, 2)[:, 0], batch.spans[:, 0], reduction="sum") + F.cross_entropy(
            logits.transpose(1, 2)[:, 1], batch.spans[:, 1], reduction="sum"
        )

    def answers(self, asked: Sequence[tuple[str, str]], n_best: int = 1) -> list[list[Answer]]:
        """The best answers to each (question, context), best first; no answer at all is one of them."""
        rows, source = [], []
        contexts = []
        for number, (question, context) in enumerate(asked):
            words, stretches, ids, offsets = self.encode_parts(question, context)
            contexts.append(offsets)
            for start, end in stretches:
                rows.append((words, ids[start:end]))
                source.append((number, start, len(words) + 1 + self.n_separators))
        found: list[list[Answer]] = [[] for _ in asked]
        nothing = [1.0] * len(asked)
        for places, hidden, joined in self.hidden(rows):
            with torch.inference_mode():
                logits = self.model.label_logits(hidden, joined).float()
                padding = (joined == self.tokenizer.pad_id)[..., None]
                probs = logits.masked_fill(padding, -torch.inf).softmax(1).cpu()
            for row, place in zip(probs, places, strict=True):
                number, start, before = source[place]
                n = len(rows[place][1])
                nothing[number] = min(nothing[number], float(row[0, 0] * row[0, 1]))
                pairs = row[before : before + n, 0, None] * row[None, before : before + n, 1]
                pairs = pairs.triu().tril(MAX_ANSWER_TOKENS - 1)
                best = pairs.flatten().topk(min(n_best + 4, n * n))
                for score, index in zip(best.values.tolist(), best.indices.tolist(), strict=True):
                    a = contexts[number][start + index // n][0]
                    b = contexts[number][start + index % n][1]
                    text = asked[number][1][a:b]
                    stripped = text.strip()
                    if stripped:
                        found[number].append(Answer(stripped, a + len(text) - len(text.lstrip()), score))
        results = []
        for answers, none in zip(found, nothing, strict=True):
            distinct = {(answer.start, answer.text): answer for answer in sorted(answers, key=lambda a: a.score)}
            results.append(sorted([*distinct.values(), Answer("", 0, none)], key=lambda a: -a.score)[:n_best])
        return results

    def __call__(self, question: str, context: str) -> str:
        """The most probable answer; "" if the context has none.

        Raises:
            TypeError: question or context is not a text.
        """
        if not isinstance(question, str) or not isinstance(context, str):
            kinds = f"{type(question).__name__} and {type(context).__name__}"
            raise TypeError(f"QuestionAnswerer(…) takes a question and a context, both str; got {kinds}.")
        return self.answers([(question, context)])[0][0].text

    def run(self, lines: Sequence[str], options: Any = None, *, warn: Callable[[int, str], None] = no_op) -> list[str]:
        """Lines of question TAB context, or of JSON with the keys question and context."""
        numbers = iter([i for i, line in enumerate(lines) if line.strip()])

        def answer(there: list[str], warn: Warn) -> list[str]:
            found = self.answers([question_of(line, next(numbers)) for line in there])
            return [best[0].text.replace("\n", " ") for best in found]

        return map_nonblank(lines, answer, warn)

    def scores(self, examples: Sequence[QAExample], options: Any = None) -> tuple[list[str], list[Score]]:
        found = [best[0].text for best in self.answers([(e.question, e.context) for e in examples])]
        return found, answer_scores(found, [[text for text, _ in e.answers] for e in examples])

    @classmethod
    def bootstrap_statistics(
        cls, outputs: Sequence[str], examples: Sequence[QAExample]
    ) -> dict[str, tuple[NDArray[np.float64], MetricFn]]:
        statistics = answer_statistics(outputs, [[text for text, _ in example.answers] for example in examples])
        return {"EM": (statistics, exact_match_from), "F1": (statistics, answer_f1_from)}

    def validate(self, examples: Sequence[QAExample]) -> dict[str, float]:
        found = [best[0].text for best in self.answers([(e.question, e.context) for e in examples])]
        expected = [[text for text, _ in e.answers] for e in examples]
        pairs = list(zip(found, expected, strict=True))
        return {
            "f1": sum(answer_f1(*pair) for pair in pairs) / len(pairs),
            "em": sum(exact_match(*pair) for pair in pairs) / len(pairs),
        }


def question_of(line: str, index: int) -> tuple[str, str]:
    """Question and context of a line."""
    if line.lstrip().startswith("{"):
        try:
            record = json.loads(line)
            return str(record["question"]), str(record["context"])
        except (ValueError, KeyError):
            pass
    question, tab, context = line.partition("\t")
    if not tab:
        raise CorpusError(
            f"line {index + 1}: expected question TAB context, or JSON with the keys question and context.\n"
            f"  The line begins {line[:40]!r}."
        )
    return question, context
