"""`glassformer ablate`"""

import json as json_module
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from glassformer.cli.files import check_new, write_page
from glassformer.cli.options import Int, OptionalInt


def ablate(
    model: Path,
    /,
    *files: Path,
    src: Path | None = None,
    ref: Path | None = None,
    columns: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    parts: Literal["heads", "sublayers", "layers"] = "heads",
    examples: Int = 200,
    prune: Int = 0,
    out: Path | None = None,
    html: Path | None = None,
    json: bool = False,
    force: bool = False,
    threads: OptionalInt = None,
) -> None:
    """Switch every head, sub-layer or layer off, one at a time, and see what that changes: what is missed most first.

    Example:  glassformer ablate en-fr --src test.en --ref test.fr --prune 4 --out en-fr-pruned

    Args:
        model: folder written by `glassformer train` or `glassformer import`.
        files: text with the right answers, in the form the model was trained on.
        src: source text, or a TSV or JSONL of pairs.
        ref: reference translations, line by line.
        columns: of labeled files without a header: text, text2, label, or _.
        parts: what to switch off: heads, sublayers or layers.
        examples: how many to try on, from the first.
        prune: write a folder without the heads that are missed least, this many, and measure it.
        out: the folder to write.
        html: also write a page with a map of the changes.
        json: one JSON object a line.
        force: overwrite the page if it exists.
        threads: processor threads. Default: all cores.
    """
    from itertools import islice

    from glassformer import checkpoint
    from glassformer.cli.lines import open_model, progress_bar
    from glassformer.errors import ConfigError
    from glassformer.inspection import ablation

    check_new(html, force)
    if bool(prune) != bool(out) or (prune and parts != "heads"):
        raise ConfigError("--prune N takes heads out and --out names the folder to write: give both, and no --parts.")
    if prune < 0 or examples < 1:
        raise ConfigError("--examples is at least 1, --prune at least 0.")
    if out:
        checkpoint.check_empty(out)
    sources = [*files, *([src] if src else [])]
    if not sources:
        raise ConfigError("no text to try on.\n  Name a file, or of translations --src FILE --ref FILE.")
    task = open_model(model, "cpu", threads)
    chosen = list(islice(task.read(sources, [ref] if ref else [], columns), examples))
    if not chosen:
        raise ConfigError(f"{sources[0]}: nothing in it to try on.")
    unknown = {label for example in chosen for label in task.labels_in(example)} - {*task.labels}
    if task.has_classes and unknown:
        names = ", ".join(sorted(unknown))
        raise ConfigError(f"labels that training has not seen: {names}.\n  Leave their examples out.")
    if prune:
        ablation.check_prunable(task.model)
    with progress_bar("switching off", len(ablation.parts(task.model, parts))) as progress:
        whole, losses = ablation.ablate(task, chosen, parts, progress=progress)
    if json:
        for loss in losses:
            print(json_module.dumps({"part": str(loss.part), **loss.metrics, "change": loss.change}))
    else:
        show(whole, losses, len(chosen))
    if html:
        from glassformer.inspection.page import ablation_page

        write_page(html, ablation_page(whole, losses, parts, len(chosen)))
    if prune and out:
        before = ablation.timed(task, chosen)
        n_before = sum(p.numel() for p in task.model.parameters())
        gone = ablation.prune(task, losses, prune)
        after, n_after = ablation.timed(task, chosen), sum(p.numel() for p in task.model.parameters())
        metrics = task.validate(chosen)
        checkpoint.save_folder(out, task.contents())
        print(f"without {', '.join(map(str, gone))}:", file=sys.stderr)
        changes = ", ".join(f"{name} {whole[name]:.4f} -> {metrics[name]:.4f}" for name in whole)
        print(
            f"  {changes}; {n_before:,} -> {n_after:,} parameters; {before:.2f} -> {after:.2f} s\n-> {out}",
            file=sys.stderr,
        )


def show(whole: dict[str, float], losses: list[Any], n: int) -> None:
    """A part a line, what is missed most first."""
    print(f"{'the whole model':40} " + " ".join(f"{name} {x:10.4f}" for name, x in whole.items()) + f"  ({n} examples)")
    for loss in losses:
        metrics = " ".join(f"{name} {x:10.4f} {loss.change[name]:+8.4f}" for name, x in loss.metrics.items())
        print(f"{loss.part!s:40} {metrics}")
