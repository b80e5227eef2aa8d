"""Readers of labeled texts: JSONL, TSV or CSV with a text or a pair of texts, and a class or a number as label."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from glassformer.corpora.columns import Guess, guess_columns, parse_number, unique_roles
from glassformer.corpora.encoding import Encoding
from glassformer.corpora.jsonl import column_values, invalid_text_reason, outline, read_each
from glassformer.corpora.lines import Recode, check_readable, name
from glassformer.corpora.pair_formats import format_of
from glassformer.corpora.read_options import ReadOptions, parse_keys
from glassformer.corpora.tables import N_SAMPLE, Table, open_table
from glassformer.errors import ColumnsError, ConfigError, CorpusError


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


Log = Callable[[str], None]


class BadRowError(CorpusError):
    """A row that cannot be used as an example; the others can."""

    def __init__(self, message: str, path: Path, line: int):
        super().__init__(message)
        self.path, self.line = str(path), line

    @property
    def reason(self) -> str:
        """What is wrong with the row, without its location and the advice."""
        return str(self).split("\n")[0].removeprefix(f"{self.path}:{self.line}: ").rstrip(".")


def read_labeled(
    paths: Sequence[Path],
    keys: Sequence[str] = (),
    *,
    format: str | None = None,
    skip_bad: bool = False,
    log: Log | None = None,
) -> Iterator[Labeled]:
    r"""Read labeled texts in order, including blank ones, in constant memory.

    Args:
        paths: .jsonl, .csv, or TSV (any other name); each may end in .gz. Delimiter, quoting, encoding and header row
            of tables are detected.
        keys: FIELD=KEY, as in `parse_keys`: the columns or JSON keys of text, label, and for a pair text2. Default: the
            columns of these names, or those that are a text and a label beyond doubt.
        format: a name in PAIR_FORMATS. Default: by file name.
        skip_bad: leave out rows without a label and rows that cannot be read; they are counted.
        log: called with what was detected, and after the last example with the number of rows that were left out.

    Raises:
        ConfigError: the keys do not include a text and a label.
        ColumnsError: the columns of text and label are not known.
        CorpusError: a row cannot be used; the message has the number of such rows.
    """
    field_keys = parse_keys(keys)
    if field_keys and not {"text", "label"} <= field_keys.keys() <= {"text", "text2", "label"}:
        raise ConfigError(
            f"--keys {' '.join(keys)}: labeled text needs text and label, and for a pair text2.\n"
            "  For instance: --keys text=tweet label=sentiment"
        )
    check_readable(*paths)
    return _good_rows(paths, field_keys, format, skip_bad, log or (lambda message: None))


def _good_rows(
    paths: Sequence[Path], field_keys: Mapping[str, str], format: str | None, skip_bad: bool, log: Log
) -> Iterator[Labeled]:
    n_rows = n_bad = 0
    first: BadRowError | None = None
    for row in chain.from_iterable(_rows(path, field_keys, format, log) for path in paths):
        n_rows += 1
        if isinstance(row, BadRowError):
            n_bad, first = n_bad + 1, first or row
        elif not first or skip_bad:
            yield row
    if first and skip_bad:
        log(
            f"warning: {n_bad:,} of {n_rows:,} rows cannot be used and were left out (--skip-bad). The first:"
            f" {first.path}:{first.line}: {first.reason}."
        )
    elif first:
        raise CorpusError(f"{first}\n  {n_bad:,} of {n_rows:,} rows cannot be used. To leave them out: --skip-bad.")


def read_rows(paths: Sequence[Path], options: ReadOptions) -> Iterator[Labeled | BadRowError]:
    """Read labeled texts in order, with an error in place of each row that cannot be used. What is not text is
    replaced; see `Encoding`.
    """
    check_readable(*paths)
    keys = parse_keys(options.keys)
    return chain.from_iterable(_rows(path, keys, options.format, lambda message: None, lenient=True) for path in paths)


def is_json(path: Path, format: str | None) -> bool:
    """Whether labeled text is JSONL; else it is a table."""
    return (format or format_of(path)) == "jsonl"


def _rows(
    path: Path, field_keys: Mapping[str, str], format: str | None, log: Log, *, lenient: bool = False
) -> Iterator[Labeled | BadRowError]:
    if is_json(path, format):
        recode = Encoding(lenient=lenient).recode
        return _read_objects(path, field_keys or object_fields(path, log, recode), recode)
    table = open_table(path, field_keys.values(), format=format, lenient=lenient)
    return _read_table(table, table.indices(field_keys or table_fields(table, log)))


def table_fields(table: Table, log: Log = lambda message: None) -> dict[str, str]:
    """The columns of text, label and second text of a table.

    Raises:
        ColumnsError: they are not known.
    """
    guess = guess_columns(table.values(), has_names=table.has_header)
    check_known(guess, table.path, table.outline())
    is_documented = table.has_header and not table.is_unusual and _has_standard_names(guess)
    if not is_documented:
        log(f"{name(table.path)}: {table.description()}; {_assignments(guess)}. Other columns: --keys text=… label=…")
    return dict(guess.fields)


def object_fields(path: Path, log: Log = lambda message: None, recode: Recode | None = None) -> dict[str, str]:
    """The JSON keys of text, label and second text; empty if each object has the standard keys.

    Args:
        recode: see `read_lines`.

    Raises:
        ColumnsError: they are not known.
    """
    objects = islice(read_each(path, recode=recode), N_SAMPLE)
    records = [record for _, record in objects if not isinstance(record, CorpusError)]
    guess = guess_columns(column_values(records))
    if not records or _has_standard_names(guess) or guess.problem:
        return {}  # reading reports the first object with a problem
    log(f"{name(path)}: {_assignments(guess)}. Other keys: --keys text=… label=…")
    return dict(guess.fields)


def check_known(guess: Guess, path: Path, outline: str, *, may_be_pairs: bool = False) -> None:
    """Check that the columns of labeled text are known.

    Args:
        may_be_pairs: the table may be one of translations instead.

    Raises:
        ColumnsError: they are not; with the header, two rows, and a suggestion.
    """
    if guess.problem:
        raise ColumnsError(
            f"{name(path)}: the columns of text and label are not known: {guess.problem}.\n{outline}\n"
            "  Name them, by name or number: --keys text=COLUMN label=COLUMN, for a pair also text2=COLUMN"
            + ("; or for a translation --keys src=COLUMN tgt=COLUMN." if may_be_pairs else "."),
            guess.option() if may_be_pairs or "label" in guess.fields else "",
        )


def _has_standard_names(guess: Guess) -> bool:
    try:
        return guess.fields == unique_roles(guess.fields.values())
    except ValueError:
        return False


def _assignments(guess: Guess) -> str:
    return ", ".join(f"{field} = column {column!r}" for field, column in guess.fields.items())


def _read_table(table: Table, indices: Mapping[str, int]) -> Iterator[Labeled | BadRowError]:
    for number, cells in table.rows():
        if not any(cell.strip() for cell in cells):
            yield Labeled("", None, "", str(table.path), number)
            continue
        try:
            cells = table.checked(cells, number, indices.values())
            yield _record({field: cells[i] for field, i in indices.items()}, table.path, number)
        except CorpusError as error:
            yield BadRowError(str(error), table.path, number)


def _read_objects(path: Path, field_keys: Mapping[str, str], recode: Recode) -> Iterator[Labeled | BadRowError]:
    keys: Mapping[str, str] = {}
    for number, record in read_each(path, field_keys, recode):
        try:
            if isinstance(record, CorpusError):
                raise record
            found_keys = _record_keys(record, path, number)
            keys = keys or found_keys
            if found_keys != keys:
                before, here = ", ".join(keys.values()), ", ".join(found_keys.values())
                raise CorpusError(
                    f"{name(path)}:{number}: earlier lines have the keys {before}, this one {here}.\n"
                    "  Give every line the same keys, all with text2 or all without."
                )
            cells = {role: record[key] for role, key in keys.items()}
            yield _record({**cells, "label": _json_literal(cells["label"])}, path, number)
        except CorpusError as error:
            yield BadRowError(str(error), path, number)


def _record_keys(record: Mapping[str, object], path: Path, number: int) -> dict[str, str]:
    try:
        return unique_roles(key for key in record if record[key] is not None)
    except ValueError as error:
        raise CorpusError(
            f'{name(path)}:{number}: expected {{"text": …, "label": …}}, for a pair also "text2": {error}.\n'
            f"  Found {outline(record)}. Name the keys, for instance: --keys text=review label=stars"
        ) from None


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
