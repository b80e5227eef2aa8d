"""Lines of JSON to objects, past JSON's traps: endless nesting, giant numbers, half characters, NUL."""

import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from glassformer.corpora.lines import BadLine, name, read_lines
from glassformer.errors import CorpusError

SURROGATE = re.compile("[\ud800-\udfff]")
"""Half a character: JSON can spell it, UTF-8 cannot hold it."""


def parse_json(line: str) -> object:
    """The line's value.

    Raises:
        BadLine: no JSON, or JSON made to exhaust the reader.
    """
    try:
        return json.loads(line)
    # RecursionError: nesting as an attack. ValueError: also an integer of thousands of digits.
    except (ValueError, RecursionError) as error:
        array = " A JSON array becomes lines with: jq -c '.[]'" if line.lstrip().startswith("[") else ""
        raise BadLine(
            "malformed",
            f"expected one JSON object a line ({type(error).__name__}: {error}).\n  The line begins {line[:40]!r}",
            f"Fix the line.{array}",
        ) from None


def read_objects(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """The objects of a JSONL file, each with its line, counted from 1.

    Raises:
        CorpusError: a line that is no JSON object, or not readable as text.
    """
    for number, line in enumerate(read_lines(path), 1):
        try:
            record = parse_json(line)
        except BadLine as bad:
            raise bad.at(path, number) from None
        if not isinstance(record, dict):
            raise CorpusError(
                f"{name(path)}:{number}: expected one JSON object a line, found {outline(record)}.\n"
                f"  The line begins {line[:40]!r}. Fix the line."
            )
        yield number, record


def text_fault(value: object) -> str | None:
    """Why a JSON value cannot serve as text, or None if it can."""
    if not isinstance(value, str):
        return f"{outline(value)} in place of a string"
    if SURROGATE.search(value):
        return "a lone surrogate, which is half a character"
    return "a NUL character" if "\0" in value else None


def outline(record: object) -> str:
    """The record's type, or an object's first keys with their types: short enough for a message."""
    if isinstance(record, dict):
        return "{" + ", ".join(f"{key!s:.20}: {type(value).__name__}" for key, value in islice(record.items(), 5)) + "}"
    return type(record).__name__
