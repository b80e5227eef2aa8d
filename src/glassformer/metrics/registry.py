"""Registry of metrics: direction and number format. A new metric is a function in a module of this package, a row here
where the defaults do not apply, and its use in a task.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """How values of a metric are compared and printed."""

    name: str
    larger_is_better: bool = True
    digits: int = 4
    """Digits after the decimal point."""

    def is_better(self, a: float, b: float) -> bool:
        """Whether the value a is better than the value b."""
        return a > b if self.larger_is_better else a < b

    def format(self, value: float) -> str:
        """The value as text."""
        return f"{value:.{self.digits}f}"


METRICS = {
    metric.name.lower(): metric
    for metric in (
        Metric("BLEU", digits=2),
        Metric("chrF2", digits=2),
        Metric("TER", larger_is_better=False, digits=2),
        Metric("loss", larger_is_better=False),
        Metric("perplexity", larger_is_better=False),
        Metric("bits per byte", larger_is_better=False),
    )
}
"""Metrics whose values are not fractions where more is better, by name in lower case."""


def metric(name: str) -> Metric:
    """The metric of this name, in any case. Default: more is better, four digits."""
    return METRICS.get(name.lower(), Metric(name))
