"""Folders that are either whole or not there: every save and every load of the project.

A folder is written beside its target, every file flushed to the disk and named in `manifest.json` with its size and
SHA-256, and only then renamed into place. What is loaded is checked against the manifest first: a flipped bit in a
weight is an error, not another translation. Tensors are safetensors, all else JSON; nothing is ever unpickled.
"""

import contextlib
import errno
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from glassformer.errors import CheckpointError, ConfigError, FormatVersionError, UserError
from glassformer.limits import MAX_JSON_BYTES
from glassformer.version import __version__

FORMAT_VERSION = 2
MANIFEST = "manifest.json"
Contents = Mapping[str, str | Mapping[str, Tensor]]


def save_folder(target: Path, contents: Contents) -> None:
    """Write a folder all or nothing: after a crash at any instant the target is the old one or the new one.

    Args:
        contents: of each file name its text, or its tensors.

    Raises:
        UserError: the disk is full or the place cannot be written; the target is as it was.
    """
    fresh = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    replaced = target.with_name(f".{target.name}.{os.getpid()}.old")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        write_files(fresh, contents)
        sync_folder(fresh)
        if target.exists():
            os.rename(target, replaced)
        os.rename(fresh, target)
        shutil.rmtree(replaced, ignore_errors=True)
        sync_folder(target.parent)
    except (OSError, safetensors.SafetensorError) as error:
        if replaced.exists() and not target.exists():
            os.rename(replaced, target)
        shutil.rmtree(fresh, ignore_errors=True)
        raise write_error(target, error) from error


def save_into_folder(folder: Path, contents: Contents) -> None:
    """Put a model's files into a folder that holds other things too. While they change it has no manifest."""
    fresh = folder / f".model.{os.getpid()}.tmp"
    try:
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        write_files(fresh, contents)
        (folder / MANIFEST).unlink(missing_ok=True)
        for name in [*contents, MANIFEST]:
            os.rename(fresh / name, folder / name)
        fresh.rmdir()
        sync_folder(folder)
    except (OSError, safetensors.SafetensorError) as error:
        shutil.rmtree(fresh, ignore_errors=True)
        raise write_error(folder, error) from error


def write_files(folder: Path, contents: Contents) -> None:
    """Write each file and then the manifest that names them, all flushed to the disk."""
    files = {}
    for name, content in contents.items():
        if isinstance(content, str):
            data = content.encode()
        else:
            tensors = {key: tensor.detach().cpu().contiguous() for key, tensor in content.items()}
            data = safetensors.torch.save(tensors, metadata={"format": "pt"})
        write_synced(folder / name, data)
        files[name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    manifest = {
        "format_version": FORMAT_VERSION,
        "glassformer": __version__,
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "files": files,
    }
    write_synced(folder / MANIFEST, json.dumps(manifest, indent=2).encode())


def write_synced(path: Path, data: bytes) -> None:
    """Write a file and wait until the disk has it."""
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def write_text(path: Path, text: str) -> None:
    """Replace a file's text; after a crash it is the old one or the new one."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write_synced(fresh, text.encode())
        os.replace(fresh, path)
    except OSError as error:
        raise write_error(path, error) from error


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    if os.name == "nt":
        return  # Windows has no such call
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_error(target: Path, error: Exception) -> UserError:
    """What to tell a user whose file system refused."""
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or "No space" in str(error):
        return UserError(
            f"{target}: the disk is full; nothing was written.\n  Make room and give the same command again."
        )
    return UserError(f"{target}: cannot be written: {getattr(error, 'strerror', None) or error}.")


def verify(folder: Path) -> dict[str, Any]:
    """The manifest of a folder all of whose files are as they were written.

    Raises:
        CheckpointError: no such folder, no manifest, a file missing or not as written.
        FormatVersionError: an older or newer format.
    """
    if not folder.is_dir():
        raise CheckpointError(f"{folder}: no such folder.\n  Name a folder written by `glassformer train`.")
    if not (folder / MANIFEST).is_file():
        raise CheckpointError(f"{folder}: not a model folder: it has no {MANIFEST}.")
    manifest = read_json(folder / MANIFEST)
    try:
        version, files = manifest["format_version"], dict(manifest["files"])
        rows = [(str(name), int(row["bytes"]), str(row["sha256"])) for name, row in files.items()]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise CheckpointError(
            f"{folder / MANIFEST}: damaged.\n  Copy the folder again from where it was made."
        ) from None
    if version != FORMAT_VERSION:
        is_older = isinstance(version, int) and version < FORMAT_VERSION
        raise FormatVersionError(
            f"{folder}: written by glassformer {manifest.get('glassformer')} in format {version!r};"
            f" this glassformer {__version__} reads format {FORMAT_VERSION}.\n"
            + (
                "  Train or import the model again, into another folder."
                if is_older
                else "  Install the version of glassformer that wrote it."
            )
        )
    if not rows:
        raise CheckpointError(f"{folder / MANIFEST}: damaged: it names no file.")
    for name, size, digest in rows:
        path = folder / name
        if Path(name).name != name:
            raise CheckpointError(f"{folder / MANIFEST}: names {name!r}, which is not a file of this folder.")
        if not path.is_file():
            raise CheckpointError(f"{path}: missing.\n  Copy the folder again from where it was made.")
        try:
            same = path.stat().st_size == size and sha256(path) == digest
        except OSError as error:
            raise CheckpointError(f"{path}: cannot be read: {error.strerror}.") from None
        if not same:
            raise CheckpointError(
                f"{path}: damaged: its SHA-256 is not the one in {MANIFEST}.\n"
                "  Copy the folder again from where it was made."
            )
    return manifest


def sha256(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        CheckpointError: missing, too large, or not a JSON object.
    """
    try:
        if not path.is_file() and path.exists():
            raise CheckpointError(f"{path}: not a regular file.")
        if path.stat().st_size > MAX_JSON_BYTES:
            raise CheckpointError(f"{path}: larger than {MAX_JSON_BYTES:,} bytes; not a file of ours.")
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: damaged: not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: damaged: not a JSON object.")
    return value


def to_json(value: Mapping[str, Any]) -> str:
    """An object as indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file.

    Raises:
        CheckpointError: missing or not safetensors.
    """
    try:
        return safetensors.torch.load_file(path)
    except (OSError, safetensors.SafetensorError) as error:
        raise CheckpointError(f"{path}: not readable as safetensors: {error}.") from None


def newest(folder: Path, report: Any = None) -> Path | None:
    """The newest `step-N` folder that verifies; None if there is none. Damaged ones are reported and passed over.

    Args:
        report: called with a sentence for each damaged folder; default: standard error.

    Raises:
        FormatVersionError: none verifies, and one is of another version: training anew would replace it.
    """
    report = report or (lambda line: print(line, file=sys.stderr))
    recover(folder)
    other_version: FormatVersionError | None = None
    warnings = []
    found = None
    for path in steps(folder):
        try:
            verify(path)
            found = path
            break
        except CheckpointError as error:
            if isinstance(error, FormatVersionError):
                other_version = other_version or error
            warnings.append(f"warning: {error}\n  Going on from the one before it.")
    if found is None and other_version is not None:
        raise other_version
    for warning in warnings:
        report(warning)
    return found


def steps(folder: Path) -> list[Path]:
    """The `step-N` folders, newest first."""
    named = {int(path.name[5:]): path for path in folder.glob("step-*") if path.name[5:].isdecimal()}
    return [path for _, path in sorted(named.items(), reverse=True)]


def recover(folder: Path) -> None:
    """Put back what a save had set aside when it was killed before the new folder had the name."""
    for aside in folder.glob(".step-*.old"):
        target = folder / aside.name[1:].split(".")[0]
        if not target.exists():
            with contextlib.suppress(CheckpointError, OSError):
                verify(aside)
                os.rename(aside, target)


def remove(folder: Path) -> None:
    """Delete a folder so that no instant shows half of it under its name."""
    doomed = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    with contextlib.suppress(OSError):  # a leftover takes room, no more
        os.rename(folder, doomed)
        shutil.rmtree(doomed)


def prune(folder: Path, keep: int) -> None:
    """Delete all but the newest `keep` step folders, and what a killed save left behind."""
    for path in [*folder.glob(".step-*.tmp"), *folder.glob(".step-*.old")]:
        shutil.rmtree(path, ignore_errors=True)
    for path in steps(folder)[keep:]:
        remove(path)


def check_empty(out: Path) -> None:
    """Raise ConfigError if there is something under this name."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"{out}: not empty.\n  --out names a new folder.")
