"""`glassformer inspect`"""

import json as json_module
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from glassformer.cli.files import check_new, write_page
from glassformer.cli.options import Int, decode_options, flags
from glassformer.decode_config import SearchConfig, TranslationConfig

if TYPE_CHECKING:
    from glassformer.inspection.inspect import Inspection

Flags: Any = flags(SearchConfig, TranslationConfig, only=(*SearchConfig.model_fields, "tag"))


def inspect(
    model: Path,
    text: str,
    /,
    *,
    target: str | None = None,
    out: Path | None = None,
    json: bool = False,
    window: Int = 1,
    force: bool = False,
    options: Annotated[Flags, Parameter(name="*")] = Flags(),  # noqa: B008
) -> None:
    """Show attention, predictions by layer and beam search for one text, as an HTML page or JSON.

    Example:  glassformer inspect en-fr "The black cat sat on the couch." --out report.html

    Args:
        model: Model folder written by `glassformer train` or `glassformer import`.
        text: Input text; for a pair, two texts separated by a tab.
        target: Target text for translators and language models. Default: the best hypothesis of the search.
        out: HTML page to write; it opens from disk. Without it the predictions are printed.
        json: Print everything as JSON.
        window: Window to show of a text longer than the model's maximum length, counted from 1.
        force: Overwrite the page if it exists.
    """
    check_new(out, force)
    from glassformer.inspection.inspect import inspect as inspect_text
    from glassformer.inspection.page import inspection_page
    from glassformer.tasks.registry import load

    # Only explicit options: language models have other defaults.
    decoding = decode_options(options)
    explicit = decoding.model_dump(include=decoding.model_fields_set)
    inspection = inspect_text(load(model, device="cpu"), text, target, window=window, **explicit)
    for note in inspection.notes:
        print(f"note: {note}", file=sys.stderr)
    if out:
        write_page(out, inspection_page(inspection.to_dict()))
    if json:
        print(json_module.dumps(inspection.to_dict()))
    elif not out:
        show(inspection)


def show(inspection: "Inspection") -> None:
    """Print the predictions, one position per line."""
    if not inspection.predictions:
        print(f"{inspection.task}: no predictions; --out FILE shows attention and vectors.", file=sys.stderr)
    if inspection.answer:
        print(f"answer: {inspection.answer}")
    side = inspection.sides.get("target") or inspection.sides["text"]
    for p in inspection.predictions[inspection.first_predicted :]:
        candidates = "  ".join(f"{candidate.text!r} {candidate.probability:.3f}" for candidate in p.best[:4])
        if p.log_prob is None or p.rank is None:
            token = "" if inspection.predicts in ("label", "number") else f"{side.tokens[p.position]!r:18} "
            print(f"{token}{candidates}")
        else:
            print(f"{p.expected!r:18} loss {-p.log_prob:7.4f}  rank {p.rank + 1:<5}  {candidates}")
