"""Labels of a corpus: their counts, and examples of the dev set with other labels."""

from collections import Counter

from glassformer.corpora.detect import task_of_labels
from glassformer.errors import CorpusError
from glassformer.learning.base import AnyObjective
from glassformer.tasks.base import AnyTask, CorpusExample, Log

N_LISTED = 3
"""Maximum number of items that a warning lists."""
MAX_LABELS_SHOWN = 20
"""Maximum number of labels that are listed with their counts."""


def location(example: CorpusExample) -> str:
    """FILE:LINE of an example; FILE in formats without lines."""
    line = getattr(example, "line", None)
    return example.path if line is None else f"{example.path}:{line}"


def drop_unknown_labels(
    dev: list[CorpusExample], counts: Counter[str], objective_type: type[AnyObjective], *, is_explicit: bool, log: Log
) -> list[CorpusExample]:
    """Drop the dev examples with labels that do not occur in the training set. Logs a warning about rare labels.

    Args:
        counts: number of training examples of each label.
        is_explicit: the dev set was given by the user; unknown labels are then an error.

    Raises:
        CorpusError: unknown labels in an explicit dev set, or no usable dev example.
    """
    if not objective_type.task_type.has_classes:
        return dev
    rare = [label for label, n in counts.items() if n == 1]
    if rare:
        names = ", ".join(map(repr, rare[:N_LISTED]))
        log(f"warning: {len(rare):,} labels have only one training example each, too few to learn them: {names}")
    usable = [e for e in dev if all(label in counts for label in objective_type.labels_in(e))]
    held_out = sorted({label for e in dev for label in objective_type.labels_in(e) if label not in counts})
    if is_explicit and len(usable) < len(dev):
        first = next(e for e in dev if not all(label in counts for label in objective_type.labels_in(e)))
        label = next(label for label in objective_type.labels_in(first) if label not in counts)
        raise CorpusError(
            f"{location(first)}: the label {label!r} does not occur in the training set.\n"
            f"  Labels of the training set: {', '.join(map(repr, sorted(counts)[:20]))}.\n"
            "  Correct the label, or add training examples with this label."
        )
    if held_out:
        names = ", ".join(map(repr, held_out[:N_LISTED])) + ", …" * (len(held_out) > N_LISTED)
        log(
            f"warning: all examples of {len(held_out):,} labels were held out, so that the model does not have them:"
            f" {names}\n  Give more examples of them, or a dev set: --dev FILE."
        )
    if not usable:
        raise CorpusError(
            "no held-out example has a label that occurs in the training set.\n  Give a dev set: --dev FILE."
        )
    return usable


def check_are_classes(counts: Counter[str], task_type: type[AnyTask], *, is_inferred: bool) -> None:
    """Check that labels of a classification are several, and not numbers of a regression whose beginning looked like
    classes.

    Raises:
        CorpusError: there is only one, or they are such numbers.
    """
    if task_type.name == "classification" and len(counts) == 1:
        (label,) = counts
        raise CorpusError(f"every label is {label!r}: nothing to learn.\n  Give examples of other classes as well.")
    if is_inferred and task_type.name == "classification" and task_of_labels(list(counts)) == "regression":
        raise CorpusError(
            f"the labels are {len(counts):,} different numbers, such as {', '.join(sorted(counts)[:N_LISTED])}.\n"
            "  To predict numbers: --task regression. To predict each number as a class: --task classification."
        )


def describe_labels(counts: Counter[str], task_type: type[AnyTask]) -> str:
    """Message with the classes and their numbers of training examples, or the range of the numbers of a regression.

    Classes that differ only by case or spaces are named in a warning.
    """
    n_labels = sum(counts.values())
    if not task_type.has_classes:
        numbers = [float(label) for label in counts.elements()]
        mean = sum(numbers) / n_labels
        return f"Labels: numbers from {min(numbers):g} to {max(numbers):g}, mean {mean:.4g} ({task_type.name})."
    shown = ", ".join(f"{label} {n:,}" for label, n in counts.most_common(MAX_LABELS_SHOWN))
    more = f" and {len(counts) - MAX_LABELS_SHOWN:,} more" if len(counts) > MAX_LABELS_SHOWN else ""
    similar: dict[str, list[str]] = {}
    for label in counts:
        similar.setdefault("".join(label.casefold().split()), []).append(label)
    warnings = [
        f"\nwarning: labels that differ only by case or spaces: {', '.join(f'{x!r} ({counts[x]:,})' for x in labels)}"
        for labels in similar.values()
        if len(labels) > 1
    ]
    return f"Labels ({len(counts):,}): {shown}{more}.{''.join(warnings)}"
