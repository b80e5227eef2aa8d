"""Lines of JSON to objects, past JSON's traps: endless nesting, giant numbers, half characters, NUL."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from glassformer.corpora.lines import BadLine, name, read_lines
from glassformer.corpora.read_options import select_fields
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


def read_objects(path: Path, keys: Mapping[str, str] | None = None) -> Iterator[tuple[int, dict[str, object]]]:
    """Read the objects of a JSONL file, each with its line number, counted from 1.

    Args:
        keys: field -> key, as in `select_fields`; then each object holds these fields only.

    Raises:
        CorpusError: a line that is not a JSON object, lacks one of the keys, or is not readable as text.
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
        if keys:
            try:
                record = select_fields(record, keys)
            except KeyError as error:
                raise CorpusError(
                    f"{name(path)}:{number}: no key {error.args[0]!r}, which --keys names; found {outline(record)}.\n"
                    "  Fix --keys, or fix or delete the line."
                ) from None
        yield number, record


def suggest_keys(records: list[dict[str, object]]) -> str | None:
    """A `--keys` option that fits the first records of a file, or None if they hold fewer than two fields."""
    texts: dict[str, list[str]] = {}
    for record in records:
        for path, value in _leaves(record):
            texts.setdefault(path, []).append(value)
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
    """The texts, numbers and lists of texts of an object, with their keys, one level of nesting included."""
    for key, value in record.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{inner}", str(text)) for inner, text in value.items() if isinstance(text, str))
        elif isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            yield key, " ".join(value)
        elif isinstance(value, str | int | float):
            yield key, str(value)


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
