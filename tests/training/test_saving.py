"""Checkpoints that a thread writes while the training goes on."""

import errno
import json
import threading

import numpy as np
import pytest

from glassformer import checkpoint
from glassformer.checkpoint import read_tensors
from glassformer.errors import UserError
from glassformer.manifest import verify
from glassformer.training.background import BackgroundJob
from glassformer.training.signals import StopSignal
from tests.training.test_trainer import N_PAIRS, tokenizer, trainer, weights

__all__ = ["tokenizer", "trainer"]


@pytest.fixture
def gate(monkeypatch):
    """Folders are written when this event is set."""
    event, save_folder = threading.Event(), checkpoint.save_folder

    def delayed(*arguments):
        assert event.wait(30)
        save_folder(*arguments)

    monkeypatch.setattr(checkpoint, "save_folder", delayed)
    return event


def update(trainer, step: int) -> dict:
    """Make an update and count it. Returns the weights."""
    trainer.step(trainer.micro_batches(np.arange(N_PAIRS)), 1e-2)
    trainer.progress.step = step
    return weights(trainer)


def saved(trainer, kind: str) -> list[str]:
    return sorted(folder.name for folder in (trainer.config.out / kind).glob("*"))


def test_a_checkpoint_has_the_state_of_its_step_although_the_training_went_on(trainer, gate):
    expected = update(trainer, 1)
    moments = {name: x.clone() for name, x in trainer.state_tensors().items()}
    trainer.save()
    assert saved(trainer, "checkpoints") == []
    assert any((weight != expected[name]).any() for name, weight in update(trainer, 2).items())
    gate.set()
    trainer.wait_for_saving()
    folder = trainer.config.out / "checkpoints" / "step-1"
    verify(folder)
    model = read_tensors(folder / "model.safetensors")
    assert all((model[name] == weight).all() for name, weight in expected.items())
    training = read_tensors(folder / "training.safetensors")
    assert training.keys() == moments.keys()
    assert all((training[name] == x).all() for name, x in moments.items())
    assert json.loads((folder / "progress.json").read_text())["step"] == 1


def test_the_newest_checkpoints_and_the_best_weights_are_kept(trainer, monkeypatch):
    """The best of the steps 1 to 4 is step 2."""
    best, written, save_folder = None, [], checkpoint.save_folder
    monkeypatch.setattr(checkpoint, "save_folder", lambda *a: written.append(a[0].parent.name) or save_folder(*a))
    for step in range(1, 5):
        now = update(trainer, step)
        if step in (1, 2):
            trainer.progress.best_score, trainer.progress.best_step, best = float(step), step, now
        trainer.save()
    trainer.wait_for_saving()
    assert saved(trainer, "checkpoints") == ["step-3", "step-4"]
    assert saved(trainer, "best") == ["step-2"]
    assert written == ["best", "checkpoints"] * 2 + ["checkpoints"] * 2
    model = read_tensors(trainer.config.out / "best" / "step-2" / "model.safetensors")
    assert all((model[name] == weight).all() for name, weight in best.items())


def full_disk(*_):
    raise checkpoint.write_error(_[0], OSError(errno.ENOSPC, "No space left on device"))


def test_a_full_disk_is_an_error_at_the_next_update(trainer, monkeypatch):
    monkeypatch.setattr(checkpoint, "save_folder", full_disk)
    trainer.save()
    while not trainer.checkpoints.job.has_failed():
        pass
    before = weights(trainer)
    with pytest.raises(UserError, match="the disk is full"):
        trainer.update_weights([np.arange(N_PAIRS)], 1e-2, StopSignal())
    assert all((weight == before[name]).all() for name, weight in weights(trainer).items())


@pytest.mark.parametrize("when", ["save", "validate_and_save", "checkpoint_and_stop"])
def test_a_full_disk_is_an_error_at_the_latest_when_the_training_saves_again_or_stops(trainer, monkeypatch, when):
    monkeypatch.setattr(checkpoint, "save_folder", full_disk)
    trainer.save()
    arguments = {"save": (), "validate_and_save": (StopSignal(),), "checkpoint_and_stop": (2,)}[when]
    with pytest.raises(UserError, match="the disk is full"):
        getattr(trainer, when)(*arguments)


def test_a_training_that_ends_with_an_error_completes_its_checkpoint(trainer, gate, monkeypatch):
    def steps(*_):
        trainer.save()
        gate.set()
        raise UserError("something else")

    monkeypatch.setattr(trainer, "run_steps", steps)
    with pytest.raises(UserError, match="something else"):
        trainer.run(StopSignal())
    verify(trainer.config.out / "checkpoints" / "step-0")


def test_jobs_run_one_after_the_other_in_another_thread():
    job, first, done = BackgroundJob(), threading.Event(), []
    job.start(lambda: (first.wait(30), done.append(threading.get_ident())))
    assert not job.has_failed()
    threading.Timer(0.05, first.set).start()
    job.start(lambda: done.append(2))
    assert len(done) >= 1
    job.wait()
    assert done[1:] == [2]
    assert done[0] != threading.get_ident()
    job.wait()  # nothing to wait for


def test_checkpoints_are_saved_by_time(trainer, monkeypatch):
    """Without a validation, and rarely if they cost much."""
    now = 0.0
    monkeypatch.setattr("glassformer.training.trainer.time.monotonic", lambda: now)
    monkeypatch.setattr(trainer.validator, "is_due", lambda before, after: False)
    steps = []
    monkeypatch.setattr(
        trainer, "save", lambda: (steps.append(trainer.progress.step), setattr(trainer.checkpoints, "copied_s", now))
    )
    trainer.config = trainer.config.model_copy(update={"steps": 9})
    make_update = trainer.make_update

    def timed_update(stop):
        nonlocal now
        now += 25
        return make_update(stop)

    monkeypatch.setattr(trainer, "make_update", timed_update)
    monkeypatch.setattr(trainer, "validate_and_save", lambda stop: None)
    trainer.run_steps(StopSignal(), None)
    assert steps == [3, 6, 9]
    trainer.checkpoints.cost_s, trainer.progress.step, trainer.progress.fraction = 1.2, 0, 0.0
    steps.clear()
    trainer.run_steps(StopSignal(), None)
    assert steps == [5]
