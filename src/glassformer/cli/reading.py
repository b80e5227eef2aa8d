"""Command-line options of the commands that read corpora."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from glassformer.cli.options import flags, given
from glassformer.config import JsonObject
from glassformer.corpora.corpus import check_entry_options
from glassformer.corpora.languages import language_pair
from glassformer.corpora.pair_formats import format_of
from glassformer.corpora.read_options import ReadOptions
from glassformer.errors import ConfigError
from glassformer.train_config import TrainConfig

if TYPE_CHECKING:
    from glassformer.tasks.base import AnyTask

ReadFlags: Any = flags(TrainConfig, only=("format", "keys", "skip_bad", "fuzzy"))
"""Options of the commands that read the text of any task."""
PairFlags: Any = flags(TrainConfig, only=("format", "keys", "fuzzy"))
"""Options of the commands that read parallel text."""
BleuTokenizer = Literal["13a", "intl", "char", "zh", "none"] | None
"""Option of the commands that compute BLEU."""


def languages_of(task: "AnyTask") -> tuple[str, ...]:
    """Source and target language of a translator, which it reads of files of several; none of other models."""
    return tuple(getattr(task, "languages", ()))


def check_languages(files: Sequence[Path], options: ReadOptions) -> None:
    """Check the languages that a command was given.

    Raises:
        ConfigError: they are not two different codes, or no file can have several languages.
    """
    language_pair(options.languages)
    check_entry_options([options.format or format_of(path) for path in files], languages=options.languages)


def reading_of(explicit: JsonObject) -> ReadOptions:
    """How the files are to be read, from the options of a training or an update."""
    return ReadOptions(**{field.name: explicit[field.name] for field in fields(ReadOptions) if field.name in explicit})


def read_options(record: object, task: "AnyTask") -> ReadOptions:
    """How the files are to be read, from the options of a command.

    Raises:
        ConfigError: an option has no effect for the task.
    """
    options = ReadOptions(**given(record), languages=languages_of(task))
    options.check_used(task.read_options, task.name)
    return options


def bleu_options(task: "AnyTask", tokenize: BleuTokenizer, *, lowercase: bool) -> dict[str, Any]:
    """The arguments of the methods that compute BLEU; none for other tasks than translation.

    Raises:
        ConfigError: an option has no effect for the task.
    """
    from glassformer.tasks.translation import Translator

    if isinstance(task, Translator):
        return {"tokenize": tokenize, "lowercase": lowercase}
    for option, value in (("--tokenize", tokenize), ("--lowercase", lowercase)):
        if value:
            raise ConfigError(f"{option}: for models that translate, not for {task.name}.\n  Leave it out.")
    return {}
