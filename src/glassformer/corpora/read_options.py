"""How data files are read: their format, and which columns or JSON keys hold which field."""

from collections.abc import Sequence
from dataclasses import dataclass

from glassformer.corpora.pair_formats import check_format
from glassformer.errors import ConfigError

FIELDS = ("src", "tgt", "text", "text2", "label", "summary", "words", "tags", "task", "question", "context", "answer")
"""Fields of the examples of all tasks that read JSONL."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How data files are read, whatever the task."""

    format: str | None = None
    """Format of pairs of texts, a name in PAIR_FORMATS. Default: by file name, for other names by content."""
    columns: tuple[str, ...] = ()
    """Fields in the columns of labeled TSV or CSV without a header row, in order, or the tag column of CoNLL."""
    keys: tuple[str, ...] = ()
    """JSON keys of the fields, each as FIELD=KEY."""

    def __post_init__(self) -> None:
        check_format(self.format)


DETECT = ReadOptions()
"""Formats by file name and content, fields by their standard names."""


def parse_keys(keys: Sequence[str]) -> dict[str, str]:
    """Field -> JSON key, from FIELD=KEY entries given one by one or separated by commas.

    Raises:
        ConfigError: an entry is not FIELD=KEY, or names an unknown field or one field twice.
    """
    parsed: dict[str, str] = {}
    for entry in (part for each in keys for part in each.split(",") if part):
        field, equals, key = entry.partition("=")
        if not equals or not key or field not in FIELDS or field in parsed:
            raise ConfigError(
                f"--keys {entry}: expected FIELD=KEY, each field once, with a field of {', '.join(FIELDS)}.\n"
                "  For instance: --keys src=translation.en tgt=translation.fr"
            )
        parsed[field] = key
    return parsed
