"""Files named on the command line, as the sides of a corpus."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from glassformer.corpora.corpus import Format, format_of
from glassformer.corpora.detect import find_task
from glassformer.errors import ConfigError, UserError

Sides = tuple[tuple[Path, ...], tuple[Path, ...]]


def split_sides(files: Sequence[Path], task: str | None = None, columns: Sequence[str] = ()) -> Sides:
    """Source files and target files to train on: two text files translate one another, all else is read file by file.

    Raises:
        ConfigError: which of the text files is source and which target, or what to learn, cannot be told.
    """
    if (task or find_task(files, columns)) != "translation":
        return tuple(files), ()
    return pair_sides(files)


def pair_sides(files: Sequence[Path], format: Format | None = None) -> Sides:
    """The two sides of pairs: two text files, or any number of files of pairs.

    Raises:
        ConfigError: which of the text files is source and which target cannot be told.
    """
    if all((format or format_of(path)) != "lines" for path in files):
        return tuple(files), ()
    if len(files) == 2:
        return (files[0],), (files[1],)
    count = "one plain text file" if len(files) == 1 else f"{len(files)} plain text files"
    raise ConfigError(
        f"{count}: which is source, which target?\n"
        "  Give two files, or --src FILE … --tgt FILE …, or TSV or JSONL files of pairs."
    )


def check_new(path: Path | None, force: bool) -> None:
    """Refuse a file that exists, unless it may be overwritten, and one that cannot be made.

    Raises:
        ConfigError: it exists, or its folder does not.
    """
    if path and not path.absolute().parent.is_dir():
        raise ConfigError(f"{path}: there is no folder {path.parent}.\n  Make it, or name another file.")
    if path and path.exists() and not force:
        raise ConfigError(f"{path} exists.\n  Name another file, or overwrite it with --force.")


def check_writable(path: Path | None) -> None:
    """Refuse a file that cannot be written, before the work whose result it is to hold.

    Raises:
        UserError: the path is a folder, its folder does not exist, or the file system or permissions forbid it.
    """
    if path is None:
        return
    if path.is_dir():
        raise UserError(f"{path}: is a folder.\n  Name a file in it.")
    if not path.absolute().parent.is_dir():
        raise UserError(f"{path}: there is no folder {path.parent}.\n  Make it, or name another file.")
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise UserError(f"{path}: cannot be written.\n  Name a file in a folder that can be written to.")


def write_page(path: Path, page: str) -> None:
    """Write a page, and say so.

    Raises:
        UserError: the path cannot be written.
    """
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}.\n  Name a file in a folder that can be written to.") from None
    print(f"-> {path} ({path.stat().st_size / 1e6:.1f} MB)", file=sys.stderr)
