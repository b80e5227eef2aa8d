"""Confidence of translations: for each word the probability that it is right, calibrated on a dev set.

A word of a translation is right if it is a word of the reference, without punctuation and case, as often as it occurs
there. Logistic regression predicts this from log-probabilities of the model. The confidence of a line is the mean of
the probabilities of its words: the expected fraction of right words.
"""

import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy import ndarray

from glassformer.config import JsonObject
from glassformer.corpora.terms import positions_of
from glassformer.decode_config import DecodeConfig
from glassformer.errors import CheckpointError, UserError
from glassformer.manifest import COPY_AGAIN
from glassformer.shapes import Bool, Float
from glassformer.tokens.tokenizer import Tokenizer

FILE = "confidence.json"
N_FEATURES = 16
RIDGE = 1e-3
"""Weight of the squared coefficients, which makes them unique."""

MAX_WORD_LENGTH = 15
"""Longer words have the features of this length."""

MAX_DECODED = 64
"""Most tokens that are decoded again for each token of a word."""

MIN_WORDS = 200
"""Fewest words that the coefficients are fitted to."""

MAX_LOGIT = 700.0
"""Largest absolute value whose exponential is a number."""

N_BINS = 10
"""Number of intervals of probability in the expected calibration error."""

PUNCTUATION = string.punctuation + "“”„«»’‘…–—¿¡"


@dataclass(frozen=True, slots=True)
class Confidence:
    """A logistic regression on normalized features of words."""

    mean: tuple[float, ...]
    scale: tuple[float, ...]
    """Mean and standard deviation of each feature."""
    coefficients: tuple[float, ...]
    """Of each feature, then the constant."""
    n_words: int
    """Number of words that it was fitted to."""

    @classmethod
    def fit(cls, features: Float[ndarray, "words features"], is_right: Sequence[bool]) -> "Confidence":
        """Fit to words of a dev set.

        Raises:
            UserError: too few words, or all are right or wrong.
        """
        y = np.array(is_right, float)
        if len(y) < MIN_WORDS or y.min() == y.max():
            raise UserError(
                f"confidence cannot be fitted to {len(y):,} words, {int(y.sum()):,} of them right.\n"
                f"  Give more lines: at least {MIN_WORDS} words, with right and wrong ones."
            )
        mean, scale = features.mean(0), features.std(0) + 1e-6
        x = np.hstack([(features - mean) / scale, np.ones((len(y), 1))])
        b = np.zeros(x.shape[1])
        for _ in range(50):  # Newton's method
            p = logistic(x @ b)
            gradient = x.T @ (y - p) - RIDGE * b
            step = np.linalg.solve(x.T @ (x * (p * (1 - p))[:, None]) + RIDGE * np.eye(len(b)), gradient)
            b += step
            if np.abs(step).max() < 1e-8:
                break
        return cls(tuple(mean.tolist()), tuple(scale.tolist()), tuple(b.tolist()), len(y))

    def probabilities(self, features: Float[ndarray, "words features"]) -> Float[ndarray, " words"]:
        """For each word the probability that it is right."""
        x = (features - np.array(self.mean)) / np.array(self.scale)
        return logistic(x @ np.array(self.coefficients[:-1]) + self.coefficients[-1])

    def to_record(self) -> JsonObject:
        """Contents of the file in a model folder."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: JsonObject) -> "Confidence":
        """The confidence of a file.

        Raises:
            CheckpointError: the file is damaged.
        """
        try:
            mean, scale, coefficients = (
                tuple(float(x) for x in record[name]) for name in ("mean", "scale", "coefficients")
            )
            confidence = cls(mean, scale, coefficients, int(record["n_words"]))
        except (KeyError, TypeError, ValueError, OverflowError):
            raise CheckpointError(f"{FILE}: damaged.{COPY_AGAIN}") from None
        sizes = len(mean), len(scale), len(coefficients)
        if sizes != (N_FEATURES, N_FEATURES, N_FEATURES + 1) or not (
            np.isfinite([*mean, *scale, *coefficients]).all() and min(scale) > 0
        ):
            raise CheckpointError(f"{FILE}: damaged.{COPY_AGAIN}")
        return confidence


def logistic(x: ndarray) -> ndarray:
    """1 / (1 + exp(-x)), without overflow."""
    result: ndarray = 1 / (1 + np.exp(-np.clip(x, -MAX_LOGIT, MAX_LOGIT)))
    return result


def words_of(ids: Sequence[int], tokenizer: Tokenizer) -> tuple[list[str], list[int]]:
    """Words of an output, separated by white space, and for each token the index of the last word that it is part of;
    -1 before the first word."""
    owners: list[int] = []
    start = before = 0  # the tokens from `start` are decoded together; number of words before them
    for i, token in enumerate(ids):
        if i > start and tokenizer.starts_word(token):
            start, before = i, owners[-1] + 1
        elif i - start == MAX_DECODED:  # within a word
            start, before = i, owners[-1]
        owners.append(before + len(tokenizer.decode(ids[start : i + 1]).split()) - 1)
    return tokenizer.decode(ids).split(), owners


def words_in(forms: Sequence[str], words: Sequence[str]) -> Bool[ndarray, " words"]:
    """Which words of a line are part of one of some forms."""
    text = " ".join(words)
    starts = np.cumsum([0, *(len(word) + 1 for word in words)])
    found = np.zeros(len(words), bool)
    for form in forms:
        for start in positions_of(form, text):
            found |= (starts[:-1] < start + len(form)) & (start < starts[1:] - 1)
    return found


def word_features(
    words: Sequence[str],
    log_probs: Sequence[float],
    word_of_token: Sequence[int],
    forced: Bool[ndarray, " words"] | None = None,
) -> Float[ndarray, "words 16"]:
    """Features of each word: of the log-probabilities of its tokens mean and minimum, the minimum of its neighbors,
    mean and minimum of the line; length of the word, position, number of words; squares and probabilities.

    Args:
        forced: words that the model did not choose, whose log-probabilities are not used. Default: none.
    """
    p, n = np.array(log_probs), len(words)
    if not n:
        return np.empty((0, N_FEATURES))
    owners = np.maximum.accumulate(np.array(word_of_token))
    if forced is not None and forced.any():
        chosen = ~forced[np.maximum(owners, 0)]
        p, owners = (p[chosen], owners[chosen]) if chosen.any() else (np.zeros(1), owners[:1])
    bounds = np.searchsorted(owners, np.arange(n + 1))
    rows = [p[start:end] if end > start else p for start, end in pairwise(bounds)]
    lowest, mean = (np.array([f(row) for row in rows]) for f in (np.min, np.mean))
    around = np.concatenate([[0.0], lowest, [0.0]])
    length = np.array([min(len(word), MAX_WORD_LENGTH) for word in words])
    line = np.ones(n)
    of_line, product = p.mean() * line, np.exp(mean + p.mean())
    return np.stack(
        [
            mean, lowest, np.exp(lowest), around[:-2], around[2:], of_line, p.min() * line, length, length**2,
            np.exp(mean), product, n * line, np.arange(n) / n, np.exp(of_line), mean**2, of_line**2,
        ],
        axis=1,
    )  # fmt: skip


def right_words(words: Sequence[str], reference: str) -> list[bool]:
    """Whether each word is a word of the reference, as often as it occurs there."""
    left = Counter(map(bare, reference.split()))
    right = []
    for word in map(bare, words):
        right.append(left[word] > 0)
        left[word] -= 1
    return right


def bare(word: str) -> str:
    """A word without punctuation and case."""
    return word.strip(PUNCTUATION).casefold() or word


def fit_confidence(task: Any, sources: Sequence[str], references: Sequence[str]) -> tuple["Confidence", float]:
    """Fit to translations of dev examples, in int8 on a CPU that has the kernels.

    Args:
        task: a text-to-text task.

    Returns:
        The confidence fitted to all lines, and the expected calibration error on every second line of one that is
        fitted to the others.

    Raises:
        UserError: too few words.
    """
    results = task.translate(sources, DecodeConfig(precision=task.validation_precision))
    rows = []
    for (best, *_), reference in zip(results, references, strict=True):
        words, owners = words_of(best.ids, task.tokenizer)
        rows.append((word_features(words, best.log_probs, owners), right_words(words, reference)))

    def stacked(some: Sequence[Any]) -> tuple[ndarray, list[bool]]:
        return np.concatenate([np.empty((0, N_FEATURES)), *(features for features, _ in some)]), [
            right for _, rights in some for right in rights
        ]

    n_words = sum(len(rights) for _, rights in rows)
    if n_words < 2 * MIN_WORDS:
        raise UserError(
            f"confidence cannot be fitted to {n_words:,} words and tested.\n"
            f"  Give more lines: at least {2 * MIN_WORDS} words."
        )
    confidence = Confidence.fit(*stacked(rows))
    features, is_right = stacked(rows[1::2])
    error = expected_calibration_error(Confidence.fit(*stacked(rows[::2])).probabilities(features), is_right)
    return confidence, error


def expected_calibration_error(probabilities: Sequence[float] | ndarray, is_right: Sequence[bool]) -> float:
    """Mean over words of the difference between probability and fraction of right words, in bins of equal width.

    Source: Naeini et al. 2015; Guo et al. 2017, equation 3.
    """
    p, y = np.array(probabilities), np.array(is_right, float)
    bins = np.minimum((p * N_BINS).astype(int), N_BINS - 1)
    return float(sum(abs((p - y)[bins == k].sum()) for k in range(N_BINS)) / max(len(p), 1))
