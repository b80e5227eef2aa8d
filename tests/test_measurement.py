import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from glassformer import measurement as m


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "glassformer"


class Work:
    """Functions that are as slow as they are told to be, and their calls."""

    def __init__(self, monkeypatch, **seconds):
        self.calls, self.now = [], 0.0
        monkeypatch.setattr(m.time, "perf_counter", lambda: self.now)
        self.candidates = {name: lambda name=name, s=s: self.run(name, s) for name, s in seconds.items()}

    def run(self, name, seconds):
        self.calls.append(name)
        self.now += seconds


def test_the_fastest_is_chosen_with_its_rate(monkeypatch):
    choice = m.choose("test", Work(monkeypatch, slow=0.2, fast=0.1).candidates, 3.0, {})
    assert (choice.name, choice.is_new) == ("fast", True)
    assert choice.rates == pytest.approx({"slow": 15, "fast": 30})


def test_of_nearly_equal_ones_the_first_is_chosen(monkeypatch):
    assert m.choose("test", Work(monkeypatch, first=0.104, second=0.1).candidates, 1, {}).name == "first"
    assert m.choose("test", Work(monkeypatch, first=0.106, second=0.1).candidates, 1, {"n": 1}).name == "second"


def test_a_measurement_has_one_round_beyond_its_time(monkeypatch):
    work = Work(monkeypatch, a=1.0, b=1.0)
    m.choose("test", work.candidates, 1, {})
    assert work.calls == ["a", "b"] * 2


def test_a_choice_is_kept_for_equal_keys_only(monkeypatch):
    m.choose("test", Work(monkeypatch, a=0.2, b=0.1).candidates, 1, {"n": 1})
    work = Work(monkeypatch, a=0.1, b=0.2)
    kept = m.choose("test", work.candidates, 1, {"n": 1})
    assert (kept.name, kept.is_new, work.calls) == ("b", False, [])
    assert m.choose("test", work.candidates, 1, {"n": 2}).name == "a"
    monkeypatch.setattr(m, "processor", lambda: "another")
    assert m.choose("test", work.candidates, 1, {"n": 1}).name == "a"


def test_the_first_process_decides(monkeypatch):
    """While this one measures, another finishes with another result."""
    candidates = dict.fromkeys("ab", lambda: None)

    def measure(_):
        monkeypatch.setattr(m, "measure", lambda _: {"a": 0.2, "b": 0.1})
        m.choose("test", candidates, 1, {})
        return {"a": 0.1, "b": 0.2}

    monkeypatch.setattr(m, "measure", measure)
    assert m.choose("test", candidates, 1, {}).name == "b"


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"name": "c", "rates": {}}', '{"name": "a", "rates": {"a": 1}}'])
def test_a_damaged_file_is_replaced(content, cache, monkeypatch):
    m.choose("test", Work(monkeypatch, a=0.2, b=0.1).candidates, 1, {})
    (path,) = cache.iterdir()
    path.write_text(content)
    assert m.choose("test", Work(monkeypatch, a=0.1, b=0.2).candidates, 1, {}).name == "a"
    assert json.loads(path.read_text())["name"] == "a"


def test_the_choice_of_a_busy_machine_is_kept_for_an_hour(cache, monkeypatch):
    waited = [0.0]
    monkeypatch.setattr(m, "seconds_waited", lambda: waited[0])

    def choice(share=0.0, **seconds):
        work = Work(monkeypatch, **seconds)
        run = work.run
        work.run = lambda name, s: (run(name, s), waited.__setitem__(0, waited[0] + share * s))
        return m.choose("test", work.candidates, 1, {})

    assert not choice(0.05, a=0.2, b=0.1).is_busy
    next(cache.iterdir()).unlink()
    found = choice(0.3, a=0.2, b=0.1)
    assert (found.name, found.is_busy) == ("b", True)
    assert found.when == "now while the machine was busy (again after an hour)"
    found = choice(a=0.1, b=0.2)
    assert (found.name, found.is_busy, found.is_new) == ("b", True, False)
    (path,) = cache.iterdir()
    os.utime(path, (0, time.time() - m.BUSY_CHOICE_S - 9))
    found = choice(a=0.1, b=0.2)
    assert (found.name, found.is_busy, found.when) == ("a", False, "now")
    os.utime(path, (0, 0))
    assert choice(a=0.2, b=0.1).name == "a"


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the system does not tell it")
def test_waiting_for_a_core_is_measured():
    cores = os.sched_getaffinity(0)
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        for pid in (0, other.pid):
            os.sched_setaffinity(pid, {min(cores)})
        before, end = m.seconds_waited(), time.perf_counter() + 0.3
        while time.perf_counter() < end:
            pass
        assert m.seconds_waited() - before > 0.3 * m.MAX_WAITING
    finally:
        os.sched_setaffinity(0, cores)
        other.kill()
        other.wait()


def test_without_a_cache_directory_each_call_measures(monkeypatch, tmp_path):
    (tmp_path / "glassformer").write_text("a file")
    for _ in range(2):
        assert m.choose("test", Work(monkeypatch, a=0.2, b=0.1).candidates, 1, {}).is_new


def test_time_is_measured_by_the_clock():
    seconds = m.measure({"sleep": lambda: time.sleep(0.01)})
    assert seconds["sleep"] >= 0.01


def test_without_a_home_each_call_measures(monkeypatch):
    def home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", home)
    for _ in range(2):
        assert m.choose("test", Work(monkeypatch, a=0.2, b=0.1).candidates, 1, {}).is_new
