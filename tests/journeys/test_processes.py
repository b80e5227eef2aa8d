"""Training by several processes: the same curve, weights and files as by one, and the end of a process."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import safetensors.torch
import torch

from glassformer.training.step import TrainingStep
from tests.forks import forking_python
from tests.journeys.conftest import ENVIRONMENT, SMALL, glassformer
from tests.journeys.test_resume import step_reached, weights

STEPS = 16
MORE = ["--accumulate", 3, "--activation-checkpointing", "--ema", 0.9]
"""Options that need the work of all processes in an update."""
pytestmark = pytest.mark.slow


def command(corpus: Path, out: Path, *flags, **changes) -> list[str]:
    """The command that trains for a few steps, with other options."""
    options = dict(zip(SMALL[::2], SMALL[1::2], strict=True)) | {
        "--dev-src": corpus / "dev.en", "--dev-tgt": corpus / "dev.fr", "--out": out, "--steps": STEPS, "--dropout": 0,
        "--save-every": 4, "--validate-every": 8, "--precision": "fp32",
    }  # fmt: skip
    options |= {f"--{name.replace('_', '-')}": value for name, value in changes.items()}
    words = [word for option in options.items() for word in option]
    return [str(word) for word in ["train", corpus / "train.en", corpus / "train.fr", *words, *flags]]


MARK = f"TESTED_BY={os.getpid()}"
"""A variable of the environment of all processes that the tests start."""


def popen(*arguments: str, python: str | None = None) -> subprocess.Popen:
    return subprocess.Popen(
        [python or forking_python(), *arguments], env=ENVIRONMENT | dict([MARK.split("=")]),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
    )  # fmt: skip


def start(arguments: list[str], launcher: tuple[str, ...] = (), python: str | None = None) -> subprocess.Popen:
    return popen(*launcher, "-m", "glassformer", *arguments, python=python)


def ended(process: subprocess.Popen) -> subprocess.CompletedProcess:
    out, err = process.communicate(timeout=150)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def pids_by_rank() -> dict[int, int]:
    """Process ids of the ranks that a launcher started."""
    pids = {}
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # it has ended, or belongs to another user
            environment = path.read_text().split("\0")
            if MARK in environment:
                pids |= {int(line[5:]): int(path.parent.name) for line in environment if line.startswith("RANK=")}
    return pids


def reached(process: subprocess.Popen, out: Path, step: int) -> None:
    """Wait until a step was saved."""
    while step_reached(out) < step and process.poll() is None:
        time.sleep(0.01)


def signaled(process: subprocess.Popen, out: Path, rank: int, signum: int, at_step: int) -> subprocess.CompletedProcess:
    """The end of a run in which a rank gets a signal after a step was saved."""
    reached(process, out, at_step)
    os.kill(pids_by_rank()[rank], signum)
    return ended(process)


def losses(out: Path, name: str = "loss") -> list[float]:
    records = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
    return [record[name] for record in records if name in record]


def tensors(folder: Path, name: str = "model.safetensors") -> dict[str, torch.Tensor]:
    """Tensors of a model; without the biases of the keys, which have no effect: their gradients are rounding errors."""
    return {
        name: tensor
        for name, tensor in safetensors.torch.load_file(folder / name).items()
        if not name.endswith("k_proj.bias")
    }


@pytest.fixture(scope="module")
def alone(request, corpus, tmp_path_factory) -> tuple[Path, list]:
    """A run of one process, and its options."""
    out = tmp_path_factory.mktemp("alone") / "run"
    done = glassformer(*command(corpus, out, *request.param, batch_tokens=150))
    assert done.returncode == 0, done.stderr
    return out, request.param


@pytest.mark.parametrize(
    ("alone", "options"),
    [(MORE, ["--devices", 4]), pytest.param(MORE, ["--devices", 2, "--shard"], marks=pytest.mark.exhaustive)],
    indirect=["alone"],
    ids=str,
)
def test_several_processes_have_the_curve_the_weights_and_the_files_of_one(corpus, tmp_path, alone, options):
    """Batches have 2 to 7 rows, so that some of four processes have none."""
    out = tmp_path / "run"
    alone, more = alone
    done = ended(start(command(corpus, out, *options, *more, batch_tokens=150)))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("best so far") == (alone / "train.log").read_text().count("best so far")
    assert losses(out) == pytest.approx(losses(alone), abs=1e-4)
    assert losses(out, "dev_loss") == pytest.approx(losses(alone, "dev_loss"), abs=1e-4)
    assert len(losses(out, "dev_bleu")) > 1
    torch.testing.assert_close(tensors(out), tensors(alone), rtol=0, atol=1e-4)
    assert {path.name for path in out.iterdir()} == {path.name for path in alone.iterdir()}
    step = f"checkpoints/step-{STEPS}"
    state, expected = ({
        name: tensor for name, tensor in tensors(folder / step, "training.safetensors").items()
        if not name.startswith("rng.")
    } for folder in (out, alone))  # fmt: skip
    torch.testing.assert_close(state, expected, rtol=0, atol=1e-4)


AS_ON_A_GPU = """
import sys
from glassformer.cli import main
from glassformer.training.step import TrainingStep
TrainingStep.can_use_graphs, TrainingStep.packs = True, bool(int(sys.argv.pop(1)))
main()
"""
"""Command line whose steps are those of a GPU, in fixed shapes with gradients and updates in place. On a CPU, functions
are called instead of graphs, and packed sequences have masks."""


@pytest.mark.exhaustive
@pytest.mark.parametrize(("packs", "size"), [(0, 4), (1, 2)], ids=["padded", "packed"])
def test_several_processes_with_graphs_have_the_curve_and_the_weights_of_one(
    corpus, tmp_path, monkeypatch, packs, size
):
    script = tmp_path / "as_on_a_gpu.py"
    script.write_text(AS_ON_A_GPU)
    more = ["--accumulate", 2, "--ema", 0.9]
    monkeypatch.setattr(TrainingStep, "can_use_graphs", True)
    monkeypatch.setattr(TrainingStep, "packs", bool(packs))
    one = tmp_path / "one"
    alone = glassformer(*command(corpus, one, *more, batch_tokens=150))
    out = tmp_path / "run"
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size), str(script), str(packs))
    done = ended(popen(*launcher, *command(corpus, out, *more, batch_tokens=150)))
    for each in (alone, done):
        assert each.returncode == 0, each.stderr
        assert "CUDA graphs" in each.stderr
    assert losses(out) == pytest.approx(losses(one), abs=1e-4)
    torch.testing.assert_close(tensors(out), tensors(one), rtol=0, atol=1e-4)


def test_a_killed_rank_is_named_and_the_resumed_run_ends_with_the_same_weights(corpus, tmp_path):
    more = [*MORE, "--shard"]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    options = {"dropout": 0.1, "devices": 2, "steps": 12, "save_every": 2, "validate_every": 6}
    assert ended(start(command(corpus, whole, *more, **options))).returncode == 0
    done = signaled(start(command(corpus, broken, *more, **options)), broken, 1, signal.SIGKILL, 4)
    assert done.returncode == 1
    assert "error: rank 1 " in done.stderr
    assert "SIGKILL" in done.stderr
    assert "Traceback" not in done.stderr
    done = ended(start(command(corpus, broken, *more, **options)))
    assert "Resuming from step" in done.stderr
    assert weights(broken) == weights(whole)
    state, expected = (tensors(out / "checkpoints/step-12", "training.safetensors") for out in (broken, whole))
    torch.testing.assert_close(state, expected, rtol=0, atol=0)


def test_a_signal_to_any_rank_saves_a_checkpoint_and_another_number_of_processes_resumes(corpus, tmp_path):
    out = tmp_path / "run"
    done = signaled(start(command(corpus, out, devices=2)), out, 1, signal.SIGTERM, 4)
    assert done.returncode == 143, done.stderr
    assert done.stderr.count("checkpoint saved") == 1
    assert "Traceback" not in done.stderr
    done = glassformer(*command(corpus, out))
    assert done.returncode == 0, done.stderr
    assert "written by a training with 2 processes; this one has 1" in done.stderr


def test_a_hung_rank_ends_the_job_within_the_time_limit_and_is_named(corpus, tmp_path):
    out = tmp_path / "run"
    process = start(command(corpus, out, devices=2, timeout_s=3), python=sys.executable)  # a fork would not be stopped
    reached(process, out, 4)
    pids = pids_by_rank()
    os.kill(pids[1], signal.SIGSTOP)
    while Path(f"/proc/{pids[0]}").exists():
        time.sleep(0.1)
    os.kill(pids[1], signal.SIGKILL)  # as the launcher does after 30 s
    done = ended(process)
    assert done.returncode == 1
    assert "error: rank 1: ended, or has not answered for 3 s (--timeout-s)" in done.stderr


def test_torchrun_restarts_from_the_last_checkpoint(corpus, tmp_path):
    out = tmp_path / "run"
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--max-restarts", "1")
    done = signaled(start(command(corpus, out), launcher), out, 1, signal.SIGKILL, 8)
    assert done.returncode == 0, done.stderr
    assert "Resuming from step" in done.stderr


def test_a_wrong_option_is_one_message(corpus, tmp_path):
    wrong = command(corpus, tmp_path / "run", devices=2, dev_src=tmp_path / "none")
    done = ended(start(wrong))
    assert done.returncode == 1
    assert done.stderr.count("error:") == 1, done.stderr
    assert "Traceback" not in done.stderr
