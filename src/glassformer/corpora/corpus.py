"""Readers of parallel corpora: plain text, TSV or JSONL, optionally gzip-compressed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Protocol, assert_never, get_args

from glassformer.corpora.jsonl import SURROGATE, outline, parse_json, suggest_keys
from glassformer.corpora.lines import (
    STDIN,
    LineError,
    byte_lines,
    check_readable,
    is_stream,
    name,
    read_lines,
    suffix_of,
)
from glassformer.corpora.misalignment import MAX_LINES, guess_misalignment
from glassformer.corpora.read_options import Format, parse_keys, select_fields
from glassformer.errors import ConfigError, CorpusError

__all__ = ["Example", "Format", "UnequalCountsError", "format_of", "guess_misalignment", "read_lines", "read_pairs"]

SUMMARY_KEYS = (("text", "summary"), ("document", "summary"), ("dialogue", "summary"), ("article", "highlights"))
"""JSON keys of a text and its summary."""

N_DETECTION_LINES = 200
"""Lines at the beginning of a file that are read to detect its format."""


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence pair, with its file (of two, the source file) and its line, counted from 1."""

    src: str
    tgt: str
    path: str
    line: int


class UnequalCountsError(CorpusError):
    """Two parallel files have different numbers of lines."""

    def __init__(self, src: Path, tgt: Path, n_src: int, n_tgt: int, misalignment: int | None):
        self.n_src, self.n_tgt, self.misalignment = n_src, n_tgt, misalignment
        line = n_tgt + 1 if n_src > n_tgt else n_src + 1
        longer = src if n_src > n_tgt else tgt
        where = (
            ""
            if misalignment is None
            else f"  The files seem to be misaligned from about line {misalignment} on: check there first.\n"
        )
        super().__init__(
            f"{name(longer)}:{line}: no corresponding line: {name(src)} has {n_src} lines, {name(tgt)} has {n_tgt}.\n"
            f"{where}"
            f"  Line n of one file must translate line n of the other: add or remove the line that differs."
        )


class PairParser(Protocol):
    """Parser of the lines of a single-file format: line -> (src, tgt). Raises LineError."""

    def parse(self, line: str) -> tuple[str, str]: ...

    def render(self, src: str, tgt: str) -> str: ...


class Tsv:
    """src TAB tgt, without quoting."""

    def parse(self, line: str) -> tuple[str, str]:
        """Source and target of a line.

        Raises:
            LineError: not two columns.
        """
        cells = line.split("\t")
        if len(cells) != 2:
            raise LineError(
                "malformed",
                f"expected 2 tab-separated columns (src, tgt), found {len(cells)}.\n  The line begins {line[:40]!r}",
                "Fix the line, or use --format lines for one sentence per line.",
            )
        return cells[0], cells[1]

    def render(self, src: str, tgt: str) -> str:
        """Format a pair as a line, the inverse of `parse`."""
        return f"{src}\t{tgt}"


class Jsonl:
    """Pairs as JSON objects: {"src": …, "tgt": …}, {"translation": {"en": …, "fr": …}}, a text with its summary (see
    SUMMARY_KEYS), or with the keys given by `field_keys`. All lines must have the keys of the first line.
    """

    def __init__(self, field_keys: Mapping[str, str] | None = None) -> None:
        """
        Args:
            field_keys: field (src, tgt; text, summary) -> key, as in `select_fields`.
        """
        self.field_keys = field_keys
        self.nested = False
        self.keys: tuple[str, str] | None = None

    def parse(self, line: str) -> tuple[str, str]:
        """Source and target of a line. Under "translation", the first key of the first line is the source.

        Raises:
            LineError: the line is not such an object.
        """
        texts = self._texts(parse_json(line), line)
        for text in texts:
            if SURROGATE.search(text):
                raise self._line_error("an unpaired surrogate, which is not a character", line)
        return texts

    def _texts(self, record: object, line: str) -> tuple[str, str]:
        if self.field_keys and isinstance(record, dict):
            try:
                record = select_fields(record, self.field_keys)
            except KeyError as error:
                raise LineError(
                    "malformed",
                    f"no key {error.args[0]!r} (named by --keys); found {outline(record)}",
                    "Fix --keys, or fix or delete the line.",
                ) from None
        if isinstance(record, dict) and (names := summary_keys(record)):
            record = {"src": record[names[0]], "tgt": record[names[1]]}
        nested = isinstance(record, dict) and record.keys() == {"translation"}
        pair = record["translation"] if nested and isinstance(record, dict) else record
        if not isinstance(pair, dict) or len(pair) != 2 or not (nested or pair.keys() == {"src", "tgt"}):
            raise self._line_error(f"found {outline(record)}", line, record)
        if self.keys is None:
            src_key, tgt_key = pair if nested else ("src", "tgt")
            self.nested, self.keys = nested, (src_key, tgt_key)
        if nested != self.nested or pair.keys() != set(self.keys):
            raise self._line_error(
                f"earlier lines have the keys {', '.join(self.keys)}, this one {', '.join(pair)}", line
            )
        src, tgt = (pair[key] for key in self.keys)
        if not isinstance(src, str) or not isinstance(tgt, str):
            raise self._line_error(f"both must be strings, found {outline(pair)}", line)
        return src, tgt

    def _line_error(self, problem: str, line: str, record: object = None) -> LineError:
        suggested = suggest_keys([record]) if isinstance(record, dict) else None
        return LineError(
            "malformed",
            'expected {"src": …, "tgt": …} or {"translation": {"en": …, "fr": …}}, the same on every line: '
            f"{problem}.\n  The line begins {line[:40]!r}",
            f"Name the keys of the two texts, for instance: {suggested or '--keys src=en tgt=fr'}",
        )

    def render(self, src: str, tgt: str) -> str:
        """Format a pair as a line, the inverse of `parse`."""
        src_key, tgt_key = self.keys or ("src", "tgt")
        pair = {src_key: src, tgt_key: tgt}
        return json.dumps({"translation": pair} if self.nested else pair, ensure_ascii=False)


def summary_keys(keys: Mapping[str, object]) -> tuple[str, str] | None:
    """The keys of the text and its summary in a JSON object, or None."""
    return next((pair for pair in SUMMARY_KEYS if pair[0] in keys and pair[1] in keys), None)


def format_of(path: Path) -> Format:
    """Format by file name, without .gz."""
    match suffix_of(path):
        case ".tsv":
            return "tsv"
        case ".jsonl" | ".json" | ".ndjson":
            return "jsonl"
        case _:
            return "lines"


def detect_format(path: Path) -> Format:
    """Format by file name. Files with other names are TSV if each of the first lines has exactly one tab.

    Raises:
        CorpusError: the file is missing or its beginning is not readable as text.
    """
    if (format := format_of(path)) != "lines" or is_stream(path):
        return format
    lines = list(islice(read_lines(path), N_DETECTION_LINES))
    return "tsv" if lines and all(line.count("\t") == 1 for line in lines) else "lines"


def parser_of(format: Format, keys: Mapping[str, str] | None = None) -> PairParser | None:
    """A new parser for a single-file format, or None for parallel files of plain lines."""
    match format:
        case "tsv":
            return Tsv()
        case "jsonl":
            return Jsonl(keys)
        case "lines":
            return None
        case _:
            assert_never(format)


@dataclass(frozen=True, slots=True)
class PairFiles:
    """One file of pairs, or two parallel files of lines."""

    src: Path
    tgt: Path | None
    format: Format
    keys: Mapping[str, str] | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """The one or two files."""
        return (self.src,) if self.tgt is None else (self.src, self.tgt)


def pair_files(
    src: Sequence[Path], tgt: Sequence[Path] = (), format: Format | None = None, keys: Sequence[str] = ()
) -> list[PairFiles]:
    """Pair source and target files in order, after checking that they can be opened.

    Raises:
        ConfigError: the files do not match each other or the format.
        CorpusError: a file is missing, a folder, or not permitted.
    """
    if format is not None and format not in get_args(Format):
        raise ConfigError(f"--format {format}: unknown.\n  Use one of: {', '.join(get_args(Format))}.")
    if not src:
        raise ConfigError("no source file given.\n  Give two text files, or one .tsv or .jsonl file.")
    check_readable(*src, *tgt, by_content=format is None)
    formats = [format or (format_of(path) if tgt else detect_format(path)) for path in src]
    are_lines = {file_format == "lines" for file_format in formats}
    names = ", ".join(map(name, src))
    if len(are_lines) == 2:
        raise ConfigError(f"{names}: plain text and files of pairs are mixed.\n  Use files of one type per corpus.")
    if are_lines == {False} and tgt:
        raise ConfigError(
            f"{names}: contains both sides ({formats[0]}), but {name(tgt[0])} is given as target.\n"
            "  Leave the target out, or use --format lines if these are plain lines."
        )
    if are_lines == {True} and len(src) != len(tgt):
        raise ConfigError(
            f"{names}: plain text, {len(src)} source files for {len(tgt)} target files.\n"
            "  Give one target file for each source file, or a .tsv or .jsonl file with both sides."
        )
    for path in tgt:
        if format is None and format_of(path) != "lines":
            raise ConfigError(f"{path}: a file of pairs as target of plain text.\n  Give it alone, as the source.")
    if [*src, *tgt].count(STDIN) > 1:
        raise ConfigError("standard input (-) is given twice.\n  It can be read only once: save one side to a file.")
    targets: Sequence[Path | None] = tgt or [None for _ in src]
    field_keys = parse_keys(keys)
    return [PairFiles(*pair, field_keys) for pair in zip(src, targets, formats, strict=True)]


def read_pairs(
    src: Sequence[Path], tgt: Sequence[Path] = (), *, format: Format | None = None, keys: Sequence[str] = ()
) -> Iterator[Example]:
    """Read the sentence pairs of a corpus in order, including blank ones, in constant memory.

    Args:
        src: plain text (one sentence per line, needs `tgt`), .tsv (src TAB tgt) or .jsonl; each may end in .gz.
        tgt: one plain text file for each file of `src`.
        format: "lines", "tsv" or "jsonl". Default: by file name, for other names by content.
        keys: FIELD=KEY of JSONL, as in `parse_keys`.

    Raises:
        CorpusError: a line is not a pair; UnequalCountsError at the end if the files have different lengths.
        ConfigError: the files do not match each other or the format.
    """
    files = pair_files(src, tgt, format, keys)  # outside the generator, so that this call raises its errors

    def pairs() -> Iterator[Example]:
        for pair in files:
            yield from (_read_two(pair.src, pair.tgt) if pair.tgt else _read_one(pair))

    return pairs()


def _read_one(file: PairFiles) -> Iterator[Example]:
    parser = parser_of(file.format, file.keys)
    assert parser is not None
    path = str(file.src)
    for number, line in enumerate(read_lines(file.src), 1):
        try:
            src, tgt = parser.parse(line)
        except LineError as error:
            raise error.at(file.src, number) from None
        if "\0" in src or "\0" in tgt:
            raise CorpusError(
                f"{name(file.src)}:{number}: binary data: a NUL character in the text.\n"
                "  Remove it; `glassformer doctor` lists all such lines."
            )
        yield Example(src, tgt, path, number)


def _read_two(src_path: Path, tgt_path: Path) -> Iterator[Example]:
    src_lines, tgt_lines = read_lines(src_path), read_lines(tgt_path)
    path = str(src_path)
    n_pairs = 0
    for src in src_lines:
        tgt = next(tgt_lines, None)
        if tgt is None:
            n_src = n_pairs + 1 + sum(1 for _ in src_lines)
            raise UnequalCountsError(src_path, tgt_path, n_src, n_pairs, find_misalignment(src_path, tgt_path))
        n_pairs += 1
        yield Example(src, tgt, path, n_pairs)
    n_left = sum(1 for _ in tgt_lines)
    if n_left:
        raise UnequalCountsError(src_path, tgt_path, n_pairs, n_pairs + n_left, find_misalignment(src_path, tgt_path))


def find_misalignment(src: Path, tgt: Path) -> int | None:
    """The line from which two files seem to be misaligned, or None if unknown or if a file cannot be read again."""
    if is_stream(src) or is_stream(tgt):
        return None
    sides = [[raw.decode(errors="replace") for raw in islice(byte_lines(path), MAX_LINES + 1)] for path in (src, tgt)]
    if max(map(len, sides)) > MAX_LINES:
        return None
    return guess_misalignment(*sides)
