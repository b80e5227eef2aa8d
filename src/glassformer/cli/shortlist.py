"""`glassformer shortlist`"""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from glassformer.cli.options import Quiet
from glassformer.cli.reading import ReadFlags, pair_options


def shortlist(
    model: Path,
    /,
    *,
    src: Path,
    ref: Path | None = None,
    read: Annotated[ReadFlags, Parameter(name="*")] = ReadFlags(),  # noqa: B008
    quiet: Quiet = False,
) -> None:
    """Learn from parallel text which tokens the words of a source may be translated to, and store it in the model
    folder. `glassformer translate --shortlist` considers only them, which is faster if the vocabulary is large: with
    32,000 tokens, not with 8,000.

    Example:  glassformer shortlist en-fr --src train.en --ref train.fr

    Args:
        model: Model folder written by `glassformer train`.
        src: Source text, or a TSV or JSONL file of pairs: the training text, or a part of it.
        ref: Translations, line by line. Not for TSV and JSONL.
        quiet: Print errors only.
    """
    from glassformer import checkpoint
    from glassformer.cli.bulk import log
    from glassformer.cli.lines import open_model, progress_bar
    from glassformer.corpora.corpus import read_pairs
    from glassformer.generate.shortlist import FILE
    from glassformer.tasks.registry import find_model
    from glassformer.tasks.shortlist import learn_shortlist
    from glassformer.tasks.texts import no_op
    from glassformer.tasks.translation import Translator

    task = open_model(model, "cpu", None, (Translator.name,), quiet=quiet)
    assert isinstance(task, Translator)
    reading = pair_options(read, task, [src])
    report = no_op if quiet else log
    pairs = read_pairs([src], [ref] if ref else [], log=report, **asdict(reading))
    with progress_bar("learning", None) as progress:
        learned = learn_shortlist(task, pairs, no_op if quiet else progress, report)
    checkpoint.add_file(find_model(model), FILE, learned.to_tensors())
    n_learned = int((learned.begins[1:] > learned.begins[:-1]).sum())
    print(
        f"{model}: vocabulary shortlist of {n_learned:,} source tokens, with {len(learned.targets) / n_learned:.0f}"
        f" target tokens each, and {len(learned.frequent)} frequent ones."
        f" Use it: glassformer translate {model} --precision int8 --shortlist"
    )
