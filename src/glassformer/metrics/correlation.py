"""Pearson and Spearman correlation of predicted and expected numbers."""

from collections.abc import Sequence

import numpy as np

from glassformer.metrics.score import common_length, divide
from glassformer.shapes import Float


def pearson_statistics(predicted: Sequence[float], expected: Sequence[float]) -> Float[np.ndarray, "n 6"]:
    """Per example: 1, x, y, x², y², xy, with x and y centered and scaled to [-1, 1] to avoid cancellation.

    Raises:
        ValueError: a number that is not finite.
    """
    n = common_length(predicted, expected)
    x, y = _centered_and_scaled(predicted), _centered_and_scaled(expected)
    return np.stack([np.ones(n), x, y, x * x, y * y, x * y], axis=-1)


def spearman_statistics(predicted: Sequence[float], expected: Sequence[float]) -> Float[np.ndarray, "n 6"]:
    """`pearson_statistics` of the ranks. In bootstrap resampling, the ranks stay those of the whole sample."""
    return pearson_statistics(ranks(predicted).tolist(), ranks(expected).tolist())


def _centered_and_scaled(values: Sequence[float]) -> Float[np.ndarray, " n"]:
    numbers = np.asarray(values, dtype=np.float64)
    if not np.isfinite(numbers).all():
        first = int(np.argmin(np.isfinite(numbers)))
        raise ValueError(f"example {first}: {numbers[first]} is not finite")
    centered = numbers - numbers.mean()
    scale = np.abs(centered).max()
    # Equal numbers may differ from their mean by rounding errors, which are not variation.
    if scale <= 1e-12 * np.abs(numbers).max():
        return np.zeros_like(numbers)
    return centered / scale


def pearson_from(sums: Float[np.ndarray, "*n 6"]) -> Float[np.ndarray, "*n"]:
    """Pearson correlation from summed `pearson_statistics`; 0 if one side is constant."""
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    x_variance, y_variance = (n * xx - x * x), (n * yy - y * y)
    is_constant = (x_variance <= 1e-12 * n * xx) | (y_variance <= 1e-12 * n * yy)
    products = np.where(is_constant, 0.0, x_variance * y_variance)
    return np.clip(divide(n * xy - x * y, np.sqrt(products)), -1, 1)


def ranks(values: Sequence[float]) -> Float[np.ndarray, " n"]:
    """Rank of each number in ascending order, from 1; equal numbers get the mean of their ranks."""
    _, inverse, counts = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse]


def pearson(predicted: Sequence[float], expected: Sequence[float]) -> float:
    """Pearson correlation (linear), -1 to 1; 0 if one side is constant."""
    return float(pearson_from(pearson_statistics(predicted, expected).sum(0)))


def spearman(predicted: Sequence[float], expected: Sequence[float]) -> float:
    """Spearman rank correlation (monotonic), -1 to 1; ties get their mean rank; 0 if one side is constant."""
    return float(pearson_from(spearman_statistics(predicted, expected).sum(0)))
