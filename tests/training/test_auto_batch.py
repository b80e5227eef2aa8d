"""The choice of the largest batch that fits in memory."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from glassformer.errors import ConfigError, UserError
from glassformer.training import auto_batch
from glassformer.training import trainer as trainer_module
from glassformer.training.auto_batch import MARGIN, find_batch_tokens
from glassformer.training.memory import MemoryMeter
from glassformer.training.options import merge_options, stored_options
from glassformer.training.trainer import Trainer
from tests.training.test_trainer import N_PAIRS, tokenizer, trainer, weights

__all__ = ["tokenizer", "trainer"]

FIXED, OF_ROW = 1000, 70
"""Bytes of a fake device for the gradients of any batch, and for each row."""


@pytest.fixture
def device(trainer, monkeypatch):
    """A fake device: `available` bytes of memory, of which batches need FIXED + OF_ROW for each row. Counts trials."""
    state = SimpleNamespace(available=0, peak=0, tried=[], limit=1 << 60)
    meter = SimpleNamespace(restart=lambda: 0, peak_bytes=lambda: state.peak)
    monkeypatch.setattr(auto_batch, "MemoryMeter", lambda device: meter)
    monkeypatch.setattr(auto_batch, "available_bytes", lambda device: state.available)
    monkeypatch.setattr(auto_batch, "n_kept", lambda config: 0)
    try_gradients = trainer.step.try_gradients

    def measured(batch):
        state.tried.append(len(batch.src))
        try_gradients(batch)
        if len(batch.src) > state.limit:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        state.peak = FIXED + OF_ROW * len(batch.src)

    monkeypatch.setattr(trainer.step, "try_gradients", measured)
    return state


def found(trainer) -> tuple[int, int]:
    """The number of the longest examples in the batch that was found, and their length."""
    longest = int(trainer.sampler.lengths.max())
    n_tokens = find_batch_tokens(trainer.step, trainer.data.train, trainer.sampler.lengths)
    assert n_tokens % longest == 0
    return n_tokens // longest, longest


@pytest.mark.parametrize("n_rows", [1, 2, 3, 11, 19])
@pytest.mark.parametrize("graphs", [False, True])
def test_the_largest_batch_that_leaves_the_margin_is_found(trainer, device, n_rows, graphs):
    if graphs:
        trainer.step.use_graphs()
    factor = 2 if graphs else 1
    device.available = factor * (FIXED + OF_ROW * (n_rows + 0.5)) / (1 - MARGIN)
    assert found(trainer)[0] == n_rows


def test_trials_double_up_to_their_limit_and_never_exceed_the_memory(trainer, device, monkeypatch):
    longest = int(trainer.sampler.lengths.max())
    monkeypatch.setattr(auto_batch, "TRIAL_TOKENS", 9 * longest)
    device.available = 10**6
    found(trainer)
    assert device.tried == [1, 2, 4, 8]
    device.tried.clear()
    device.available = (FIXED + OF_ROW * 7.5) / (1 - MARGIN)
    found(trainer)
    assert device.tried == [1, 2, 4]


def test_a_batch_has_at_most_all_examples(trainer, device):
    device.available = 1 << 50
    assert found(trainer)[0] == N_PAIRS


def test_the_optimizer_state_and_averages_are_subtracted(trainer, device, monkeypatch):
    weight_bytes = sum(4 * p.numel() for p in trainer.step.parameters.values())
    monkeypatch.setattr(auto_batch, "n_kept", lambda config: 3)
    device.available = (3 * weight_bytes + FIXED + OF_ROW * 17.5) / (1 - MARGIN)
    assert found(trainer)[0] == 17


@pytest.mark.parametrize(("limit", "expected"), [(1, 1), (2, 2), (5, 4)])
def test_a_trial_that_runs_out_of_memory_is_the_last(trainer, device, limit, expected):
    device.available, device.limit = 1 << 50, limit
    assert found(trainer)[0] == expected
    assert all(p.grad is None for p in trainer.step.parameters.values())


def test_an_example_that_does_not_fit_is_an_error(trainer, device):
    device.available = FIXED
    with pytest.raises(UserError, match="out of memory with a single example of"):
        found(trainer)
    device.available, device.limit = 1 << 50, 0
    with pytest.raises(UserError, match="out of memory with a single example of"):
        found(trainer)


def test_the_process_with_the_least_memory_decides(trainer, device):
    device.available = (FIXED + OF_ROW * 20.5) / (1 - MARGIN)
    trainer.step.processes.gather = lambda numbers: np.array([numbers, [min(numbers[0], 13.7)]])
    assert found(trainer)[0] == 13


def test_the_batch_found_is_stored_and_trains_like_the_same_batch_given(trainer, device, monkeypatch):
    """Trials change neither the weights nor the random numbers."""
    device.available = (FIXED + OF_ROW * 12.5) / (1 - MARGIN)
    longest = int(trainer.sampler.lengths.max())
    before, state = weights(trainer), torch.get_rng_state()
    config = trainer.config.model_copy(update={"batch_tokens": None, "auto_batch": True})
    monkeypatch.setattr(trainer_module, "TrainingStep", lambda *_: trainer.step)
    chosen = Trainer(trainer.objective, trainer.data, config, None)
    assert chosen.config.batch_tokens == chosen.sampler.batch_tokens == chosen.micro_batches.max_tokens == 12 * longest
    assert torch.equal(state, torch.get_rng_state())
    torch.testing.assert_close(weights(chosen), before, rtol=0, atol=0)
    assert not chosen.step.optimizer.state
    stored = stored_options(config)
    assert stored.batch_tokens == 12 * longest
    # The same command resumes with what was found.
    assert merge_options(stored, config) == stored


def test_the_meter_sees_the_peak_of_this_process():
    meter = MemoryMeter(torch.device("cpu"))
    before = meter.restart()
    tensor = torch.ones(40 << 18)
    del tensor
    assert 38 << 20 < meter.peak_bytes() - before < 60 << 20
    assert meter.restart() - before < 20 << 20


def test_a_system_without_measurement_is_an_error(monkeypatch):
    def absent(path, *_):
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "write_text", absent)
    with pytest.raises(ConfigError, match=r"--auto-batch: .*\n.*--batch-tokens"):
        MemoryMeter(torch.device("cpu"))
