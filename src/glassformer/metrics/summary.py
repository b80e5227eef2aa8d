"""ROUGE of summaries, computed with the rouge-score package."""

import re
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Literal

import numpy as np

from glassformer.documents.words import UNSPACED_RANGES, marks
from glassformer.errors import ConfigError
from glassformer.metrics.score import common_length, mean_from
from glassformer.shapes import Float

ROUGE_TYPES = ("rouge1", "rouge2", "rougeL")
"""Names of the metrics in the package rouge-score."""

Words = Literal["ascii", "unicode"]

MAX_OTHER_LETTERS = 0.005
"""Part of the letters that are not a-z, up to which a text is as English as those for which ROUGE was published."""


@cache
def word_pattern() -> re.Pattern[str]:
    """A word with the marks of its letters, or a letter of a script that has no spaces between words."""
    letter = rf"[^\W_{UNSPACED_RANGES}]"
    return re.compile(rf"[{UNSPACED_RANGES}]|{letter}(?:{letter}|[{marks()}])*")


class _UnicodeTokenizer:
    def tokenize(self, text: str) -> list[str]:
        return word_pattern().findall(text.lower())


def words_for(expected: Sequence[Sequence[str]]) -> Words:
    """The words of which ROUGE is computed, by the references of summaries."""
    letters = [letter for references in expected for text in references for letter in text if letter.isalpha()]
    n_other = sum(not letter.isascii() for letter in letters)
    return "unicode" if n_other > MAX_OTHER_LETTERS * len(letters) else "ascii"


def rouge(
    predicted: Sequence[str], expected: Sequence[Sequence[str]], *, stem: bool = False, words: Words | None = None
) -> Float[np.ndarray, "n 3"]:
    """F1 of ROUGE-1, ROUGE-2 and ROUGE-L of each summary, against the best of its references.

    Args:
        predicted: the summaries.
        expected: references of each summary.
        stem: reduce English words to their stems (Porter), as in some publications.
        words: "ascii", as published, for English: words consist of a-z and digits. "unicode" for other languages: words
            consist of letters of any script, and in scripts without spaces, such as Chinese, each letter is a word.
            Default: `words_for` the references, or "ascii" with `stem`.

    Raises:
        ConfigError: the package rouge-score is not installed.
        ValueError: a summary has no reference, or `stem` with words="unicode".

    Source: Lin 2004.
    """
    try:
        from rouge_score import rouge_scorer  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError:
        raise ConfigError(
            "ROUGE needs the package rouge-score.\n  Install it: pip install 'glassformer[eval]'"
        ) from None
    common_length(predicted, expected)
    words = words or ("ascii" if stem else words_for(expected))
    if stem and words == "unicode":
        raise ValueError("stem=True requires words='ascii': only English words can be stemmed")
    if not all(expected):
        raise ValueError(f"summary {list(map(bool, expected)).index(False)} has no reference")
    tokenizer = _UnicodeTokenizer() if words == "unicode" else None
    scorer = rouge_scorer.RougeScorer(ROUGE_TYPES, use_stemmer=stem, tokenizer=tokenizer)
    rows = []
    for summary, references in zip(predicted, expected, strict=True):
        best = scorer.score_multi(list(references), summary)
        rows.append([best[name].fmeasure for name in ROUGE_TYPES])
    return np.array(rows, dtype=np.float64)


def rouge_statistics(predicted: Sequence[str], expected: Sequence[Sequence[str]]) -> Float[np.ndarray, "n 4"]:
    """Per summary: F1 of ROUGE-1, ROUGE-2 and ROUGE-L, 1."""
    scores = rouge(predicted, expected)
    return np.concatenate([scores, np.ones((len(scores), 1))], axis=1)


def rouge_signature(expected: Sequence[Sequence[str]]) -> str:
    """How `rouge_statistics` computes ROUGE with these references, with the version of rouge-score."""
    return f"F1|refs:best|stem:no|words:{words_for(expected)}|version:rouge-score-{version('rouge-score')}"


def rouge_1_from(sums: Float[np.ndarray, "*n 4"]) -> Float[np.ndarray, "*n"]:
    """Mean F1 of ROUGE-1 from summed `rouge_statistics`."""
    return mean_from(sums[..., [0, 3]])


def rouge_2_from(sums: Float[np.ndarray, "*n 4"]) -> Float[np.ndarray, "*n"]:
    """Mean F1 of ROUGE-2 from summed `rouge_statistics`."""
    return mean_from(sums[..., [1, 3]])


def rouge_l_from(sums: Float[np.ndarray, "*n 4"]) -> Float[np.ndarray, "*n"]:
    """Mean F1 of ROUGE-L from summed `rouge_statistics`."""
    return mean_from(sums[..., [2, 3]])
