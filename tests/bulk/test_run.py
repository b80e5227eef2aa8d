"""Runs over files, with a computation that is plain to see."""

import gzip
import itertools
import random
import sys
from functools import partial
from pathlib import Path

import pytest

from glassformer.bulk import chunks as chunks_module
from glassformer.bulk import records as records_module
from glassformer.bulk import run as run_module
from glassformer.bulk.folder import output_folder
from glassformer.bulk.outputs import ENTRY_BYTES, Processor
from glassformer.bulk.records import Records
from glassformer.bulk.run import Run, Source
from glassformer.bulk.workers import Processes, ThisProcess
from glassformer.corpora.lines import read_lines
from glassformer.errors import ConfigError, CorpusError, UserError


def upper(items, warn):
    """Upper-case lines; a line of "bad" fails, and there is something to say about "odd"."""
    for i, item in enumerate(items):
        if item == "bad":
            raise CorpusError("bad.\n  Do something.")
        if item == "odd":
            warn(i, "is odd")
    return [item.upper() for item in items]


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """Two files of a few chunks, with equal lines in them."""
    monkeypatch.setattr(chunks_module, "CHUNK_ITEMS", 4)
    monkeypatch.setattr(run_module, "CHUNK_ITEMS", 4)
    rng = random.Random(1)
    lines = {name: [rng.choice(["a", "b", "", "né 🙂"]) + str(rng.randrange(9)) for _ in range(n)] for name, n in NAMES}
    for name, text in lines.items():
        data = "".join(line + "\n" for line in text).encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return tmp_path


NAMES = [("one.txt", 18), ("two.gz", 9)]


def start(folder, *, shard=(1, 1), compute=upper, out="out", workers=None, names=("one.txt", "two.gz"), log=None):
    out = folder / out
    (out / ".bulk" / f"{shard[0]}-of-{shard[1]}").mkdir(parents=True, exist_ok=True)
    sources = [Source(folder / name, out / name, name, partial(read_lines, folder / name)) for name in names]
    run = Run(out, workers or ThisProcess(Processor(compute)), shard, log or (lambda message: None))
    try:
        return run.run(sources)
    finally:
        run.close()


def text_of(path):
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def check(folder, out="out"):
    for name, _ in NAMES:
        assert text_of(folder / out / name) == text_of(folder / name).upper()
    assert not list((folder / out / ".bulk" / "chunks").rglob("*/*"))


def test_the_outputs_are_those_of_the_lines_in_order(corpus):
    summary = start(corpus)
    check(corpus)
    assert (summary.n_files, summary.n_items, summary.n_kept) == (2, 27, 0)
    assert summary.n_known > 0
    again = start(corpus, compute=None)
    assert (again.n_files, again.n_before, again.n_items) == (0, 2, 0)


class Crash(BaseException):
    """The process ends here."""


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
def test_a_run_that_ends_at_any_change_of_the_disk_goes_on_to_the_same_bytes(corpus, monkeypatch, after):
    """Each change is once the last: it is not done, or it is done and nothing after it."""
    start(corpus, out="whole")
    for last in range(1, 100):
        n_done = 0

        def crash(real, last, *arguments, **options):
            nonlocal n_done
            n_done += 1
            is_last = n_done == last
            if is_last and not after:
                raise Crash
            result = real(*arguments, **options)
            if is_last:
                raise Crash
            return result

        def counted(real, last):
            return lambda *arguments, **options: crash(real, last, *arguments, **options)

        out = f"out-{last}"
        with monkeypatch.context() as patch:
            for owner, name in CHANGES:
                patch.setattr(owner, name, counted(getattr(owner, name), last))
            try:
                start(corpus, out=out)
            except Crash:
                pass
            else:
                assert last > 15
                break
        assert not start(corpus, out=out).failed
        check(corpus, out)
        for name, _ in NAMES:
            assert (corpus / out / name).read_bytes() == (corpus / "whole" / name).read_bytes()


CHANGES = [(run_module, "replace_file"), (Records, "add"), (run_module.os, "replace"), (run_module.shutil, "rmtree")]


def test_a_file_is_flushed_with_its_name_before_its_chunks_are_removed(corpus, monkeypatch):
    calls = []
    for name in ("sync_folder", "make_folder"):
        original = getattr(run_module, name)
        monkeypatch.setattr(
            run_module, name, lambda folder, do=original, n=name: (calls.append((n, folder)), do(folder))
        )
    remove = run_module.Run.remove_chunks
    monkeypatch.setattr(
        run_module.Run, "remove_chunks", lambda run, source: (calls.append("removed"), remove(run, source))
    )
    start(corpus, names=["one.txt"])
    assert calls[-2:] == [("sync_folder", corpus / "out"), "removed"]


def test_the_file_of_the_records_is_flushed_with_its_name(corpus, monkeypatch):
    flushed = []
    monkeypatch.setattr(records_module, "sync_folder", flushed.append)
    start(corpus, names=["one.txt"])
    assert flushed == [corpus / "out" / ".bulk" / "1-of-1"]


def test_a_record_that_a_kill_cut_off_is_dropped_and_a_damaged_one_is_an_error(corpus):
    with pytest.raises(UserError):
        start(corpus, compute=fail_after(3))
    path = corpus / "out/.bulk/1-of-1/manifest.jsonl"
    content = path.read_bytes()
    path.write_bytes(content[:-9])
    start(corpus)
    check(corpus)
    path.write_bytes(b"{}\n" + content)
    with pytest.raises(UserError, match=r"manifest.jsonl: the line that begins b'\{\}' is damaged"):
        start(corpus)


def fail_after(n):
    """A computation that ends the run after some chunks."""
    calls = iter(range(n))

    def compute(items, warn):
        if next(calls, None) is None:
            raise ConfigError("the end")
        return upper(items, warn)

    return compute


def test_chunks_whose_input_changed_or_whose_output_was_lost_are_done_again_and_named(corpus):
    with pytest.raises(ConfigError):
        start(corpus, compute=fail_after(4))
    lines = (corpus / "one.txt").read_text().split("\n")
    lines[5] = "changed"
    (corpus / "one.txt").write_text("\n".join(lines))
    (corpus / "out/.bulk/chunks/one.txt/000002").write_text("DAMAGED\n")
    messages = []
    summary = start(corpus, log=messages.append)
    check(corpus)
    assert summary.n_kept == 8
    assert [m for m in messages if "one.txt: 2 chunks done before, but changed or lost since (from line 5)" in m]


def test_an_output_that_was_changed_is_not_overwritten_and_one_that_was_removed_is_made_again(corpus):
    start(corpus)
    (corpus / "out/one.txt").write_text("mine\n")
    (corpus / "out/two.gz").unlink()
    messages = []
    summary = start(corpus, log=messages.append)
    assert list(summary.failed) == [corpus / "one.txt"]
    assert "was changed since it was written" in messages[0]
    assert (corpus / "out/one.txt").read_text() == "mine\n"
    assert text_of(corpus / "out/two.gz") == text_of(corpus / "two.gz").upper()


def test_a_file_of_others_is_not_overwritten(corpus):
    (corpus / "out").mkdir()
    (corpus / "out/two.gz").write_text("mine")
    summary = start(corpus)
    assert "exists already" in summary.failed[corpus / "two.gz"]
    assert (corpus / "out/two.gz").read_text() == "mine"


def test_an_input_that_changed_after_its_output_was_put_together_is_done_again(corpus):
    start(corpus)
    (corpus / "one.txt").write_text("other\n")
    start(corpus)
    check(corpus)


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2), (2, 3, 1)])
def test_shards_do_all_chunks_once_and_the_last_puts_the_files_together(corpus, order):
    start(corpus, out="whole")
    summaries = [start(corpus, shard=(i, 3)) for i in order]
    check(corpus)
    assert sum(summary.n_items for summary in summaries) == 27
    assert sum(summary.n_files for summary in summaries) == 2
    assert all(summary.n_items for summary in summaries)
    for name, _ in NAMES:
        assert (corpus / "out" / name).read_bytes() == (corpus / "whole" / name).read_bytes()


def test_shards_that_put_a_file_together_at_the_same_time_do_not_disturb_each_other(corpus, monkeypatch):
    """Their processes may have equal numbers, on several machines. One begins when the other has nearly ended."""
    start(corpus, shard=(1, 2))

    def crash(path):
        raise Crash

    def with_another_shard(path, sha256=run_module.sha256):
        if path.name.startswith("joined"):
            monkeypatch.setattr(run_module, "sha256", sha256)
            with monkeypatch.context() as patch:
                patch.setattr(Path, "read_bytes", crash)
                with pytest.raises(Crash):
                    start(corpus, shard=(1, 2))
        return sha256(path)

    monkeypatch.setattr(run_module, "sha256", with_another_shard)
    start(corpus, shard=(2, 2))
    check(corpus)


def test_an_output_that_was_deleted_is_made_again_by_all_shards(corpus):
    for i in (1, 2):
        start(corpus, shard=(i, 2))
    expected = text_of(corpus / "out" / "one.txt")
    (corpus / "out" / "one.txt").unlink()
    first = start(corpus, shard=(1, 2))
    assert first.waiting == [corpus / "one.txt"]
    assert first.n_before == 1  # the other file
    second = start(corpus, shard=(2, 2))
    assert not second.waiting
    assert text_of(corpus / "out" / "one.txt") == expected


def test_a_file_that_other_shards_put_together_meanwhile_is_not_taken_for_that_of_others(corpus):
    (corpus / "out/.bulk/1-of-2").mkdir(parents=True)
    sources = [
        Source(corpus / name, corpus / "out" / name, name, partial(read_lines, corpus / name)) for name, _ in NAMES
    ]
    early = Run(
        corpus / "out", ThisProcess(Processor(upper)), (1, 2)
    )  # it has read the records, of which there are none
    start(corpus)
    summary = early.run(sources)
    early.close()
    assert (summary.failed, summary.n_before, summary.n_items) == ({}, 2, 0)


def test_a_file_that_cannot_be_read_does_not_stop_the_others(corpus):
    (corpus / "bad.txt").write_bytes(b"a\nb\nc\nd\n\xff\n")
    (corpus / "empty.txt").write_bytes(b"")
    summary = start(corpus, names=("bad.txt", "empty.txt", "none.txt", "one.txt", "two.gz"))
    assert [path.name for path in summary.failed] == ["bad.txt", "empty.txt", "none.txt"]
    assert "bad.txt:5: not UTF-8" in summary.failed[corpus / "bad.txt"]
    check_only = [name for name, _ in NAMES]
    assert sorted(path.name for path in (corpus / "out").iterdir()) == [".bulk", *check_only]


def test_lines_that_fail_are_records_with_their_numbers_and_their_outputs_are_empty(corpus):
    lines = ["a", "b", "c", "d", "e", "bad", "odd", "bad", "odd"]
    (corpus / "one.txt").write_text("".join(line + "\n" for line in lines))
    for n_before in (0, 1):
        summary = start(corpus, names=("one.txt",))
        assert summary.n_before == n_before
        assert summary.n_failed_items == 2
        assert summary.failed_items == [(corpus / "one.txt", 6, "bad."), (corpus / "one.txt", 8, "bad.")]
        assert summary.warned == {"is odd": 2}
    assert (corpus / "out/one.txt").read_text().split("\n") == ["A", "B", "C", "D", "E", "", "ODD", "", "ODD", ""]


def test_an_error_that_is_not_of_the_input_ends_the_run(corpus):
    with pytest.raises(ZeroDivisionError):
        start(corpus, compute=lambda items, warn: 1 / 0)


def test_two_items_that_fail_side_by_side_do_not_end_the_run():
    def compute(items, warn):
        if 3 in map(len, items):
            raise ZeroDivisionError
        return items

    outputs = Processor(compute)(["a", "bb", "ccc", "ddd"])
    assert outputs.texts == ["a", "bb", "", ""]
    assert outputs.failed == [(2, "ZeroDivisionError"), (3, "ZeroDivisionError")]


def test_the_folder_belongs_to_one_model_and_one_run_at_a_time(tmp_path):
    with output_folder(tmp_path / "out", (1, 1), {"model": "a", "--beam": 4}):
        with pytest.raises(UserError, match="another process"), output_folder(tmp_path / "out", (1, 1), {}):
            pass
        with output_folder(tmp_path / "out", (1, 2), {"model": "a", "--beam": 4}):
            pass
    for identity, what in [({"model": "b", "--beam": 4}, "model"), ({"model": "a"}, "without --beam")]:
        with pytest.raises(ConfigError, match=what), output_folder(tmp_path / "out", (1, 1), identity):
            pass


WORKER = """
import json, os, pathlib, sys
flag = pathlib.Path(sys.argv[1])
for line in sys.stdin:
    value = json.loads(line)
    if isinstance(value, dict):
        print(json.dumps({"error": "no model", "exit_code": 2} if value.get("bad") else {}), flush=True)
        continue
    if not flag.exists() or sys.argv[2] == "always":
        flag.touch()
        os.kill(os.getpid(), 9)
    print(json.dumps({"texts": [item.upper() for item in value]}), flush=True)
"""


def test_a_process_that_is_killed_is_started_again(corpus, capfd):
    start(corpus, workers=Processes(2, [sys.executable, "-c", WORKER, str(corpus / "flag"), "once"], {}))
    check(corpus)
    assert "a worker ended (signal 9): done again" in capfd.readouterr().err


def test_processes_that_are_killed_again_and_again_end_the_run(corpus):
    with pytest.raises(UserError, match="3 workers ended"):
        start(corpus, workers=Processes(2, [sys.executable, "-c", WORKER, str(corpus / "flag"), "always"], {}))


def test_an_error_of_the_job_is_that_of_the_process(corpus):
    with pytest.raises(ConfigError, match="no model"):
        Processes(2, [sys.executable, "-c", WORKER, str(corpus / "flag"), "once"], {"bad": True})
    with pytest.raises(UserError, match="ended when it started"):
        Processes(2, [sys.executable, "-c", "raise SystemExit(3)"], {})


def test_what_is_known_is_bounded_and_what_was_used_last_is_kept():
    seen = []

    def compute(items, warn):
        seen.extend(items)
        return [item.upper() for item in items]

    processor = Processor(compute, max_bytes=2 * (2 + 2 + ENTRY_BYTES))
    for items in (["aa"], ["bb"], ["aa"], ["cc"], ["aa", "bb"]):
        assert processor(items).texts == [item.upper() for item in items]
    assert seen == ["aa", "bb", "cc", "bb"]
    assert processor.n_bytes <= processor.max_bytes


def test_equal_items_are_computed_each_where_an_output_does_not_depend_on_the_item_alone():
    numbers = itertools.count()
    processor = Processor(lambda items, warn: [str(next(numbers)) for _ in items], keep=False)
    assert processor(["a", "a", "b"]).texts == ["0", "1", "2"]
