"""Tables of text: CSV and TSV files with their delimiter, quoting, encoding and header row, which are detected."""

import csv
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from glassformer.corpora.columns import is_header, normalized
from glassformer.corpora.encoding import Encoding, detect_encoding
from glassformer.corpora.lines import name, read_lines, suffix_of
from glassformer.errors import ConfigError, CorpusError
from glassformer.limits import MAX_LINE_BYTES

csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))  # of a cell, in all readers of the process

DELIMITERS = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "pipe"}
N_SAMPLE = 200
"""Rows at the beginning of a table from which its delimiter, quoting, header and columns are inferred."""
SAMPLE_BYTES = 1 << 20
"""Bytes at the beginning of a file from which the encoding is inferred, where the whole file is not read."""


@dataclass(frozen=True, slots=True)
class Table:
    """A CSV or TSV file: how its rows are separated, and the names of its columns."""

    path: Path
    delimiter: str
    is_quoted: bool
    encoding: Encoding
    names: tuple[str, ...]
    """Names of the columns: the cells of the header row, or "1", "2", … without one."""
    has_header: bool
    sample: tuple[tuple[str, ...], ...]
    """The first rows, without the header."""
    n_before: int = 0
    """Number of lines before the header: `sep=;` of Excel."""

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """The rows without the header, each with the number of its first line.

        Raises:
            CorpusError: the file is not readable as text, or a quoted cell has no end.
        """
        rows = _split(islice(read_lines(self.path, self.encoding.recode), self.n_before, None), self)
        for number, cells in islice(rows, int(self.has_header), None):
            yield number, without_blank_end(cells, len(self.names))

    def with_header(self) -> "Table":
        """The table, which has no header row, with its first row as the header."""
        names = tuple(column.strip() or str(number) for number, column in enumerate(self.sample[0], 1))
        return replace(self, names=names, has_header=True, sample=self.sample[1:])

    def values(self) -> dict[str, list[str]]:
        """The cells of each column in the sample. Of columns with one name, the last."""
        rows = [row for row in self.sample if len(row) == len(self.names)]
        return {column: [row[i] for row in rows] for i, column in enumerate(self.names)}

    def index(self, column: str) -> int | None:
        """Index of a column, by its name, its name in another case, or its number, counted from 1.

        Raises:
            ConfigError: several columns have the name.
        """
        for key in (lambda text: text, normalized):
            numbers = [number for number, each in enumerate(self.names, 1) if key(each) == key(column)]
            if len(numbers) > 1:
                raise ConfigError(
                    f"{name(self.path)}: several columns are named {column!r}: {', '.join(map(str, numbers))}.\n"
                    f"  Name one by its number, for instance --keys FIELD={numbers[-1]}, or rename the others."
                )
            if numbers:
                return numbers[0] - 1
        is_number = column.isdecimal() and 1 <= int(column) <= len(self.names)
        return int(column) - 1 if is_number else None

    def indices(self, keys: Mapping[str, str]) -> dict[str, int]:
        """Index of the column of each field.

        Args:
            keys: field -> column.

        Raises:
            ConfigError: there is no such column, or several have its name.
        """
        indices = {field: self.index(column) for field, column in keys.items()}
        for field, index in indices.items():
            if index is None:
                raise ConfigError(
                    f"{name(self.path)}: no column {keys[field]!r} (named by --keys).\n{self.outline()}\n"
                    "  Fix --keys. It takes names of columns, or their numbers, counted from 1."
                )
        return {field: index for field, index in indices.items() if index is not None}

    def checked(self, cells: Sequence[str], number: int, used: Collection[int]) -> list[str]:
        """The cells of a row, one for each column. Programs leave out blank cells at the end of a row of CSV: a row may
        have fewer cells, but all that are used.

        Args:
            used: indices of the columns that are used.

        Raises:
            CorpusError: fewer or more cells.
        """
        n_missing = len(self.names) - len(cells)
        is_cut = n_missing > 0 and self.is_quoted and max(used) < len(cells)
        if n_missing and not is_cut:
            raise CorpusError(
                f"{name(self.path)}:{number}: expected {len(self.names)} columns ({', '.join(self.names)}),"
                f" found {len(cells)}.\n  The line begins {cells[0][:40] if cells else ''!r}. Fix or delete it."
            )
        return [*cells, *[""] * n_missing]

    def outline(self) -> str:
        """The header and two rows, for messages."""
        without = f"columns 1 to {len(self.names)}" if self.names else "the first line is blank"
        header = ", ".join(self.names) if self.has_header else f"none; {without}"
        rows = [" | ".join(" ".join(cell.split())[:40] for cell in row) for row in self.sample[:2]]
        return "\n".join([f"  Header row: {header}", *(f"  Row: {row}" for row in rows)])

    def description(self) -> str:
        """What was detected: delimiter, encoding and header."""
        parts = [f"{DELIMITERS.get(self.delimiter, repr(self.delimiter))}-separated", self.encoding.description]
        parts.append("header row" if self.has_header else "no header row")
        return ", ".join(part for part in parts if part)

    @property
    def is_unusual(self) -> bool:
        """Whether delimiter or encoding are not what the file name suggests."""
        usual = "," if suffix_of(self.path) == ".csv" else "\t"
        return self.delimiter != usual or bool(self.encoding.description)


def open_table(
    path: Path, keys: Iterable[str] = (), *, format: str | None = None, whole: bool = True, lenient: bool = False
) -> Table:
    """Detect delimiter, quoting, encoding and header row of a table.

    Args:
        keys: columns that the user named.
        format: "csv" or "tsv", if the user gave it. Default: by the name of the file.
        whole: detect the encoding from the whole file, else from its beginning.
        lenient: see `Encoding`.

    Raises:
        CorpusError: the beginning of the file is not readable as text, or not CSV.
    """
    encoding = detect_encoding(path, None if whole else SAMPLE_BYTES, lenient=lenient)
    lines = list(islice(read_lines(path, encoding.recode), N_SAMPLE))
    named = SEPARATOR.fullmatch(lines[0]) if lines and format != "tsv" else None
    n_before = int(named is not None)
    lines = lines[n_before:]
    delimiter = named[1] if named else "\t" if format == "tsv" else find_delimiter(lines, path)
    is_quoted = delimiter != "\t" or has_quoted_cells(lines)
    table = Table(path, delimiter, is_quoted, encoding, (), False, (), n_before)
    rows = [tuple(cells) for _, cells in islice(table.rows(), N_SAMPLE)]
    first = rows[0] if rows else ()
    names = tuple(str(number) for number in range(1, len(first) + 1))
    sample = tuple(tuple(without_blank_end(row, len(names))) for row in rows)
    table = Table(path, delimiter, is_quoted, encoding, names, False, sample, n_before)
    return table.with_header() if is_header(first, rows[1:], keys) else table


SEPARATOR = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
"""What Excel reads in the first line."""


def without_blank_end(cells: Sequence[str], n: int) -> list[str]:
    """The cells of a row without blank ones after the n-th; n = 0: all."""
    end = len(cells)
    while 0 < n < end and not cells[end - 1].strip():
        end -= 1
    return list(cells[:end])


def find_delimiter(lines: Sequence[str], path: Path) -> str:
    """The delimiter with which most rows have as many cells as the first."""
    usual = "," if suffix_of(path) == ".csv" else "\t"

    def regularity(delimiter: str) -> tuple[float, bool]:
        try:
            rows = (
                [line.split("\t") for line in lines]
                if delimiter == "\t"
                else list(csv.reader((line + "\n" for line in lines), delimiter=delimiter))
            )
        except csv.Error:
            rows = []
        n = len(rows[0]) if rows else 0
        return (sum(len(row) == n for row in rows) / len(rows) if n > 1 else 0.0), delimiter == usual

    # A text that contains the delimiter of another format has no regular number of them.
    best = max(DELIMITERS, key=regularity)
    return best if regularity(best)[0] > 0 else usual


def has_quoted_cells(lines: Sequence[str]) -> bool:
    """Whether the cells of a TSV file are quoted as in CSV: some are quoted, and all that begin with a quote end so."""
    if not any('"' in line for line in lines):
        return False
    reader = csv.reader((line + "\n" for line in lines), delimiter="\t", strict=True)
    quoted = set()
    try:
        for row in reader:
            quoted.add(len(row))
    except csv.Error:
        if reader.line_num < len(lines) or len(lines) < N_SAMPLE - 1:  # else the sample ends within a cell
            return False
    plain = {line.count("\t") + 1 for line in lines}
    cells = [cell for line in lines for cell in line.split("\t")]
    has_escaped_quote = any(re.fullmatch('".*"".*"', cell, re.DOTALL) for cell in cells)
    are_quoted = all(re.fullmatch(r'"[^"]*"|[-+]?[\d.,]*', cell) for cell in cells)
    return len(quoted) == 1 and quoted != {1} and (plain != quoted or has_escaped_quote or are_quoted)


def _split(lines: Iterator[str], table: Table) -> Iterator[tuple[int, list[str]]]:
    """Split lines into rows of cells, each with the number of its first line."""
    if not table.is_quoted:
        yield from ((number, line.split(table.delimiter)) for number, line in enumerate(lines, 1 + table.n_before))
        return
    reader = csv.reader((line + "\n" for line in lines), delimiter=table.delimiter, strict=True)
    number = 1 + table.n_before
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise CorpusError(
                f"{name(table.path)}:{number}: not CSV: {error}.\n"
                '  Is a closing quote missing? A quote inside a quoted cell is written twice: "like ""this""".\n'
                "  For cells without quoting, separate them by tabs and name the file .tsv."
            ) from None
        if row is None:
            return
        yield number, row
        number = reader.line_num + 1 + table.n_before
