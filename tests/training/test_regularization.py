"""Dropout by the number of epochs of a training."""

import numpy as np
import pytest

from glassformer.nn.dropout import Dropout
from glassformer.training.regularization import LEAST, MOST, STEP, dropout_for
from glassformer.training.signals import StopSignal
from tests.training.test_trainer import tokenizer, trainer

__all__ = ["tokenizer", "trainer"]


def probabilities(trainer) -> set[float]:
    return {module.p for module in trainer.model.modules() if isinstance(module, Dropout)}


def test_more_epochs_need_more_dropout():
    values = [dropout_for(n) for n in (0, 0.1, 1, 2.5, 5, 14, 40, 140, 1e9)]
    assert values == sorted(values)
    assert values[:4] == [LEAST] * 4
    assert values[-1] == MOST
    assert dropout_for(40) - dropout_for(20) == pytest.approx(dropout_for(20) - dropout_for(10)) == 0.05


def auto(trainer, **budget):
    options = {"dropout": "auto", "steps": None, **budget}
    trainer.config = trainer.config.model_copy(update=options)
    return trainer


@pytest.mark.parametrize("n_epochs", [1, 20, 300])
def test_with_a_number_of_updates_it_is_known_from_the_start(trainer, n_epochs):
    steps = n_epochs * len(trainer.sampler.batches)
    auto(trainer, steps=steps).make_update(StopSignal())
    assert probabilities(trainer) == {dropout_for(n_epochs)}
    assert trainer.model.config.dropout == trainer.progress.dropout == dropout_for(n_epochs)


def test_with_a_time_it_follows_the_speed(trainer, monkeypatch):
    auto(trainer, minutes=1.0)
    used = iter([1e-9, 0.001, 0.03, 0.06])
    monkeypatch.setattr(trainer, "budget_used", lambda step: next(used))
    found = []
    for _ in range(4):
        trainer.make_update(StopSignal())
        found.append(trainer.progress.dropout)
    n = len(trainer.sampler.batches)
    assert found[:2] == [LEAST, LEAST]
    assert found[2] == dropout_for(3 / n / 0.03)
    assert found[3] in (found[2], dropout_for(4 / n / 0.06))


def test_small_changes_are_not_made(trainer):
    auto(trainer, steps=100)
    trainer.progress.dropout = 0.1
    n = len(trainer.sampler.batches)
    near = 2.5 * 2 ** ((0.1 + STEP / 2 - LEAST) / 0.05)
    trainer.sampler.epoch, trainer.sampler.position = 0, 1
    trainer.adapt_dropout(1 / n / near)
    assert trainer.progress.dropout == 0.1


def test_other_trainings_keep_their_dropout(trainer):
    before = probabilities(trainer)
    trainer.make_update(StopSignal())
    assert probabilities(trainer) == before
    assert trainer.progress.dropout is None


def test_a_loaded_checkpoint_has_its_dropout(trainer):
    auto(trainer, steps=50)
    trainer.make_update(StopSignal())
    trainer.save()
    trainer.checkpoints.wait()
    expected = probabilities(trainer)
    for module in trainer.model.modules():
        if isinstance(module, Dropout):
            module.p = np.nan
    trainer.load(trainer.config.out / "checkpoints" / "step-1")
    trainer.checkpoints.job.close()
    assert probabilities(trainer) == expected
