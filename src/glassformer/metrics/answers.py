"""Exact match and F1 of answers, as SQuAD scores them."""

import re
import string
from collections import Counter
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from glassformer.metrics.score import Score, mean_from, same_length

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize(text: str) -> str:
    """Lower case, without ASCII punctuation and English articles, with single spaces.

    Source: the evaluation script of SQuAD 2.0. Other languages keep their articles and punctuation, as there; text
    without spaces between words, such as Chinese, is one word, so that F1 is hardly more than exact match.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(predicted: str, expected: Sequence[str]) -> float:
    """1 if the answer is one of the references after normalization, else 0.

    Args:
        predicted: the answer, "" for none.
        expected: the references; none where the question has no answer.
    """
    said = normalize(predicted)
    return float(any(said == normalize(each) for each in _references(expected)))


def answer_f1(predicted: str, expected: Sequence[str]) -> float:
    """F1 of the words shared with the reference that shares most; arguments as in `exact_match`."""
    said = normalize(predicted).split()
    return max(_word_f1(said, normalize(each).split()) for each in _references(expected))


def _references(expected: Sequence[str]) -> Sequence[str]:
    # A reference that normalizes to nothing ("The") would turn the empty answer into a right one.
    return [each for each in expected if normalize(each)] or [""]


def _word_f1(said: Sequence[str], true: Sequence[str]) -> float:
    if not said or not true:
        return float(said == true)
    n_shared = (Counter(said) & Counter(true)).total()
    return 2 * n_shared / (len(said) + len(true))


def answer_statistics(predicted: Sequence[str], expected: Sequence[Sequence[str]]) -> Float[np.ndarray, "n 3"]:
    """Per question: exact match, F1, 1."""
    same_length(predicted, expected)
    return np.array(
        [[exact_match(*pair), answer_f1(*pair), 1] for pair in zip(predicted, expected, strict=True)], dtype=np.float64
    )


def exact_match_from(sums: Float[np.ndarray, "*n 3"]) -> Float[np.ndarray, "*n"]:
    """Share of questions with an exact match, of summed `answer_statistics`."""
    return mean_from(sums[..., [0, 2]])


def answer_f1_from(sums: Float[np.ndarray, "*n 3"]) -> Float[np.ndarray, "*n"]:
    """Mean F1 over questions, of summed `answer_statistics`."""
    return mean_from(sums[..., [1, 2]])


def answer_scores(predicted: Sequence[str], expected: Sequence[Sequence[str]]) -> list[Score]:
    """Exact match and F1 of answers, each against the best of its references.

    Source: Rajpurkar et al. 2016, section 6.1; 2018 for questions without an answer.
    """
    sums = answer_statistics(predicted, expected).sum(0)
    how = "norm:squad|refs:best"
    return [Score("EM", float(exact_match_from(sums)), how), Score("F1", float(answer_f1_from(sums)), how)]
