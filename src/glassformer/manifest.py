"""The manifest of a model folder or a checkpoint: its files, verified before they are used.

`manifest.json` lists the files with size and SHA-256, so that damaged weights are an error.
"""

import contextlib
import hashlib
import json
import re
import shlex
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from glassformer.config import JsonObject
from glassformer.errors import CheckpointError, FormatVersionError
from glassformer.limits import MAX_JSON_BYTES
from glassformer.version import __version__

FORMAT_VERSION = 2
MANIFEST = "manifest.json"

COPY_AGAIN = "\n  Copy the folder again from its original location."
"""End of the error for a file of a model folder that is damaged."""

HUB_NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
"""Names of repositories on the Hugging Face Hub."""


def is_hugging_face(folder: Path) -> bool:
    """Whether a folder is a model folder of Hugging Face transformers, not of glassformer."""
    return (folder / "config.json").is_file() and not (folder / MANIFEST).exists()


def hub_advice(folder: Path) -> str:
    """Advice for a path that could be a name on the Hugging Face Hub; else an empty text."""
    if not HUB_NAME.fullmatch(str(folder)):
        return ""
    return f"\n  To convert a model of this name from the Hugging Face Hub: glassformer import {folder} --out MODEL"


def folder_advice(folder: Path) -> str:
    """Advice for a folder of a training that has not ended, or of Hugging Face transformers; else an empty text."""
    if (folder / "train.log").is_file():
        return "\n  A training in it has not ended, or failed (train.log): run its command again."
    if not is_hugging_face(folder):
        return ""
    return f"\n  It is one of transformers. Convert it: glassformer import {shlex.quote(str(folder))} --out MODEL"


Entry = tuple[str, int, str]
"""Name, size and SHA-256 of a file."""


def verify(folder: Path) -> JsonObject:
    """Verify the files of a folder against its manifest, and return the manifest.

    Raises:
        CheckpointError: no such folder, no manifest, or a file is missing or damaged.
        FormatVersionError: an older or newer format.
    """
    manifest, entries = read_manifest(folder)
    check_sizes(folder, entries)
    check_digests(folder, entries)
    return manifest


@contextlib.contextmanager
def verified(folder: Path) -> Iterator[JsonObject]:
    """`verify`, in a thread beside what is done with the files. That they are damaged is reported in place of any error
    that followed from it."""
    manifest, entries = read_manifest(folder)
    check_sizes(folder, entries)
    errors: list[CheckpointError] = []

    def check() -> None:
        try:
            check_digests(folder, entries)
        except CheckpointError as error:
            errors.append(error)

    thread = threading.Thread(target=check, daemon=True)
    thread.start()
    try:
        yield manifest
    finally:
        thread.join()
        if errors:
            raise errors[0] from None


def read_manifest(folder: Path) -> tuple[JsonObject, list[Entry]]:
    """The manifest of a folder, and its files.

    Raises:
        CheckpointError: no such folder, or no usable manifest.
        FormatVersionError: an older or newer format.
    """
    if folder.is_file():
        raise CheckpointError(
            f"{folder}: is a file, not a model folder.\n"
            f"  Train a model on it first: glassformer train {shlex.quote(str(folder))} --out MODEL"
        )
    if not folder.is_dir():
        raise CheckpointError(
            f"{folder}: no such folder.\n  Name a folder written by `glassformer train`.{hub_advice(folder)}"
        )
    if not (folder / MANIFEST).is_file():
        raise CheckpointError(f"{folder}: not a model folder: it has no {MANIFEST}.{folder_advice(folder)}")
    manifest = read_json(folder / MANIFEST)
    try:
        version, files = manifest["format_version"], dict(manifest["files"])
        entries = [(str(name), int(entry["bytes"]), str(entry["sha256"])) for name, entry in files.items()]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise CheckpointError(f"{folder / MANIFEST}: damaged.{COPY_AGAIN}") from None
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
    if not entries:
        raise CheckpointError(f"{folder / MANIFEST}: damaged: it lists no files.{COPY_AGAIN}")
    return manifest, entries


def check_sizes(folder: Path, entries: Sequence[Entry]) -> None:
    """Check that the files of a manifest are regular files of the right sizes. Reads none of them.

    Raises:
        CheckpointError: a file is missing or damaged.
    """
    for name, size, _ in entries:
        path = folder / name
        if Path(name).name != name:
            raise CheckpointError(
                f"{folder / MANIFEST}: lists {name!r}, which is not a file of this folder.{COPY_AGAIN}"
            )
        try:
            if not path.is_file():
                raise CheckpointError(f"{path}: missing.\n  Copy the folder again from its original location.")
            is_intact = path.stat().st_size == size
        except OSError as error:
            raise CheckpointError(f"{path}: cannot be read: {error.strerror}.") from None
        if not is_intact:
            raise damaged(path)


def check_digests(folder: Path, entries: Sequence[Entry]) -> None:
    """Check the contents of the files of a manifest.

    Raises:
        CheckpointError: a file is damaged.
    """
    for name, _, expected_sha256 in entries:
        path = folder / name
        try:
            is_intact = sha256(path) == expected_sha256
        except OSError as error:
            raise CheckpointError(f"{path}: cannot be read: {error.strerror}.") from None
        if not is_intact:
            raise damaged(path)


def damaged(path: Path) -> CheckpointError:
    """The error of a file that is not the one in the manifest."""
    return CheckpointError(f"{path}: damaged: its SHA-256 is not the one in {MANIFEST}.{COPY_AGAIN}")


def sha256(path: Path) -> str:
    """SHA-256 of a file, as a hexadecimal string."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_json(path: Path) -> JsonObject:
    """Read a JSON object from a file.

    Raises:
        CheckpointError: the file is missing, too large, or does not contain a JSON object.
    """
    try:
        if not path.is_file() and path.exists():
            raise CheckpointError(f"{path}: not a regular file.")
        if path.stat().st_size > MAX_JSON_BYTES:
            raise CheckpointError(f"{path}: larger than {MAX_JSON_BYTES:,} bytes; not a glassformer file.{COPY_AGAIN}")
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: damaged: not JSON: {error}.{COPY_AGAIN}") from None
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: damaged: not a JSON object.{COPY_AGAIN}")
    return value
