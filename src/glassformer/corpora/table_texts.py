"""The texts of tables: CSV and JSONL files whose rows a model gets, and which get a column with its outputs."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from glassformer.corpora.columns import ROLES, TEXT_WORDS, Guess, guess_columns, normalized
from glassformer.corpora.jsonl import column_values, read_each, select_fields
from glassformer.corpora.lines import name, suffix_of
from glassformer.corpora.read_options import parse_keys
from glassformer.corpora.tables import N_SAMPLE, Table, open_table
from glassformer.errors import ColumnsError, ConfigError, CorpusError

OBJECTS = (".jsonl", ".ndjson", ".json")
SUFFIXES = (".csv", *OBJECTS, ".tsv")
"""Files of other names are lines of text."""

PREDICTION, PROBABILITY = "prediction", "probability"
"""Columns that a table gets."""

FIELDS = (("text",), ("text", "text2"), ("question", "context"), ("src",))
"""What a row is read for."""

Log = Callable[[str], None]


class Row(NamedTuple):
    """A row of a table."""

    kind: str
    """"names" of columns, "cells", or "object": one of JSON."""
    line: str
    """The row as CSV or JSON, without the line break."""
    delimiter: str = ""
    text: str = ""
    """The text, or TEXT TAB TEXT."""
    quote: str = '"'
    """The quotation mark that cells may be in; empty: none."""

    def extended(self, values: Mapping[str, str | float]) -> str:
        """The row with more values, by the names of their columns."""
        if self.kind == "object":
            return json.dumps({**json.loads(self.line), **values}, ensure_ascii=False)
        cells = [str(cell) for cell in (values if self.kind == "names" else values.values())]
        if not self.quote:
            return self.delimiter.join([self.line, *(" ".join(cell.split()) for cell in cells)])
        return self.line + self.delimiter + csv_line(cells, self.delimiter)


def is_table(path: Path) -> bool:
    """Whether a file is a table: by its name, but TSV only if it has a header row or more than two columns. Else it is
    lines of pairs of texts.
    """
    suffix = suffix_of(path)
    if suffix != ".tsv":
        return suffix in SUFFIXES
    if not path.is_file():
        return False
    table = open_table(path, whole=False)
    return table.has_header or len(table.names) > 2 or bool(text_names(table.sample[:1]))


def are_names(line: str) -> bool:
    """Whether a line looks like the header row of a CSV file: words without spaces, one of which names a text."""
    rows = [[cell.strip('"') for cell in line.split(delimiter)] for delimiter in ",;|"]
    return any(len(cells) > 1 and all(map(str.isidentifier, cells)) and text_names([cells]) for cells in rows)


def read_rows(path: Path, keys: Sequence[str], log: Log) -> Iterator[Row]:
    """The rows of a table, with the names of its columns if it has them.

    Args:
        keys: FIELD=KEY, as in `parse_keys`: the columns or JSON keys of text, or of text and text2. Default: the column
            of a usual name, or the only one that looks like a text.
        log: called with what was detected.

    Raises:
        ConfigError, ColumnsError: the columns are not known.
        CorpusError: a row cannot be read.
    """
    given = parse_keys(keys)
    if given and not any(set(fields) == given.keys() for fields in FIELDS):
        raise ConfigError(
            f"--keys {' '.join(keys)}: expected text, text and text2, question and context, or src.\n"
            "  For instance: --keys text=review"
        )
    wanted = {field: given[field] for fields in FIELDS for field in fields if field in given}
    return read_objects(path, wanted, log) if suffix_of(path) in OBJECTS else read_cells(path, wanted, log)


def read_cells(path: Path, wanted: Mapping[str, str], log: Log) -> Iterator[Row]:
    """`read_rows` of a CSV file."""
    table = open_table(path, wanted.values())
    if not table.has_header and not wanted and (known := text_names(table.sample[:1])):
        table = open_table(path, known)
    keys = wanted or (question_fields(table.names) if table.has_header else {})
    keys = keys or text_fields(guess_columns(table.values(), has_names=table.has_header), path, table.outline())
    indices = table.indices(keys)
    hint = "" if table.has_header else " If the first row has the names of the columns: --keys text=NAME"
    log(f"{name(path)}: {table.description()}; {named(keys, 'column')}.{hint}")
    check_free(path, table.names)
    quote = '"' if table.is_quoted else ""
    if table.has_header:
        yield Row("names", table_line(table, table.names), table.delimiter, quote=quote)
    for number, cells in table.rows():
        if not any(cell.strip() for cell in cells):  # a blank line, for example at the end
            cells = [""] * len(table.names)
        cells = table.checked(cells, number, indices.values())
        text = joined([cells[i] for i in indices.values()])
        yield Row("cells", table_line(table, cells), table.delimiter, text, quote)


def text_names(rows: Sequence[Sequence[str]]) -> list[str]:
    """The cells of a first row that are the usual name of a column of texts."""
    known = TEXT_WORDS | {name for name, role in ROLES.items() if role == "text"}
    return [cell for row in rows for cell in row if normalized(cell) in known]


def question_fields(names: Iterable[str]) -> dict[str, str]:
    """The columns or keys of a question and its context; empty if there are not both."""
    known = {normalized(name): name for name in names}
    return {field: known[field] for field in ("question", "context")} if {"question", "context"} <= known.keys() else {}


def text_fields(guess: Guess, path: Path, outline: str = "") -> dict[str, str]:
    """The columns or keys of the text, or of a pair of texts.

    Args:
        outline: the header and two rows, for the message.

    Raises:
        ColumnsError: they are not known.
    """
    if guess.text_problem:
        shown = f"\n{outline}" if outline else ""
        raise ColumnsError(
            f"{name(path)}: the column or key of the text is not known: {guess.text_problem}.{shown}\n"
            "  Name it, a column also by number: --keys text=COLUMN, for a pair also text2=COLUMN."
        )
    return {field: guess.fields[field] for field in ("text", "text2") if field in guess.fields}


def read_objects(path: Path, wanted: Mapping[str, str], log: Log) -> Iterator[Row]:
    """`read_rows` of a JSONL file."""
    if not wanted:
        sample = [record for _, record in islice(read_each(path), N_SAMPLE) if not isinstance(record, CorpusError)]
        values = column_values(sample)
        wanted = question_fields(values) or text_fields(guess_columns(values), path)
        log(f"{name(path)}: {named(wanted, 'key')}.")
    for number, record in read_each(path):
        if isinstance(record, CorpusError):
            raise record
        check_free(path, record)
        try:
            texts = ["" if text is None else str(text) for text in select_fields(record, wanted).values()]
        except KeyError as error:
            raise CorpusError(f"{name(path)}:{number}: no key {error.args[0]!r}.\n  Fix or delete the line.") from None
        yield Row("object", json.dumps(record, ensure_ascii=False), "", joined(texts))


def check_free(path: Path, names: Iterable[str]) -> None:
    """Check that a table has no column with the name of a column of outputs.

    Raises:
        CorpusError: it has.
    """
    for column in names:
        if column in (PREDICTION, PROBABILITY):
            raise CorpusError(
                f"{name(path)}: has a column {column!r}, which is a name of columns of outputs.\n  Rename it."
            )


def named(keys: Mapping[str, str], what: str) -> str:
    """The columns or keys of fields, for messages."""
    return ", ".join(f"{field} = {what} {key!r}" for field, key in keys.items())


def joined(texts: Sequence[str]) -> str:
    """Texts as a line, separated by tabs; tabs and line breaks within a text become spaces. Empty if all are blank."""
    line = "\t".join(re.sub(r"[\t\r\n]+", " ", text) for text in texts)
    return line if line.strip() else ""


def table_line(table: Table, cells: Sequence[str]) -> str:
    """Cells as a row of a table, without the line break."""
    return csv_line(cells, table.delimiter) if table.is_quoted else table.delimiter.join(cells)


def csv_line(cells: Sequence[str], delimiter: str) -> str:
    """Cells as a row of CSV, without the line break."""
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="").writerow(cells)
    return out.getvalue()
