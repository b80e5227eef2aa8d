"""BLEU, chrF and TER, computed with sacrebleu and reported with its signatures.

sacrebleu is imported when a score is computed: it takes 0.3 s, and needs a folder for temporary files.
"""

from collections.abc import Sequence

import numpy as np

from glassformer.metrics.score import Score, common_length
from glassformer.shapes import Float


def translation_scores(
    hypotheses: Sequence[str], references: Sequence[str], *, tokenize: str = "13a", lowercase: bool = False
) -> list[Score]:
    """BLEU, chrF2 and TER of translations, with one reference each.

    Args:
        hypotheses: the translations.
        references: one reference translation of each.
        tokenize: sacrebleu's tokenizer for BLEU: 13a, intl, char, zh, ja-mecab, or none for tokenized text.
        lowercase: ignore case.

    Source: Papineni et al. 2002; Popović 2015; Snover et al. 2006; Post 2018 for the signatures.
    """
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    metrics = [
        BLEU(tokenize=tokenize, lowercase=lowercase, force=True),
        CHRF(lowercase=lowercase),
        TER(case_sensitive=not lowercase),
    ]
    scores = []
    for metric in metrics:
        result = metric.corpus_score(list(hypotheses), [list(references)])
        scores.append(Score(result.name, result.score, str(metric.get_signature())))
    return scores


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """BLEU with sacrebleu's defaults, 0 to 100."""
    from sacrebleu.metrics.bleu import BLEU

    return float(BLEU(force=True).corpus_score(list(hypotheses), [list(references)]).score)


def bleu_statistics(
    hypotheses: Sequence[str], references: Sequence[str], *, tokenize: str = "13a", lowercase: bool = False
) -> Float[np.ndarray, "n 10"]:
    """Per sentence: matching n-grams of orders 1 to 4, n-grams of orders 1 to 4, length, length of the reference."""
    from sacrebleu.metrics.bleu import BLEU

    common_length(hypotheses, references)
    metric = BLEU(tokenize=tokenize, lowercase=lowercase, force=True)
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
