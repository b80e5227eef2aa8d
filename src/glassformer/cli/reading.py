"""Command-line options of the commands that read corpora."""

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from glassformer.cli.options import flags, given
from glassformer.config import JsonObject
from glassformer.corpora.bilingual import expanded
from glassformer.corpora.corpus import check_entry_options
from glassformer.corpora.languages import has_columns_of, language_pair
from glassformer.corpora.read_options import ReadOptions
from glassformer.errors import ConfigError
from glassformer.train_config import TrainConfig

if TYPE_CHECKING:
    from glassformer.tasks.base import AnyTask

READING = ("format", "keys", "skip_bad", "fuzzy", "languages")
"""Names of the options of the commands that read text for a model."""
OTHER_DESCRIPTIONS = {
    "languages": "Source and target language in files of several, for instance en fr. Default: those of the model."
}
"""Help texts that differ from those of `train`."""
ReadFlags: Any = flags(TrainConfig, only=READING, descriptions=OTHER_DESCRIPTIONS)
"""Options of the commands that read text for a model."""
BleuTokenizer = Literal["13a", "intl", "char", "zh", "none"] | None
"""Option of the commands that compute BLEU."""


def languages_of(task: "AnyTask") -> tuple[str, ...]:
    """Source and target language of a translator, which it reads of files of several; none of other models."""
    return tuple(getattr(task, "languages", ()))


def check_languages(files: Sequence[Path], options: ReadOptions) -> None:
    """Check the languages that a command was given.

    Raises:
        ConfigError: they are not two different codes, or no file has several languages.
    """
    language_pair(options.languages)
    if not any(has_columns_of(path, options.format, options.languages) for path in files):
        check_entry_options(files, options.format, languages=options.languages)


def check_pair_options(files: Sequence[Path], options: ReadOptions) -> None:
    """Check that the options of files with entries have an effect for one of the files of pairs.

    Raises:
        ConfigError: one has none, or the languages are not two different codes.
    """
    check_languages(files, options)
    check_entry_options(files, options.format, fuzzy=options.fuzzy, skip_bad=options.skip_bad)


def reading_of(explicit: JsonObject) -> ReadOptions:
    """How the files are to be read, from the options of a training or an update."""
    return ReadOptions(**{field.name: explicit[field.name] for field in fields(ReadOptions) if field.name in explicit})


def read_options(record: object, task: "AnyTask", files: Sequence[Path]) -> ReadOptions:
    """How the files are to be read, from the options of a command.

    Raises:
        ConfigError: an option has no effect for the task, or the languages have none for the files.
    """
    reading_of(given(record)).check_used(task.read_options, task.name)
    return pair_options(record, task, files)


def pair_options(record: object, task: "AnyTask", files: Sequence[Path]) -> ReadOptions:
    """How files of pairs are to be read, from the options of a command. Default of the languages: those of the model.

    Raises:
        ConfigError: the languages have no effect for the files.
    """
    options = reading_of(given(record))
    check_languages(expanded(tuple(files)) if options.languages else files, options)
    return replace(options, languages=options.languages or languages_of(task))


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
