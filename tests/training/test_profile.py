"""The profile of a run, against independent measurements."""

import json
import signal
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from glassformer.data.pairs import make_batch
from glassformer.training.arithmetic import products_by
from glassformer.training.flop import product_flop
from glassformer.training.profile import N_PROFILED, N_WARM_UPS, Profile, Timer, token_lengths
from glassformer.training.signals import Stopped, StopSignal
from tests.journeys.conftest import SMALL, glassformer, write_lines
from tests.training.test_trainer import N_PAIRS, tokenizer, trainer, weights

__all__ = ["tokenizer", "trainer"]

OPTIONS = ["--task", "translation", "--profile"]


def test_a_moment_counts_for_the_innermost_part(monkeypatch):
    clock = iter([0, 2, 5, 10, 13])  # at the start and at each switch
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    timer = Timer()
    with timer.part("outer"), timer.part("inner"):
        pass
    assert timer.seconds == {"other": 2, "outer": 3 + 3, "inner": 5}


def test_the_operations_are_those_that_pytorch_counts(trainer):
    """PyTorch counts all of causal attention, the profile half of it. It does not count the kernels. No padding."""
    rng = np.random.default_rng(0)
    pairs = [(rng.integers(3, 99, 6).tolist(), rng.integers(3, 99, 10).tolist()) for _ in range(5)]
    batch = make_batch(pairs, pad_id=trainer.task.tokenizer.pad_id, bos_id=1, eos_id=2)
    with products_by("torch"), FlopCounterMode(display=False) as counter:
        trainer.objective.loss(batch).backward()
    c = trainer.model.config
    n_src, n_tgt = 7, 11
    causal_half = 3 * c.n_decoder_layers * 2 * len(pairs) * n_tgt**2 * c.d_model
    lengths = token_lengths(batch, trainer.task.tokenizer.pad_id)
    assert {name: x.tolist() for name, x in lengths.items()} == {"source": [n_src] * 5, "target": [n_tgt] * 5}
    actual = product_flop(trainer.model, batch, lengths)
    assert actual == pytest.approx(counter.get_total_flops() - causal_half, rel=1e-9)
    packed = trainer.objective.packed_batch(pairs, 71, 9, 17)
    lengths = token_lengths(packed, trainer.task.tokenizer.pad_id)
    assert product_flop(trainer.model, packed, lengths) == actual


@pytest.mark.slow
def test_profiled_steps_have_the_results_of_other_steps(trainer, capfd):
    batches = trainer.micro_batches(np.arange(N_PAIRS))
    before = weights(trainer)
    n_steps = N_WARM_UPS + 2 * N_PROFILED + 2
    losses = [trainer.step(batches, 1e-3)[0].item() for _ in range(n_steps)]
    expected = weights(trainer)
    trainer.model.load_state_dict(before)
    trainer.step.optimizer.state.clear()
    profile = Profile(trainer.step)
    actual = []
    for _ in range(n_steps):
        with profile.of_step():
            actual.append(trainer.step(batches, 1e-3)[0].item())
    assert actual == losses
    assert capfd.readouterr().err == ""
    torch.testing.assert_close(weights(trainer), expected, rtol=0, atol=0)
    record = profile.record()
    n_weights = sum(p.numel() for p in trainer.model.parameters())
    assert record["memory_bytes"]["weights"] == record["memory_bytes"]["gradients"] == 4 * n_weights
    assert record["memory_bytes"]["optimizer state"] == 8 * n_weights + 4 * len(expected)  # and numbers of steps
    assert record["memory_bytes"]["activations"] > batches[0].src.numel() * trainer.model.config.d_model * 4


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    """Folder and messages of a short run with a profile, and its time measured from outside."""
    folder = tmp_path_factory.mktemp("profiled")
    pairs = [f"{'a b c ' * (1 + n % 7)}\t{'x y ' * (1 + n % 5)}" for n in range(400)]
    file = write_lines(folder / "train.tsv", [f"{n} {pair}" for n, pair in enumerate(pairs)])
    start = time.monotonic()
    done = glassformer("train", file, "--out", folder / "run", "--steps", 40, *SMALL, *OPTIONS)
    assert done.returncode == 0, done.stderr
    return folder / "run", done.stderr, time.monotonic() - start


@pytest.mark.slow
def test_the_parts_sum_to_the_elapsed_time(profiled):
    out, messages, outside_s = profiled
    record = json.loads((out / "profile.json").read_text())
    assert sum(record["seconds"].values()) == pytest.approx(record["elapsed_s"], rel=1e-6)
    steps = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert max(row["elapsed_s"] for row in steps) <= record["elapsed_s"] < outside_s
    assert {"data", "forward", "loss", "backward", "optimizer", "validation", "saving"} <= record["seconds"].keys()
    assert f"Profile in {out / 'profile.html'}" in messages


@pytest.mark.slow
def test_the_profile_of_a_run(profiled):
    out, _, _ = profiled
    record = json.loads((out / "profile.json").read_text())
    assert record["steps"] == 40
    assert 0 < record["padding"]["source"] < 0.5
    assert 0 < record["padding"]["target"] < 0.5
    assert 0 < record["utilization"] < 1
    assert record["targets_per_s"] > 0
    assert len(record["operations"]) == 10
    assert [row["ms"] for row in record["operations"]] == sorted(row["ms"] for row in record["operations"])[::-1]
    assert "Most expensive operations" in (out / "profile.html").read_text()
    assert "profile = false" in (out / "run.toml").read_text()


@pytest.mark.slow
def test_nearly_all_of_a_run_has_a_part(profiled, tmp_path, monkeypatch):
    """By a clock that counts the calls of functions: other processes do not change it."""
    n_calls = 0

    def count(*_):
        nonlocal n_calls
        n_calls += 1

    monkeypatch.setattr(Timer, "now", lambda _: n_calls)
    file, out = profiled[0].parent / "train.tsv", tmp_path / "run"
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        done = glassformer("train", file, "--out", out, "--steps", 40, *SMALL, *OPTIONS)
    finally:
        sys.setprofile(before)
    assert done.returncode == 0, done.stderr
    n_calls_of = json.loads((out / "profile.json").read_text())["seconds"]
    assert n_calls_of["other"] < 0.05 * (sum(n_calls_of.values()) - n_calls_of["profiling"])


@pytest.mark.slow
def test_a_stopped_run_has_a_profile_of_its_steps(trainer, monkeypatch):
    messages = []
    trainer.config = trainer.step.config = trainer.config.model_copy(update={"profile": True, "validate_every": 1000})
    trainer.reporter = SimpleNamespace(log=messages.append, step=lambda *_: None)

    stop = StopSignal()
    monkeypatch.setattr(trainer.averages, "move", lambda *_: setattr(stop, "signum", signal.SIGINT))
    with pytest.raises(Stopped):
        trainer.run(stop)
    record = json.loads((trainer.config.out / "profile.json").read_text())
    assert record["steps"] == 1
    assert "Profile in" in messages[-1]


@pytest.mark.slow
def test_a_run_too_short_for_the_profiled_steps_has_a_profile(profiled, tmp_path):
    file = profiled[0].parent / "train.tsv"
    done = glassformer("train", file, "--out", tmp_path / "run", "--steps", 3, *SMALL, *OPTIONS)
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "run" / "profile.json").read_text())
    assert record["operations"] == []
    assert record["step_ms"] == {}
    assert record["targets_per_s"] > 0
