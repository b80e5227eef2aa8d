"""BLEU, chrF and TER, computed with sacrebleu and reported with its signatures.

sacrebleu is imported when a score is computed: it takes 0.3 s, and needs a folder for temporary files.
"""

import re
from collections.abc import Sequence

import numpy as np

from glassformer.documents.words import UNSPACED
from glassformer.metrics.score import Score, common_length
from glassformer.shapes import Float

BETWEEN_WORDS = re.compile(rf"{UNSPACED.pattern}(?=\s+{UNSPACED.pattern})")
WITHIN_TEXT = re.compile(rf"{UNSPACED.pattern}(?={UNSPACED.pattern})")
CHINESE = re.compile("[\u3400-\u9fff\uf900-\ufaff]")

MAX_WORD = 8
"""Mean length of a word up to which text in a script without spaces is text that was divided into words."""


def tokenizer_for(texts: Sequence[str]) -> str:
    """sacrebleu's tokenizer for BLEU: "zh" for Chinese, "char" for other text without spaces between words (Japanese,
    Thai, …), of which 13a would take whole sentences for words, else "13a".
    """
    n_letters = sum(map(str.isalpha, "".join(texts)))
    unspaced = [letter for text in texts for letter in UNSPACED.findall(text)]
    n_between, n_within = (sum(len(x.findall(text)) for text in texts) for x in (BETWEEN_WORDS, WITHIN_TEXT))
    if 2 * len(unspaced) <= n_letters or n_within <= (MAX_WORD - 1) * n_between:
        return "13a"
    return "zh" if 10 * len(CHINESE.findall("".join(unspaced))) > 9 * len(unspaced) else "char"


def translation_scores(
    hypotheses: Sequence[str], references: Sequence[str], *, tokenize: str | None = None, lowercase: bool = False
) -> list[Score]:
    """BLEU, chrF2 and TER of translations, with one reference each.

    Args:
        hypotheses: the translations.
        references: one reference translation of each.
        tokenize: sacrebleu's tokenizer for BLEU: 13a, intl, char, zh, ja-mecab, or none for tokenized text. Default:
            `tokenizer_for` the references.
        lowercase: ignore case.

    Source: Papineni et al. 2002; Popović 2015; Snover et al. 2006; Post 2018 for the signatures.
    """
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    metrics = [
        BLEU(tokenize=tokenize or tokenizer_for(references), lowercase=lowercase, force=True),
        CHRF(lowercase=lowercase),
        TER(case_sensitive=not lowercase),
    ]
    scores = []
    for metric in metrics:
        result = metric.corpus_score(list(hypotheses), [list(references)])
        scores.append(Score(result.name, result.score, str(metric.get_signature())))
    return scores


def bleu(hypotheses: Sequence[str], references: Sequence[str], tokenize: str | None = None) -> float:
    """BLEU, 0 to 100; see `translation_scores`."""
    from sacrebleu.metrics.bleu import BLEU

    metric = BLEU(tokenize=tokenize or tokenizer_for(references), force=True)
    return float(metric.corpus_score(list(hypotheses), [list(references)]).score)


def bleu_statistics(
    hypotheses: Sequence[str], references: Sequence[str], *, tokenize: str | None = None, lowercase: bool = False
) -> Float[np.ndarray, "n 10"]:
    """Per sentence: matching n-grams of orders 1 to 4, n-grams of orders 1 to 4, length, length of the reference."""
    from sacrebleu.metrics.bleu import BLEU

    common_length(hypotheses, references)
    metric = BLEU(tokenize=tokenize or tokenizer_for(references), lowercase=lowercase, force=True)
    rows = []
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        result = metric.corpus_score([hypothesis], [[reference]])
        rows.append([*result.counts, *result.totals, result.sys_len, result.ref_len])
    return np.array(rows, dtype=np.float64)


def bleu_from(sums: Float[np.ndarray, "*n 10"]) -> Float[np.ndarray, "*n"]:
    """BLEU with sacrebleu's defaults, from summed `bleu_statistics`."""
    from sacrebleu.metrics.bleu import BLEU

    rows = sums.reshape(-1, 10).astype(np.int64).tolist()  # sacrebleu requires integer counts
    scores = [BLEU.compute_bleu(row[:4], row[4:8], row[8], row[9], smooth_method="exp").score for row in rows]
    return np.array(scores, dtype=np.float64).reshape(sums.shape[:-1])


def nearest(hypotheses: Sequence[str], reference: str) -> str:
    """The hypothesis with the highest chrF to a reference; the first of equal ones."""
    from sacrebleu.metrics.chrf import CHRF

    metric = CHRF()
    return max(hypotheses, key=lambda hypothesis: metric.sentence_score(hypothesis, [reference]).score)
