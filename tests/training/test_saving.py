"""Checkpoints that a thread writes while the training goes on."""

import errno
import json
import signal
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from glassformer import checkpoint
from glassformer.checkpoint import read_tensors
from glassformer.errors import UserError
from glassformer.manifest import verify
from glassformer.training.background import BackgroundJob
from glassformer.training.progress import Reporter
from glassformer.training.signals import Stopped, StopSignal
from glassformer.training.trainer import N_RETRIES, RETRY_S
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
    trainer.checkpoints.wait()
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
    trainer.checkpoints.wait()
    assert saved(trainer, "checkpoints") == ["step-3", "step-4"]
    assert saved(trainer, "best") == ["step-2"]
    assert written == ["best", "checkpoints"] * 2 + ["checkpoints"] * 2
    model = read_tensors(trainer.config.out / "best" / "step-2" / "model.safetensors")
    assert all((model[name] == weight).all() for name, weight in best.items())


def full_disk(*_):
    raise checkpoint.write_error(_[0], OSError(errno.ENOSPC, "No space left on device"))


@pytest.fixture
def unwritable(monkeypatch):
    """Folders cannot be written while this set is not empty."""
    reasons, save_folder = {"full"}, checkpoint.save_folder
    monkeypatch.setattr(checkpoint, "save_folder", lambda *a: full_disk(*a) if reasons else save_folder(*a))
    return reasons


def test_a_training_goes_on_with_a_full_disk_and_says_so(trainer, unwritable, capsys):
    trainer.save()
    trainer.checkpoints.job.wait()
    before = weights(trainer)
    trainer.updates([np.arange(N_PAIRS)], 1e-2, StopSignal())
    assert any((weight != before[name]).any() for name, weight in weights(trainer).items())
    assert "step-0: the disk is full" in (warning := capsys.readouterr().out)
    assert "The training goes on" in warning
    trainer.progress.step = 1
    trainer.save()
    trainer.checkpoints.job.wait()
    unwritable.clear()
    trainer.progress.step = 2
    trainer.save()
    assert not trainer.checkpoints.wait()
    assert "Checkpoints can be written again: the newest is of step 2." in capsys.readouterr().out
    assert saved(trainer, "checkpoints") == ["step-2"]


def test_best_weights_that_could_not_be_written_are_written_with_a_later_checkpoint(trainer, unwritable):
    best = update(trainer, 1)
    trainer.progress.best_score, trainer.progress.best_step = 1.0, 1
    trainer.save()
    update(trainer, 2)
    assert trainer.checkpoints.wait()
    unwritable.clear()
    trainer.save()
    assert not trainer.checkpoints.wait()
    assert saved(trainer, "best") == ["step-1"]
    model = read_tensors(trainer.config.out / "best" / "step-1" / "model.safetensors")
    assert all((model[name] == weight).all() for name, weight in best.items())
    assert saved(trainer, "checkpoints") == ["step-2"]


def test_a_training_that_is_stopped_with_a_full_disk_is_an_error(trainer, unwritable):
    with pytest.raises(UserError, match="step-0: the disk is full"):
        trainer.checkpoint_and_stop(signal.SIGTERM)
    unwritable.clear()
    with pytest.raises(Stopped, match="checkpoint saved"):
        trainer.checkpoint_and_stop(signal.SIGTERM)


def test_the_last_checkpoint_is_tried_again(trainer, unwritable, monkeypatch):
    waits = []

    def wait(duration_s):
        waits.append(duration_s)
        if len(waits) == 2:
            unwritable.clear()

    stop = SimpleNamespace(wait=wait)
    trainer.save()
    trainer.save_at_last(stop)
    assert waits == [RETRY_S] * 2
    assert saved(trainer, "checkpoints") == ["step-0"]
    unwritable.add("full again")
    trainer.save()
    with pytest.raises(UserError, match="the disk is full"):
        trainer.save_at_last(stop)
    assert len(waits) == 2 + N_RETRIES


def test_a_signal_ends_the_wait_for_the_last_checkpoint(trainer, unwritable):
    stop = StopSignal()
    stop.signum = signal.SIGINT
    trainer.save()
    with pytest.raises(UserError, match="the disk is full"):
        trainer.save_at_last(stop)
    unwritable.clear()
    trainer.checkpoints.failure = UserError("full before")
    with pytest.raises(Stopped):
        trainer.save_at_last(stop)


def test_records_that_cannot_be_written_do_not_end_the_training(tmp_path, monkeypatch, capsys):
    reporter = Reporter(tmp_path, step=0)
    for name in ("log_file", "metrics_file"):
        getattr(reporter, name).close()
        setattr(reporter, name, open("/dev/full", "w"))
    with reporter:
        for step in range(300):
            reporter.write({"step": step})
            reporter.log("a message")
    assert (err := capsys.readouterr().err).count("cannot be written") == 1
    assert "warning: /dev/full: cannot be written, lines will be missing: No space left on device." in err


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
