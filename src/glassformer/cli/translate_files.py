"""Translation of the files that a command names."""

import json as json_module
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from glassformer.cli.files import refuse_texts
from glassformer.cli.lines import describe_memory, join_ensemble, open_translator, progress_bar
from glassformer.cli.reading import languages_of
from glassformer.decode_config import DecodeConfig
from glassformer.documents.document import Only
from glassformer.documents.exchange import Exchange
from glassformer.documents.reader import FORMATS
from glassformer.errors import ConfigError, UserError
from glassformer.tasks.files import Memo, TranslatedFile, check_new, outputs, read_file, translate_document, write_new
from glassformer.tasks.terms import terms_of
from glassformer.tasks.texts import no_op


def check_files(files: Sequence[Path], model: Path, out: Path | None) -> Path:
    """Check that what a command names are files. Returns where they are written.

    Raises:
        ConfigError: a text, a file that does not exist or that is not supported, or no folder is named.
    """
    for path in files:
        if not path.exists():
            is_text = any(map(str.isspace, str(path))) or not path.suffix
            if is_text and path.suffix.lower() not in FORMATS:
                refuse_texts([str(path)], "translate", model)
            raise ConfigError(f"{path}: no such file.\n  Check the path and the current folder.")
        if path.is_file() and path.suffix.lower() not in FORMATS:
            raise ConfigError(
                f"{path}: files of this type are not translated.\n"
                f"  Those that are: {', '.join(FORMATS)}.\n"
                f"  Lines of text: glassformer translate {shlex.quote(str(model))} < {shlex.quote(str(path))}"
            )
    if out is None:
        command = f"glassformer translate {shlex.quote(str(model))}"
        name = shlex.quote(str(files[0]))
        raise ConfigError(
            f"{files[0]}: where to? Name a folder for the translated files.\n"
            f"  {command} {name} --out FOLDER\n"
            f"  Lines of text, to standard output: {command} < {name}"
        )
    if out.exists() and not out.is_dir():
        raise ConfigError(f"--out {out}: is a file.\n  Name a folder.")
    return out


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
    terms_of(options, languages_of(translator))  # an error in them is reported at once
    join_ensemble(translator, ensemble, device)
    describe_memory(translator, options, quiet=quiet)
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
