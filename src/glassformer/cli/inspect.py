"""`glassformer inspect`"""

import json as json_module
import os
import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from glassformer.cli.files import check_new, write_page
from glassformer.cli.options import Int, flags, given
from glassformer.config import DecodeConfig

SAMPLING = ("temperature", "top_k", "top_p", "seed", "stop", "nbest", "batch_tokens", "precision")
Flags: Any = flags(DecodeConfig, *SAMPLING)


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
    """See what a model does with a text: attention, predictions layer by layer, the search, in one HTML file.

    Example:  glassformer inspect en-fr "The black cat sat on the couch." --out report.html

    Args:
        model: folder written by `glassformer train` or `glassformer import`.
        text: what the model is to read; of a pair, two texts that a tab separates.
        target: what a translator or a language model is to follow, in place of what search finds best.
        out: the page to write, which opens from disk. Without it the predictions are printed.
        json: print everything as JSON.
        window: of a text longer than the model reads, the stretch to look at.
        force: overwrite the page if it exists.
    """
    check_new(out, force)
    from glassformer.inspection.inspect import inspect as look
    from glassformer.inspection.page import inspection_page
    from glassformer.tasks.registry import load

    # Only what was given: a language model has defaults of its own.
    decoding = DecodeConfig.resolve(given(options), environment=os.environ)
    chosen = decoding.model_dump(include=decoding.model_fields_set)
    found = look(load(model, device="cpu"), text, target, window=window, **chosen)
    for note in found.notes:
        print(f"note: {note}", file=sys.stderr)
    if out:
        write_page(out, inspection_page(found.record()))
    if json:
        print(json_module.dumps(found.record()))
    elif not out:
        show(found)


def show(found: Any) -> None:
    """The predictions, a place a line."""
    if not found.predictions:
        print(f"{found.task}: predicts nothing; --out FILE shows its attention and vectors.", file=sys.stderr)
    if found.answer:
        print(f"answer: {found.answer}")
    side = found.sides.get("target") or found.sides["text"]
    for p in found.predictions[found.first_predicted :]:
        guesses = "  ".join(f"{guess.text!r} {guess.probability:.3f}" for guess in p.best[:4])
        if p.expected is None:
            place = "" if found.predicts in ("label", "number") else f"{side.tokens[p.position]!r:18} "
            print(f"{place}{guesses}")
        else:
            print(f"{p.expected!r:18} loss {-p.log_prob:7.4f}  rank {p.rank + 1:<5}  {guesses}")
