"""Text in, numbers out: one module per kind of task, and `significance` for how far to trust a figure.

BLEU, chrF2 and TER run from 0 to 100, as sacrebleu gives them; every other figure is a fraction, 0 to 1, correlations
and Matthews' coefficient -1 to 1. Perplexity and bits per byte have no upper end.
"""

from glassformer.metrics.score import Score
from glassformer.metrics.translation import bleu, translation_scores

__all__ = ["Score", "bleu", "translation_scores"]
