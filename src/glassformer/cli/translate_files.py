"""Translation of the files that a command names."""

import json as json_module
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from glassformer.cli.files import check_exist, check_folder, refuse_texts
from glassformer.cli.lines import open_translator, prepare_translator, progress_bar
from glassformer.cli.reading import languages_of
from glassformer.corpora.lines import suffix_of
from glassformer.decode_config import DecodeConfig
from glassformer.documents.document import Only
from glassformer.documents.exchange import Exchange
from glassformer.documents.reader import FORMATS
from glassformer.errors import ConfigError, UserError
from glassformer.tasks.files import Memo, TranslatedFile, check_new, outputs, read_file, translate_document, write_new
from glassformer.tasks.texts import no_op


def are_lines(files: Sequence[Path]) -> bool:
    """Whether files are lines of text by their names: compressed, and not documents.

    Raises:
        ConfigError: some are, and others are not.
    """
    found = [path.suffix.lower() == ".gz" and suffix_of(path) not in set(FORMATS) - {".txt"} for path in files]
    if any(found) and not all(found):
        text, document = files[found.index(True)], files[found.index(False)]
        raise ConfigError(
            f"{text} and {document}: lines of text, and a document or folder.\n"
            "  Translate them by two commands; with --lines, all files are lines of text."
        )
    return any(found)


def check_files(files: Sequence[Path], model: Path, out: Path | None, *, lines: bool = False) -> Path:
    """Check that what a command names are files. Returns where they are written.

    Args:
        lines: they are files of lines.

    Raises:
        ConfigError: a text, a file that does not exist or that is not supported, or no folder is named.
    """
    command = f"glassformer translate {shlex.quote(str(model))}"
    for path in files:
        name = shlex.quote(str(path))
        if not path.exists():
            is_text = any(map(str.isspace, str(path))) or not path.suffix
            if is_text and path.suffix.lower() not in FORMATS:
                refuse_texts([str(path)], "translate", model)
            check_exist([path])
        if path.is_file() and path.suffix.lower() not in FORMATS and not lines:
            raise ConfigError(
                f"{path}: files of this type are not translated.\n"
                f"  Those that are: {', '.join(FORMATS)}.\n"
                f"  Lines of text: {command} < {name}, or {command} {name} --lines --out FOLDER"
            )
    if out is None:
        name = shlex.quote(str(files[0]))
        raise ConfigError(
            f"{files[0]}: where to? Name a folder for the translated files.\n"
            f"  {command} {name} --out FOLDER\n"
            f"  Lines of text, to standard output: {command} < {name}"
        )
    return check_folder(out)


def translate_files(
    folder: Path,
    files: Sequence[Path],
    out: Path,
    options: DecodeConfig,
    *,
    only: Only,
    to: Exchange | None = None,
    ensemble: Sequence[Path] = (),
    quiet: bool,
    json: bool,
    device: str,
    threads: int | None,
) -> None:
    """Translate files. One that cannot be translated does not stop the others.

    Raises:
        SystemExit: with code 1, if one could not be translated.
    """
    pairs = outputs(files, out, FORMATS, to)
    translator = open_translator(folder, device, threads, quiet=quiet)
    prepare_translator(translator, options, ensemble, device, quiet=quiet)
    memo = Memo(translator)
    failed: list[str] = []
    for path, target in pairs:
        try:
            check_new(target)
            document = read_file(path, languages_of(translator))
            n = len(document.only(only).segments)
            with progress_bar(path.name, n) as progress:
                data, done = translate_document(
                    translator,
                    document,
                    options,
                    only=only,
                    to=to,
                    name=path.name,
                    memo=memo,
                    progress=no_op if quiet else progress,
                )
            write_new(target, data)
        except ConfigError:
            raise
        except UserError as error:
            failed.append(str(path))
            print(f"error: {error}", file=sys.stderr)
            continue
        report(replace(done, path=target), path, json=json, quiet=quiet)
    if failed:
        n, total = len(failed), len(pairs)
        print(f"{n} of {total} files not translated: {', '.join(failed)}", file=sys.stderr)
        raise SystemExit(1)


def report(done: TranslatedFile, source: Path, *, json: bool, quiet: bool) -> None:
    """Say what was done with a file."""
    if json:
        record = {
            "input": str(source), "output": str(done.path), "translated": done.n_translated, "kept": done.n_kept,
            "doubtful": done.n_doubtful, "exact": done.n_exact, "similar": done.n_similar, "notes": list(done.notes),
        }  # fmt: skip
        print(json_module.dumps(record, ensure_ascii=False), flush=True)
    elif not quiet:
        print(done.summary(), file=sys.stderr)
