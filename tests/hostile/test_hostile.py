"""A sample of the hostile cases. All of them: `python -m tests.hostile.run`."""

import os
import subprocess
import sys

import pytest

from tests.hostile.case import either, fails, works
from tests.hostile.cases import all_cases
from tests.hostile.run import Result, judge, sample

N_SAMPLE = 60


def test_a_sample_has_cases_of_every_group():
    cases = all_cases()
    chosen = sample(cases, N_SAMPLE)
    assert len(chosen) == len({case.id for case in chosen}) == N_SAMPLE
    assert {case.group for case in chosen} == {case.group for case in cases}
    assert chosen == sample(cases, N_SAMPLE)


def test_there_are_as_many_cases_as_were_run_first():
    assert len(all_cases()) >= 1581


@pytest.mark.parametrize(
    ("expect", "result", "verdict"),
    [
        (fails(1), (1, b"", "error: no such file\n"), "ok"),
        (fails(1), (2, b"", "error: no such file\n"), "wrong exit code"),
        (fails(1), (0, b"", ""), "silent wrong"),
        (fails(1), (None, b"", ""), "hang"),
        (fails(1), (1, b"", "Traceback (most recent call last):\nKeyError\n"), "traceback"),
        (fails(1), (-11, b"", ""), "traceback"),
        (fails(1), (1, b"", ""), "wrong message"),
        (fails(1), (1, b"", "error: a\nerror: b\n"), "wrong message"),
        (fails(1, says="file.tsv"), (1, b"", "error: no such file\n"), "wrong message"),
        (fails(1), (1, b"an answer\n", "error: no such file\n"), "silent wrong"),
        (works(2), (0, b"a\nb\n", ""), "ok"),
        (works(2), (0, b"a\n", ""), "silent wrong"),
        (works(), (0, b"a\n", "error: none\n"), "wrong exit code"),
        (works(warns=("line 3",)), (0, b"", ""), "silent wrong"),
        (either(1), (0, b"", ""), "ok"),
        (either(1), (1, b"", "error: x\n"), "ok"),
    ],
)
def test_verdicts(tmp_path, expect, result, verdict):
    class Tried:
        id = "x"

    Tried.expect = expect
    assert judge(Tried, Result(*result, (), tmp_path, 0.1))[0] == verdict


def test_a_changed_file_is_silent_wrong(tmp_path):
    class Tried:
        expect = works()

    assert judge(Tried, Result(0, b"", "", ("thesis.txt",), tmp_path, 0.1))[0] == "silent wrong"


@pytest.mark.slow
def test_a_sample_of_hostile_cases():
    # A process of its own: each case is a fork, which needs a process that has not started threads.
    command = [sys.executable, "-m", "tests.hostile.run", "--sample", str(N_SAMPLE), "--jobs", "1", "--verbose"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "JAXTYPING_DISABLE": "1"})
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2000:]
