"""ROUGE of summaries, computed with the rouge-score package."""

import re
from collections.abc import Sequence
from importlib.metadata import version
from typing import Literal

import numpy as np
from jaxtyping import Float

from glassformer.errors import ConfigError
from glassformer.metrics.score import Score, common_length

ROUGE_NAMES = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
"""Names in the package rouge-score -> names of the metrics."""

Words = Literal["ascii", "unicode"]

# In scripts without spaces between words, each character is a word.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W_\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")


class _UnicodeTokenizer:
    def tokenize(self, text: str) -> list[str]:
        return _WORD.findall(text.lower())


def rouge(
    predicted: Sequence[str], expected: Sequence[Sequence[str]], *, stem: bool = False, words: Words = "ascii"
) -> Float[np.ndarray, "n 3"]:
    """F1 of ROUGE-1, ROUGE-2 and ROUGE-L of each summary, against the best of its references.

    Args:
        predicted: the summaries.
        expected: references of each summary.
        stem: reduce English words to their stems (Porter), as in some publications.
        words: "ascii", as published, for English: words consist of a-z and digits. "unicode" for other languages: words
            consist of letters of any script, and each Chinese or Japanese character is a word.

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
    if stem and words == "unicode":
        raise ValueError("stem=True requires words='ascii': only English words can be stemmed")
    if not all(expected):
        raise ValueError(f"summary {list(map(bool, expected)).index(False)} has no reference")
    tokenizer = _UnicodeTokenizer() if words == "unicode" else None
    scorer = rouge_scorer.RougeScorer(list(ROUGE_NAMES), use_stemmer=stem, tokenizer=tokenizer)
    rows = []
    for summary, references in zip(predicted, expected, strict=True):
        best = scorer.score_multi(list(references), summary)
        rows.append([best[name].fmeasure for name in ROUGE_NAMES])
    return np.array(rows, dtype=np.float64)


def summary_scores(
    predicted: Sequence[str], expected: Sequence[Sequence[str]], *, stem: bool = False, words: Words = "ascii"
) -> list[Score]:
    """Mean F1 of ROUGE-1, ROUGE-2 and ROUGE-L; arguments as in `rouge`."""
    means = rouge(predicted, expected, stem=stem, words=words).mean(0)
    signature = (
        f"F1|refs:best|stem:{'yes' if stem else 'no'}|words:{words}|version:rouge-score-{version('rouge-score')}"
    )
    return [Score(name, float(mean), signature) for name, mean in zip(ROUGE_NAMES.values(), means, strict=True)]
