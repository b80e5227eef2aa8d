"""Streams that are closed, full, endless or readable only once: one clear error, never a traceback or a wait."""

import os
import subprocess
import sys
import threading

import pytest

from glassformer import limits
from tests.journeys.conftest import ENVIRONMENT, glassformer, write_lines
from tests.journeys.test_bad_input import refused


def shell(command: str) -> subprocess.CompletedProcess:
    """Run a line of the shell in which `glassformer` is the command."""
    line = command.replace("glassformer", f"{sys.executable} -m glassformer")
    return subprocess.run(["sh", "-c", line], env=ENVIRONMENT, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    "command",
    [
        "glassformer doctor {pairs} --json > /dev/full",
        *(
            pytest.param(command, marks=pytest.mark.slow)
            for command in (
                "glassformer run {model} --beam 1 --max-length 3 <&-",
                "glassformer run {model} --beam 1 --max-length 3 < {text} >&-",
                "glassformer translate {model} --beam 1 --max-length 3 < {text} > /dev/full",
                "glassformer info {model} >&-",
                "glassformer evaluate {model} --src {pairs} --beam 1 --max-length 3 > /dev/full",
            )
        ),
    ],
)
def test_a_stream_that_is_closed_or_full_is_one_error(model, tmp_path, command):
    pairs = write_lines(tmp_path / "pairs.tsv", ["The cat.\tLe chat."])
    text = write_lines(tmp_path / "text.txt", ["The cat."])
    done = shell(command.format(model=model, pairs=pairs, text=text))
    refused(done, 1, "standard input" if "<&-" in command else "the output cannot be written")
    assert done.stderr.count("error") == 1


@pytest.mark.slow
def test_an_error_is_told_when_nothing_can_be_written(tmp_path):
    refused(shell(f"glassformer info {tmp_path}/none > /dev/full"), 1, "no such folder")
    assert shell(f"glassformer info {tmp_path}/none >&- 2>&-").returncode == 1


def test_an_output_file_that_cannot_be_written_is_named_before_the_work(model, tmp_path):
    pairs = write_lines(tmp_path / "pairs.tsv", ["The cat.\tLe chat."])
    for out in (tmp_path, tmp_path / "none" / "out.txt", "/proc/out.txt"):
        refused(glassformer("evaluate", model, "--src", pairs, "--out", out), 1, str(out))
    refused(glassformer("demo", "--out", "/proc/demo", "--steps", 2, "--pairs", 20), 1, "/proc/")
    refused(glassformer("doctor", pairs, "--fix", "/proc/fixed"), 1, "/proc/fixed")


@pytest.fixture
def pipe():
    """A function that gives the path of a pipe with these lines in it, as the shell's <(...) does."""
    ends = []

    def make(lines) -> str:
        end, write = os.pipe()
        ends.append(end)
        os.write(write, "".join(f"{line}\n" for line in lines).encode())
        os.close(write)
        return f"/dev/fd/{end}"

    yield make
    for end in ends:
        os.close(end)


def test_doctor_and_train_refuse_a_pipe_by_name(pipe, tmp_path):
    for command in (
        ["doctor"],
        ["train", "--out", tmp_path / "run"],
        ["train", "--task", "translation", "--out", tmp_path],
    ):
        paths = [pipe(["The cat."] * 30), pipe(["Le chat."] * 30)]
        refused(glassformer(command[0], *paths, *command[1:]), 2, f"{paths[0]}: a pipe", "can be read only once")
        path = pipe(["The cat.\tLe chat."])
        refused(glassformer("doctor", path, "--format", "tsv"), 2, f"{path}: a pipe", "can be read only once")


def test_a_pipe_is_read_where_its_text_is_needed_once(model, pipe):
    done = glassformer("score", model, "--src", pipe(["The cat."]), "--tgt", pipe(["Le chat."]))
    assert (done.returncode, done.stdout.count("\n")) == (0, 1), done.stderr


def test_a_named_pipe_without_a_writer_is_an_error(model, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MAX_PIPE_WAIT_S", 0.1)
    os.mkfifo(tmp_path / "pipe")
    text = write_lines(tmp_path / "text.fr", ["Le chat."])
    done = glassformer("score", model, "--src", tmp_path / "pipe", "--tgt", text)
    refused(done, 1, "pipe: a pipe that no program has opened for writing")


def test_a_named_pipe_is_read_to_its_end(model, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    text = write_lines(tmp_path / "text.fr", ["Le chat.", "Le chien."])
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text("The cat.\nThe dog.\n"), daemon=True)
    writer.start()
    done = glassformer("score", model, "--src", tmp_path / "pipe", "--tgt", text)
    assert (done.returncode, done.stdout.count("\n")) == (0, 2), done.stderr


def test_a_device_is_no_text_file(model, tmp_path):
    text = write_lines(tmp_path / "text.fr", ["Le chat."])
    refused(glassformer("score", model, "--src", "/dev/zero", "--tgt", text), 1, "/dev/zero: is a device")
    refused(glassformer("train", "/dev/zero", text, "--out", tmp_path / "run"), 2, "/dev/zero: a pipe or device")
    refused(glassformer("train", text, text, "--out", tmp_path / "r", "--config", "/dev/zero"), 2, "not a regular file")


@pytest.mark.slow
def test_endless_input_without_a_line_end_is_an_error(model):
    refused(shell(f"glassformer translate {model} < /dev/zero"), 1, "standard input: more than", "without a line end")
