"""Probabilities in numpy."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def softmax(logits: Floats, axis: int = -1) -> Floats:
    """Probabilities along an axis."""
    shifted = np.exp(logits - logits.max(axis, keepdims=True))
    return shifted / shifted.sum(axis, keepdims=True)


def log_softmax(logits: Floats, axis: int = -1) -> Floats:
    """Natural log-probabilities along an axis."""
    shifted = logits - logits.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def best_of(scores: Floats, n: int) -> list[int]:
    """Indices of the n largest scores, best first; of equal ones, the first."""
    n = min(n, len(scores))
    largest = np.argpartition(-scores, n - 1)[:n] if n < len(scores) else np.arange(n)
    if n:  # all that are equal to the smallest of them
        largest = np.flatnonzero(scores >= scores[largest].min())
    return largest[np.argsort(-scores[largest], kind="stable")][:n].tolist()
