"""Confidence intervals and significance tests of metrics by bootstrap resampling of test examples.

A metric is given as statistics, one row per example, and a function of their sums, so that a thousand resamples are
one matrix product: `label_statistics` with `macro_f1_from`, `pearson_statistics` with `pearson_from`,
`entity_statistics` with `f1_from`, `mean_statistics` with `mean_from` for any mean over examples.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from glassformer.metrics.score import MetricFn
from glassformer.shapes import Float

_CHUNK = 1 << 20  # number of random numbers in memory at a time


@dataclass(frozen=True, slots=True)
class Interval:
    """Value of a metric and its confidence interval at level `confidence` (a fraction between 0 and 1)."""

    value: float
    low: float
    high: float
    confidence: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of two systems on the same examples: their metrics, the difference (second - first), and its p-value.

    `p_value` is two-sided: the fraction of resamples with at least this difference under the null hypothesis that both
    systems are equally good. sacrebleu's --paired-bs takes absolute differences before it shifts them to mean zero,
    and so reports smaller values.
    """

    first: float
    second: float
    difference: Interval
    p_value: float


def bootstrap(
    statistics: Float[np.ndarray, "n k"],
    metric: MetricFn,
    *,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """Metric of a test set with its percentile bootstrap interval.

    Args:
        statistics: one row per example.
        metric: computes the metric from the sums of the columns, for many sums at once.
        confidence: confidence level, between 0 and 1.
        n_resamples: number of bootstrap resamples.
        seed: seed of the random numbers.

    Raises:
        ValueError: no examples, no resamples, or a confidence outside 0 to 1.

    Source: Efron & Tibshirani 1993, section 13.3.
    """
    _check(statistics, confidence, n_resamples)
    values = metric(_resampled(statistics, n_resamples, seed))
    return _interval(float(metric(statistics.sum(0))), values, confidence)


def paired_bootstrap(
    first: Float[np.ndarray, "n k"],
    second: Float[np.ndarray, "n k"],
    metric: MetricFn,
    *,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Comparison:
    """Compare two systems by paired bootstrap resampling; other arguments as in `bootstrap`.

    Args:
        first: statistics of the first system (the baseline).
        second: statistics of the second system, for the same examples and with the same columns.

    Raises:
        ValueError: the shapes of the statistics differ; otherwise as in `bootstrap`.

    Source: Koehn 2004, "Statistical significance tests for machine translation evaluation"; Riezler & Maxwell 2005,
        section 4, for shifting the resampled differences to mean zero, which makes the test two-sided.
    """
    if first.shape != second.shape:
        raise ValueError(f"statistics of shapes {first.shape} and {second.shape}: not of the same examples and classes")
    _check(first, confidence, n_resamples)
    k = first.shape[1]
    sums = _resampled(np.concatenate([first, second], axis=1), n_resamples, seed)
    differences = metric(sums[:, k:]) - metric(sums[:, :k])
    values = float(metric(first.sum(0))), float(metric(second.sum(0)))
    difference = values[1] - values[0]
    # Equality counts, up to rounding, so that a system compared with itself has p = 1.
    n_extreme = int((np.abs(differences - differences.mean()) >= abs(difference) - 1e-12).sum())
    return Comparison(
        *values, _interval(difference, differences, confidence), p_value=(n_extreme + 1) / (n_resamples + 1)
    )


def _check(statistics: np.ndarray, confidence: float, n_resamples: int) -> None:
    if len(statistics) == 0:
        raise ValueError("no examples to resample")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence {confidence}: expected a fraction between 0 and 1, such as 0.95")
    if n_resamples < 1:
        raise ValueError(f"n_resamples {n_resamples}: expected at least 1")


def _resampled(statistics: np.ndarray, n_resamples: int, seed: int) -> Float[np.ndarray, "resamples k"]:
    """Sums of the statistics over each resample. The resamples depend only on the number of examples and the seed."""
    return np.concatenate([counts @ statistics for counts in resample_counts(len(statistics), n_resamples, seed)])


def resample_counts(n: int, n_resamples: int, seed: int) -> Iterator[Float[np.ndarray, "chunk n"]]:
    """Number of occurrences of each example in each resample, in chunks of resamples."""
    rng = np.random.default_rng(seed)
    n_chunk = max(1, _CHUNK // n)
    for start in range(0, n_resamples, n_chunk):
        n_rows = min(n_chunk, n_resamples - start)
        draws = rng.integers(n, size=(n_rows, n)) + n * np.arange(n_rows)[:, None]
        yield np.bincount(draws.ravel(), minlength=n_rows * n).reshape(n_rows, n).astype(np.float64)


def _interval(value: float, values: np.ndarray, confidence: float) -> Interval:
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(value, float(low), float(high), confidence)
