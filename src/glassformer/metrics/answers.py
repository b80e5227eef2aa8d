"""Exact match and F1 of answers, as defined by SQuAD.

Source: Rajpurkar et al. 2016, section 6.1; 2018 for questions without an answer.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence

import numpy as np

from glassformer.metrics.score import common_length, mean_from
from glassformer.shapes import Float

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize(text: str) -> str:
    """Normalize an answer: lower case, no ASCII punctuation, no English articles, single spaces.

    As in the original, articles and punctuation of other languages are kept. Text without spaces between words, such as
    Chinese, is treated as one word, so that its F1 is close to exact match.

    Source: the evaluation script of SQuAD 2.0.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(predicted: str, expected: Sequence[str]) -> float:
    """1 if the answer is one of the references after normalization, else 0.

    Args:
        predicted: the answer, "" for none.
        expected: the references; empty if the question has no answer.
    """
    normalized = normalize(predicted)
    return float(any(normalized == normalize(reference) for reference in _references(expected)))


def answer_f1(predicted: str, expected: Sequence[str]) -> float:
    """Word F1 against the best of the references; arguments as in `exact_match`."""
    words = normalize(predicted).split()
    return max(_word_f1(words, normalize(reference).split()) for reference in _references(expected))


def _references(expected: Sequence[str]) -> Sequence[str]:
    # With a reference that normalizes to an empty text ("The"), an empty answer would be counted as correct.
    return [reference for reference in expected if normalize(reference)] or [""]


def _word_f1(predicted: Sequence[str], expected: Sequence[str]) -> float:
    if not predicted or not expected:
        return float(predicted == expected)
    n_shared = (Counter(predicted) & Counter(expected)).total()
    return 2 * n_shared / (len(predicted) + len(expected))


def answer_statistics(predicted: Sequence[str], expected: Sequence[Sequence[str]]) -> Float[np.ndarray, "n 3"]:
    """Per question: exact match, F1, 1."""
    common_length(predicted, expected)
    return np.array(
        [[exact_match(*pair), answer_f1(*pair), 1] for pair in zip(predicted, expected, strict=True)], dtype=np.float64
    )


def exact_match_from(sums: Float[np.ndarray, "*n 3"]) -> Float[np.ndarray, "*n"]:
    """Fraction of questions with an exact match, from summed `answer_statistics`."""
    return mean_from(sums[..., [0, 2]])


def answer_f1_from(sums: Float[np.ndarray, "*n 3"]) -> Float[np.ndarray, "*n"]:
    """Mean F1 over questions, from summed `answer_statistics`."""
    return mean_from(sums[..., [1, 2]])
