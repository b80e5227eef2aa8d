"""Answers to questions, as stretches of a context."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field

from glassformer.errors import ConfigError
from glassformer.pipelines.base import Options, Pipeline
from glassformer.pipelines.tokenizer_adapter import Window, encoded

Answer = dict[str, Any]
Logits = NDArray[np.float32]

MAX_WINDOW, MAX_OVERLAP = 384, 128
"""Tokens that are read at once, and that windows share, unless the caller says."""
HIDDEN = -10000.0
"""Logit of a token that cannot be part of an answer."""


class AnswerOptions(Options):
    """Arguments of question-answering."""

    top_k: int | None = Field(default=None, ge=1)
    topk: int | None = Field(default=None, ge=1)
    """The old name of top_k."""
    doc_stride: int | None = Field(default=None, ge=0)
    """Tokens that two windows of a long context share."""
    max_answer_len: int = Field(default=15, ge=1)
    """Tokens of the longest answer that is looked for."""
    max_seq_len: int | None = Field(default=None, ge=8)
    """Tokens of a window, question and special tokens among them."""
    max_question_len: int | None = None
    """Of no effect, as in transformers with its fast tokenizers."""
    handle_impossible_answer: bool = False
    """Whether no answer at all, "", is one of them."""
    align_to_words: bool = True
    """Whether an answer is stretched to whole words."""


class QuestionAnswering(Pipeline):
    """{"score", "start", "end", "answer"} of a question about a context; with top_k above 1 a list of them.

    The score is the probability of the first token times that of the last, each over the context of a window; an
    answer that is found more than once has the sum.
    """

    tasks = ("question-answering",)
    options_type = AnswerOptions

    def __call__(self, inputs: Any = None, context: str | Sequence[str] | None = None, /, **options: Any) -> Any:
        """The best answer to a question, or to each of several.

        Args:
            inputs, context: a question and its context; or one dictionary, a list or a generator of them.
            options: question and context, each a text or a list, where they are not given so; arguments.
        """
        question, named = options.pop("question", None), options.pop("context", None)
        if inputs is None:
            inputs = asked(question, named)
        elif isinstance(inputs, str) and context is not None:
            inputs = asked(inputs, context)
        elif question is not None or named is not None or context is not None:
            raise ConfigError(f"{self.task}: give question and context, or dictionaries that hold them; not both.")
        if isinstance(inputs, list) and len(inputs) == 1:
            inputs = inputs[0]
        return self.each(inputs, options)

    def run(self, inputs: list[Any], options: AnswerOptions) -> list[Any]:
        asked = [question_of(given) for given in inputs]
        read = [self.windows(question, context, options) for question, context in asked]
        every = [window for windows in read for window in windows]
        logits = iter(self.logits(every))
        results: list[Any] = []
        for (_, context), windows in zip(asked, read, strict=True):
            found = self.best(context, [(window, next(logits)) for window in windows], options)
            results.append(found[0] if len(found) == 1 else found)
        return results

    def windows(self, question: str, context: str, options: AnswerOptions) -> list[Window]:
        """Question and context, in windows if need be."""
        longest = self.tokenizer.model_max_length
        size = min(options.max_seq_len or MAX_WINDOW, longest)
        n_question = len(self.tokenizer.read(question, special_tokens=False)[0].ids)
        room = size - n_question - self.tokenizer.backend.num_special_tokens_to_add(True)
        default_arguments = min(size // 2, MAX_OVERLAP)
        overlap = (
            (default_arguments if default_arguments < room else room // 2)
            if options.doc_stride is None
            else options.doc_stride
        )
        if room < 1 or overlap >= room:
            raise ConfigError(
                f"{self.task}: a question of {n_question} tokens leaves {max(0, room)} of {size} for its context,"
                f" and windows are to share {overlap}.\n"
                f"  Shorten the question, lower doc_stride or raise max_seq_len, up to the {longest} of the model."
            )
        return self.tokenizer.read(question, context, max_length=size, strategy="only_second", overlap=overlap)

    def logits(self, windows: Sequence[Window]) -> list[Logits]:
        """Of each window [tokens, 2]: of an answer's first and last token."""
        found: list[Logits] = [np.empty(0, np.float32)] * len(windows)
        for places, hidden, ids in encoded(self.model, [(w.ids, w.token_type_ids) for w in windows]):
            with torch.inference_mode():
                logits = self.model.model.label_logits(hidden, ids).float().cpu().numpy()
            for place, rows in zip(places, logits, strict=True):
                found[place] = rows[: len(windows[place].ids)]
        return found

    def best(self, context: str, windows: Sequence[tuple[Window, Logits]], options: AnswerOptions) -> list[Answer]:
        """The best answers, best first."""
        top_k = options.top_k or options.topk or 1
        n_tried = 2 * top_k + 10 if options.align_to_words else top_k
        answers: dict[str, Answer] = {}
        no_answer = 1_000_000.0
        for window, logits in windows:
            in_context = np.array([number == 1 for number in window.encoding.sequence_ids])
            may = in_context | (np.array(window.ids) == self.tokenizer.cls_token_id)
            start, end = (probabilities(np.where(may, column, HIDDEN)) for column in logits.T)
            no_answer = min(no_answer, float(start[0] * end[0]))
            start[0] = end[0] = 0.0
            for first, last, score in spans(start, end, n_tried, options.max_answer_len):
                if not may[first] or not may[last]:
                    continue
                a, b = self.characters(window, first, last, options.align_to_words)
                answer = context[a:b]
                same = answers.setdefault(answer.lower(), {"score": 0.0, "start": a, "end": b, "answer": answer})
                same["score"] += score
        found = list(answers.values())
        if options.handle_impossible_answer:
            found.append({"score": no_answer, "start": 0, "end": 0, "answer": ""})
        return sorted(found, key=lambda answer: -answer["score"])[:top_k]

    def characters(self, window: Window, first: int, last: int, to_words: bool) -> tuple[int, int]:
        """The stretch of the context from one token to another."""
        if to_words and self.tokenizer.backend.pre_tokenizer is not None:
            return window.characters_of_words(first, last, 1)
        return window.characters(first)[0], window.characters(last)[1]


def asked(question: Any, context: Any) -> list[dict[str, Any]]:
    """Questions with their contexts; one context may serve several questions."""
    if isinstance(question, str) and isinstance(context, str):
        return [{"question": question, "context": context}]
    if isinstance(question, list) and isinstance(context, str):
        return [{"question": each, "context": context} for each in question]
    if isinstance(question, list) and isinstance(context, list):
        if len(question) != len(context):
            raise ConfigError(f"{len(question)} questions and {len(context)} contexts: give as many of each.")
        return [{"question": q, "context": c} for q, c in zip(question, context, strict=True)]
    raise ConfigError("question-answering: expected question= and context=, texts or lists of texts.")


def question_of(given: Any) -> tuple[str, str]:
    """Question and context of a dictionary."""
    if not isinstance(given, Mapping) or not {"question", "context"} <= given.keys():
        raise ConfigError(f'question-answering: expected {{"question": …, "context": …}}, found {given!r:.60}.')
    for name in ("question", "context"):
        if not isinstance(given[name], str) or not given[name]:
            raise ConfigError(f"question-answering: the {name} is {given[name]!r}; expected text.")
    return given["question"], given["context"]


def probabilities(logits: Logits) -> Logits:
    """Softmax."""
    found = np.exp(logits - logits.max())
    return found / found.sum()  # type: ignore[no-any-return]


def spans(start: Logits, end: Logits, n: int, longest: int) -> list[tuple[int, int, float]]:
    """The n most probable (first, last, probability) of at most `longest` tokens, best first."""
    pairs = np.tril(np.triu(start[:, None] * end[None]), longest - 1)
    best = np.argsort(-pairs, axis=None, kind="stable")[:n]
    firsts, lasts = np.unravel_index(best, pairs.shape)
    return [(int(i), int(j), float(pairs[i, j])) for i, j in zip(firsts, lasts, strict=True)]
