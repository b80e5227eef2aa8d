"""`glassformer train`"""

import os
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from glassformer.cli.files import split_sides
from glassformer.cli.options import flags, given
from glassformer.config import TrainConfig

Flags: Any = flags(TrainConfig)


def train(
    *files: Path,
    config: Path | None = None,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False,
    options: Annotated[Flags, Parameter(name="*")] = Flags(),  # noqa: B008
) -> None:
    """Train on your text, or go on with a run that was broken off. What is learned follows from the files.

    Two text files: to translate. One: what follows a text. TSV, CSV or JSONL with text and label: classes or numbers.
    CoNLL or CoNLL-U: tags. SQuAD's JSON: answers. Else say it with --task.

    Example:  glassformer train train.en train.fr --out en-fr --minutes 60

    Args:
        files: the text to learn from. Any may be gzip'd. For several files a side of a translation: --src and --tgt.
        config: TOML file of options, such as a run folder's run.toml.
        quiet: say nothing but errors.
    """
    chosen: dict[str, Any] = given(options)
    if files:
        chosen["src"], chosen["tgt"] = split_sides(files, chosen.get("task"), chosen.get("columns", ()))
    resolved = TrainConfig.resolve(chosen, config, os.environ)
    from glassformer.training.run import train as run  # torch takes seconds to import

    run(resolved, quiet=quiet)
