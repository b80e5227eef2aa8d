"""`glassformer compare`"""

import json as json_module
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from glassformer.cli.options import OptionalInt


def compare(
    first: Path,
    second: Path,
    /,
    *files: Path,
    src: Annotated[Path | None, Parameter(allow_leading_hyphen=True)] = None,
    ref: Path | None = None,
    columns: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    json: bool = False,
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto",
    threads: OptionalInt = None,
) -> None:
    """Whether one model is better than another on the same text: their difference, and how likely it is by chance.

    Example:  glassformer compare first second --src test.en --ref test.fr

    Args:
        first: model folder, the baseline.
        second: model folder of the same task.
        files: labeled text, tagged text, questions, pairs.
        src: source text, or a TSV or JSONL of pairs.
        ref: reference translations, line by line.
        columns: of labeled files without a header: text, text2, label, or _.
        json: figures as JSON.
        device: where to compute.
        threads: processor threads. Default: all cores.
    """
    from glassformer.cli.lines import open_model
    from glassformer.errors import ConfigError
    from glassformer.metrics.significance import paired_bootstrap

    sources = [*files, *([src] if src else [])]
    if not sources:
        raise ConfigError("no text to compare on.\n  Name a file, or of translations --src FILE --ref FILE.")
    tasks = [open_model(folder, device, threads) for folder in (first, second)]
    if tasks[0].name != tasks[1].name:
        raise ConfigError(f"{first} does {tasks[0].name}, {second} does {tasks[1].name}: they cannot be compared.")
    examples = list(tasks[0].read(sources, [ref] if ref else [], columns))
    bootstrap_statistics = [task.bootstrap_statistics(task.scores(examples)[0], examples) for task in tasks]
    if not bootstrap_statistics[0]:
        raise ConfigError(f"{tasks[0].name}: its figures cannot be compared example by example.")
    for name, (statistics, metric) in bootstrap_statistics[0].items():
        others, _ = bootstrap_statistics[1][name]
        if others.shape != statistics.shape:
            continue  # classes that only one of the two says
        found = paired_bootstrap(statistics, others, metric)
        row = {
            "metric": name,
            "first": found.first,
            "second": found.second,
            "difference": found.difference.value,
            "interval": [found.difference.low, found.difference.high],
            "p_value": found.p_value,
        }
        if json:
            print(json_module.dumps(row))
        else:
            verdict = "significant" if found.p_value < 0.05 else "not significant"
            print(
                f"{name:8} {found.first:.4f} -> {found.second:.4f}  difference {found.difference.value:+.4f}"
                f" [{found.difference.low:+.4f}, {found.difference.high:+.4f}], p = {found.p_value:.3f}: {verdict}"
            )
