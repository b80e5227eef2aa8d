"""Options of the tokenizer that a training makes for a task."""

from glassformer.learning.base import Objective
from glassformer.learning.registry import objective_class
from glassformer.tasks.registry import TASKS


def tokenizer_options(name: str) -> dict[str, object]:
    """Those of the objective of a task. A task that is not trained has the defaults."""
    objective = objective_class(name) if TASKS[name].objective else Objective
    return {
        "extra_special_tokens": objective.extra_special_tokens,
        "add_prefix_space": objective.add_prefix_space,
    }
