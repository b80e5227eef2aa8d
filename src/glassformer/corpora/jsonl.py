"""Reader of JSONL, with protection against deep nesting, huge numbers, unpaired surrogates and NUL characters."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from glassformer.corpora.lines import LineError, Recode, read_lines
from glassformer.errors import CorpusError

SURROGATE = re.compile("[\ud800-\udfff]")
"""Unpaired surrogates, which JSON can contain but UTF-8 cannot encode."""


def parse_json(line: str) -> object:
    """Parse a line of JSON.

    Raises:
        LineError: the line is not JSON, or exceeds the limits of the parser.
    """
    try:
        return json.loads(line)
    # RecursionError: extremely deep nesting. ValueError: also an integer of thousands of digits.
    except (ValueError, RecursionError) as error:
        raise LineError(
            "malformed",
            f"expected one JSON object per line ({type(error).__name__}: {error}).\n  The line begins {line[:40]!r}",
            _repair(line),
        ) from None


def _repair(line: str) -> str:
    """How to repair a line that is not a JSON object."""
    return "Fix the line." + (" A JSON array becomes lines with: jq -c '.[]'" if line.lstrip().startswith("[") else "")


def read_objects(path: Path, keys: Mapping[str, str] | None = None) -> Iterator[tuple[int, dict[str, object]]]:
    """Read the objects of a JSONL file, each with its line number, counted from 1.

    Args:
        keys: field -> key, as in `select_fields`; then each object holds these fields only.

    Raises:
        CorpusError: a line is not a JSON object, lacks one of the keys, or is not readable as text.
    """
    for number, record in read_each(path, keys):
        if isinstance(record, CorpusError):
            raise record
        yield number, record


def read_each(
    path: Path, keys: Mapping[str, str] | None = None, recode: Recode | None = None
) -> Iterator[tuple[int, dict[str, object] | CorpusError]]:
    """Read the objects of a JSONL file as `read_objects`, with an error in place of each line that is none.

    Args:
        recode: see `read_lines`.

    Raises:
        CorpusError: a line is not readable as text.
    """
    for number, line in enumerate(read_lines(path, recode), 1):
        try:
            yield number, _parse_object(line, keys)
        except LineError as error:
            yield number, error.at(path, number)


def _parse_object(line: str, keys: Mapping[str, str] | None) -> dict[str, object]:
    record = parse_json(line)
    if not isinstance(record, dict):
        raise LineError(
            "malformed",
            f"expected one JSON object per line, found {outline(record)}.\n  The line begins {line[:40]!r}",
            _repair(line),
        )
    try:
        return select_fields(record, keys) if keys else record
    except KeyError as error:
        reason = f"no key {error.args[0]!r} (named by --keys); found {outline(record)}"
        raise LineError("malformed", reason, "Fix --keys, or fix or delete the line.") from None


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


def replaced(record: Mapping[str, Any], path: str, text: str) -> dict[str, Any]:
    """A JSON object with another text at a key, as in `select_fields`."""
    if path in record or "." not in path:
        return {**record, path: text}
    key, rest = path.split(".", 1)
    inner = record[key]
    if isinstance(inner, list):
        items = {str(i): item for i, item in enumerate(inner)}
        return {**record, key: list(replaced(items, rest, text).values())}
    return {**record, key: replaced(inner, rest, text)}


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


def column_values(records: Iterable[Mapping[str, object]]) -> dict[str, list[str]]:
    """The texts and numbers of JSON objects by key, with one level of nesting as in `select_fields`."""
    values: dict[str, list[str]] = {}
    for record in records:
        for path, value in _leaves(record):
            values.setdefault(path, []).append(value)
    return values


def suggest_keys(records: list[dict[str, object]]) -> str | None:
    """A `--keys` option for the first records of a file, or None if they have no suitable fields."""
    texts = column_values(records)
    names = [path for path, values in texts.items() if len(values) == len(records)]
    # Texts have several words on average; labels have few and repeat.
    long = [path for path in names if sum(len(value.split()) for value in texts[path]) >= 3 * len(records)]
    if len(long) >= 2:
        return f"--keys src={long[0]} tgt={long[1]}"
    others = [path for path in names if path not in long]
    if long and others:
        label = min(others, key=lambda path: len(set(texts[path])))
        return f"--keys text={long[0]} label={label}"
    if len(names) >= 2:
        return f"--keys src={names[0]} tgt={names[1]}"
    return f"--keys text={names[0]}" if names else None


def _leaves(record: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """The texts, numbers and lists of texts of an object with their keys, including one level of nesting."""
    for key, value in record.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{inner}", str(text)) for inner, text in value.items() if isinstance(text, str))
        elif isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            yield key, " ".join(value)
        elif isinstance(value, str | int | float):
            yield key, str(value)


def invalid_text_reason(value: object) -> str | None:
    """Why a JSON value cannot be used as text, or None if it can."""
    if not isinstance(value, str):
        return f"{outline(value)} instead of a string"
    if SURROGATE.search(value):
        return "an unpaired surrogate, which is not a character"
    return "a NUL character" if "\0" in value else None


def outline(record: object) -> str:
    """Short description of a JSON value for messages: its type, or the first keys of an object with their types."""
    if isinstance(record, dict):
        return "{" + ", ".join(f"{key!s:.20}: {type(value).__name__}" for key, value in islice(record.items(), 5)) + "}"
    return type(record).__name__
