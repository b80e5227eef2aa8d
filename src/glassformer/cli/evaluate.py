"""`glassformer evaluate`"""

import json as json_module
import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from glassformer.cli.files import check_writable
from glassformer.cli.options import OptionalInt, flags, given
from glassformer.config import DecodeConfig

Flags: Any = flags(DecodeConfig, "nbest")


def evaluate(
    model: Path,
    /,
    *files: Path,
    src: Annotated[Path | None, Parameter(allow_leading_hyphen=True)] = None,
    ref: Path | None = None,
    columns: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    out: Path | None = None,
    tokenize: Literal["13a", "intl", "char", "zh", "none"] = "13a",
    lowercase: bool = False,
    interval: bool = False,
    json: bool = False,
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto",
    threads: OptionalInt = None,
    options: Annotated[Flags, Parameter(name="*")] = Flags(),  # noqa: B008
) -> None:
    """Figures of a model on text with the right answers, in the formats that `train` reads.

    Translations: BLEU, chrF and TER with sacrebleu's signatures. Classes: accuracy, F1, Matthews. Tags: accuracy, F1 of
    entities. Numbers: Pearson, Spearman. Answers: exact match, F1. Language: perplexity. Summaries: ROUGE.

    Example:  glassformer evaluate en-fr --src test.en --ref test.fr

    Args:
        model: folder written by `glassformer train`.
        files: labeled text, tagged text, questions, pairs.
        src: source text, or a TSV or JSONL of pairs.
        ref: reference translations, line by line; nothing for TSV and JSONL.
        columns: of labeled files without a header: text, text2, label, or _.
        out: also write the model's answers here, a line each.
        tokenize: sacrebleu's tokenizer for BLEU; none for text that is tokenized.
        lowercase: ignore case in BLEU.
        interval: also where each figure's true value lies, with 95% confidence, by bootstrap over the examples.
        json: figures as JSON.
        device: where to compute.
        threads: processor threads. Default: all cores.
    """
    from glassformer.cli.lines import open_model, progress_bar
    from glassformer.errors import ConfigError
    from glassformer.metrics.significance import bootstrap

    if not files and src is None:
        raise ConfigError("no text to evaluate on.\n  Name a file, or of translations --src FILE --ref FILE.")
    check_writable(out)
    sources = [*files, *([src] if src else [])]
    task = open_model(model, device, threads)
    examples = list(task.read(sources, [ref] if ref else [], columns))
    if not examples:
        raise ConfigError(f"{sources[0]}: nothing in it to evaluate on.")
    if not any(text.strip() for example in examples for text in task.texts(example)):
        raise ConfigError(f"{sources[0]}: nothing in it to evaluate on: all its lines are blank.")
    decoding = DecodeConfig.resolve(given(options), environment=os.environ)
    if task.name == "translation":
        with progress_bar("translating", len(examples)) as progress:
            outputs, scores = task.scores(examples, decoding, tokenize=tokenize, lowercase=lowercase, progress=progress)
    else:
        outputs, scores = task.scores(examples, decoding)
    if out:
        out.write_text("".join(line + "\n" for line in outputs), encoding="utf-8")
    intervals = {}
    if interval:
        for name, (statistics, figure) in task.bootstrap_statistics(outputs, examples).items():
            found = bootstrap(statistics, figure)
            intervals[name] = (found.low, found.high)
    if json:
        record = {
            s.name: {
                "score": s.value,
                "signature": s.signature,
                **({"interval": intervals[s.name]} if s.name in intervals else {}),
            }
            for s in scores
        }
        print(
            json_module.dumps(
                {f"n_{'sentences' if task.examples_name == 'pairs' else task.examples_name}": len(examples), **record}
            )
        )
    else:
        for score in scores:
            value = f"{score.value:6.2f}" if score.name in ("BLEU", "chrF2", "TER") else f"{score.value:.4f}"
            low, high = intervals.get(score.name, (None, None))
            between = "" if low is None else f"  95% [{low:.4f}, {high:.4f}]"
            print(f"{score.name:6} {value}{between}  {score.signature}".rstrip())
        sys.stdout.flush()
