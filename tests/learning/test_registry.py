"""The table of tasks and their objectives."""

import pytest
import torch

from glassformer.errors import ConfigError
from glassformer.learning import regression
from glassformer.learning.base import Objective
from glassformer.learning.registry import objective_class, objective_of
from glassformer.tasks.base import Task
from glassformer.tasks.registry import TASKS, task_class
from glassformer.train_config import TrainConfig
from glassformer.training.run import train
from tests.inspection.models import make

TRAINED = [name for name, row in TASKS.items() if row.objective]


@pytest.mark.parametrize("name", TRAINED)
def test_a_row_has_the_task_and_its_objective(name):
    assert objective_class(name).task_type is task_class(name)
    assert task_class(name).name == name


def test_an_objective_has_the_parts_of_its_task():
    task = make("classification", "bert")
    objective = objective_of(task)
    assert objective.task is task
    assert objective.model is task.model
    assert objective.tokenizer is task.tokenizer
    assert objective.labels == task.labels
    assert objective.device == torch.device(task.device)


def test_a_task_without_an_objective_cannot_be_trained(tmp_path):
    (tmp_path / "a.txt").write_text("the cat\n")
    expected = "feature-extraction cannot be trained; train another task and start it from this model with --init-from"
    with pytest.raises(ConfigError, match=expected):
        train(TrainConfig(src=(tmp_path / "a.txt",), out=tmp_path / "out", task="feature-extraction"), quiet=True)
    with pytest.raises(ConfigError, match=expected):
        objective_of(make("feature-extraction", "bert"))


def test_a_task_without_metrics_is_not_evaluated(tmp_path):
    task = make("feature-extraction", "bert")
    with pytest.raises(ConfigError, match="no metrics on test sets"):
        task.read([tmp_path / "a.txt"], [])
    with pytest.raises(ConfigError, match="no metrics on test sets"):
        task.evaluate([])


def test_a_member_that_a_class_lacks_is_named(monkeypatch):
    class NoMetric(Objective):
        task_type = regression.Regressor

    class NoName(Task):
        kind = "encoder"

    monkeypatch.setattr(regression, "RegressionObjective", NoMetric)
    with pytest.raises(TypeError, match="NoMetric does not define metric; see"):
        objective_class("regression")
    NoMetric.metric, NoMetric.task_type = "loss", NoName
    with pytest.raises(TypeError, match="NoName does not define name, example_type, __call__"):
        objective_class("regression")
    NoName.name, NoName.example_type, NoName.__call__ = "no-texts", int, print
    with pytest.raises(TypeError, match="NoName does not define texts"):
        objective_class("regression")
