"""`glassformer calibrate`"""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from glassformer.cli.options import Device, Threads
from glassformer.cli.reading import ReadFlags, pair_options


def calibrate(
    model: Path,
    /,
    *,
    src: Path,
    ref: Path | None = None,
    read: Annotated[ReadFlags, Parameter(name="*")] = ReadFlags(),  # noqa: B008
    device: Device = "auto",
    threads: Threads = None,
) -> None:
    """Fit the confidence of translations to a dev set, and store it in the model folder.

    Example:  glassformer calibrate en-fr --src dev.en --ref dev.fr

    Args:
        model: Model folder written by `glassformer train`.
        src: Source text, or a TSV or JSONL file of pairs. Not the training text.
        ref: Reference translations, line by line. Not for TSV and JSONL.
        device: Device to compute on.
        threads: Number of CPU threads. Default: all cores.
    """
    from glassformer import checkpoint
    from glassformer.cli.bulk import log
    from glassformer.cli.lines import open_translator
    from glassformer.corpora.corpus import read_pairs
    from glassformer.corpora.example import with_both_sides
    from glassformer.tasks.confidence import FILE, fit_confidence
    from glassformer.tasks.registry import find_model

    task = open_translator(model, device, threads)
    reading = pair_options(read, task, [src])
    examples = read_pairs([src], [ref] if ref else [], log=log, **asdict(reading))
    pairs = list(with_both_sides(examples, log))
    confidence, error = fit_confidence(task, [pair.src for pair in pairs], [pair.tgt for pair in pairs])
    checkpoint.add_file(find_model(model), FILE, checkpoint.to_json(confidence.to_record()))
    print(
        f"{model}: confidence fitted to {confidence.n_words:,} words of {len(pairs):,} lines."
        f" Expected calibration error on a half, fitted to the other: {error:.3f}."
    )
