"""`glassformer doctor`"""

import json as json_module
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console

from glassformer.cli.files import check_given_once, pair_sides
from glassformer.cli.options import whole_number
from glassformer.cli.reading import check_languages
from glassformer.config import JsonObject
from glassformer.corpora.bilingual import expanded, files_in
from glassformer.corpora.detect import find_task
from glassformer.corpora.doctor.diagnosis import Diagnosis, diagnose, diagnose_lines
from glassformer.corpora.doctor.labeled import diagnose_labeled
from glassformer.corpora.doctor.repair import open_repair, repair_corpus
from glassformer.corpora.pair_formats import PAIR_FORMATS, format_of
from glassformer.corpora.read_options import ReadOptions, check_keys
from glassformer.errors import ColumnsError, ConfigError, UserError

Paths = Annotated[tuple[Path, ...], Parameter(consume_multiple=True)]


def doctor(
    *files: Path,
    src: Paths = (),
    tgt: Paths = (),
    dev: Paths = (),
    test: Paths = (),
    format: str | None = None,
    keys: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    languages: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    fix: Path | None = None,
    show: Annotated[int, Parameter(converter=whole_number, validator=Number(gte=1))] = 3,
    json: bool = False,
) -> None:
    """Find errors in parallel or labeled text and name them by file and line; of plain text the lines that cannot be
    read. The exit code is 1 if there are errors.

    Example:  glassformer doctor train.en train.fr --dev dev.en dev.fr --fix cleaned

    Args:
        files: Source text and target text, or a CSV, TSV or JSONL file of pairs or of labeled text, or TMX, XLIFF and
            PO files or a folder of them, or one plain text; plain or .gz.
        src: Source files, if there are several.
        tgt: Target files, one for each source file.
        dev: Dev set: two text files, or one file of pairs or of labeled text. Training examples that are also in it are
            reported.
        test: Test set, likewise.
        format: Format of the files: lines, tsv, csv, jsonl, tmx, xliff, po, archive or catalogue. Default: by file
            name, for other names by content.
        keys: Columns or JSON keys of the fields, for instance text=tweet label=sentiment, or src=en tgt=fr.
        languages: Source and target language in files of several, for instance en fr. Default: as the files say.
        fix: Write repaired files to this folder, and dropped.tsv with the pairs that were left out and the reasons. Of
            XLIFF and PO, a translation memory (TMX) is written. Files of a folder keep their paths in it.
        show: Number of findings to print of each type.
        json: Print all findings as JSON.
    """
    options = ReadOptions(format=format, keys=keys, languages=languages)
    check_given_once(files, src, tgt)
    names = {file: file.relative_to(path) for path in files if path.is_dir() for file in files_in(path)}
    files = expanded(files)
    check_languages((*files, *src, *expanded(dev), *expanded(test)), options)
    task = found_task(files, options) if files else None
    shown = None if json else show
    if task in ("classification", "regression"):
        if fix:
            raise ConfigError(
                f"{files[0]}: --fix repairs parallel text only, and this is labeled text.\n"
                "  Repair what is listed by hand, or leave out rows without a label with: glassformer train --skip-bad"
            )
        held_out_files = {name: paths for name, paths in (("dev", dev), ("test", test)) if paths}
        diagnosis = diagnose_labeled(files, options, held_out=held_out_files, n_shown=shown)
        print_diagnosis(diagnosis, "examples", json=json)
        sys.exit(1 if diagnosis.has_errors else 0)
    if task in ("causal-lm", "tagging", "multitask", "question-answering"):
        if fix or dev or test:
            option = "--fix" if fix else "--dev" if dev else "--test"
            raise ConfigError(f"{option}: for parallel or labeled text, and {files[0]} is for {task}.\n  Leave it out.")
        is_plain_text = task == "causal-lm" and (format or format_of(files[0])) == "lines"
        has_lines = task != "question-answering"
        diagnosis = diagnose_lines(files if has_lines else (), n_shown=shown)
        if not is_plain_text and not diagnosis.counts:
            raise ConfigError(
                f"{files[0]}: text for {task}, which is not checked: parallel and labeled text are.\n"
                "  `glassformer train` names what it cannot read by file and line."
            )
        print_diagnosis(diagnosis, "lines", json=json)
        sys.exit(1 if diagnosis.has_errors else 0)
    corpus = pair_sides(files, options) if files else (src, tgt)
    held_out = {name: pair_sides(paths, options) for name, paths in (("dev", dev), ("test", test)) if paths}
    check_keys(keys, [corpus, *held_out.values()], format)
    reading: JsonObject = {"format": format, "keys": keys, "languages": languages}
    if fix:
        open_repair(*corpus, fix, names=names, **reading)  # raises what prevents the repair before all is read
    diagnosis = diagnose(*corpus, held_out=held_out, n_shown=shown, **reading)
    print_diagnosis(diagnosis, "pairs", json=json)
    if fix:
        result = repair_corpus(*corpus, fix, held_out=held_out, names=names, **reading)
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in result.repaired.items()) or "nothing"
        print(
            f"{fix}: {result.n_kept:,} of {result.n_pairs:,} pairs kept, repaired: {kinds}."
            f" Dropped pairs and reasons: {result.files[-1]}",
            file=sys.stderr,
        )
    sys.exit(1 if diagnosis.has_errors else 0)


def found_task(files: Sequence[Path], options: ReadOptions) -> str | None:
    """The task of files by their content, of which lines need not be text; None for two files of lines whose content
    does not say that they are parallel.
    """
    try:
        return find_task(files, options, lenient=True)
    except ColumnsError:
        raise
    except UserError:
        if len(files) == 2 and not any(
            PAIR_FORMATS[options.format or format_of(path)].has_both_sides for path in files
        ):
            return None
        raise


def print_diagnosis(diagnosis: Diagnosis, examples: str, *, json: bool) -> None:
    """Print the findings, then one row for each type of finding."""
    if json:
        print(json_module.dumps(diagnosis.to_json(), ensure_ascii=False, indent=2))
        return
    console = Console(soft_wrap=True, markup=False, highlight=False)
    for finding in diagnosis.findings:
        console.print(str(finding))
    rows = diagnosis.rows()
    if rows:
        console.print()
        width = max(len(kind) for kind, *_ in rows)
        for kind, severity, n, first_location, meaning in rows:
            console.print(f"{severity:7}  {kind:{width}}  {n:>8,}  {meaning}; first: {first_location}")
        console.print()
    n_errors = sum(n for _, severity, n, _, _ in rows if severity == "error")
    n_warnings = sum(n for _, severity, n, _, _ in rows) - n_errors
    console.print(f"{diagnosis.n_pairs:,} {examples}: {n_errors:,} errors, {n_warnings:,} warnings.")
