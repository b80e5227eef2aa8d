"""How data files are read: their format, and which column or JSON key holds which field."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from glassformer.corpora.pair_formats import ENTRY_FORMATS, check_format, format_of
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


def have_fields(src: Sequence[Path], tgt: Sequence[Path], format: str | None, *, may_be_tables: bool = True) -> bool:
    """Whether files have columns or JSON keys, which --keys names. Parallel text, memories and catalogues have none.

    Args:
        tgt: target files, if the source files have one side.
        format: format of the source files. Default: by their names.
        may_be_tables: files of other names are tables, else plain text.
    """
    without = {*ENTRY_FORMATS, "catalogue"} | (set() if may_be_tables else {"lines"})
    return not tgt and any((format or format_of(path)) not in without for path in src)


def check_keys(
    keys: Sequence[str],
    sets: Iterable[tuple[Sequence[Path], Sequence[Path]]],
    format: str | None,
    *,
    may_be_tables: bool = True,
) -> None:
    """Check that --keys has an effect on files.

    Args:
        sets: source and target files of each set, such as training text and dev set.

    Raises:
        ConfigError: keys are given, and no file has columns or JSON keys.
    """
    files = list(sets)
    if keys and not any(have_fields(*each, format, may_be_tables=may_be_tables) for each in files):
        raise ConfigError(
            f"--keys {' '.join(keys)}: without effect, {files[0][0][0]} has no columns or JSON keys.\n"
            "  Leave it out. If this is a table, name the file .csv or .tsv."
        )


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
