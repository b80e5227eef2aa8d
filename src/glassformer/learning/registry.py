"""Objectives of the tasks."""

import importlib
from collections.abc import Sequence

from glassformer.errors import ConfigError
from glassformer.learning.base import AnyObjective
from glassformer.tasks.base import AnyTask, Task
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
    objective: type[AnyObjective] = getattr(
        importlib.import_module(f"glassformer.learning.{row.module}"), row.objective
    )
    check_members(objective, ("task_type", "metric"))
    check_members(objective.task_type, ("name", "kind", "example_type", "__call__"))
    if next(c for c in objective.task_type.__mro__ if "texts" in vars(c)) is Task:
        raise TypeError(f"{objective.task_type.__name__} does not define texts; see docs/extending.md, A task")
    return objective


def check_members(cls: type[object], names: Sequence[str]) -> None:
    """Check that a class has the members that its base class only declares.

    Raises:
        TypeError: it has not.
    """
    if missing := [name for name in names if not any(name in vars(c) for c in cls.__mro__)]:
        raise TypeError(f"{cls.__name__} does not define {', '.join(missing)}; see docs/extending.md, A task")


def objective_of(task: AnyTask) -> AnyObjective:
    """A new objective of a task.

    Raises:
        ConfigError: the task cannot be trained.
    """
    return objective_class(task.name)(task)
