"""Reader of JSONL, with protection against deep nesting, huge numbers, unpaired surrogates and NUL characters."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from glassformer.corpora.lines import BadLine, name, read_lines
from glassformer.corpora.read_options import select_fields
from glassformer.errors import CorpusError

SURROGATE = re.compile("[\ud800-\udfff]")
"""Unpaired surrogates, which JSON can contain but UTF-8 cannot encode."""


def parse_json(line: str) -> object:
    """Parse a line of JSON.

    Raises:
        BadLine: the line is not JSON, or exceeds the limits of the parser.
    """
    try:
        return json.loads(line)
    # RecursionError: extremely deep nesting. ValueError: also an integer of thousands of digits.
    except (ValueError, RecursionError) as error:
        array = " A JSON array becomes lines with: jq -c '.[]'" if line.lstrip().startswith("[") else ""
        raise BadLine(
            "malformed",
            f"expected one JSON object per line ({type(error).__name__}: {error}).\n  The line begins {line[:40]!r}",
            f"Fix the line.{array}",
        ) from None


def read_objects(path: Path, keys: Mapping[str, str] | None = None) -> Iterator[tuple[int, dict[str, object]]]:
    """Read the objects of a JSONL file, each with its line number, counted from 1.

    Args:
        keys: field -> key, as in `select_fields`; then each object holds these fields only.

    Raises:
        CorpusError: a line is not a JSON object, lacks one of the keys, or is not readable as text.
    """
    for number, line in enumerate(read_lines(path), 1):
        try:
            record = parse_json(line)
        except BadLine as bad:
            raise bad.at(path, number) from None
        if not isinstance(record, dict):
            raise CorpusError(
                f"{name(path)}:{number}: expected one JSON object per line, found {outline(record)}.\n"
                f"  The line begins {line[:40]!r}. Fix the line."
            )
        if keys:
            try:
                record = select_fields(record, keys)
            except KeyError as error:
                raise CorpusError(
                    f"{name(path)}:{number}: no key {error.args[0]!r}, which is given by --keys; found"
                    f" {outline(record)}.\n"
                    "  Fix --keys, or fix or delete the line."
                ) from None
        yield number, record


def suggest_keys(records: list[dict[str, object]]) -> str | None:
    """A `--keys` option for the first records of a file, or None if they have no suitable fields."""
    texts: dict[str, list[str]] = {}
    for record in records:
        for path, value in _leaves(record):
            texts.setdefault(path, []).append(value)
    names = [path for path, values in texts.items() if len(values) == len(records)]
    labels = [path for path in names if len(records) >= 4 and len(set(texts[path])) <= len(records) // 2]
    first = next((path for path in names if path not in labels), None)
    if first and labels:
        return f"--keys text={first} label={labels[0]}"
    if first and len(names) > 1:
        second = next(path for path in names if path != first)
        return f"--keys src={first} tgt={second}"
    return f"--keys text={first}" if first else None


def _leaves(record: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """The texts, numbers and lists of texts of an object with their keys, including one level of nesting."""
    for key, value in record.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{inner}", str(text)) for inner, text in value.items() if isinstance(text, str))
        elif isinstance(value, str | int | float) or (
            isinstance(value, list) and value and all(isinstance(item, str) for item in value)
        ):
            yield key, str(value)


def text_fault(value: object) -> str | None:
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
