"""Accuracy, F1 and Matthews correlation coefficient of predicted classes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glassformer.metrics.score import common_length, divide, f1_from
from glassformer.shapes import Float, Int


@dataclass(frozen=True, slots=True)
class ClassScore:
    """Metrics of one class. Precision is 0 if it was never predicted, recall if it never occurs, F1 if neither."""

    label: str
    precision: float
    recall: float
    f1: float
    n_predicted: int
    n_expected: int


@dataclass(frozen=True, slots=True, eq=False)  # comparison of arrays gives no single truth value
class Confusion:
    """Confusion matrix: rows are expected classes, columns predicted classes."""

    labels: tuple[str, ...]
    counts: Int[np.ndarray, "expected predicted"]


def label_statistics(
    predicted: Sequence[str], expected: Sequence[str], labels: Sequence[str] | None = None
) -> Float[np.ndarray, "n k"]:
    """Per example: for each class whether it is correctly predicted, then whether predicted, then whether expected.

    Args:
        predicted: predicted class of each example.
        expected: expected class of each example.
        labels: all classes, in order; default: those that occur. Must be the same for systems that are compared.

    Raises:
        ValueError: a class that is not among `labels`.
    """
    n = common_length(predicted, expected)
    indices = _label_indices([*predicted, *expected], labels)
    is_predicted = np.zeros((n, len(indices)))
    is_expected = np.zeros((n, len(indices)))
    is_predicted[range(n), [indices[label] for label in predicted]] = 1
    is_expected[range(n), [indices[label] for label in expected]] = 1
    return np.concatenate([is_predicted * is_expected, is_predicted, is_expected], axis=1)


def _label_indices(occurring: Sequence[str], labels: Sequence[str] | None) -> dict[str, int]:
    if labels is not None and (unknown := set(occurring) - set(labels)):
        raise ValueError(f"the class {min(unknown)!r} is not among the labels {list(labels)}")
    return {label: i for i, label in enumerate(sorted(set(occurring)) if labels is None else labels)}


def label_sums(predicted: Sequence[str], expected: Sequence[str]) -> Float[np.ndarray, " k"]:
    """The sum of `label_statistics` over the examples, in memory that does not grow with the number of classes times
    that of examples."""
    common_length(predicted, expected)
    indices = _label_indices([*predicted, *expected], None)
    is_, should_be = (np.array([indices[label] for label in side], np.int64) for side in (predicted, expected))
    counted = (is_[is_ == should_be], is_, should_be)
    return np.concatenate([np.bincount(classes, minlength=len(indices)) for classes in counted]).astype(float)


def accuracy_from(sums: Float[np.ndarray, "*n k"]) -> Float[np.ndarray, "*n"]:
    """Fraction of examples with the correct class."""
    correct, _, expected = _split(sums)
    return divide(correct.sum(-1), expected.sum(-1))


def macro_f1_from(sums: Float[np.ndarray, "*n k"]) -> Float[np.ndarray, "*n"]:
    """Mean F1 over the classes that were predicted or expected."""
    correct, predicted, expected = _split(sums)
    f1 = f1_from(np.stack([correct, predicted, expected], axis=-1))
    return divide(f1.sum(-1), (predicted + expected > 0).sum(-1))


def matthews_from(sums: Float[np.ndarray, "*n k"]) -> Float[np.ndarray, "*n"]:
    """Matthews correlation coefficient for any number of classes; 0 if the predicted or expected class is constant.

    Source: Gorodkin 2004, "Comparing two K-category assignments by a K-category correlation coefficient".
    """
    correct, predicted, expected = _split(sums)
    n = expected.sum(-1)
    covariance = n * correct.sum(-1) - (predicted * expected).sum(-1)
    variances = (n**2 - (predicted**2).sum(-1)) * (n**2 - (expected**2).sum(-1))
    return divide(covariance, np.sqrt(variances))


def _split(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    correct, predicted, expected = np.split(sums, 3, axis=-1)
    return correct, predicted, expected


def accuracy(predicted: Sequence[str], expected: Sequence[str]) -> float:
    """Fraction of examples with the correct class."""
    return float(accuracy_from(label_sums(predicted, expected)))


def macro_f1(predicted: Sequence[str], expected: Sequence[str]) -> float:
    """Mean F1 over the classes that were predicted or expected, with equal weights."""
    return float(macro_f1_from(label_sums(predicted, expected)))


def matthews(predicted: Sequence[str], expected: Sequence[str]) -> float:
    """Matthews correlation coefficient, -1 to 1; 0 for constant predictions; see `matthews_from`."""
    return float(matthews_from(label_sums(predicted, expected)))


def confusion(predicted: Sequence[str], expected: Sequence[str], labels: Sequence[str] | None = None) -> Confusion:
    """Confusion matrix; arguments as in `label_statistics`."""
    common_length(predicted, expected)
    indices = _label_indices([*predicted, *expected], labels)
    counts = np.zeros((len(indices), len(indices)), dtype=np.int64)
    np.add.at(counts, ([indices[label] for label in expected], [indices[label] for label in predicted]), 1)
    return Confusion(tuple(indices), counts)


def class_scores(predicted: Sequence[str], expected: Sequence[str]) -> list[ClassScore]:
    """Precision, recall and F1 of each class that occurs, in alphabetical order."""
    table = confusion(predicted, expected)
    return scores_of_counts(
        table.labels, np.stack([table.counts.diagonal(), table.counts.sum(0), table.counts.sum(1)], axis=-1)
    )


def scores_of_counts(labels: Sequence[str], counts: Int[np.ndarray, "labels 3"]) -> list[ClassScore]:
    """Precision, recall and F1 of each class from its counts (correct, predicted, expected)."""
    correct, predicted, expected = counts.T
    columns = (divide(correct, predicted), divide(correct, expected), f1_from(counts), predicted, expected)
    return [
        ClassScore(label, *row) for label, *row in zip(labels, *(column.tolist() for column in columns), strict=True)
    ]
