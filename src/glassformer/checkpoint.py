"""Saving and loading of model folders and checkpoints, atomically and with checksums.

A folder is written under a temporary name, all files are flushed to the disk and listed in `manifest.json` with size
and SHA-256, and then the folder is renamed. Before loading, the files are verified against the manifest, so that
damaged weights are an error. Tensors are stored as safetensors, all other data as JSON; nothing is unpickled.
"""

import contextlib
import errno
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Union

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from glassformer.config import JsonObject
from glassformer.errors import CheckpointError, ConfigError, FormatVersionError, UserError
from glassformer.kernels.library import implementation
from glassformer.manifest import FORMAT_VERSION, MANIFEST, verify
from glassformer.threads import n_threads
from glassformer.version import __version__

if TYPE_CHECKING:
    from torch import Tensor

Arrays = Mapping[str, Union["Tensor", NDArray[np.generic]]]
Contents = Mapping[str, str | Arrays]


def save_folder(target: Path, contents: Contents) -> None:
    """Write a folder atomically: after a crash at any time, the target is either the old or the new folder.

    Args:
        contents: file name, which may begin with the name of a folder in it -> text or tensors.

    Raises:
        UserError: the disk is full or the target cannot be written; the target is unchanged.
    """
    with replace_folder(target) as temporary:
        write_files(temporary, contents)


@contextlib.contextmanager
def replace_folder(target: Path) -> Iterator[Path]:
    """Yield a new folder beside the target, which replaces the target at the end, unless an error is raised.

    Raises:
        UserError: the disk is full or the target cannot be written; the target is unchanged.
    """
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    replaced = target.with_name(f".{target.name}.{os.getpid()}.old")
    try:
        make_folder(target.parent)
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        yield temporary
        sync_folder(temporary)
        if target.exists():
            os.rename(target, replaced)
        os.rename(temporary, target)
        sync_folder(target.parent)
        shutil.rmtree(replaced, ignore_errors=True)
    except (OSError, safetensors.SafetensorError) as error:
        if replaced.exists() and not target.exists():
            os.rename(replaced, target)
        raise write_error(target, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def save_into_folder(folder: Path, contents: Contents) -> None:
    """Write model files into a folder that contains other files. The manifest is absent until all files are in place.

    Raises:
        UserError: the disk is full or the folder cannot be written.
    """
    temporary = folder / f".model.{os.getpid()}.tmp"
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        write_files(temporary, contents)
        if (folder / MANIFEST).exists():
            (folder / MANIFEST).unlink()
            sync_folder(folder)
        for name in contents:
            os.replace(temporary / name, folder / name)
        sync_folder(folder)
        os.replace(temporary / MANIFEST, folder / MANIFEST)
        sync_folder(folder)
        temporary.rmdir()
    except (OSError, safetensors.SafetensorError) as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise write_error(folder, error) from error


def add_file(folder: Path, name: str, content: str | Arrays) -> None:
    """Add a file to a model folder, or replace it. After a crash, the folder is intact, perhaps without the file.

    Raises:
        UserError: the disk is full or the folder cannot be written.
    """
    manifest = verify(folder)
    manifest["files"].pop(name, None)
    write_text(folder / MANIFEST, json.dumps(manifest, indent=2))
    data = to_bytes(content)
    replace_file(folder / name, data)
    manifest["files"][name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    write_text(folder / MANIFEST, json.dumps(manifest, indent=2))


def to_bytes(content: str | Arrays) -> bytes:
    """Contents of a file: text, or tensors in safetensors format."""
    if isinstance(content, str):
        return content.encode()
    metadata = {"format": "pt"}
    arrays = {name: array for name, array in content.items() if isinstance(array, np.ndarray)}
    if len(arrays) == len(content):
        return aligned(
            safetensors.numpy.save({k: np.ascontiguousarray(a) for k, a in arrays.items()}, metadata=metadata)
        )
    import torch
    from safetensors.torch import save

    tensors = {key: torch.as_tensor(tensor).detach().cpu().contiguous() for key, tensor in content.items()}
    return aligned(save(tensors, metadata=metadata))


def write_files(folder: Path, contents: Contents) -> None:
    """Write files and then the manifest that lists them, all flushed to the disk."""
    files = {}
    for name, content in contents.items():
        data = to_bytes(content)
        (folder / name).parent.mkdir(exist_ok=True)
        write_synced(folder / name, data)
        files[name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    write_manifest(folder, files)


def write_manifest(folder: Path, files: Mapping[str, JsonObject]) -> None:
    """Write the manifest of a folder.

    Args:
        files: name -> size and SHA-256.
    """
    manifest = {
        "format_version": FORMAT_VERSION,
        "glassformer": __version__,
        "torch": installed_version("torch"),
        "threads": n_threads(),
        "kernels": implementation(),
        "files": files,
    }
    write_synced(folder / MANIFEST, json.dumps(manifest, indent=2).encode())


def installed_version(package: str) -> str | None:
    """Version of an installed package; None: it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def aligned(data: bytes) -> bytes:
    """A safetensors file with spaces after its header, so that the tensors begin at a multiple of 64 bytes."""
    n_header = int.from_bytes(data[:8], "little")
    n_spaces = -(8 + n_header) % 64
    header = data[8 : 8 + n_header] + b" " * n_spaces
    return len(header).to_bytes(8, "little") + header + data[8 + n_header :]


def write_synced(path: Path, data: bytes) -> None:
    """Write a file and flush it to the disk."""
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def write_text(path: Path, text: str) -> None:
    """Replace the text of a file atomically: after a crash, the file has either the old or the new text; when this
    returned, the new one.

    Raises:
        UserError: the disk is full or the file cannot be written.
    """
    replace_file(path, text.encode())


def replace_file(path: Path, data: bytes) -> None:
    """`write_text` for bytes."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write_synced(temporary, data)
        os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise write_error(path, error) from error


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, unless they exist, so that they survive a power failure.

    Raises:
        OSError: it cannot be made.
    """
    if not folder.is_dir():
        if folder.parent != folder:
            make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Flush the directory entries of a folder to the disk, so that they survive a power failure."""
    if os.name == "nt":
        return  # not available on Windows
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_error(target: Path, error: Exception) -> UserError:
    """The UserError for a failed write."""
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or "No space" in str(error):
        return UserError(
            f"{target}: the disk is full; nothing was written.\n  Free disk space and run the same command again."
        )
    return UserError(f"{target}: cannot be written: {getattr(error, 'strerror', None) or error}.")


def to_json(value: Mapping[str, object]) -> str:
    """Format an object as indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def read_tensors(path: Path) -> "dict[str, Tensor]":
    """Read the tensors of a safetensors file, with PyTorch.

    Raises:
        CheckpointError: the file is missing or not in safetensors format.
    """
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (OSError, safetensors.SafetensorError) as error:
        raise CheckpointError(f"{path}: not readable as safetensors: {error}.") from None


def newest(folder: Path, report: Callable[[str], None] | None = None) -> Path | None:
    """The newest intact `step-N` folder, or None. Damaged folders are reported and skipped.

    Args:
        report: called with a message for each damaged folder. Default: print to standard error.

    Raises:
        FormatVersionError: no folder is intact, and one has another format version; a new training would replace it.
    """
    report = report or (lambda line: print(line, file=sys.stderr))
    recover(folder)
    other_version: FormatVersionError | None = None
    warnings = []
    newest_valid = None
    for path in step_folders(folder):
        try:
            verify(path)
            newest_valid = path
            break
        except CheckpointError as error:
            if isinstance(error, FormatVersionError):
                other_version = other_version or error
            warnings.append(f"warning: {error}")
    if newest_valid is None and other_version is not None:
        raise other_version
    for warning in warnings:
        report(f"{warning}\n  {'Using the previous checkpoint instead.' if newest_valid else 'No other is intact.'}")
    return newest_valid


def step_folders(folder: Path) -> list[Path]:
    """The `step-N` folders of a folder, newest first."""
    folders = {int(path.name[5:]): path for path in folder.glob("step-*") if path.name[5:].isdecimal()}
    return [path for _, path in sorted(folders.items(), reverse=True)]


def recover(folder: Path) -> None:
    """Restore the previous folder of a save that was killed before the new folder was renamed into place."""
    for backup in folder.glob(".step-*.old"):
        target = folder / backup.name[1:].split(".")[0]
        if not target.exists():
            with contextlib.suppress(CheckpointError, OSError):
                verify(backup)
                os.rename(backup, target)


def remove(folder: Path) -> None:
    """Delete a folder. It is renamed first, so that a partly deleted folder never has its name."""
    renamed = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    with contextlib.suppress(OSError):  # a leftover only takes disk space
        os.rename(folder, renamed)
        shutil.rmtree(renamed)


def delete_old(folder: Path, keep: int) -> None:
    """Delete all but the newest `keep` step folders, and leftovers of killed saves."""
    for path in [*folder.glob(".step-*.tmp"), *folder.glob(".step-*.old")]:
        shutil.rmtree(path, ignore_errors=True)
    for path in step_folders(folder)[keep:]:
        remove(path)


def check_empty(out: Path) -> None:
    """Check that an output folder is empty or does not exist.

    Raises:
        ConfigError: the folder is not empty, or is a file.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"{out}: not empty.\n  --out must be a new or empty folder.")
