"""`glassformer compare`"""

import json as json_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from glassformer.cli.options import Device, Json, Threads
from glassformer.cli.reading import BleuTokenizer, ReadFlags, bleu_options, read_options
from glassformer.config import JsonObject

if TYPE_CHECKING:
    from glassformer.metrics.significance import Comparison


def compare(
    first: Path,
    second: Path,
    /,
    *files: Path,
    src: Annotated[Path | None, Parameter(allow_leading_hyphen=True)] = None,
    ref: Path | None = None,
    read: Annotated[ReadFlags, Parameter(name="*")] = ReadFlags(),  # noqa: B008
    tokenize: BleuTokenizer = None,
    lowercase: bool = False,
    json: Json = False,
    device: Device = "auto",
    threads: Threads = None,
) -> None:
    """Test whether the difference between two models on the same test set is statistically significant.

    The p-value is computed by paired bootstrap resampling of the examples.

    Example:  glassformer compare first second --src test.en --ref test.fr

    Args:
        first: Model folder of the baseline.
        second: Model folder of the model to compare, trained for the same task.
        files: Test set: labeled text, tagged text, questions; for translation as for
            `glassformer evaluate`.
        src: Source text, or a TSV or JSONL file of pairs.
        ref: Reference translations of --src, line by line.
        tokenize: sacrebleu's tokenizer for BLEU; "none" for tokenized text. Default: 13a; for text without spaces
            between words zh or char.
        lowercase: Ignore case in BLEU.
        json: Print the metrics as JSON.
        device: Device to compute on.
        threads: Number of CPU threads. Default: all cores.
    """
    from glassformer.cli.bulk import log
    from glassformer.cli.files import check_no_options, evaluation_sides
    from glassformer.cli.lines import open_model
    from glassformer.errors import ConfigError
    from glassformer.metrics.significance import paired_bootstrap

    check_no_options([src], "compare")
    sources = [*([src] if src else []), *files]
    if not sources:
        raise ConfigError("no test set given.\n  Name a file, or for translations --src FILE --ref FILE.")
    tasks = [open_model(folder, device, threads) for folder in (first, second)]
    if tasks[0].name != tasks[1].name:
        raise ConfigError(
            f"{first} was trained for {tasks[0].name}, {second} for {tasks[1].name}: they cannot be compared."
        )
    bleu = bleu_options(tasks[0], tokenize, lowercase=lowercase)
    reading = read_options(read, tasks[0], sources)
    examples = list(tasks[0].read(*evaluation_sides(tasks[0], sources, ref, reading), reading, log))
    if not any(text.strip() for example in examples for text in tasks[0].texts(example)):
        raise ConfigError(f"{sources[0]}: no examples to compare on.\n  Give a file that has some.")
    outputs = [task.evaluate(examples)[0] for task in tasks]
    classes = sorted({*tasks[0].references(examples), *chain(*outputs)}) if tasks[0].output_type == "classes" else None
    statistics = [tasks[0].bootstrap_statistics(lines, examples, classes, **bleu) for lines in outputs]
    if not statistics[0]:
        raise ConfigError(f"{tasks[0].name}: its metrics cannot be compared example by example.")
    for name, (first_statistics, from_sums) in statistics[0].items():
        second_statistics, _ = statistics[1][name]
        comparison = paired_bootstrap(first_statistics, second_statistics, from_sums)
        if json:
            print(json_module.dumps(json_record(name, comparison)))
        else:
            show(name, comparison)


def json_record(name: str, comparison: "Comparison") -> JsonObject:
    """The comparison of a metric as a JSON object."""
    difference = comparison.difference
    return {
        "metric": name,
        "first": comparison.first,
        "second": comparison.second,
        "difference": difference.value,
        "interval": [difference.low, difference.high],
        "p_value": comparison.p_value,
    }


def show(name: str, comparison: "Comparison") -> None:
    """Print the comparison of a metric in one line."""
    from glassformer.metrics.registry import metric

    difference = comparison.difference
    verdict = "significant" if comparison.p_value < 0.05 else "not significant"
    m = metric(name)
    value, low, high = map(m.format_change, (difference.value, difference.low, difference.high))
    print(
        f"{name:8} {m.format(comparison.first)} -> {m.format(comparison.second)}"
        f"  difference {value} [{low}, {high}], p = {comparison.p_value:.3f}: {verdict}"
    )
