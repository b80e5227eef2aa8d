"""Pairs of texts in two columns of a table: CSV, or TSV with a header row."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from glassformer.corpora.columns import are_other_languages, is_pair_header, name_languages, pair_columns
from glassformer.corpora.encoding import Encoding, detect_encoding
from glassformer.corpora.lines import is_stream, name, read_lines
from glassformer.corpora.pair_formats import summary_keys
from glassformer.corpora.tables import SAMPLE_BYTES, Table, open_table
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
    if format not in ("csv", "tsv") or (format == "tsv" and not keys and not _has_pair_header(path, languages)):
        return None
    table = open_table(path, keys.values(), format=format, whole=whole, lenient=lenient)
    indices = table.indices(keys)
    fields = next((pair for pair in (("src", "tgt"), ("text", "summary")) if set(pair) <= indices.keys()), None)
    if fields:
        return _with_header(PairTable(table, *(indices[field] for field in fields)))
    found: Sequence[str] | None = None
    if table.has_header:
        check_languages(path, table.names, languages)
        found = pair_columns(table.names, languages) or summary_keys(dict.fromkeys(table.names))
    columns = [table.index(column) for column in found or ()]
    if len(columns) != 2 or columns[0] is None or columns[1] is None:
        first, *_, last = [*table.names, *table.names] or ["COLUMN", "COLUMN"]
        raise ColumnsError(
            f"{name(path)}: the columns of source and target are not known.\n{table.outline()}\n"
            "  Name them, by name or number: --keys src=COLUMN tgt=COLUMN",
            f"--keys {shlex.quote('src=' + first)} {shlex.quote('tgt=' + last)}",
        )
    return PairTable(table, columns[0], columns[1])


def _with_header(pairs: PairTable) -> PairTable:
    """The pairs without the first row, if its cells of source and target are names of columns."""
    table, columns = pairs.table, (pairs.src, pairs.tgt)
    if table.has_header or not table.sample or max(columns) >= len(table.sample[0]):
        return pairs
    cells = [table.sample[0][i] for i in columns]
    are_names = is_pair_header(cells) or name_languages(*cells) or summary_keys(dict.fromkeys(cells))
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


def _has_pair_header(path: Path, languages: Sequence[str]) -> bool:
    return not is_stream(path) and any(pair_columns(line.split("\t"), languages) for line in first_lines(path, 1))
