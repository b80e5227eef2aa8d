"""Extractive question answering: answers as spans of a given context."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from glassformer.corpora.read_options import DETECT, ReadOptions
from glassformer.corpora.squad import QAExample, read_questions
from glassformer.decode_config import DecodeConfig
from glassformer.errors import CorpusError
from glassformer.generate.scores import best_of, softmax
from glassformer.metrics import Score
from glassformer.metrics.registry import scores
from glassformer.tasks.base import Log, stored_number
from glassformer.tasks.encoder import EncoderTask
from glassformer.tasks.texts import Warn, map_nonblank, python_warning
from glassformer.tasks.windows import windows

MAX_ANSWER_TOKENS = 30
"""Maximum length of an answer in tokens."""
MAX_QUESTION_TOKENS = 64
"""Maximum length of a question in tokens; the rest is cut off."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A span of a context; the text is "" if the context has no answer."""

    text: str
    start: int
    """Offset of the answer in the context, in characters."""
    score: float
    """Probability of the first token times probability of the last token."""


class QuestionAnswerer(EncoderTask[QAExample]):
    """Predicts the span of a context that answers a question; the span of [CLS] means that there is no answer.

    A context longer than the maximum length is read in overlapping windows.

    Source: Devlin et al. 2018, sections 4.2 and 4.3.
    """

    name = "question-answering"
    pipeline_tag = "question-answering"
    pipelines = ("question-answering",)
    example_type = QAExample
    examples_name = "questions"
    example_input = "Where does Ann live?\\tAnn lives in Oslo."
    read_options = ()
    output_type = "answers"
    head_config = {"head": "span"}
    stored_attributes = ("unanswerable",)
    unanswerable: tuple[str, ...] = ()
    """Percentage of the questions of the training without an answer, rounded; empty in older and imported folders."""

    @classmethod
    def read(
        cls, src: Sequence[Path], tgt: Sequence[Path], options: ReadOptions = DETECT, log: Log | None = None
    ) -> Iterator[QAExample]:
        return read_questions(src)

    @classmethod
    def texts(cls, example: QAExample) -> Sequence[str]:
        return example.question, example.context

    @classmethod
    def n_labels(cls, labels: Sequence[str]) -> int:
        return 2

    @property
    def max_question(self) -> int:
        """Maximum length of a question in tokens. At least half of the maximum length is left for the context."""
        return min(MAX_QUESTION_TOKENS, (self.config.max_len - self.n_specials) // 2)

    @property
    def may_find_none(self) -> bool:
        """Whether "no answer" is a candidate: unless nearly all questions of the training, 99.5% or more, have an
        answer."""
        return self.unanswerable == () or stored_number(self.unanswerable) > 0

    def encode_parts(
        self, question: str, context: str
    ) -> tuple[list[int], list[tuple[int, int]], list[int], list[tuple[int, int]]]:
        """Token ids of the question, windows of the context, token ids of the context and their character offsets."""
        question_ids = self.tokenizer.encode(question)[: self.max_question]
        ids, offsets = self.tokenizer.offsets(context)
        size = self.config.max_len - self.n_specials - len(question_ids)
        return question_ids, list(windows(len(ids), size, size // 3)), ids, offsets

    def answers(
        self, questions: Sequence[tuple[str, str]], n_best: int = 1, warn: Warn = python_warning
    ) -> list[list[Answer]]:
        """The best answers to each (question, context), best first. The candidates include "no answer", unless each
        question of the training has one (`may_find_none`).

        `warn` is called for each question that is too long.
        """
        rows, origins = [], []
        offsets_by_question = []
        for question_index, (question, context) in enumerate(questions):
            question_ids, windows_of_context, ids, offsets = self.encode_parts(question, context)
            if len(question_ids) == self.max_question < len(self.tokenizer.encode(question)):
                warn(question_index, f"a question longer than {self.max_question} tokens: its end was cut off")
            offsets_by_question.append(offsets)
            for start, end in windows_of_context:
                rows.append((question_ids, ids[start:end]))
                origins.append((question_index, start, len(question_ids) + 1 + self.n_separators))
        candidates: list[list[Answer]] = [[] for _ in questions]
        no_answer_probs = [1.0] * len(questions)
        encoder = self.encoder
        for indices, hidden in self.hidden(rows):
            for states, row_index in zip(hidden, indices, strict=True):
                window_probs = softmax(encoder.outputs(states), axis=0)
                question_index, start, context_start = origins[row_index]
                n = len(rows[row_index][1])
                no_answer_probs[question_index] = min(
                    no_answer_probs[question_index], float(window_probs[0, 0] * window_probs[0, 1])
                )
                first, last = window_probs[context_start : context_start + n].T
                span_scores = np.tril(np.triu(first[:, None] * last[None]), MAX_ANSWER_TOKENS - 1).ravel()
                for flat_index in best_of(span_scores, n_best + 4):
                    char_start = offsets_by_question[question_index][start + flat_index // n][0]
                    char_end = offsets_by_question[question_index][start + flat_index % n][1]
                    text = questions[question_index][1][char_start:char_end]
                    stripped = text.strip()
                    if stripped:
                        begin = char_start + len(text) - len(text.lstrip())
                        candidates[question_index].append(Answer(stripped, begin, float(span_scores[flat_index])))
        results = []
        for answers, no_answer_prob in zip(candidates, no_answer_probs, strict=True):
            distinct = {(answer.start, answer.text): answer for answer in sorted(answers, key=lambda a: a.score)}
            if self.may_find_none or not distinct:
                distinct[0, ""] = Answer("", 0, no_answer_prob)
            results.append(sorted(distinct.values(), key=lambda a: -a.score)[:n_best])
        return results

    def __call__(self, question: str, context: str) -> str:
        """The most probable answer; "" if the context has none.

        Raises:
            TypeError: question or context is not a text.
        """
        if not isinstance(question, str) or not isinstance(context, str):
            types = f"{type(question).__name__} and {type(context).__name__}"
            raise TypeError(f"QuestionAnswerer(…) takes a question and a context, both str; got {types}.")
        return self.answers([(question, context)])[0][0].text

    def run(
        self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = python_warning
    ) -> list[str]:
        """Answer lines of question TAB context, or of JSON with the keys "question" and "context"."""
        indices = iter([i for i, line in enumerate(lines) if line.strip()])

        def answer_lines(nonblank: list[str], warn: Warn) -> list[str]:
            answers = self.answers([question_of(line, next(indices)) for line in nonblank], warn=warn)
            return [best[0].text.replace("\n", " ") for best in answers]

        return map_nonblank(lines, answer_lines, warn)

    def evaluate(
        self, examples: Sequence[QAExample], options: DecodeConfig | None = None
    ) -> tuple[list[str], list[Score]]:
        predicted = [best[0].text for best in self.answers([(e.question, e.context) for e in examples])]
        return predicted, scores("answers", predicted, self.references(examples))

    @classmethod
    def references(cls, examples: Sequence[QAExample]) -> list[list[str]]:
        return [[text for text, _ in example.answers] for example in examples]


def question_of(line: str, index: int) -> tuple[str, str]:
    """Question and context of an input line.

    Args:
        index: index of the line, for the error message.

    Raises:
        CorpusError: the line has no context.
    """
    if line.lstrip().startswith("{"):
        try:
            record = json.loads(line)
            return str(record["question"]), str(record["context"])
        except (ValueError, KeyError, RecursionError):
            pass
    question, tab, context = line.partition("\t")
    if not tab:
        raise CorpusError(
            f"line {index + 1}: expected question TAB context, or JSON with the keys question and context.\n"
            f"  The line begins {line[:40]!r}."
        )
    return question, context
