"""The outputs of items on disk."""

import sqlite3
import subprocess
import sys

import pytest

from glassformer.bulk.cache import Cache
from glassformer.bulk.outputs import Processor
from glassformer.errors import CorpusError, UserError


def counted(calls):
    """Upper-case lines, and count what is computed. "bad" fails, "odd" has a warning."""

    def compute(items, warn):
        for i, item in enumerate(items):
            if item == "bad":
                raise CorpusError("bad.\n  Do something.")
            if item == "odd":
                warn(i, "is odd")
        calls.extend(items)
        return [str(item).upper() for item in items]

    return compute


def open_cache(tmp_path, *, identity=None, **options):
    return Cache(tmp_path / "cache", identity or {"model": "a"}, **options)


def outputs(tmp_path, items, calls, **options):
    cache = open_cache(tmp_path, **options)
    try:
        return Processor(counted(calls), cache=cache)(items)
    finally:
        cache.close()


ITEMS = ["a", "odd", "né \ud800", ["a", "b"], ["a, b"], "bad", "", "a"]


def test_what_was_computed_once_is_taken_with_its_warnings_and_what_failed_is_tried_again(tmp_path):
    calls = []
    first = outputs(tmp_path, ITEMS, calls)
    assert len(calls) == 6
    again = outputs(tmp_path, ITEMS, calls)
    assert len(calls) == 6
    assert (again.texts, again.failed, again.warned) == (first.texts, first.failed, first.warned)
    assert first.warned == [(1, "is odd")]
    assert [i for i, _ in first.failed] == [5]
    assert again.n_known == 7


def test_outputs_of_another_model_or_other_options_are_not_taken(tmp_path):
    calls = []
    outputs(tmp_path, ["a"], calls)
    outputs(tmp_path, ["a"], calls, identity={"model": "b"})
    outputs(tmp_path, ["a"], calls, identity={"model": "a", "--beam": 5})
    assert calls == ["a", "a", "a"]


def test_a_damaged_output_is_computed_again(tmp_path):
    calls = []
    outputs(tmp_path, ["a", "b"], calls)
    db = sqlite3.connect(tmp_path / "cache")
    db.execute("""UPDATE outputs SET output = '["X", []]' WHERE output = '["A", []]'""")
    db.commit()
    db.close()
    assert outputs(tmp_path, ["a", "b"], calls).texts == ["A", "B"]
    assert calls == ["a", "b", "a"]
    assert outputs(tmp_path, ["a", "b"], calls).texts == ["A", "B"]
    assert len(calls) == 3


def test_the_size_is_bounded_and_what_was_added_first_is_dropped(tmp_path):
    calls = []
    limit = 200_000
    for i in range(60):
        outputs(tmp_path, [f"{i} {j} {'x' * 100}" for j in range(50)], calls, max_bytes=limit)
        assert (tmp_path / "cache").stat().st_size < 2 * limit
    n = len(calls)
    outputs(tmp_path, [f"59 {j} {'x' * 100}" for j in range(50)], calls, max_bytes=limit)
    assert len(calls) == n
    outputs(tmp_path, [f"0 {j} {'x' * 100}" for j in range(50)], calls, max_bytes=limit)
    assert len(calls) == n + 50


def test_more_items_than_one_question_asks_for(tmp_path):
    calls = []
    items = [str(i) for i in range(1300)]
    outputs(tmp_path, items, calls)
    assert outputs(tmp_path, items, calls).texts == items
    assert len(calls) == 1300


@pytest.mark.parametrize("data", [b"not a database" * 100, b""])
def test_a_file_that_is_no_cache_is_an_error_and_stays(tmp_path, data):
    path = tmp_path / "cache"
    path.write_bytes(data)
    if not data:  # an empty file is an empty database
        open_cache(tmp_path).close()
        return
    with pytest.raises(UserError, match=r"cannot be used as a cache.*\n.*a new file"):
        open_cache(tmp_path)
    assert path.read_bytes() == data


def test_a_folder_or_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(UserError, match=r"is a folder\.\n  Name a file"):
        Cache(tmp_path, {})
    with pytest.raises(UserError, match="none: no such folder"):
        Cache(tmp_path / "none" / "cache", {})


def test_several_processes_write_at_a_time(tmp_path):
    program = (
        "import sys; from pathlib import Path; from glassformer.bulk.cache import Cache\n"
        "cache = Cache(Path(sys.argv[1]), {})\n"
        "for i in range(100):\n"
        "    items = [f'{i} {j}' for j in range(20)]\n"
        "    known = cache.get(items)\n"
        "    assert all(output in (None, (item, ())) for item, output in zip(items, known))\n"
        "    cache.put(items, [(item, ()) for item in items])\n"
    )
    started = [subprocess.Popen([sys.executable, "-c", program, tmp_path / "cache"]) for _ in range(3)]
    assert [process.wait() for process in started] == [0, 0, 0]
    cache = Cache(tmp_path / "cache", {})
    assert cache.get(["99 19"]) == [("99 19", ())]
    cache.close()
