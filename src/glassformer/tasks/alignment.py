"""Word alignment by cross-attention: what each source token contributes to the logit of each target token."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from glassformer.documents.words import unit_spans
from glassformer.runtime.graph import Floats
from glassformer.tasks.base import AnyTask
from glassformer.tokens.tokenizer import Tokenizer

Pairs = list[tuple[int, int]]
"""Index of a source word, and of a target word that is its translation."""

N_NORMALIZATIONS = 3
"""Number of times that columns and rows are divided by their sums."""

JUMP, MIN_JUMP = 0.5, 0.02
"""Transition from source word i to j: JUMP^|j - i - 1| + MIN_JUMP, divided by the sum over j."""

MIN_EMISSION = 1e-4
"""Added to the weights: no word is excluded."""


def words_of_tokens(text: str, tokenizer: Tokenizer, spans: Sequence[tuple[int, int]]) -> tuple[list[int], list[range]]:
    """Token ids of a text, and the words that each token is part of."""
    ids, offsets = tokenizer.offsets(text)
    begins, ends = zip(*spans, strict=True) if spans else ((), ())
    return ids, [range(bisect_right(ends, a), bisect_left(begins, b) if a < b else 0) for a, b in offsets]


def word_weights(task: AnyTask, sources: Sequence[str], targets: Sequence[str]) -> list[Floats]:
    """Weight of each source word for each target word, [target, source]: the sum over the source tokens of the mean
    over the target tokens, normalized. Words beyond the maximum length have none.

    Args:
        task: a text-to-text task.
    """
    limit = task.config.max_len - 1
    spans = [list(map(unit_spans, texts)) for texts in (sources, targets)]
    sides = [
        [words_of_tokens(text, tokenizer, found) for text, found in zip(texts, own, strict=True)]
        for tokenizer, texts, own in zip(task.tokenizer.sides, (sources, targets), spans, strict=True)
    ]
    pairs = [(src[:limit], tgt[:limit]) for (src, _), (tgt, _) in zip(*sides, strict=True)]
    results = []
    for i, weights in enumerate(task.source.contributions(pairs)):
        (_, src_words), (_, tgt_words) = sides[0][i], sides[1][i]
        to_source = membership(src_words[:limit], len(spans[0][i]))
        to_target = membership(tgt_words[:limit], len(spans[1][i]))
        means = to_target / np.maximum(to_target.sum(1, keepdims=True), 1)
        with np.errstate(invalid="ignore"):  # BLAS may set this flag for finite numbers (NumPy issue 24067)
            results.append(normalized(means @ weights @ to_source.T))
    return results


def membership(words: Sequence[range], n: int) -> Floats:
    """1 where a token is part of a word: [words, tokens]."""
    begins, ends = np.array([(of_token.start, of_token.stop) for of_token in words], int).reshape(-1, 2).T
    indices = np.arange(n)[:, None]
    return ((begins <= indices) & (indices < ends)).astype(np.float32)


def normalized(weights: Floats) -> Floats:
    """Weights whose rows sum to 1, and the columns about equal: some words, such as punctuation, get weight from all
    others. Source: Sinkhorn and Knopp 1967."""
    for _ in range(N_NORMALIZATIONS):
        for axis in (0, 1):
            weights = weights / np.maximum(weights.sum(axis, keepdims=True), 1e-9)
    return weights


def posteriors(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probability of each source word for each target word in a hidden Markov model: the source word of a target word
    is probably the one that follows that of the target word before. Emissions are the squares of the weights.

    Source: Vogel et al. 1996.
    """
    positions = np.arange(weights.shape[1])
    transition = JUMP ** np.abs(positions[None] - positions[:, None] - 1) + MIN_JUMP
    transition /= transition.sum(1, keepdims=True)
    emission = (weights + MIN_EMISSION) ** 2
    forward, backward = emission.copy(), np.ones_like(emission)
    for t in range(1, len(weights)):
        forward[t] *= (forward[t - 1] / forward[t - 1].sum()) @ transition
    for t in range(len(weights) - 2, -1, -1):
        backward[t] = transition @ (emission[t + 1] * backward[t + 1])
        backward[t] /= backward[t].sum()
    return forward * backward


def align(task: AnyTask, sources: Sequence[str], targets: Sequence[str]) -> list[Pairs]:
    """Align the words of translations (`unit_spans`) to those of the sources: each target word to its most probable
    source word, in the order of the target words."""
    results: list[Pairs] = []
    for weights in word_weights(task, sources, targets):
        if not weights.any():
            results.append([])
            continue
        # The time is cubic in the number of words: not those beyond the maximum length.
        n_target, n_source = (int(np.flatnonzero(weights.any(axis))[-1]) + 1 for axis in (1, 0))
        best = posteriors(weights[:n_target, :n_source].astype(np.float64)).argmax(1)
        results.append([(int(s), t) for t, s in enumerate(best) if weights[t].any()])
    return results
