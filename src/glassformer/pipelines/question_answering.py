"""question-answering: spans of a context that answer a question."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from glassformer.config import JsonObject
from glassformer.errors import ConfigError
from glassformer.pipelines.base import Options, Output, Pipeline
from glassformer.pipelines.tokenizer_adapter import Window, encoder_batches
from glassformer.tasks.question_answering import QuestionAnswerer

Answer = JsonObject
FloatArray = NDArray[np.float32]

DEFAULT_MAX_SEQ_LEN, DEFAULT_DOC_STRIDE = 384, 128
"""Defaults: maximum number of tokens of a window, and of tokens shared by adjacent windows."""
MASKED_LOGIT = -10000.0
"""Logit of tokens that cannot be part of an answer."""


class QuestionAnsweringOptions(Options):
    """Arguments of question-answering."""

    top_k: int | None = Field(default=None, ge=1)
    topk: int | None = Field(default=None, ge=1)
    """Old name of top_k."""
    doc_stride: int | None = Field(default=None, ge=0)
    """Number of tokens shared by adjacent windows of a long context."""
    max_answer_len: int = Field(default=15, ge=1)
    """Maximum number of tokens of an answer."""
    max_seq_len: int | None = Field(default=None, ge=8)
    """Maximum number of tokens of a window, including question and special tokens."""
    max_question_len: int | None = None
    """Ignored, as in transformers with fast tokenizers."""
    handle_impossible_answer: bool = False
    """Whether the empty answer "", which means that the context contains no answer, is a candidate."""
    align_to_words: bool = True
    """Whether to extend answers to complete words."""


class QuestionAnswering(Pipeline[QuestionAnsweringOptions]):
    """{"score", "start", "end", "answer"} for a question about a context, or a list if there are several.

    There may be several answers if top_k is above 1. The score is the product of the probabilities of the first and
    the last token, each normalized over [CLS] and the context tokens of a window. Scores of identical answers from
    several spans are added.
    """

    options_type = QuestionAnsweringOptions
    input_names = ("data", "X")
    model: QuestionAnswerer

    def __call__(
        self, inputs: object = None, context: str | Sequence[str] | None = None, /, **options: object
    ) -> Output:
        """Answer a question, or each question of a list.

        Args:
            inputs, context: a question and its context, or a dictionary with both, or a list or generator of those.
            options: arguments of the pipeline. question and context may also be passed here, each as a text or a list.
        """
        inputs = self.named_input(inputs, options)
        question, named = options.pop("question", None), options.pop("context", None)
        if inputs is None:
            inputs = pair_questions(question, named)
        elif isinstance(inputs, str) and context is not None:
            inputs = pair_questions(inputs, context)
        elif question is not None or named is not None or context is not None:
            raise ConfigError(
                f"{self.task}: pass either question and context, or dictionaries with both keys, but not both."
            )
        if isinstance(inputs, list) and len(inputs) == 1:
            inputs = inputs[0]
        return self.each(inputs, options)

    def run(self, inputs: list[object], options: QuestionAnsweringOptions) -> list[Output]:
        questions = [read_question(value) for value in inputs]
        windows_of_questions = [self.windows(question, context, options) for question, context in questions]
        all_windows = [window for windows in windows_of_questions for window in windows]
        logits = iter(self.logits(all_windows))
        results: list[Output] = []
        for (_, context), windows in zip(questions, windows_of_questions, strict=True):
            answers = self.best_answers(context, [(window, next(logits)) for window in windows], options)
            results.append(answers[0] if len(answers) == 1 else answers)
        return results

    def windows(self, question: str, context: str, options: QuestionAnsweringOptions) -> list[Window]:
        """Encode a question and its context as one or more windows."""
        max_len = self.tokenizer.model_max_length
        size = min(options.max_seq_len or DEFAULT_MAX_SEQ_LEN, max_len)
        n_question = len(self.tokenizer.encode_windows(question, special_tokens=False)[0].ids)
        n_context = size - n_question - self.tokenizer.backend.num_special_tokens_to_add(True)
        default_overlap = min(size // 2, DEFAULT_DOC_STRIDE)
        overlap = (
            (default_overlap if default_overlap < n_context else n_context // 2)
            if options.doc_stride is None
            else options.doc_stride
        )
        if n_context < 1 or overlap >= n_context:
            raise ConfigError(
                f"{self.task}: a question of {n_question} tokens leaves {max(0, n_context)} of {size} for the context"
                f" and adjacent windows share {overlap}.\n"
                f"  Shorten the question, decrease doc_stride or increase max_seq_len (at most {max_len})."
            )
        return self.tokenizer.encode_windows(
            question, context, max_length=size, strategy="only_second", overlap=overlap
        )

    def logits(self, windows: Sequence[Window]) -> list[FloatArray]:
        """Logits of the first and last token of the answer for each window, [tokens, 2]."""
        results: list[FloatArray] = [np.empty(0, np.float32)] * len(windows)
        encoder = self.model.encoder
        for indices, hidden in encoder_batches(self.model, [(w.ids, w.token_type_ids) for w in windows]):
            for i, states in zip(indices, hidden, strict=True):
                results[i] = encoder.outputs(states)
        return results

    def best_answers(
        self, context: str, windows: Sequence[tuple[Window, FloatArray]], options: QuestionAnsweringOptions
    ) -> list[Answer]:
        """The top_k most probable answers to a question, best first. The answer "" means that there is none.

        Its score is the probability of the span at [CLS] in the window where that is lowest.
        """
        top_k = options.top_k or options.topk or 1
        n_candidates = 2 * top_k + 10 if options.align_to_words else top_k
        answers: dict[str, Answer] = {}
        no_answer_score = 1_000_000.0  # minimum over the windows
        for window, logits in windows:
            in_context = np.array([number == 1 for number in window.encoding.sequence_ids])
            # A span at [CLS], the first token, means that the window contains no answer.
            allowed = in_context | (np.array(window.ids) == self.tokenizer.cls_token_id)
            start_probs, end_probs = (probabilities(np.where(allowed, column, MASKED_LOGIT)) for column in logits.T)
            no_answer_score = min(no_answer_score, float(start_probs[0] * end_probs[0]))
            start_probs[0] = end_probs[0] = 0.0
            for first, last, score in best_spans(start_probs, end_probs, n_candidates, options.max_answer_len):
                if not allowed[first] or not allowed[last]:
                    continue
                a, b = self.char_span(window, first, last, options.align_to_words)
                answer = context[a:b]
                same = answers.setdefault(answer.lower(), {"score": 0.0, "start": a, "end": b, "answer": answer})
                same["score"] += score
        results = list(answers.values())
        if options.handle_impossible_answer:
            results.append({"score": no_answer_score, "start": 0, "end": 0, "answer": ""})
        return sorted(results, key=lambda answer: -answer["score"])[:top_k]

    def char_span(self, window: Window, first: int, last: int, to_words: bool) -> tuple[int, int]:
        """Character span of the context from one token to another."""
        if to_words and self.tokenizer.backend.pre_tokenizer is not None:
            return window.char_span_of_words(first, last, 1)
        return window.char_span(first)[0], window.char_span(last)[1]


def pair_questions(question: object, context: object) -> list[JsonObject]:
    """Combine questions with their contexts. One context may be used for several questions."""
    if isinstance(question, str) and isinstance(context, str):
        return [{"question": question, "context": context}]
    if isinstance(question, list) and isinstance(context, str):
        return [{"question": q, "context": context} for q in question]
    if isinstance(question, list) and isinstance(context, list):
        if len(question) != len(context):
            raise ConfigError(f"{len(question)} questions and {len(context)} contexts: the numbers must be equal.")
        return [{"question": q, "context": c} for q, c in zip(question, context, strict=True)]
    raise ConfigError("question-answering: expected question= and context=, texts or lists of texts.")


def read_question(value: object) -> tuple[str, str]:
    """Question and context of a dictionary."""
    if not isinstance(value, Mapping) or not {"question", "context"} <= value.keys():
        raise ConfigError(f'question-answering: expected {{"question": …, "context": …}}, found {value!r:.60}.')
    for name in ("question", "context"):
        if not isinstance(value[name], str) or not value[name]:
            raise ConfigError(f"question-answering: the {name} is {value[name]!r}; expected non-empty text.")
    return value["question"], value["context"]


def probabilities(logits: FloatArray) -> FloatArray:
    """Softmax of the logits of a window."""
    exponentials = np.exp(logits - logits.max())
    return exponentials / exponentials.sum()


def best_spans(start_probs: FloatArray, end_probs: FloatArray, n: int, max_len: int) -> list[tuple[int, int, float]]:
    """The n most probable spans (first, last, probability) of at most `max_len` tokens, best first."""
    pairs = np.tril(np.triu(start_probs[:, None] * end_probs[None]), max_len - 1)
    best = np.argsort(-pairs, axis=None, kind="stable")[:n]
    firsts, lasts = np.unravel_index(best, pairs.shape)
    return [(int(i), int(j), float(pairs[i, j])) for i, j in zip(firsts, lasts, strict=True)]
