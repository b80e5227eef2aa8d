"""How data files are read: their format, and which column or JSON key holds which field."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields

from glassformer.corpora.pair_formats import check_format
from glassformer.errors import ConfigError

FIELDS = ("src", "tgt", "text", "text2", "label", "summary", "words", "tags", "task", "question", "context", "answer")
"""Fields of the examples of all tasks that read JSONL."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How data files are read, whatever the task."""

    format: str | None = None
    """Format of pairs of texts, a name in PAIR_FORMATS. Default: by file name, for other names by content."""
    keys: tuple[str, ...] = ()
    """Columns or JSON keys of the fields, each as FIELD=KEY."""
    skip_bad: bool = False
    """Leave out rows of labeled text that cannot be used. They are counted."""
    languages: tuple[str, ...] = ()
    """Source and target language of files that have several. Default: as the files say."""
    fuzzy: bool = False
    """Also use entries of catalogues and memories that a person has to check."""

    def __post_init__(self) -> None:
        check_format(self.format)

    def check_used(self, used: Collection[str], task: str) -> None:
        """Check that each given option has an effect.

        Args:
            used: those that have one.
            task: the name of the task.

        Raises:
            ConfigError: another one is given.
        """
        unused = [f.name for f in fields(self) if getattr(self, f.name) and f.name not in used]
        if unused:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in unused)
            raise ConfigError(f"{names}: without effect for the task {task}.\n  Leave it out.")


DETECT = ReadOptions()
"""Formats by file name and content, fields by their standard names."""


def parse_keys(keys: Sequence[str]) -> dict[str, str]:
    """Field -> column or JSON key, from FIELD=KEY entries given one by one or separated by commas.

    Raises:
        ConfigError: an entry is not FIELD=KEY, or names an unknown field or one field twice.
    """
    parsed: dict[str, str] = {}
    # A comma may be part of a column name: it separates entries only before another FIELD=.
    for entry in (part for each in keys for part in re.split(r",(?=\w*=)|,$", each) if part):
        field, equals, key = entry.partition("=")
        if not equals or not key or field not in FIELDS or field in parsed:
            raise ConfigError(
                f"--keys {entry}: expected FIELD=KEY, each field once, with a field of {', '.join(FIELDS)}.\n"
                "  KEY is the name of a column or its number, or a JSON key.\n"
                "  For instance: --keys text=tweet label=sentiment, or --keys src=translation.en tgt=translation.fr"
            )
        parsed[field] = key
    return parsed
