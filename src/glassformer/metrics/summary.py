"""ROUGE of summaries by the rouge-score package."""

import re
from collections.abc import Sequence
from importlib.metadata import version
from typing import Literal

import numpy as np
from jaxtyping import Float

from glassformer.errors import ConfigError
from glassformer.metrics.score import Score, same_length

KINDS = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}

Words = Literal["ascii", "unicode"]

# A script without spaces between words counts by character.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W_\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")


class _UnicodeTokenizer:
    def tokenize(self, text: str) -> list[str]:
        return _WORD.findall(text.lower())


def rouge(
    predicted: Sequence[str], expected: Sequence[Sequence[str]], *, stem: bool = False, words: Words = "ascii"
) -> Float[np.ndarray, "n 3"]:
    """F1 of ROUGE-1, ROUGE-2 and ROUGE-L of each summary, each against the best of its references.

    Args:
        stem: cut English words down to their stems (Porter), as in some publications.
        words: "ascii" as published for English: a-z and digits make words, any other letter ends one; "unicode" for
            other languages: letters of all scripts, Chinese and Japanese characters one by one.

    Raises:
        ConfigError: the package is not installed.
        ValueError: a summary without reference; stems of other than ASCII words.

    Source: Lin 2004.
    """
    try:
        from rouge_score import rouge_scorer  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError:
        raise ConfigError(
            "ROUGE needs the package rouge-score.\n  Install it: pip install 'glassformer[eval]'"
        ) from None
    same_length(predicted, expected)
    if stem and words == "unicode":
        raise ValueError("stem: only English has stems here, not words='unicode'")
    if not all(expected):
        raise ValueError(f"summary {list(map(bool, expected)).index(False)} has no reference")
    tokenizer = _UnicodeTokenizer() if words == "unicode" else None
    scorer = rouge_scorer.RougeScorer(list(KINDS), use_stemmer=stem, tokenizer=tokenizer)
    rows = []
    for summary, references in zip(predicted, expected, strict=True):
        best = scorer.score_multi(list(references), summary)
        rows.append([best[kind].fmeasure for kind in KINDS])
    return np.array(rows, dtype=np.float64)


def summary_scores(
    predicted: Sequence[str], expected: Sequence[Sequence[str]], *, stem: bool = False, words: Words = "ascii"
) -> list[Score]:
    """Mean F1 of ROUGE-1, ROUGE-2 and ROUGE-L; arguments as in `rouge`."""
    means = rouge(predicted, expected, stem=stem, words=words).mean(0)
    how = f"F1|refs:best|stem:{'yes' if stem else 'no'}|words:{words}|version:rouge-score-{version('rouge-score')}"
    return [Score(kind, float(mean), how) for kind, mean in zip(KINDS.values(), means, strict=True)]
