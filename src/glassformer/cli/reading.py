"""Command-line options of the commands that read corpora."""

from typing import TYPE_CHECKING, Any

from glassformer.cli.options import flags, given
from glassformer.corpora.read_options import ReadOptions
from glassformer.train_config import TrainConfig

if TYPE_CHECKING:
    from glassformer.tasks.base import AnyTask

ReadFlags: Any = flags(TrainConfig, only=("format", "keys", "skip_bad", "fuzzy"))
"""Options of the commands that read the text of any task."""
PairFlags: Any = flags(TrainConfig, only=("format", "keys", "fuzzy"))
"""Options of the commands that read parallel text."""


def languages_of(task: "AnyTask") -> tuple[str, ...]:
    """Source and target language of a translator, which it reads of files of several; none of other models."""
    return tuple(getattr(task, "languages", ()))


def read_options(record: object, task: "AnyTask") -> ReadOptions:
    """How the files are to be read, from the options of a command.

    Raises:
        ConfigError: an option has no effect for the task.
    """
    options = ReadOptions(**given(record), languages=languages_of(task))
    options.check_used(task.read_options, task.name)
    return options
