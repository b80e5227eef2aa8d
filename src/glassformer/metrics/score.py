"""Common definitions of all metrics: scores, and metrics as functions of statistics summed over examples."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from glassformer.shapes import Float

MetricFn = Callable[[np.ndarray], np.ndarray]
"""Computes a metric, [...], from statistics summed over examples, [... k]. Used by `significance` for resampling."""


@dataclass(frozen=True, slots=True)
class Score:
    """Value of a metric on a corpus. `signature` states how it was computed where there are variants.

    The ranges of the metrics are listed in the docstring of `glassformer.metrics`.
    """

    name: str
    value: float
    signature: str = ""


def common_length(predicted: Sequence[object], expected: Sequence[object]) -> int:
    """Check that there is one prediction per example and return the number of examples.

    Raises:
        ValueError: no examples, or a different number of predictions.
    """
    if len(predicted) != len(expected):
        raise ValueError(f"{len(predicted)} predictions for {len(expected)} examples")
    if len(expected) == 0:  # may be an array
        raise ValueError("no examples: the metric is undefined")
    return len(expected)


def divide(a: Float[np.ndarray, "*n"], b: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
    """a / b elementwise, 0 where b is 0."""
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b))), where=np.asarray(b) != 0)


def mean_statistics(values: Sequence[float]) -> Float[np.ndarray, "n 2"]:
    """Per example: its value, and 1. Statistics of a metric that is a mean over examples."""
    return np.stack([np.asarray(values, dtype=np.float64), np.ones(len(values))], axis=-1)


def equality_statistics(outputs: Sequence[object], references: Sequence[object]) -> Float[np.ndarray, "n 2"]:
    """Per example: 1 if the output is the reference, else 0; and 1. For `mean_from`."""
    common_length(outputs, references)
    return mean_statistics([float(output == reference) for output, reference in zip(outputs, references, strict=True)])


def mean_from(sums: Float[np.ndarray, "*n 2"]) -> Float[np.ndarray, "*n"]:
    """Mean from summed `mean_statistics`; more generally the ratio of two sums."""
    return divide(sums[..., 0], sums[..., 1])


def f1_from(sums: Float[np.ndarray, "*n 3"]) -> Float[np.ndarray, "*n"]:
    """F1 from the sums (correct, predicted, expected)."""
    return divide(2 * sums[..., 0], sums[..., 1] + sums[..., 2])


def precision_from(sums: Float[np.ndarray, "*n 3"]) -> Float[np.ndarray, "*n"]:
    """Precision from the sums (correct, predicted, expected)."""
    return divide(sums[..., 0], sums[..., 1])


def recall_from(sums: Float[np.ndarray, "*n 3"]) -> Float[np.ndarray, "*n"]:
    """Recall from the sums (correct, predicted, expected)."""
    return divide(sums[..., 0], sums[..., 2])
