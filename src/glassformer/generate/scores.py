"""Functions of the scores of next tokens: softmax, and the best tokens."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.floating[Any]]
"""Scores of the next token of each hypothesis: [rows, vocab]. The score -inf excludes a token."""


FloatT = TypeVar("FloatT", bound=np.floating[Any])


def log_softmax(scores: NDArray[FloatT]) -> NDArray[FloatT]:
    """Logarithm of the softmax of each row, in the type of the scores. Rows without a finite score become NaN."""
    with np.errstate(invalid="ignore", divide="ignore"):
        log_probs = scores - scores.max(axis=-1, keepdims=True)
        log_probs -= np.log(np.exp(log_probs).sum(axis=-1, keepdims=True))
        return log_probs


def softmax(scores: NDArray[FloatT], axis: int = -1) -> NDArray[FloatT]:
    """Softmax along an axis, in the type of the scores. Where no score is finite, the result is NaN."""
    with np.errstate(invalid="ignore"):
        probs = scores - scores.max(axis=axis, keepdims=True)
        np.exp(probs, out=probs)
        probs /= probs.sum(axis=axis, keepdims=True)
        return probs


BLOCK = 64
"""Number of tokens of whose scores `best_tokens` first finds the largest, which takes less time than to order all."""


def best_tokens(scores: NDArray[FloatT], k: int) -> tuple[NDArray[FloatT], NDArray[np.int64]]:
    """Scores and ids of the k best tokens of each row, best first.

    Args:
        k: at most the size of the vocabulary.
    """
    n_rows, n = scores.shape
    n_blocks = n // BLOCK
    if n_blocks > 2 * k:  # the k best are in the k blocks with the largest scores, or after the last block
        largest = scores[:, : n_blocks * BLOCK].reshape(n_rows, n_blocks, BLOCK).max(2)
        blocks = np.sort(np.argpartition(largest, n_blocks - k, axis=1)[:, n_blocks - k :], axis=1)
        rest = np.broadcast_to(np.arange(n_blocks * BLOCK, n), (n_rows, n % BLOCK))
        tokens = np.hstack([(blocks[:, :, None] * BLOCK + np.arange(BLOCK)).reshape(n_rows, -1), rest])
        values, which = best_tokens(np.take_along_axis(scores, tokens, 1), k)
        return values, np.take_along_axis(tokens, which, 1)
    ids = np.sort(np.argpartition(scores, n - k, axis=1)[:, n - k :], axis=1)
    values = np.take_along_axis(scores, ids, 1)
    order = (-values).argsort(axis=1, kind="stable")
    return np.take_along_axis(values, order, 1), np.take_along_axis(ids, order, 1)


def best_log_probs(scores: NDArray[FloatT], k: int) -> tuple[NDArray[FloatT], NDArray[np.int64]]:
    """`best_tokens` with the logarithms of the softmax in place of the scores."""
    values, tokens = best_tokens(scores, k)
    with np.errstate(invalid="ignore", divide="ignore"):
        values -= (top := values[:, :1].copy())
        return values - np.log(np.exp(scores - top).sum(axis=-1, keepdims=True)), tokens


def best_of(scores: NDArray[FloatT], n: int) -> list[int]:
    """Indices of the n best of some scores, best first."""
    return best_tokens(scores[None], min(n, len(scores)))[1][0].tolist() if len(scores) else []
