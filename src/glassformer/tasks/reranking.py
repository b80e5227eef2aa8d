"""Minimum Bayes risk: of several translations, the one that is most like the others.

Sources: Kumar & Byrne 2004; Eikema & Aziz 2022, section 3, with chrF as utility. chrF: Popović 2015.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from glassformer.generate.search import Hypothesis
from glassformer.shapes import Float

N_CHARACTERS = 6
"""Longest n-grams that are compared, in characters."""

BETA = 2.0
"""How much more recall counts than precision."""

TEMPERATURE = 3.0
"""A translation with the probability p has the weight p^(1 / TEMPERATURE): in a beam, the probabilities differ much."""


def by_risk(texts: Sequence[str], hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """The hypotheses, the one with the highest expected chrF first.

    Args:
        texts: the text of each.
    """
    log_probs = np.array([sum(hypothesis.log_probs) for hypothesis in hypotheses])
    weights = np.exp((log_probs - log_probs.max()) / TEMPERATURE)
    utility = chrf_of_pairs(texts) @ weights
    return [hypotheses[i] for i in np.argsort(-utility, kind="stable")]


def chrf_of_pairs(texts: Sequence[str]) -> Float[np.ndarray, "n n"]:
    """chrF2 of each text with each as reference, 0 to 1."""
    bare = ["".join(text.split()) for text in texts]
    precision, recall, n_orders = (np.zeros((len(texts), len(texts))) for _ in range(3))
    for order in range(1, N_CHARACTERS + 1):
        counts = counts_of([Counter(text[i : i + order] for i in range(len(text) - order + 1)) for text in bare])
        totals = counts.sum(1)
        matches = np.stack([np.minimum(row, counts).sum(1) for row in counts])
        both = (totals[:, None] > 0) & (totals[None] > 0)
        precision += np.where(both, matches / np.maximum(totals, 1)[:, None], 0)
        recall += np.where(both, matches / np.maximum(totals, 1)[None], 0)
        n_orders += both
    precision, recall = precision / np.maximum(n_orders, 1), recall / np.maximum(n_orders, 1)
    denominator = BETA**2 * precision + recall
    return np.where(denominator > 0, (1 + BETA**2) * precision * recall / np.where(denominator > 0, denominator, 1), 0)


def counts_of(counters: Sequence[Counter[str]]) -> Float[np.ndarray, "n m"]:
    """The counts of all keys: one row for each counter."""
    columns = {key: column for column, key in enumerate(dict.fromkeys(key for counter in counters for key in counter))}
    counts = np.zeros((len(counters), len(columns)))
    for row, counter in zip(counts, counters, strict=True):
        row[[columns[key] for key in counter]] = list(counter.values())
    return counts
