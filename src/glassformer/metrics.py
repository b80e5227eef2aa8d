"""Text in, numbers out: BLEU, chrF and TER by sacrebleu, each with the signature that makes it comparable."""

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER


@dataclass(frozen=True, slots=True)
class Score:
    """One figure of a corpus, 0 to 100, and how it was computed."""

    name: str
    value: float
    signature: str


def translation_scores(
    hypotheses: Sequence[str], references: Sequence[str], *, tokenize: str = "13a", lowercase: bool = False
) -> list[Score]:
    """BLEU, chrF2 and TER of translations against one reference each.

    Args:
        tokenize: sacrebleu's tokenizer for BLEU: 13a, intl, char, zh, ja-mecab, or none for text that is tokenized.

    Source: Papineni et al. 2002; Popović 2015; Snover et al. 2006; Post 2018 for the signatures.
    """
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
    return float(BLEU(force=True).corpus_score(list(hypotheses), [list(references)]).score)
