"""Accuracy, F1 and Matthews' coefficient of predicted classes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from glassformer.metrics.score import Score, divide, f1_from, same_length


@dataclass(frozen=True, slots=True)
class ClassScore:
    """One class: precision is 0 where it was never predicted, recall 0 where it never occurs, F1 where neither."""

    label: str
    precision: float
    recall: float
    f1: float
    n_predicted: int
    n_expected: int


@dataclass(frozen=True, slots=True, eq=False)  # arrays have no one truth value
class Confusion:
    """How often each class was taken for each: rows are expected, columns predicted."""

    labels: tuple[str, ...]
    counts: Int[np.ndarray, "expected predicted"]


def label_statistics(
    predicted: Sequence[str], expected: Sequence[str], labels: Sequence[str] | None = None
) -> Float[np.ndarray, "n k"]:
    """Per example, for each class whether it is rightly predicted, then whether predicted, then whether expected.

    Args:
        labels: the classes in order; by default all that occur. Two systems that are compared need the same.

    Raises:
        ValueError: a class that is not among `labels`.
    """
    n = same_length(predicted, expected)
    places = _places([*predicted, *expected], labels)
    said = np.zeros((n, len(places)))
    true = np.zeros((n, len(places)))
    said[range(n), [places[label] for label in predicted]] = 1
    true[range(n), [places[label] for label in expected]] = 1
    return np.concatenate([said * true, said, true], axis=1)


def _places(found: Sequence[str], labels: Sequence[str] | None) -> dict[str, int]:
    if labels is not None and (unknown := set(found) - set(labels)):
        raise ValueError(f"the class {min(unknown)!r} is not among the labels {list(labels)}")
    return {label: i for i, label in enumerate(sorted(set(found)) if labels is None else labels)}


def accuracy_from(sums: Float[np.ndarray, "*n k"]) -> Float[np.ndarray, "*n"]:
    """Share of examples that got their class."""
    right, _, true = _split(sums)
    return divide(right.sum(-1), true.sum(-1))


def macro_f1_from(sums: Float[np.ndarray, "*n k"]) -> Float[np.ndarray, "*n"]:
    """Mean F1 of the classes that were predicted or expected."""
    right, said, true = _split(sums)
    f1 = f1_from(np.stack([right, said, true], axis=-1))
    return divide(f1.sum(-1), (said + true > 0).sum(-1))


def matthews_from(sums: Float[np.ndarray, "*n k"]) -> Float[np.ndarray, "*n"]:
    """Matthews' correlation of predicted and expected class, for any number of classes; 0 where one side is constant.

    Source: Gorodkin 2004, "Comparing two K-category assignments by a K-category correlation coefficient".
    """
    right, said, true = _split(sums)
    n = true.sum(-1)
    covariance = n * right.sum(-1) - (said * true).sum(-1)
    variances = (n**2 - (said**2).sum(-1)) * (n**2 - (true**2).sum(-1))
    return divide(covariance, np.sqrt(variances))


def _split(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    right, said, true = np.split(sums, 3, axis=-1)
    return right, said, true


def accuracy(predicted: Sequence[str], expected: Sequence[str]) -> float:
    """Share of examples that got their class."""
    return float(accuracy_from(label_statistics(predicted, expected).sum(0)))


def macro_f1(predicted: Sequence[str], expected: Sequence[str]) -> float:
    """Mean F1 of the classes that were predicted or expected, rare ones counting like frequent ones."""
    return float(macro_f1_from(label_statistics(predicted, expected).sum(0)))


def matthews(predicted: Sequence[str], expected: Sequence[str]) -> float:
    """Matthews' correlation coefficient, -1 to 1, 0 for a constant answer; see `matthews_from`."""
    return float(matthews_from(label_statistics(predicted, expected).sum(0)))


def confusion(predicted: Sequence[str], expected: Sequence[str], labels: Sequence[str] | None = None) -> Confusion:
    """How often each class was taken for each; `labels` as in `label_statistics`."""
    same_length(predicted, expected)
    places = _places([*predicted, *expected], labels)
    counts = np.zeros((len(places), len(places)), dtype=np.int64)
    np.add.at(counts, ([places[label] for label in expected], [places[label] for label in predicted]), 1)
    return Confusion(tuple(places), counts)


def class_scores(predicted: Sequence[str], expected: Sequence[str]) -> list[ClassScore]:
    """Precision, recall and F1 of each class that occurs, in alphabetical order."""
    table = confusion(predicted, expected)
    return scores_of_counts(
        table.labels, np.stack([table.counts.diagonal(), table.counts.sum(0), table.counts.sum(1)], axis=-1)
    )


def scores_of_counts(labels: Sequence[str], counts: Int[np.ndarray, "labels 3"]) -> list[ClassScore]:
    """Precision, recall and F1 from how often each class is right, predicted, expected."""
    right, said, true = counts.T
    columns = (divide(right, said), divide(right, true), f1_from(counts), said, true)
    return [
        ClassScore(label, *row) for label, *row in zip(labels, *(column.tolist() for column in columns), strict=True)
    ]


def label_scores(predicted: Sequence[str], expected: Sequence[str]) -> list[Score]:
    """Accuracy, macro F1 and Matthews' coefficient of a classifier."""
    sums = label_statistics(predicted, expected).sum(0)
    return [
        Score("accuracy", float(accuracy_from(sums))),
        Score("F1", float(macro_f1_from(sums)), "average:macro"),
        Score("MCC", float(matthews_from(sums))),
    ]
