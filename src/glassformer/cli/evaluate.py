"""`glassformer evaluate`"""

import json as json_module
import re
import sys
from collections import Counter
from dataclasses import asdict
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from glassformer.cli.files import check_no_options, check_writable, evaluation_sides
from glassformer.cli.options import Device, Ensemble, Json, Threads, decode_options, flags
from glassformer.cli.reading import BleuTokenizer, ReadFlags, bleu_options, read_options
from glassformer.config import JsonObject
from glassformer.decode_config import DecodeConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from glassformer.corpora.example import Example
    from glassformer.metrics import Score
    from glassformer.tasks.base import AnyTask

N_LISTED = 5
"""Number of labels that a warning names."""

Flags: Any = flags(*DecodeConfig.groups(), exclude=("nbest",))


def evaluate(
    model: Path,
    /,
    *files: Path,
    src: Annotated[Path | None, Parameter(allow_leading_hyphen=True)] = None,
    ref: Path | None = None,
    read: Annotated[ReadFlags, Parameter(name="*")] = ReadFlags(),  # noqa: B008
    out: Path | None = None,
    outputs: Path | None = None,
    ensemble: Ensemble = (),
    tokenize: BleuTokenizer = None,
    lowercase: bool = False,
    interval: bool = False,
    json: Json = False,
    device: Device = "auto",
    threads: Threads = None,
    options: Annotated[Flags, Parameter(name="*")] = Flags(),  # noqa: B008
) -> None:
    """Compute the metrics of a model on a test set in any format that `train` reads.

    Translation: BLEU, chrF and TER with sacrebleu's signatures. Classification: accuracy, F1, Matthews correlation.
    Tagging: accuracy, entity F1. Regression: Pearson, Spearman. Question answering: exact match, F1. Language model:
    perplexity. Summarization: ROUGE.

    Example:  glassformer evaluate en-fr --src test.en --ref test.fr

    Args:
        model: Model folder written by `glassformer train`.
        files: Test set: labeled text, tagged text, questions, plain text, or for translation source
            text and reference translations, files of pairs, or a folder of TMX, XLIFF and PO files.
        src: Source text of a translation; --ref has the references.
        ref: Reference translations, line by line. Not for TSV and JSONL.
        out: Also write the model's outputs to this file, one line for each example. Not for language models.
        outputs: Translations to evaluate instead of the model's, one line for each example: those of
            `glassformer translate MODEL test.en --lines --out FOLDER`, or of another system.
        tokenize: sacrebleu's tokenizer for BLEU; "none" for tokenized text. Default: 13a; for text without spaces
            between words zh or char.
        lowercase: Ignore case in BLEU, chrF and TER.
        interval: Also print a 95% confidence interval of each metric, by bootstrap resampling of the examples.
        json: Print the metrics as JSON.
        device: Device to compute on.
        threads: Number of CPU threads. Default: all cores.
    """
    from glassformer.cli.bulk import log
    from glassformer.cli.lines import join_ensemble, open_model, progress_bar
    from glassformer.corpora.corpus import read_pairs
    from glassformer.corpora.example import with_both_sides
    from glassformer.errors import ConfigError
    from glassformer.metrics.significance import bootstrap
    from glassformer.tasks.translation import Translator

    check_no_options([src], "evaluate")
    if not files and src is None:
        raise ConfigError("no test set given.\n  Name a file, or for translations --src FILE --ref FILE.")
    check_writable(out)
    sources = [*([src] if src else []), *files]
    decoding = decode_options(options)
    task = open_model(model, device, threads, precision=decoding.precision)
    task.check_options(decoding)
    if decoding.model_fields_set and not task.output_type:
        names = ", ".join(sorted(decoding.model_fields_set))
        raise ConfigError(
            f"{names}: without effect on the loss of {task.name}, which is computed in fp32.\n  Leave it out."
        )
    if out and not task.output_type:
        raise ConfigError(f"--out: {task.name} has a loss, and no outputs.\n  Leave it out.")
    bleu = bleu_options(task, tokenize, lowercase=lowercase)
    join_ensemble(task, ensemble, device)
    reading = read_options(read, task, sources)
    sides = evaluation_sides(task, sources, ref, reading)
    examples: list[Any]
    if outputs:
        check_only_outputs(task, is_decoding=bool(decoding.model_fields_set or ensemble or out))
        pairs = list(read_pairs(*sides, log=log, **asdict(reading)))
        examples = list(with_both_sides(pairs, log))
    else:
        examples = list(task.read(*sides, reading, log))
    if not examples:
        raise ConfigError(f"{sources[0]}: no examples to evaluate on.\n  Give a file that has some.")
    if not any(text.strip() for example in examples for text in task.texts(example)):
        raise ConfigError(f"{sources[0]}: no examples to evaluate on: all its lines are blank.\n  Give another file.")
    if task.has_classes:
        warn_of_unknown_labels(task, examples)
    if outputs:
        lines = read_outputs(outputs, pairs)
        scores = Translator.scores_of(lines, examples, **bleu)
    elif isinstance(task, Translator):
        with progress_bar("translating", len(examples)) as progress:
            lines, scores = task.evaluate(examples, decoding, **bleu, progress=progress)
    else:
        lines, scores = task.evaluate(examples, decoding)
    if out:
        text = "".join(re.sub(r"[\r\n]+", " ", line) + "\n" for line in lines)
        out.write_text(text, encoding="utf-8", newline="\n")
    intervals = {}
    if interval:
        for name, (statistics, metric_from_sums) in task.bootstrap_statistics(lines, examples, **bleu).items():
            estimate = bootstrap(statistics, metric_from_sums)
            intervals[name] = (estimate.low, estimate.high)
        if without := [score.name for score in scores if score.name not in intervals]:
            print(f"There is no confidence interval for {', '.join(without)}.", file=sys.stderr)
    if json:
        print(json_module.dumps({examples_key(task): len(examples), **json_record(scores, intervals)}))
    else:
        show(scores, intervals)


def check_only_outputs(task: "AnyTask", *, is_decoding: bool) -> None:
    """Check that --outputs can be used.

    Args:
        is_decoding: whether options are given that have an effect on decoding only.

    Raises:
        ConfigError: the task is not translation, or such options are given.
    """
    from glassformer.errors import ConfigError

    if task.name != "translation":
        raise ConfigError(f"--outputs: for models that translate, not for {task.name}.\n  Leave it out.")
    if is_decoding:
        what = "options of decoding, --ensemble and --out have no effect"
        raise ConfigError(f"--outputs: nothing is translated; {what}.\n  Leave them out.")


def read_outputs(path: Path, pairs: "Sequence[Example]") -> list[str]:
    """The lines of a file of outputs for the pairs with text on both sides.

    Args:
        pairs: the test set. The file has a line for each pair, or for each pair with text on both sides, as --out
            writes it.

    Raises:
        CorpusError: it cannot be read, has another number of lines, or lines with more than the translation.
    """
    from glassformer.corpora.lines import read_lines
    from glassformer.errors import CorpusError

    lines, are_used = translations_of(list(read_lines(path))), [pair.has_both_sides for pair in pairs]
    if len(lines) > 1 and all("|||" in line for line in lines if line.strip()):
        raise CorpusError(
            f"{path}: its lines have more than the translation, as those of --align and --confidence have.\n"
            "  Translate without these options, or with --json."
        )
    if len(lines) == len(pairs):
        return list(compress(lines, are_used))
    if len(lines) == sum(are_used):
        return lines
    raise CorpusError(
        f"{path}: {len(lines):,} lines, and the test set has {len(pairs):,} pairs.\n"
        "  Is it the output for this test set? Each pair needs a line, blank if there is no output."
    )


def translations_of(lines: list[str]) -> list[str]:
    """The translations in the lines of `translate --lines`, also with --json."""
    if not any(lines) or not all(line.startswith("{") for line in lines if line.strip()):
        return lines
    try:
        return [json_module.loads(line)["output"] if line.strip() else "" for line in lines]
    except (ValueError, KeyError):
        return lines


def warn_of_unknown_labels(task: "AnyTask", examples: "Sequence[Any]") -> None:
    """Say which labels of the examples the model does not have: it cannot be right about them."""
    references = task.references(examples)
    labels = [label for each in references for label in ([each] if isinstance(each, str) else each)]
    unknown = Counter(label for label in labels if label not in task.labels)
    if unknown:
        names = ", ".join(map(repr, list(unknown)[:N_LISTED])) + ", …" * (len(unknown) > N_LISTED)
        known = ", ".join(map(repr, task.labels[:N_LISTED])) + ", …" * (len(task.labels) > N_LISTED)
        print(
            f"warning: {unknown.total():,} of {len(labels):,} labels are not labels of the model: {names}.\n"
            f"  Those of the model: {known}.",
            file=sys.stderr,
        )


def examples_key(task: "AnyTask") -> str:
    """JSON key of the number of examples."""
    return "n_sentences" if task.examples_name == "pairs" else f"n_{task.examples_name}"


def json_record(scores: "Sequence[Score]", intervals: dict[str, tuple[float, float]]) -> JsonObject:
    """Scores, signatures and intervals by the name of the metric."""
    return {
        s.name: {
            "score": s.value,
            "signature": s.signature,
            **({"interval": intervals[s.name]} if s.name in intervals else {}),
        }
        for s in scores
    }


def show(scores: "Sequence[Score]", intervals: dict[str, tuple[float, float]]) -> None:
    """Print the metrics, one per line."""
    from glassformer.metrics.registry import metric

    for score in scores:
        format_value = metric(score.name).format
        bounds = ", ".join(map(format_value, intervals.get(score.name, ())))
        interval_text = f"  95% [{bounds}]" if bounds else ""
        print(f"{score.name:6} {format_value(score.value):>6}{interval_text}  {score.signature}".rstrip())
    sys.stdout.flush()
