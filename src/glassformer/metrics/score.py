"""What all metrics share: a figure with its name, and figures as functions of sums over examples."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

MetricFn = Callable[[np.ndarray], np.ndarray]
"""Statistics summed over examples, [… k] -> the metric, […]; what `significance` resamples."""


@dataclass(frozen=True, slots=True)
class Score:
    """One figure of a corpus and, where there are several ways, how it was computed; for its range see the package."""

    name: str
    value: float
    signature: str = ""


def same_length(predicted: Sequence[object], expected: Sequence[object]) -> int:
    """The number of examples.

    Raises:
        ValueError: none, or not one prediction for each.
    """
    if len(predicted) != len(expected):
        raise ValueError(f"{len(predicted)} predictions for {len(expected)} examples")
    if len(expected) == 0:  # may be an array
        raise ValueError("no examples: no figure")
    return len(expected)


def divide(a: Float[np.ndarray, "*n"], b: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
    """a / b, and 0 where b is 0: nothing found of nothing counts as nothing."""
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b))), where=np.asarray(b) != 0)


def mean_statistics(values: Sequence[float]) -> Float[np.ndarray, "n 2"]:
    """Statistics of a metric that is a mean over examples."""
    return np.stack([np.asarray(values, dtype=np.float64), np.ones(len(values))], axis=-1)


def mean_from(sums: Float[np.ndarray, "*n 2"]) -> Float[np.ndarray, "*n"]:
    """The mean; more generally the ratio of two sums."""
    return divide(sums[..., 0], sums[..., 1])


def f1_from(sums: Float[np.ndarray, "*n 3"]) -> Float[np.ndarray, "*n"]:
    """F1 of the sums (right, predicted, expected)."""
    return divide(2 * sums[..., 0], sums[..., 1] + sums[..., 2])
