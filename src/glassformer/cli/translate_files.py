"""Translation of the files that a command names."""

import base64
import json as json_module
import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from glassformer.bulk.chunks import Item
from glassformer.bulk.documents import DocumentRun
from glassformer.bulk.folder import output_folder
from glassformer.bulk.run import WORK, Source
from glassformer.cli.bulk import log, open_workers, parse_shard, run_sources
from glassformer.cli.files import check_exist, check_folder, refuse_texts
from glassformer.cli.jobs import Job
from glassformer.cli.options import BulkOptions
from glassformer.config import JsonObject
from glassformer.corpora.lines import content, open_bytes, suffix_of
from glassformer.corpora.table_texts import is_table
from glassformer.documents.reader import FORMATS
from glassformer.documents.text import SIGNATURES
from glassformer.errors import ConfigError
from glassformer.tasks.files import TranslatedFile, outputs, read_bytes

SAVE_AS = {
    **dict.fromkeys((".doc", ".rtf"), (".docx", "Word or LibreOffice Writer")),
    ".pdf": (".docx", "Word"),
    ".xls": (".xlsx", "Excel or LibreOffice Calc"),
    ".ppt": (".pptx", "PowerPoint or LibreOffice Impress"),
}
"""Suffix of documents that are not translated -> that of the format to save them in, and the programs that do it."""


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
        if lines or not path.is_file() or path.suffix.lower() in FORMATS:
            continue
        if is_table(path):
            raise ConfigError(
                f"{path}: a table, which `run` translates, into a column.\n"
                f"  glassformer run {shlex.quote(str(model))} {name} --keys text=COLUMN --out FOLDER"
            )
        if saved := SAVE_AS.get(path.suffix.lower()):
            suffix, programs = saved
            raise ConfigError(
                f"{path}: files of this type are not translated.\n"
                f"  Save it as {suffix}, in {programs}, and translate that file."
            )
        usage = f"\n  Lines of text: {command} < {name}, or {command} {name} --lines --out FOLDER"
        raise ConfigError(
            f"{path}: files of this type are not translated.\n"
            f"  Those that are: {', '.join(FORMATS)}.{usage if begins_as_text(path) else ''}"
        )
    if out is None:
        name = shlex.quote(str(files[0]))
        usage = f"\n  Lines of text, to standard output: {command} < {name}"
        raise ConfigError(
            f"{files[0]}: where to? Name a folder for the translated files.\n"
            f"  {command} {name} --out FOLDER{usage if begins_as_text(files[0]) else ''}"
        )
    return check_folder(out)


def begins_as_text(path: Path) -> bool:
    """Whether a file, or what is compressed in it, begins as text does.

    Raises:
        CorpusError: it cannot be read.
    """
    if not path.is_file():
        return False
    with open_bytes(path) as file:
        head = next(content(file, path), b"")
    return b"\0" not in head and not head.startswith(tuple(SIGNATURES))


def translate_files(
    job: Job,
    files: Sequence[Path],
    out: Path,
    bulk: BulkOptions,
    *,
    quiet: bool,
) -> None:
    """Translate documents. One that cannot be translated does not stop the others.

    Raises:
        UserError: an option is wrong, or a file cannot be written.
        SystemExit: with code 1, if one could not be translated.
    """
    pairs = outputs(files, out, FORMATS, job.to)
    share = parse_shard(bulk.shard)
    job = job.with_found_models()
    sources = [
        Source(path, target, target.relative_to(out).as_posix(), partial(document_item, path)) for path, target in pairs
    ]
    written = partial(report, json=job.json, quiet=quiet)
    with (
        open_workers(job, bulk, quiet=quiet) as opened,
        output_folder(out, share, job.identity()),
        closing(DocumentRun(out, opened, share, log, written)) as run,
    ):
        summary = run_sources(run, sources)
    n_failed, names = len(summary.failed), {source.name for source in sources}
    is_all_known = names.issuperset(run.records.files)
    if share == (1, 1) and is_all_known and not (n_failed and run.records.files):
        shutil.rmtree(out / WORK, ignore_errors=True)  # for nothing to go on with
    if not quiet and summary.n_before:
        log(f"{out}: {summary.n_before:,} files done before.")
    if n_failed:
        log(f"{n_failed} of {len(pairs)} files not translated: {', '.join(map(str, summary.failed))}")
        raise SystemExit(1)


def document_item(path: Path) -> Iterator[Item]:
    """The name of a document, and its content in base64.

    Raises:
        CorpusError: it cannot be read.
    """
    yield [str(path), base64.b64encode(read_bytes(path)).decode()]


def report(source: Source, done: JsonObject, *, json: bool, quiet: bool) -> None:
    """Say what was done with a file."""
    file = TranslatedFile(source.target, **{**done, "notes": tuple(done["notes"])})
    if json:
        record = {
            "input": str(source.path), "output": str(file.path), "translated": file.n_translated, "kept": file.n_kept,
            "doubtful": file.n_doubtful, "exact": file.n_exact, "similar": file.n_similar, "notes": list(file.notes),
        }  # fmt: skip
        print(json_module.dumps(record, ensure_ascii=False), flush=True)
    elif not quiet:
        log(file.summary())
