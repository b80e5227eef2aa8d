"""`glassformer doctor`"""

import json as json_module
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console
from rich.table import Table

from glassformer.cli.files import pair_sides
from glassformer.cli.options import whole_number
from glassformer.corpora.doctor import Diagnosis, examine
from glassformer.corpora.doctor import fix as repair

Paths = Annotated[tuple[Path, ...], Parameter(consume_multiple=True)]


def doctor(
    *files: Path,
    src: Paths = (),
    tgt: Paths = (),
    dev: Paths = (),
    test: Paths = (),
    format: Literal["lines", "tsv", "jsonl"] | None = None,
    fix: Path | None = None,
    show: Annotated[int, Parameter(converter=whole_number, validator=Number(gte=1))] = 3,
    json: bool = False,
) -> None:
    """Name, by file and line, what is wrong with a parallel corpus. Exit code 1 if there are errors.

    Example:  glassformer doctor train.en train.fr --dev dev.en dev.fr --fix cleaned

    Args:
        files: source text and target text; or one TSV or JSONL of pairs. Any may be gzip'd.
        src: several source files.
        tgt: several target files, one for each source file.
        dev: the dev set: two text files, or one TSV or JSONL. Pairs that are in it too are named.
        test: the test set, likewise.
        format: how to read the files, whatever their names say.
        fix: write the files without these faults into this folder, and dropped.tsv: what was left out and why.
        show: findings shown of each kind.
        json: everything found, as JSON.
    """
    corpus = pair_sides(files, format) if files else (src, tgt)
    against = {name: pair_sides(paths, format) for name, paths in (("dev", dev), ("test", test)) if paths}
    diagnosis = examine(*corpus, against=against, format=format, n_shown=None if json else show)
    if json:
        print(json_module.dumps(diagnosis.to_json(), ensure_ascii=False, indent=2))
    else:
        print_findings(diagnosis)
    if fix:
        mended = repair(*corpus, fix, against=against, format=format)
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in mended.repaired.items()) or "nothing"
        print(
            f"{fix}: {mended.n_kept:,} of {mended.n_pairs:,} pairs kept, repaired: {kinds}."
            f" What was left out, and why: {mended.files[-1]}",
            file=sys.stderr,
        )
    sys.exit(1 if diagnosis.has_errors else 0)


def print_findings(diagnosis: Diagnosis) -> None:
    """The findings, then one row for each kind."""
    console = Console(soft_wrap=True, markup=False, highlight=False)
    for finding in diagnosis.findings:
        console.print(str(finding))
    table = Table(box=None, pad_edge=False)
    for name, justify in (("", "left"), ("kind", "left"), ("count", "right"), ("first", "left"), ("what", "left")):
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for kind, severity, n, place, meaning in diagnosis.rows():
        table.add_row(severity, kind, f"{n:,}", place, meaning)
    if diagnosis.counts:
        console.print()
        console.print(table)
        console.print()
    n_errors = sum(n for _, severity, n, _, _ in diagnosis.rows() if severity == "error")
    n_warnings = sum(diagnosis.counts.values()) - n_errors
    console.print(f"{diagnosis.n_pairs:,} pairs: {n_errors:,} errors, {n_warnings:,} warnings.")
