import ast
import builtins
import contextlib
import errno
import json
import os
import random
import shutil
from pathlib import Path

import pytest
import torch

import glassformer
from glassformer import checkpoint, manifest
from glassformer.checkpoint import (
    delete_old,
    newest,
    save_folder,
    save_into_folder,
    step_folders,
    write_text,
)
from glassformer.errors import CheckpointError, FormatVersionError, UserError
from glassformer.manifest import FORMAT_VERSION, MANIFEST, read_json, sha256, verified, verify


def contents(value: float = 1.0) -> dict:
    return {
        "config.json": checkpoint.to_json({"value": value, "name": "Ω"}),
        "model.safetensors": {"a.weight": torch.full((3, 7), value), "b": torch.arange(5)},
    }


def value_in(folder: Path) -> float:
    return read_json(folder / "config.json")["value"]


@pytest.fixture
def saved(tmp_path) -> Path:
    save_folder(tmp_path / "step-7", contents())
    return tmp_path / "step-7"


def test_a_saved_folder_verifies_and_loads_unchanged(saved):
    assert verify(saved)["files"].keys() == {"config.json", "model.safetensors"}
    assert read_json(saved / "config.json") == {"value": 1.0, "name": "Ω"}
    tensors = checkpoint.read_tensors(saved / "model.safetensors")
    assert torch.equal(tensors["a.weight"], torch.full((3, 7), 1.0))
    assert torch.equal(tensors["b"], torch.arange(5))


def test_views_are_saved_with_their_own_values(tmp_path):
    whole = torch.arange(77.0).view(7, 11)
    save_folder(tmp_path / "x", {"t.safetensors": {"turned": whole.T, "part": whole[::2, 3:5]}})
    tensors = checkpoint.read_tensors(tmp_path / "x" / "t.safetensors")
    assert torch.equal(tensors["turned"], whole.T)
    assert torch.equal(tensors["part"], whole[::2, 3:5])


def test_saving_leaves_no_temporary_files(saved):
    save_folder(saved, contents(2.0))
    assert [path.name for path in saved.parent.iterdir()] == ["step-7"]


def test_a_pipe_among_the_files_is_not_read(saved):
    (saved / "model.safetensors").unlink()
    os.mkfifo(saved / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"model\.safetensors: missing"), verified(saved):
        pytest.fail("the files were used")


def test_a_name_that_no_file_can_have_is_one_clear_error(saved):
    manifest = json.loads((saved / MANIFEST).read_text())
    manifest["files"]["a" * 396] = {"bytes": 1, "sha256": ""}
    (saved / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match=r"a{396}: (missing|cannot be read)"), verified(saved):
        pytest.fail("the files were used")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_flipped_bit_is_detected_and_its_file_reported(saved, name):
    rng, path = random.Random(3), saved / name
    data = path.read_bytes()
    for _ in range(61):
        damaged = bytearray(data)
        damaged[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=name):
            verify(saved)


def test_a_flipped_bit_in_the_manifest_raises_a_user_error_at_most(saved):
    rng, path = random.Random(3), saved / MANIFEST
    data = path.read_bytes()
    for _ in range(211):
        damaged = bytearray(data)
        damaged[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        with contextlib.suppress(FormatVersionError):  # the number of the version is flipped
            assert newest(saved.parent, report=lambda _: None) in (saved, None)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file_is_reported(saved, name):
    (saved / name).unlink()
    with pytest.raises(CheckpointError, match=rf"{name}: missing"):
        verify(saved)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_truncated_file_is_reported(saved, name):
    os.truncate(saved / name, 11)
    with pytest.raises(CheckpointError, match=rf"{name}: damaged"):
        verify(saved)


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(CheckpointError, match="no such folder"):
        verify(tmp_path / "nowhere")


def test_a_folder_without_a_manifest_is_not_a_model_folder(tmp_path):
    with pytest.raises(CheckpointError, match=MANIFEST):
        verify(tmp_path)


def rewrite(folder: Path, **changes) -> None:
    path = folder / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("version", [FORMAT_VERSION + 1, str(FORMAT_VERSION), None])
def test_another_format_version_is_reported_with_advice(saved, version):
    rewrite(saved, format_version=version)
    with pytest.raises(FormatVersionError, match=rf"format {version!r}.*\n.*version of glassformer"):
        verify(saved)


@pytest.mark.parametrize("version", [0, FORMAT_VERSION - 1])
def test_an_older_format_version_is_reported_with_the_version_that_wrote_it(saved, version):
    rewrite(saved, format_version=version, glassformer="0.0.7")
    with pytest.raises(FormatVersionError, match=rf"glassformer 0\.0\.7 in format {version};.*\n.*again"):
        verify(saved)


def test_checkpoints_of_another_version_only_are_an_error(saved):
    rewrite(saved, format_version=FORMAT_VERSION - 1)
    with pytest.raises(FormatVersionError):
        checkpoint.newest(saved.parent)


@pytest.mark.parametrize("name", ["../x", "/etc/hostname", "a/../../x", "sub/x", ".", "..", ""])
def test_a_manifest_cannot_list_files_outside_its_folder(saved, name):
    (saved.parent / "x").write_text("x")
    rewrite(saved, files={name: {"bytes": 1, "sha256": sha256(saved.parent / "x")}})
    with pytest.raises(CheckpointError):
        verify(saved)


@pytest.mark.parametrize("files", [None, 7, "x", ["x"], {"x": None}, {"x": {}}, {"x": {"bytes": "?", "sha256": ""}}])
def test_a_manifest_of_another_structure_is_damaged(saved, files):
    rewrite(saved, files=files)
    with pytest.raises(CheckpointError, match="damaged"):
        verify(saved)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "7", "[" * 100_000, '{"a": ' * 100_000, "\x00"])
def test_json_that_is_not_an_object_is_damaged(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(CheckpointError, match="damaged"):
        read_json(tmp_path / "x.json")


def test_json_beyond_its_limit_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(manifest, "MAX_JSON_BYTES", 11)
    (tmp_path / "x.json").write_text('{"a": "bcdefgh"}')
    with pytest.raises(CheckpointError, match="larger than 11 bytes"):
        read_json(tmp_path / "x.json")


@pytest.mark.parametrize("data", [b"", b"junk", b"\xff" * 97])
def test_files_that_are_not_safetensors_are_an_error(tmp_path, data):
    (tmp_path / "x.safetensors").write_bytes(data)
    with pytest.raises(CheckpointError, match=r"x\.safetensors"):
        checkpoint.read_tensors(tmp_path / "x.safetensors")


# Which folder is the newest


def test_steps_are_sorted_by_number(tmp_path):
    for n in (9, 100, 11):
        save_folder(tmp_path / f"step-{n}", contents())
    assert [path.name for path in step_folders(tmp_path)] == ["step-100", "step-11", "step-9"]


def test_a_damaged_newest_checkpoint_is_reported_and_skipped(tmp_path):
    for n in (1, 2, 3):
        save_folder(tmp_path / f"step-{n}", contents(n))
    (tmp_path / "step-3" / "config.json").write_text("{}")
    reports = []
    assert newest(tmp_path, report=reports.append) == tmp_path / "step-2"
    assert len(reports) == 1
    assert "step-3" in reports[0]


def test_newest_is_none_without_intact_checkpoints(tmp_path):
    assert newest(tmp_path / "nowhere") is None
    save_folder(tmp_path / "step-1", contents())
    (tmp_path / "step-1" / MANIFEST).unlink()
    assert newest(tmp_path, report=lambda _: None) is None


def test_pruning_keeps_the_newest_and_removes_leftovers(tmp_path):
    for n in (1, 2, 11, 3):
        save_folder(tmp_path / f"step-{n}", contents())
    (tmp_path / ".step-5.123.tmp").mkdir()
    (tmp_path / ".step-5.123.old").mkdir()
    delete_old(tmp_path, keep=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-11", "step-3"]


# Failing and dying at any instant

CALLS = [(os, "rename"), (os, "replace"), (os, "fsync"), (os, "mkdir"), (builtins, "open"), (os, "open")]


class Killed(BaseException):
    """Simulates SIGKILL: no code of the program catches it."""


class Calls:
    """Lets the first `n` system calls pass and raises at the next one; after a kill, also at all others."""

    def __init__(self, monkeypatch, n: int, error: BaseException) -> None:
        self.left, self.error, self.raised = n, error, False
        for owner, name in CALLS:
            monkeypatch.setattr(owner, name, self.counted(getattr(owner, name)))
        rmtree = shutil.rmtree
        monkeypatch.setattr(shutil, "rmtree", lambda *args, **kw: None if self.dead else rmtree(*args, **kw))

    @property
    def dead(self) -> bool:
        return self.raised and isinstance(self.error, Killed)

    def counted(self, call):
        def counting(*args, **kwargs):
            if self.dead or (self.left == 0 and not self.raised):
                self.raised = True
                raise self.error
            self.left -= not self.raised
            return call(*args, **kwargs)

        return counting


def at_every_call(monkeypatch, action, error_of):
    """Run an action repeatedly, interrupted one system call later each time; yields the exceptions."""
    for n in range(101):
        with monkeypatch.context() as patched:
            calls = Calls(patched, n, error_of())
            raised = None
            try:
                action()
            except BaseException as problem:
                raised = problem
        if not calls.raised:
            assert n > 5
            assert raised is None
            return
        yield n, raised
    raise AssertionError("more system calls than expected")


def test_after_a_kill_between_any_two_system_calls_the_newest_is_complete(tmp_path, monkeypatch):
    def again():
        shutil.rmtree(tmp_path / "c", ignore_errors=True)
        save_folder(tmp_path / "c" / "step-1", contents(1.0))

    again()
    for n, raised in at_every_call(monkeypatch, lambda: save_folder(tmp_path / "c" / "step-2", contents(2.0)), Killed):
        assert isinstance(raised, Killed)
        found = newest(tmp_path / "c", report=lambda line: pytest.fail(line))
        assert found is not None, f"nothing is left after a kill at call {n}"
        assert value_in(found) in (1.0, 2.0)
        again()


def test_the_folders_that_a_save_makes_are_flushed_with_the_saved_one(tmp_path, monkeypatch):
    flushed = []
    flush = checkpoint.sync_folder
    monkeypatch.setattr(checkpoint, "sync_folder", lambda folder: (flushed.append(folder), flush(folder)))
    save_folder(tmp_path / "run" / "checkpoints" / "step-1", contents())
    # benchmarks/powerloss.py: without these, a power failure can take the whole run away.
    assert flushed[:2] == [tmp_path, tmp_path / "run"]
    assert flushed[-1] == tmp_path / "run" / "checkpoints"


def test_the_manifest_comes_back_when_all_files_of_a_model_are_flushed(tmp_path, monkeypatch):
    calls = []
    replace, flush = os.replace, checkpoint.sync_folder
    monkeypatch.setattr(os, "replace", lambda old, new: (calls.append(Path(new).name), replace(old, new)))
    monkeypatch.setattr(checkpoint, "sync_folder", lambda folder: (calls.append("flush"), flush(folder)))
    for removal in ([], ["flush"]):  # a second time, the manifest is removed first
        calls.clear()
        save_into_folder(tmp_path / "model", contents())
        # benchmarks/powerloss.py: otherwise a power failure can leave a manifest without its files.
        assert calls == [*removal, *contents(), "flush", MANIFEST, "flush"]


def test_a_save_after_a_kill_succeeds(tmp_path, monkeypatch):
    target = tmp_path / "step-2"
    for _ in at_every_call(monkeypatch, lambda: save_folder(target, contents(2.0)), Killed):
        save_folder(target, contents(3.0))
        assert value_in(target) == 3.0
        verify(target)
        shutil.rmtree(target)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_at_any_write_is_an_error_and_leaves_the_folder_unchanged(saved, monkeypatch, number):
    writes = checkpoint.write_synced
    for n in range(3):
        left = iter([True] * n)

        def full(path, data, left=left):
            if next(left, False):
                return writes(path, data)
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(checkpoint, "write_synced", full)
        with pytest.raises(UserError, match=r"the disk is full.*\n.*Free disk space"):
            save_folder(saved, contents(2.0))
        verify(saved)
        assert value_in(saved) == 1.0
        assert [path.name for path in saved.parent.iterdir()] == ["step-7"]


def test_a_full_disk_at_any_flush_leaves_the_folder_unchanged(saved, monkeypatch):
    flush = os.fsync
    for n in range(4):
        left = iter([True] * n)

        def full(descriptor, left=left):
            if next(left, False):
                return flush(descriptor)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(UserError, match="the disk is full"):
            save_folder(saved, contents(2.0))
        verify(saved)
        assert value_in(saved) == 1.0


def test_a_path_that_cannot_be_written_is_reported(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match="cannot be written"):
        save_folder(tmp_path / "file" / "step-1", contents())


# Single files, and models next to other files


def test_a_model_is_saved_into_a_folder_with_other_files(tmp_path):
    (tmp_path / "run.toml").write_text("x")
    for value in (1.0, 2.0):
        save_into_folder(tmp_path, contents(value))
        verify(tmp_path)
        assert value_in(tmp_path) == value
    assert sorted(p.name for p in tmp_path.iterdir()) == ["config.json", MANIFEST, "model.safetensors", "run.toml"]


def test_a_model_replaces_another_where_renaming_does_not_replace_files(tmp_path, monkeypatch):
    """As on Windows."""
    renamed = os.rename

    def rename(old, new):
        if os.path.exists(new):
            raise FileExistsError(errno.EEXIST, "File exists", str(new))
        renamed(old, new)

    save_into_folder(tmp_path, contents(1.0))
    monkeypatch.setattr(os, "rename", rename)
    save_into_folder(tmp_path, contents(2.0))
    verify(tmp_path)
    assert value_in(tmp_path) == 2.0


def test_after_a_kill_during_save_into_folder_the_model_is_complete_or_has_no_manifest(tmp_path, monkeypatch):
    save_into_folder(tmp_path, contents(1.0))
    for _ in at_every_call(monkeypatch, lambda: save_into_folder(tmp_path, contents(2.0)), Killed):
        if (tmp_path / MANIFEST).exists():
            verify(tmp_path)
        save_into_folder(tmp_path, contents(1.0))
        verify(tmp_path)


def test_after_a_kill_a_text_file_has_the_old_or_the_new_text(tmp_path, monkeypatch):
    path = tmp_path / "run.toml"
    path.write_text("old")
    seen = []
    for n in range(11):
        with monkeypatch.context() as patched:
            calls = Calls(patched, n, Killed())
            with contextlib.suppress(Killed):
                write_text(path, "new")
        seen.append(path.read_text())
        if not calls.raised:
            break
        path.write_text("old")
    assert sorted(seen, reverse=True) == seen  # from some call on, the new one
    assert {*seen} == {"old", "new"}


def test_a_full_disk_leaves_a_text_file_unchanged(tmp_path, monkeypatch):
    path = tmp_path / "run.toml"
    path.write_text("old")

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="the disk is full"):
        write_text(path, "new")
    assert path.read_text() == "old"


# Nothing is unpickled

SOURCES = sorted(Path(glassformer.__file__).parent.rglob("*.py"))
PICKLING = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
UNSAFE_CALLS = {"torch.load", "torch.save", "torch.jit.load", "pandas.read_pickle", "pd.read_pickle"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_no_module_imports_pickle(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            assert not {alias.name.split(".")[0] for alias in node.names} & PICKLING
        elif isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            assert (node.module or "").split(".")[0] not in PICKLING
            assert not names & UNSAFE_CALLS
        elif isinstance(node, ast.Attribute):
            assert ast.unparse(node) not in UNSAFE_CALLS
        elif isinstance(node, ast.keyword):
            assert node.arg != "allow_pickle" or ast.unparse(node.value) == "False"


def test_the_folder_of_a_training_that_has_not_ended_is_named_so(tmp_path):
    (tmp_path / "train.log").write_text("error: …\n")
    with pytest.raises(CheckpointError, match="A training in it has not ended, or failed"):
        verify(tmp_path)
