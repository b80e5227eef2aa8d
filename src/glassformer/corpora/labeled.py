"""Readers of labeled texts: JSONL, TSV or CSV with a text or a pair of texts, and a class or a number as label."""

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from glassformer.corpora.jsonl import invalid_text_reason, outline, read_objects
from glassformer.corpora.lines import check_readable, name, read_lines, suffix_of
from glassformer.corpora.pair_formats import format_of
from glassformer.corpora.read_options import parse_keys
from glassformer.errors import ConfigError, CorpusError

ROLES = {
    **dict.fromkeys(("text", "sentence", "text1", "sentence1"), "text"),
    **dict.fromkeys(("text2", "sentence2"), "text2"),
    **dict.fromkeys(("label", "score", "class"), "label"),
}
"""Column name or JSON key -> field."""

SKIP = "_"
"""Column name of a column to ignore."""


@dataclass(frozen=True, slots=True)
class Labeled:
    """A text or a pair of texts, its label without surrounding space, and its file and line, counted from 1."""

    text: str
    text2: str | None
    label: str
    path: str
    line: int

    def number(self) -> float:
        """The label as a number.

        Raises:
            CorpusError: the label is not a finite number.
        """
        number = parse_number(self.label)
        if number is None:
            raise CorpusError(
                f"{self.path}:{self.line}: the label {self.label[:40]!r} is not a finite number.\n"
                "  Write it as 3, -0.5 or 1e-3; or use --task classification, where labels are names."
            )
        return number


def parse_number(text: str) -> float | None:
    """Parse a finite number; None if the text is not one."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def roles_of(names: Iterable[str]) -> dict[str, list[str]]:
    """Column names of the text, the second text and the label. Other names are ignored."""
    names_of_roles: dict[str, list[str]] = {}
    for column in names:
        if role := ROLES.get(column.strip().lower()):
            names_of_roles.setdefault(role, []).append(column)
    return names_of_roles


def is_labeled(names: Iterable[str]) -> bool:
    """Whether column names or JSON keys include a text and a label."""
    return {"text", "label"} <= roles_of(names).keys()


def read_labeled(paths: Sequence[Path], columns: Sequence[str] = (), keys: Sequence[str] = ()) -> Iterator[Labeled]:
    r"""Read labeled texts in order, including blank ones, in constant memory.

    Args:
        paths: .jsonl ({"text": …, "label": …}, for a pair also "text2"; other keys are ignored), .csv (quoted) or TSV
            (any other name, never quoted), with a header row; each may end in .gz. Names of columns: see ROLES.
        columns: fields of the columns of TSV and CSV without a header row, in order: text, text2, label, or _ to skip.
        keys: FIELD=KEY of JSONL, as in `parse_keys`.

    Raises:
        ConfigError: the columns do not include exactly one text and one label.
        CorpusError: a line does not have this format.
    """
    columns = split_columns(columns)
    if columns:
        _check_columns(columns)
    check_readable(*paths)
    field_keys = parse_keys(keys)
    return chain.from_iterable(
        _read_objects(path, field_keys) if format_of(path) == "jsonl" else _read_rows(path, columns) for path in paths
    )


def split_columns(columns: Sequence[str]) -> list[str]:
    """Column names given separately or joined by commas."""
    return [name for each in columns for name in each.split(",")]


def _check_columns(columns: Sequence[str]) -> None:
    known = ", ".join([*ROLES, SKIP])
    unknown = [each for each in columns if each != SKIP and not roles_of([each])]
    if unknown:
        raise ConfigError(f"--columns {','.join(columns)}: {unknown[0]!r} is unknown.\n  Use: {known}.")
    try:
        _unique_roles(columns)
    except ValueError as error:
        raise ConfigError(f"--columns {','.join(columns)}: {error}.\n  Use, for instance: label,_,text.") from None


def _unique_roles(names: Iterable[str]) -> dict[str, str]:
    """Field -> its column name.

    Raises:
        ValueError: a field has several columns, or the text or the label has none.
    """
    names_of_roles = roles_of(names)
    for role, columns in names_of_roles.items():
        if len(columns) > 1:
            raise ValueError(f"{' and '.join(columns)} both name the {role}")
    missing = [role for role in ("text", "label") if role not in names_of_roles]
    if missing:
        raise ValueError(f"nothing names the {' or the '.join(missing)}")
    return {role: columns for role, (columns,) in names_of_roles.items()}


def read_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Read the rows of a TSV or CSV file, with the number of the first line of each."""
    if suffix_of(path) != ".csv":
        yield from ((number, line.split("\t")) for number, line in enumerate(read_lines(path), 1))
        return
    reader = csv.reader((line + "\n" for line in read_lines(path)), strict=True)
    number = 1
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise CorpusError(
                f"{name(path)}:{number}: not CSV: {error}.\n"
                '  Is a closing quote missing? A quote inside a quoted cell is written twice: "like ""this""".\n'
                "  For cells without quoting, separate them by tabs and name the file .tsv."
            ) from None
        if row is None:
            return
        yield number, row
        number = reader.line_num + 1


def _read_rows(path: Path, columns: Sequence[str]) -> Iterator[Labeled]:
    names, roles = columns, _column_indices(columns) if columns else {}
    for number, cells in read_rows(path):
        where = f"{name(path)}:{number}"
        if not names:
            names, roles = cells, _header(cells, where)
            continue
        if columns and number == 1 and is_labeled(cells):
            raise CorpusError(
                f"{where}: a header row ({', '.join(cells)}), but --columns is given.\n"
                "  Leave --columns out, or delete the row."
            )
        if len(cells) != len(names):
            raise CorpusError(
                f"{where}: expected {len(names)} columns ({', '.join(names)}), found {len(cells)}.\n"
                f"  The line begins {cells[0][:40] if cells else ''!r}. Fix or delete it."
            )
        yield _record({role: cells[i] for role, i in roles.items()}, path, number)


def _column_indices(names: Sequence[str]) -> dict[str, int]:
    return {role: names.index(each) for role, each in _unique_roles(names).items()}


def _header(cells: Sequence[str], where: str) -> dict[str, int]:
    try:
        return _column_indices(cells)
    except ValueError as error:
        raise CorpusError(
            f"{where}: not a header row: {error}; it begins {[cell[:20] for cell in cells[:5]]}.\n"
            "  Write one (text, label), or name the columns in order, for instance --columns label,_,text."
        ) from None


def _read_objects(path: Path, field_keys: Mapping[str, str]) -> Iterator[Labeled]:
    keys: Mapping[str, str] = {}
    for number, record in read_objects(path, field_keys):
        where = f"{name(path)}:{number}"
        try:
            found_keys = _unique_roles(key for key in record if record[key] is not None)
        except ValueError as error:
            raise CorpusError(
                f'{where}: expected {{"text": …, "label": …}}, for a pair also "text2": {error}.\n'
                f"  Found {outline(record)}. Name the keys, for instance: --keys text=review label=stars"
            ) from None
        keys = keys or found_keys
        if found_keys != keys:
            before, here = ", ".join(keys.values()), ", ".join(found_keys.values())
            raise CorpusError(
                f"{where}: earlier lines have the keys {before}, this one {here}.\n"
                "  Give every line the same keys, all with text2 or all without."
            )
        cells = {role: record[key] for role, key in keys.items()}
        yield _record({**cells, "label": _json_literal(cells["label"])}, path, number)


def _json_literal(label: object) -> object:
    """Format numbers and booleans as in JSON."""
    if isinstance(label, bool | int) or (isinstance(label, float) and math.isfinite(label)):
        return json.dumps(label)
    return label


def _record(cells: Mapping[str, object], path: Path, number: int) -> Labeled:
    for role, value in cells.items():
        if reason := invalid_text_reason(value):
            raise CorpusError(f"{name(path)}:{number}: the {role}: {reason}.\n  Fix or delete the line.")
    text, text2, label = (cells.get(role) for role in ("text", "text2", "label"))
    assert isinstance(text, str)
    assert isinstance(text2, str | None)
    assert isinstance(label, str)
    if not label.strip():
        raise CorpusError(
            f"{name(path)}:{number}: no label; the text begins {text[:40]!r}.\n  Label the line or delete it."
        )
    return Labeled(text, text2, label.strip(), str(path), number)
