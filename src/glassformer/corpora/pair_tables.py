"""Pairs of texts in two columns of a table: CSV, or TSV with a header row."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from glassformer.corpora.columns import (
    MAX_NAME_CHARS,
    are_other_languages,
    is_pair_header,
    pair_columns,
)
from glassformer.corpora.encoding import Encoding, detect_encoding
from glassformer.corpora.lines import is_stream, name, read_lines
from glassformer.corpora.pair_formats import summary_keys
from glassformer.corpora.tables import N_SAMPLE, SAMPLE_BYTES, Table, has_quoted_cells, open_table
from glassformer.errors import ColumnsError, ConfigError


@dataclass(frozen=True, slots=True)
class PairTable:
    """A table and the columns of its pairs."""

    table: Table
    src: int
    tgt: int

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """The rows that are not empty, each with its line number."""
        return ((number, cells) for number, cells in self.table.rows() if cells)

    def pairs(self) -> Iterator[tuple[int, str, str]]:
        """Line number, source and target of each row that is not empty.

        Raises:
            CorpusError: a row has fewer or more cells than the header.
        """
        for number, cells in self.rows():
            yield number, *self.pair(cells, number)

    def pair(self, cells: Sequence[str], number: int) -> tuple[str, str]:
        """Source and target of a row.

        Raises:
            CorpusError: it has fewer or more cells than the header.
        """
        cells = self.table.checked(cells, number, (self.src, self.tgt))
        return cells[self.src], cells[self.tgt]

    @property
    def names(self) -> tuple[str, str]:
        """Names of the columns."""
        return self.table.names[self.src], self.table.names[self.tgt]


def open_pair_table(
    path: Path,
    format: str,
    keys: Mapping[str, str],
    languages: Sequence[str] = (),
    *,
    whole: bool = True,
    lenient: bool = False,
) -> PairTable | None:
    """The table of a file of pairs; None for TSV without a header row, and for other formats.

    Args:
        format: a name in PAIR_FORMATS.
        keys: field (src, tgt; text, summary) -> column.
        languages: source and target language, if they are known, by which columns are found.
        whole, lenient: see `open_table`.

    Raises:
        ColumnsError: the columns of source and target are not known.
        ConfigError: there is no such column, or the columns are named by other languages.
    """
    if format not in ("csv", "tsv") or (format == "tsv" and not keys and not _is_table(path, languages)):
        return None
    table = open_table(path, keys.values(), format=format, whole=whole, lenient=lenient)
    indices = table.indices(keys)
    names = ("src", "tgt") if not keys or {"src", "tgt"} & keys.keys() else ("text", "summary")
    if other := next((field for field in keys if field not in names), None):
        raise ConfigError(
            f"{name(path)}: --keys {other}={keys[other]}: a pair has no such field.\n"
            "  Name its columns: --keys src=COLUMN tgt=COLUMN"
        )
    if not set(names) <= indices.keys():
        if table.has_header:
            check_languages(path, table.names, languages)
            found = summary_keys(dict.fromkeys(table.names))
            if names == ("src", "tgt"):
                found = pair_columns(table.names, languages) or found
            indices = table.indices(dict(zip(names, found or (), strict=False))) | indices
        elif not keys and table.delimiter == "\t" and len(table.names) == 2:
            indices = {"src": 0, "tgt": 1}
    if not set(names) <= indices.keys():
        raise unknown_columns(table)
    src, tgt = (indices[field] for field in names)
    if src == tgt:
        raise ConfigError(
            f"{name(path)}: source and target are both column {table.names[src]!r}.\n{table.outline()}\n"
            "  Name two columns: --keys src=COLUMN tgt=COLUMN"
        )
    return _with_header(PairTable(table, src, tgt)) if keys else PairTable(table, src, tgt)


def unknown_columns(table: Table) -> ColumnsError:
    """The error for a table whose columns of source and target are not known, with an example of what to name."""
    names = table.names
    if not table.has_header and table.sample and all(0 < len(cell) <= MAX_NAME_CHARS for cell in table.sample[0]):
        names = table.sample[0]  # which may be a header
    example = f"--keys {shlex.quote('src=' + names[0])} {shlex.quote('tgt=' + names[-1])}" if len(names) > 1 else ""
    return ColumnsError(
        f"{name(table.path)}: the columns of source and target are not known.\n{table.outline()}\n"
        "  Name them, by name or number: --keys src=COLUMN tgt=COLUMN",
        example,
    )


def _with_header(pairs: PairTable) -> PairTable:
    """The pairs without the first row, if its cells of source and target are names of columns."""
    table, columns = pairs.table, (pairs.src, pairs.tgt)
    if table.has_header or not table.sample or max(columns) >= len(table.sample[0]):
        return pairs
    cells = [table.sample[0][i] for i in columns]
    are_names = is_pair_header(cells) or summary_keys(dict.fromkeys(cells))
    return PairTable(table.with_header(), *columns) if are_names else pairs


def check_languages(path: Path, names: Sequence[str], languages: Sequence[str]) -> None:
    """Check that two columns that are named by languages have those that are asked for.

    Raises:
        ConfigError: they have others.
    """
    if are_other_languages(names, languages):
        raise ConfigError(
            f"{name(path)}: texts in {names[0]} and {names[1]}, not in {languages[0]} and {languages[1]}.\n"
            "  Leave the file out, or name its columns: --keys src=COLUMN tgt=COLUMN"
        )


def encoding_of(path: Path, format: str) -> Encoding:
    """The encoding of a file of pairs that is read line by line: of TSV the one that is detected, else UTF-8.

    Args:
        format: a name in PAIR_FORMATS.
    """
    return detect_encoding(path) if format == "tsv" and not is_stream(path) else Encoding()


def first_lines(path: Path, n: int) -> Iterator[str]:
    """The first lines of a file in any encoding, of which what is not text is replaced: for detection only."""
    return islice(read_lines(path, detect_encoding(path, SAMPLE_BYTES, lenient=True).recode), n)


def _is_table(path: Path, languages: Sequence[str]) -> bool:
    """Whether a TSV file has a header row of pairs, or quoted cells."""
    if is_stream(path):
        return False
    lines = list(first_lines(path, N_SAMPLE))
    return has_quoted_cells(lines) or any(pair_columns(line.split("\t"), languages) for line in lines[:1])
