"""`glassformer report`"""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from glassformer.cli.files import check_new, write_page
from glassformer.cli.options import whole_number

Examples = Annotated[int, Parameter(converter=whole_number, validator=Number(gte=0))]


def report(run: Path, /, *, out: Path | None = None, examples: Examples = 200, force: bool = False) -> None:
    """Write a report of a training run as an HTML page: curves, data, samples by checkpoint, best and worst examples,
    errors, and the command that repeats the run.

    Example:  glassformer report en-fr --out report.html

    Args:
        run: Run folder written by `glassformer train`.
        out: Page to write. Default: report.html in the current folder.
        examples: Number of dev examples to evaluate; 0: none.
        force: Overwrite the page if it exists.
    """
    out = out or Path("report.html")
    check_new(out, force)
    from glassformer.inspection.page import report_page
    from glassformer.inspection.run_report import run_report

    write_page(out, report_page(run_report(run, examples)))
