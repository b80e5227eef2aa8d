"""`glassformer ablate`"""

import json as json_module
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from glassformer.cli.files import check_new, evaluation_sides, write_page
from glassformer.cli.options import Int, Json, Threads
from glassformer.cli.reading import ReadFlags, read_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from glassformer.inspection.ablation import AblationResult
    from glassformer.tasks.base import AnyTask, CorpusExample


def ablate(
    model: Path,
    /,
    *files: Path,
    src: Path | None = None,
    ref: Path | None = None,
    read: Annotated[ReadFlags, Parameter(name="*")] = ReadFlags(),  # noqa: B008
    parts: Literal["heads", "sublayers", "layers"] = "heads",
    examples: Int = 200,
    prune: Int = 0,
    out: Path | None = None,
    html: Path | None = None,
    json: Json = False,
    force: bool = False,
    threads: Threads = None,
) -> None:
    """Measure the effect of removing each head, sub-layer or layer, one at a time, sorted by importance.

    Example:  glassformer ablate en-fr --src test.en --ref test.fr --prune 4 --out en-fr-pruned

    Args:
        model: Model folder written by `glassformer train` or `glassformer import`.
        files: Evaluation examples, in a format that the model was trained on.
        src: Source text, or a TSV or JSONL file of pairs.
        ref: Reference translations of --src, line by line.
        parts: What to remove: heads, sublayers or layers.
        examples: Number of examples to evaluate on, from the first.
        prune: Also write a model folder without this many heads, the least important ones, and evaluate it.
        out: Model folder to write with --prune.
        html: Also write an HTML page with a map of the changes.
        json: Print one JSON object for each part.
        force: Overwrite the page if it exists.
        threads: Number of CPU threads. Default: all cores.
    """
    from itertools import islice

    from glassformer import checkpoint
    from glassformer.cli.bulk import log
    from glassformer.cli.lines import open_model, progress_bar
    from glassformer.errors import ConfigError
    from glassformer.inspection import ablation
    from glassformer.learning.registry import objective_of

    check_new(html, force)
    if bool(prune) != bool(out) or (prune and parts != "heads"):
        raise ConfigError("--prune N removes heads and --out names the folder to write: give both, and no --parts.")
    if prune < 0 or examples < 1:
        raise ConfigError("--examples must be at least 1, --prune at least 0.")
    if out:
        checkpoint.check_empty(out)
    sources = [*([src] if src else []), *files]
    if not sources:
        raise ConfigError("no evaluation examples given.\n  Name a file, or for translations --src FILE --ref FILE.")
    task = open_model(model, "cpu", threads)
    reading = read_options(read, task, sources)
    selected = list(islice(task.read(*evaluation_sides(task, sources, ref, reading), reading, log), examples))
    if not selected:
        raise ConfigError(f"{sources[0]}: no examples in it.\n  Give a file that has some.")
    unknown = {label for example in selected for label in objective_of(task).labels_in(example)} - {*task.labels}
    if task.has_classes and unknown:
        names = ", ".join(sorted(unknown))
        raise ConfigError(f"labels that are not among the model's labels: {names}.\n  Leave their examples out.")
    if prune:
        ablation.check_prunable(task.model, prune)
    with progress_bar("removing", len(ablation.components(task.model, parts))) as progress:
        full_metrics, results = ablation.ablate(task, selected, parts, progress=progress)
    if json:
        for result in results:
            print(json_module.dumps({"part": str(result.component), **result.metrics, "change": result.change}))
    else:
        show(full_metrics, results, len(selected))
        print("Layers in module paths are counted from 0, heads from 1.", file=sys.stderr)
    if html:
        from glassformer.inspection.page import ablation_page

        write_page(html, ablation_page(full_metrics, results, parts, len(selected)))
    if prune and out:
        save_pruned(task, selected, full_metrics, results, prune, out)


def save_pruned(
    task: "AnyTask",
    examples: "Sequence[CorpusExample]",
    full_metrics: dict[str, float],
    results: "list[AblationResult]",
    n_heads: int,
    out: Path,
) -> None:
    """Write a model folder without the least important heads, and print its metrics, size and time."""
    from glassformer import checkpoint
    from glassformer.inspection import ablation
    from glassformer.metrics.registry import metric

    before = ablation.validation_seconds(task, examples)
    n_before = sum(p.numel() for p in task.model.parameters())
    pruned_heads = ablation.prune(task, results, n_heads)
    after, n_after = ablation.validation_seconds(task, examples), sum(p.numel() for p in task.model.parameters())
    metrics = ablation.objective_in_fp32(task).validate(examples)
    checkpoint.save_folder(out, task.contents())
    print(f"without {', '.join(map(str, pruned_heads))}:", file=sys.stderr)
    changes = ", ".join(
        f"{name} {metric(name).format(full_metrics[name])} -> {metric(name).format(metrics[name])}"
        for name in full_metrics
    )
    print(
        f"  {changes}; {n_before:,} -> {n_after:,} parameters; {before:.2f} -> {after:.2f} s\n-> {out}",
        file=sys.stderr,
    )


def show(full_metrics: dict[str, float], results: "list[AblationResult]", n: int) -> None:
    """Print the metrics without each part, the most important part first."""
    from glassformer.metrics.registry import metric

    values = " ".join(f"{name} {metric(name).format(x):>10}" for name, x in full_metrics.items())
    print(f"{'full model':40} {values}  ({n} examples)")
    for result in results:
        metrics = " ".join(
            f"{name} {metric(name).format(x):>10} {metric(name).format_change(result.change[name]):>8}"
            for name, x in result.metrics.items()
        )
        print(f"{result.component!s:40} {metrics}")
