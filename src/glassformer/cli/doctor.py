"""`glassformer doctor`"""

import json as json_module
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console

from glassformer.cli.files import pair_sides
from glassformer.cli.options import whole_number
from glassformer.corpora.doctor.diagnosis import Diagnosis, diagnose
from glassformer.corpora.doctor.repair import repair_corpus

Paths = Annotated[tuple[Path, ...], Parameter(consume_multiple=True)]


def doctor(
    *files: Path,
    src: Paths = (),
    tgt: Paths = (),
    dev: Paths = (),
    test: Paths = (),
    format: str | None = None,
    keys: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    fix: Path | None = None,
    show: Annotated[int, Parameter(converter=whole_number, validator=Number(gte=1))] = 3,
    json: bool = False,
) -> None:
    """Find errors in a parallel corpus and name them by file and line. The exit code is 1 if there are errors.

    Example:  glassformer doctor train.en train.fr --dev dev.en dev.fr --fix cleaned

    Args:
        files: Source text and target text, or one TSV or JSONL file of pairs; plain or .gz.
        src: Source files, if there are several.
        tgt: Target files, one for each source file.
        dev: Dev set: two text files, or one TSV or JSONL file. Training pairs that are also in it are reported.
        test: Test set, likewise.
        format: Format of the files: lines, tsv or jsonl. Default: by file name, for other names by content.
        keys: JSON keys of the fields in JSONL, for instance src=translation.en tgt=translation.fr.
        fix: Write repaired files to this folder, and dropped.tsv with the pairs that were left out and the reasons.
        show: Number of findings to print of each type.
        json: Print all findings as JSON.
    """
    corpus = pair_sides(files, format) if files else (src, tgt)
    held_out = {name: pair_sides(paths, format) for name, paths in (("dev", dev), ("test", test)) if paths}
    diagnosis = diagnose(*corpus, held_out=held_out, format=format, keys=keys, n_shown=None if json else show)
    if json:
        print(json_module.dumps(diagnosis.to_json(), ensure_ascii=False, indent=2))
    else:
        print_findings(diagnosis)
    if fix:
        result = repair_corpus(*corpus, fix, held_out=held_out, format=format, keys=keys)
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in result.repaired.items()) or "nothing"
        print(
            f"{fix}: {result.n_kept:,} of {result.n_pairs:,} pairs kept, repaired: {kinds}."
            f" Dropped pairs and reasons: {result.files[-1]}",
            file=sys.stderr,
        )
    sys.exit(1 if diagnosis.has_errors else 0)


def print_findings(diagnosis: Diagnosis) -> None:
    """Print the findings, then one row for each type of finding."""
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
    console.print(f"{diagnosis.n_pairs:,} pairs: {n_errors:,} errors, {n_warnings:,} warnings.")
