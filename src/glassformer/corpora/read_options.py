"""How data files are read: their format, and which columns or JSON keys hold which field."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from glassformer.errors import ConfigError

Format = Literal["lines", "tsv", "jsonl"]

FIELDS = ("src", "tgt", "text", "text2", "label", "summary", "words", "tags", "task", "question", "context", "answer")
"""Fields of the examples of all tasks that read JSONL."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How data files are read, whatever the task."""

    format: Format | None = None
    """Format of pairs of texts. Default: by file name, for other names by content."""
    columns: tuple[str, ...] = ()
    """Fields in the columns of labeled TSV or CSV without a header row, in order, or the tag column of CoNLL."""
    keys: tuple[str, ...] = ()
    """JSON keys of the fields, each as FIELD=KEY."""


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


def select_fields(record: Mapping[str, object], keys: Mapping[str, str]) -> dict[str, object]:
    """The fields of a JSON object. A list of strings becomes one text, joined by spaces, but for words and tags.

    Args:
        keys: field -> key; `a.b` is key b of the object at key a, `a.0` the first item of the list at key a.

    Raises:
        KeyError: the object lacks a key; its argument names it.
    """
    selected: dict[str, object] = {}
    for field, key in keys.items():
        value = _lookup(record, key)
        if field not in ("words", "tags") and isinstance(value, list) and all(isinstance(v, str) for v in value):
            value = " ".join(value)
        selected[field] = value
    return selected


def _lookup(record: Mapping[str, object], path: str) -> object:
    if path in record:
        return record[path]
    value: object = record
    for part in path.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise KeyError(path)
    return value
