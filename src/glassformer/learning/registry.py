"""Objectives of the tasks."""

import importlib

from glassformer.errors import ConfigError
from glassformer.learning.base import AnyObjective
from glassformer.tasks.base import AnyTask
from glassformer.tasks.registry import TASKS


def objective_class(name: str) -> type[AnyObjective]:
    """The objective class of a task.

    Raises:
        ConfigError: the task cannot be trained.
    """
    row = TASKS[name]
    if row.objective is None:
        raise ConfigError(
            f"{name} cannot be trained; train another task and start it from this model with --init-from."
        )
    return getattr(importlib.import_module(f"glassformer.learning.{row.module}"), row.objective)


def objective_of(task: AnyTask) -> AnyObjective:
    """A new objective of a task.

    Raises:
        ConfigError: the task cannot be trained.
    """
    return objective_class(task.name)(task)
