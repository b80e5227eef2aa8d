"""`glassformer report`"""

from pathlib import Path

from glassformer.cli.files import check_new, write_page


def report(run: Path, /, *, out: Path | None = None, examples: int = 200, force: bool = False) -> None:
    """How a run went, as one page: curves, data, samples of its checkpoints, best and worst, errors, how to repeat it.

    Example:  glassformer report en-fr --out report.html

    Args:
        run: folder written by `glassformer train`.
        out: the page to write. Default: report.html in the current folder.
        examples: dev examples that the model is asked about.
        force: overwrite the page if it exists.
    """
    out = out or Path("report.html")
    check_new(out, force)
    from glassformer.inspection.page import report_page
    from glassformer.inspection.run_report import run_report

    write_page(out, report_page(run_report(run, examples)))
