"""Rows of tables, which get the outputs of a model as columns."""

from collections.abc import Callable, Sequence

from glassformer.bulk.chunks import Item
from glassformer.corpora.table_texts import PREDICTION, PROBABILITY, Row
from glassformer.tasks.base import AnyTask
from glassformer.tasks.classification import Classifier
from glassformer.tasks.texts import Warn


def columns_of(task: AnyTask) -> tuple[str, ...]:
    """Names of the columns that a table gets."""
    return (PREDICTION, PROBABILITY) if isinstance(task, Classifier) else (PREDICTION,)


def outputs_of_items(
    task: AnyTask, items: Sequence[Item], warn: Warn, *, outputs: Callable[[list[str], Warn], list[str]]
) -> list[str]:
    """The output for each line of a file; of a table, the rows with those for their texts, and with the probability of
    a class.

    Args:
        outputs: computes the output for each line of text.
    """
    rows = [Row(*item) for item in items if isinstance(item, list)]
    if not rows:
        return outputs([item for item in items if isinstance(item, str)], warn)
    texts = [row.text for row in rows]
    if not isinstance(task, Classifier):
        return [row.extended({PREDICTION: text}) for row, text in zip(rows, outputs(texts, warn), strict=True)]
    values: list[dict[str, str | float]] = [
        {PREDICTION: record["output"], PROBABILITY: round(max(record["probabilities"].values()), 4)}
        if record["probabilities"]
        else {PREDICTION: "", PROBABILITY: ""}  # a blank text
        for record in task.records(texts, warn=warn)
    ]
    return [row.extended(each) for row, each in zip(rows, values, strict=True)]
