"""Metrics: one module per type of task, and `significance` for confidence intervals and significance tests.

BLEU, chrF2 and TER range from 0 to 100, as in sacrebleu. All other metrics are fractions from 0 to 1, except
correlations and Matthews correlation coefficients (-1 to 1), and perplexity and bits per byte (no upper bound).
"""

from glassformer.metrics.score import Score
from glassformer.metrics.translation import bleu, tokenizer_for, translation_scores

__all__ = ["Score", "bleu", "tokenizer_for", "translation_scores"]
