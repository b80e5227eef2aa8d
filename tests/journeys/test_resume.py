"""A run that is broken off ends with the very weights of one that was not."""

import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from glassformer.training.trainer import Trainer
from tests.forks import forking_python
from tests.journeys.conftest import ENVIRONMENT, RARE, SMALL, glassformer

STEPS = 80


def command(corpus: Path, out: Path, *extra, steps: int = STEPS) -> list:
    files = [
        "train",
        corpus / "train.en",
        corpus / "train.fr",
        "--dev-src",
        corpus / "dev.en",
        "--dev-tgt",
        corpus / "dev.fr",
    ]
    return [*files, "--out", out, "--steps", steps, "--save-every", 7, "--validate-every", 30, *SMALL, *extra]


def weights(out: Path) -> str:
    return hashlib.sha256((out / "model.safetensors").read_bytes()).hexdigest()


def step_reached(out: Path) -> int:
    names = [path.name for path in (out / "checkpoints").glob("step-*")] if (out / "checkpoints").exists() else []
    return max((int(name.removeprefix("step-")) for name in names), default=0)


def broken_off(arguments, out: Path, signum: int, at_step: int, delay_s: float) -> subprocess.Popen:
    """Start a run and send it a signal a moment after it reached a step."""
    process = subprocess.Popen(
        [forking_python(), "-m", "glassformer", *map(str, arguments)],
        env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while step_reached(out) < at_step and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    time.sleep(delay_s)
    process.send_signal(signum)
    process.out, process.err = process.communicate(timeout=60)
    return process


@pytest.fixture(scope="module")
def unbroken(corpus, tmp_path_factory) -> str:
    out = tmp_path_factory.mktemp("unbroken") / "run"
    done = glassformer(*command(corpus, out))
    assert done.returncode == 0, done.stderr
    return weights(out)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(1, 9))])
def test_a_run_killed_at_random_times_ends_with_the_same_weights(corpus, tmp_path, unbroken, seed):
    rng = random.Random(seed)
    out = tmp_path / "run"
    for at_step in sorted(rng.sample(range(0, STEPS, 7), 2)):
        broken_off(command(corpus, out), out, signal.SIGKILL, at_step, rng.random() * 0.05)
    done = glassformer(*command(corpus, out))
    assert done.returncode == 0, done.stderr
    assert weights(out) == unbroken


@pytest.mark.slow
def test_a_killed_run_with_all_that_has_a_state_or_random_numbers_ends_with_the_same_state(corpus, tmp_path):
    more = ["--accumulate", 3, "--activation-checkpointing", "--ema", 0.9, "--dropout", 0.1]
    more += ["--optimizer", "muon", "--bpe-dropout", 0.2]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    steps = 35
    done = glassformer(*command(corpus, whole, *more, steps=steps))
    assert "for the exponential moving average" in done.stderr
    broken_off(command(corpus, broken, *more, steps=steps), broken, signal.SIGKILL, 14, 0.0)
    assert "Resuming from step" in glassformer(*command(corpus, broken, *more, steps=steps)).stderr
    assert weights(broken) == weights(whole)
    state, expected = (
        load_file(out / "checkpoints" / f"step-{steps}" / "training.safetensors") for out in (broken, whole)
    )
    assert any(name.startswith("ema.") for name in state)
    assert state.keys() == expected.keys()
    assert all(torch.equal(state[name], expected[name]) for name in state)


@pytest.mark.slow
@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_and_exits_and_the_same_command_resumes(corpus, tmp_path, unbroken, signum, code):
    out = tmp_path / "run"
    process = broken_off(command(corpus, out), out, signum, 14, 0.0)
    assert process.returncode == code, process.err
    assert "Run the same command again to resume" in process.err
    assert "Traceback" not in process.err
    done = glassformer(*command(corpus, out))
    assert "Resuming from step" in done.stderr
    assert weights(out) == unbroken


@pytest.mark.slow
def test_a_damaged_newest_checkpoint_is_reported_and_the_previous_one_used(corpus, tmp_path, unbroken):
    out = tmp_path / "run"
    broken_off(command(corpus, out), out, signal.SIGKILL, 21, 0.0)
    newest = out / "checkpoints" / f"step-{step_reached(out)}" / "training.safetensors"
    damaged = bytearray(newest.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    newest.write_bytes(damaged)
    done = glassformer(*command(corpus, out))
    assert f"{newest}: damaged" in done.stderr
    assert weights(out) == unbroken


def test_a_finished_run_prints_how_to_train_longer(corpus, model):
    before = weights(model)
    done = glassformer("train", corpus / "train.en", corpus / "train.fr", "--out", model, "--steps", 30, *SMALL)
    assert done.returncode == 0
    assert "already been trained for 30 steps" in done.stderr
    assert "--steps 60" in done.stderr
    assert weights(model) == before


@pytest.mark.slow
def test_a_larger_budget_resumes_the_run(corpus, tmp_path):
    out = tmp_path / "run"
    few = ["train", corpus / "train.en", corpus / "train.fr", "--out", out, *SMALL, *RARE]
    assert glassformer(*few, "--steps", 10).returncode == 0
    done = glassformer(*few, "--steps", 20)
    assert "Resuming from step 10" in done.stderr
    assert done.returncode == 0
    assert (out / "checkpoints" / "step-20").is_dir()


@pytest.mark.slow
def test_a_smaller_budget_is_validated_where_it_ends(corpus, tmp_path, monkeypatch):
    make_update = Trainer.make_update

    def until_10(self, stop):
        signum = make_update(self, stop)
        if self.progress.step == 10:
            os.kill(os.getpid(), signal.SIGTERM)
        return signum

    monkeypatch.setattr(Trainer, "make_update", until_10)
    out = tmp_path / "run"
    few = ["train", corpus / "train.en", corpus / "train.fr", "--out", out, *SMALL, "--validate-every", 6]
    assert glassformer(*few, "--steps", 20).returncode == 143
    assert glassformer(*few, "--steps", 10).returncode == 0
    records = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [record["step"] for record in records if "dev_bleu" in record] == [6, 10]


@pytest.mark.slow
def test_a_run_killed_before_its_model_was_written_writes_it(corpus, tmp_path):
    out = tmp_path / "run"
    arguments = ["train", corpus / "train.en", corpus / "train.fr", "--out", out, *SMALL, *RARE]
    assert glassformer(*arguments, "--steps", 5).returncode == 0
    short = weights(out)
    assert glassformer(*arguments, "--steps", 10).returncode == 0
    long = weights(out)
    assert short != long
    record = json.loads((out / "training.json").read_text())
    (out / "training.json").write_text(json.dumps({**record, "steps": 5}))  # as if the model were the shorter run's
    (out / "model.safetensors").unlink()
    assert glassformer(*arguments, "--steps", 10).returncode == 0
    assert weights(out) == long


def test_the_time_from_the_command_to_the_first_step_is_logged_and_recorded(model):
    (logged,) = re.findall(r"First step after ([\d.]+) s\.", (model / "train.log").read_text())
    assert json.loads((model / "env.json").read_text())["first_step_s"] == float(logged) > 0


def test_another_run_is_never_overwritten(corpus, model):
    before = weights(model)
    done = glassformer(
        "train", corpus / "train.en", corpus / "train.fr", "--out", model, "--steps", 40, *SMALL, "--seed", 5
    )
    assert done.returncode == 2
    assert "seed: 1 in the run, 5 requested" in done.stderr
    assert weights(model) == before


def test_other_files_are_an_error(corpus, model):
    done = glassformer("train", corpus / "dev.en", corpus / "dev.fr", "--out", model, "--steps", 40, *SMALL)
    assert done.returncode == 2
    assert "contains a run on other files" in done.stderr


@pytest.mark.slow
def test_a_second_process_on_the_same_folder_is_refused(corpus, tmp_path):
    out = tmp_path / "run"
    first = subprocess.Popen(
        [sys.executable, "-m", "glassformer", *map(str, command(corpus, out, "--seed", 2))],
        env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        while step_reached(out) < 7 and first.poll() is None:
            time.sleep(0.01)
        os.kill(first.pid, signal.SIGSTOP)
        second = glassformer(*command(corpus, out, "--seed", 2))
        assert second.returncode == 1
        assert f"pid {first.pid}" in second.stderr
    finally:
        first.kill()
        first.wait()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="file size limits are POSIX")
def test_a_training_ends_with_a_full_disk_and_keeps_the_last_checkpoint(corpus, tmp_path, unbroken):
    out = tmp_path / "run"
    broken_off(command(corpus, out), out, signal.SIGKILL, 14, 0.0)
    last_step = step_reached(out)
    limit = (out / "checkpoints" / f"step-{last_step}" / "training.safetensors").stat().st_size // 2
    program = tmp_path / "full.py"
    program.write_text(
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}));"
        "from glassformer.cli import main; main()"
    )
    arguments = [forking_python(), str(program), *map(str, command(corpus, out))]
    lines = []
    with subprocess.Popen(arguments, env=ENVIRONMENT, stderr=subprocess.PIPE, encoding="utf-8") as process:
        for line in process.stderr:
            lines.append(line)
            if line.startswith("The training is complete, but not saved."):
                process.send_signal(signal.SIGINT)
    assert process.returncode == 1
    assert any("disk is full" in line for line in lines)
    assert not any("Traceback" in line for line in lines)
    assert step_reached(out) == last_step
    assert glassformer(*command(corpus, out)).returncode == 0
    assert weights(out) == unbroken


def test_options_written_into_the_run_folder_can_be_given_back(corpus, model, tmp_path):
    out = tmp_path / "again"
    done = glassformer("train", "--config", model / "run.toml", "--out", out)
    assert done.returncode == 0, done.stderr
    assert weights(out) == weights(model)


@pytest.mark.slow
def test_as_many_checkpoints_are_averaged_as_were_asked_for(corpus, tmp_path):
    out = tmp_path / "run"
    arguments = [
        "train",
        corpus / "train.en",
        corpus / "train.fr",
        "--out",
        out,
        "--steps",
        60,
        "--average-checkpoints",
        3,
        *SMALL,
        *RARE,
    ]
    assert "the average of 3 checkpoints" in glassformer(*arguments).stderr


@pytest.mark.parametrize(
    "name", ["data/corpus.json", "data/dev.jsonl", "data/train/src.u2", "data/train/tgt.ends", "run.toml"]
)
def test_a_damaged_file_of_the_run_is_an_error_when_it_is_continued(corpus, model, tmp_path, name):
    out = tmp_path / "run"
    shutil.copytree(model, out)
    data = bytearray((out / name).read_bytes())
    data[len(data) // 2] ^= 1
    (out / name).write_bytes(data)
    done = glassformer("train", corpus / "train.en", corpus / "train.fr", "--out", out, "--steps", 31, *SMALL, *RARE)
    assert done.returncode in (1, 2)
    assert f"{out / name}: damaged" in done.stderr
    if name.startswith("data/train"):
        shutil.rmtree(out / "data" / "train")
        command = ["train", corpus / "train.en", corpus / "train.fr", "--out", out, "--steps", 31, *SMALL, *RARE]
        assert glassformer(*command).returncode == 0
