"""`glassformer train`"""

import os
import time
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from glassformer.cli.files import check_given_once, check_no_options, corpus_sides
from glassformer.cli.options import DATA, RUN, SHOW_ALL, Quiet, flags, given
from glassformer.cli.reading import READING, reading_of
from glassformer.config import JsonObject, read_toml
from glassformer.errors import ConfigError
from glassformer.train_config import TrainConfig

CORPUS = ("src", "tgt", "dev_src", "dev_tgt", "task", *READING)
"""Options from which the task and the sides of the text are inferred."""

STARTED_S = time.monotonic()
"""The start of the command, but for the start of Python: this module is imported first."""

Flags: Any = flags(TrainConfig)


def train(
    *files: Annotated[Path, Parameter(group=DATA, allow_leading_hyphen=True)],
    config: Annotated[Path | None, Parameter(group=RUN)] = None,
    repeat: Annotated[Path | None, Parameter(group=RUN, show=SHOW_ALL)] = None,
    quiet: Quiet = False,
    options: Annotated[Flags, Parameter(name="*")] = Flags(),  # noqa: B008
) -> None:
    """Train a model on text files, or continue a training run. The task is inferred from the files.

    Two text files: translation. One text file: language model. TSV, CSV or JSONL with text and label: classification
    or regression. CoNLL or CoNLL-U: tagging. SQuAD JSON: question answering. JSONL with text and summary:
    summarization. --task names the task if the files do not tell it.

    Example:  glassformer train train.en train.fr --out en-fr --minutes 60

    `--help-all` lists all options. Each option can also be given by an environment variable, GLASSFORMER_ and its
    name in capitals, or in a TOML file (--config).

    Args:
        files: Training text, plain or .gz. For several files on each side of a translation, use --src and --tgt.
        config: TOML file of options, such as the run.toml of a run folder.
        repeat: Run folder: train again with its options and files into --out, and say whether weights and metrics are
            equal.
        quiet: Print errors only.
    """
    check_no_options(files, "train")
    explicit: JsonObject = given(options)
    if repeat is not None:
        repeat_run(repeat, explicit, has_files=bool(files or config), quiet=quiet)
        return
    if not (files or config or given_anywhere(explicit, config).get("src")):
        raise ConfigError(
            "no training text given. For instance:\n"
            "  glassformer train train.en train.fr --out en-fr --minutes 60     translation: two text files\n"
            "  glassformer train reviews.csv --out sentiment --minutes 10       classification: a table\n"
            "  glassformer train --help                                         all formats and options"
        )
    check_given_once(files, explicit.get("src", ()), explicit.get("tgt", ()))
    if files:
        explicit |= {"src": files, "tgt": ()}
    known = TrainConfig.converted(given_anywhere(explicit, config), CORPUS)
    explicit |= corpus_sides(known, reading_of(known))
    from glassformer.synthetic.train import train as run
    from glassformer.training.options import check_preset, known_names  # torch takes seconds to import

    resolved = TrainConfig.resolve(explicit, config, os.environ, known=known_names())
    check_preset(explicit, resolved)
    run(resolved, quiet=quiet, started_s=STARTED_S)


def given_anywhere(explicit: JsonObject, config: Path | None) -> JsonObject:
    """Options as they are given: on the command line, in the environment, or in a file."""
    return {**(read_toml(config) if config else {}), **TrainConfig.from_environment(os.environ), **explicit}


def repeat_run(run: Path, explicit: JsonObject, *, has_files: bool, quiet: bool) -> None:
    """Repeat a run, and say whether the result is the same.

    Raises:
        ConfigError: another option than --out is given, or the run cannot be repeated.
        SystemExit: with code 1, if the weights differ.
    """
    if has_files or set(explicit) != {"out"}:
        others = sorted(set(explicit) - {"out"})
        what = f"--{others[0].replace('_', '-')}" if others else "files" if has_files else "no --out"
        raise ConfigError(f"--repeat: with {what}.\n  Use: glassformer train --repeat {run} --out FOLDER")
    from glassformer.training.repeat import compare, config_of
    from glassformer.training.run import train as run_training

    out = Path(explicit["out"])
    run_training(config_of(run, out), quiet=quiet, started_s=STARTED_S)
    found = compare(run, out)
    print("\n".join(found.describe()))
    if found.different:
        raise SystemExit(1)
