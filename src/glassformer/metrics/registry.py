"""Registry of metrics: direction, number format, and how each is computed. A new metric is a function in a module of
this package and a row here; the tasks whose outputs it compares with references then report it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from numpy import ndarray

from glassformer.metrics.answers import answer_f1_from, answer_statistics, exact_match_from
from glassformer.metrics.correlation import pearson_from, pearson_statistics, spearman_statistics
from glassformer.metrics.labels import label_statistics, label_sums, macro_f1_from, matthews_from
from glassformer.metrics.score import (
    MetricFn,
    Score,
    equality_statistics,
    f1_from,
    mean_from,
    precision_from,
    recall_from,
)
from glassformer.metrics.spans import are_sentences_of_span_tags, entity_statistics, tag_statistics
from glassformer.metrics.summary import rouge_1_from, rouge_2_from, rouge_l_from, rouge_signature, rouge_statistics
from glassformer.shapes import Float

OutputType = Literal["classes", "numbers", "tags", "answers", "summaries", "texts"]
"""What a metric compares. References are of the same type; those of answers and summaries are lists of texts."""

Statistics = Callable[[Sequence[Any], Sequence[Any]], Float[ndarray, "n k"]]
"""Computes the statistics of each example, one row each, from outputs and references."""


@dataclass(frozen=True, slots=True)
class Metric:
    """How values of a metric are computed, compared and printed."""

    name: str
    of: OutputType | None = None
    """Type of the outputs. None: the task itself computes the metric."""
    statistics: Statistics | None = None
    """Statistics of each example; the metric is a function of their sums, for confidence intervals."""
    from_sums: MetricFn = mean_from
    signature: str | Callable[[Sequence[Any]], str] = ""
    """How the metric is computed where there are variants, for all references or for given ones."""
    applies: Callable[[Sequence[Any]], bool] = lambda references: True
    """Whether the metric is defined for these references."""
    larger_is_better: bool = True
    digits: int = 4
    """Digits after the decimal point."""

    def is_better(self, a: float, b: float) -> bool:
        """Whether the value a is better than the value b."""
        return a > b if self.larger_is_better else a < b

    def format(self, value: float) -> str:
        """The value as text."""
        return f"{value:.{self.digits}f}"

    def format_change(self, change: float) -> str:
        """A difference of two values as text, with its sign."""
        return f"{change:+.{self.digits}f}"


ENTITIES = "of:entities|match:exact|average:micro"
ANSWERS = "norm:squad|refs:best"

METRICS = [
    Metric("accuracy", "classes", equality_statistics),
    Metric("F1", "classes", label_statistics, macro_f1_from, "average:macro"),
    Metric("MCC", "classes", label_statistics, matthews_from),
    Metric("Pearson", "numbers", pearson_statistics, pearson_from),
    Metric("Spearman", "numbers", spearman_statistics, pearson_from),
    Metric("accuracy", "tags", tag_statistics, mean_from, "of:tags"),
    Metric("precision", "tags", entity_statistics, precision_from, ENTITIES, are_sentences_of_span_tags),
    Metric("recall", "tags", entity_statistics, recall_from, ENTITIES, are_sentences_of_span_tags),
    Metric("F1", "tags", entity_statistics, f1_from, ENTITIES, are_sentences_of_span_tags),
    Metric("EM", "answers", answer_statistics, exact_match_from, ANSWERS),
    Metric("F1", "answers", answer_statistics, answer_f1_from, ANSWERS),
    Metric("ROUGE-1", "summaries", rouge_statistics, rouge_1_from, rouge_signature),
    Metric("ROUGE-2", "summaries", rouge_statistics, rouge_2_from, rouge_signature),
    Metric("ROUGE-L", "summaries", rouge_statistics, rouge_l_from, rouge_signature),
    Metric("exact", "texts", equality_statistics),
    # Computed by sacrebleu or by the tasks.
    Metric("BLEU", digits=2),
    Metric("chrF2", digits=2),
    Metric("TER", larger_is_better=False, digits=2),
    Metric("ECE", larger_is_better=False),
    Metric("loss", larger_is_better=False),
    Metric("perplexity", larger_is_better=False),
    Metric("bits per byte", larger_is_better=False),
]
"""All metrics except for those of tasks whose direction and format are the defaults."""


def metric(name: str) -> Metric:
    """Direction and format of the metric of this name, in any case. Default: more is better, four digits."""
    return next((metric for metric in METRICS if metric.name.lower() == name.lower()), Metric(name))


def format_metric(name: str, value: float) -> str:
    """The name and the value of a metric as text."""
    return f"{metric(name).name} {metric(name).format(value)}"


def metrics_of(output_type: OutputType, references: Sequence[Any]) -> dict[Metric, Statistics]:
    """The metrics of this type of outputs that are defined for the references, and what computes their statistics."""
    return {
        metric: metric.statistics
        for metric in METRICS
        if metric.of == output_type and metric.statistics and metric.applies(references)
    }


def statistics_of(
    output_type: OutputType, outputs: Sequence[Any], references: Sequence[Any], classes: Sequence[str] | None = None
) -> dict[Metric, Float[ndarray, "n k"]]:
    """The metrics of this type of outputs that are defined for the references, with the statistics of each example.

    Args:
        classes: all classes, of outputs that are classes. Default: those that occur.
    """
    metrics = metrics_of(output_type, references)
    rows = {
        function: label_statistics(outputs, references, classes)
        if function is label_statistics
        else function(outputs, references)
        for function in set(metrics.values())
    }
    return {metric: rows[function] for metric, function in metrics.items()}


def scores(output_type: OutputType, outputs: Sequence[Any], references: Sequence[Any]) -> list[Score]:
    """The values of all metrics of this type of outputs."""
    metrics = metrics_of(output_type, references)
    sums = {
        function: label_sums(outputs, references)
        if function is label_statistics
        else function(outputs, references).sum(0)
        for function in set(metrics.values())
    }
    return [
        Score(
            metric.name,
            float(metric.from_sums(sums[function])),
            metric.signature if isinstance(metric.signature, str) else metric.signature(references),
        )
        for metric, function in metrics.items()
    ]
