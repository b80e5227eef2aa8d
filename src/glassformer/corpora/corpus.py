"""Readers of parallel corpora: two files of plain text, or files of pairs, optionally gzip-compressed."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from glassformer.corpora.bilingual import Counts, Languages, read_catalogue_pairs, read_entries
from glassformer.corpora.columns import may_be_header
from glassformer.corpora.example import Example
from glassformer.corpora.languages import language_pair
from glassformer.corpora.lines import (
    STDIN,
    LineError,
    byte_lines,
    check_readable,
    is_stream,
    name,
    read_lines,
)
from glassformer.corpora.misalignment import MAX_LINES, guess_misalignment
from glassformer.corpora.pair_formats import (
    ENTRY_FORMATS,
    PAIR_FORMATS,
    check_format,
    format_of,
    has_entries,
    parser_of,
)
from glassformer.corpora.pair_tables import encoding_of, first_lines, open_pair_table
from glassformer.corpora.read_options import check_keys, parse_keys
from glassformer.errors import ConfigError, CorpusError

N_DETECTION_LINES = 200
"""Lines at the beginning of a file that are read to detect its format."""


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


def detect_format(path: Path) -> str:
    """Format by file name. Files with other names are TSV if each of the first lines that are not blank has one tab.

    Raises:
        CorpusError: the file cannot be read, or has no lines.
    """
    if (format := format_of(path)) != "lines" or is_stream(path):
        return format
    return "tsv" if n_tabs(path) == 1 else "lines"


def n_tabs(path: Path) -> int:
    """The number of tabs in each of the first lines that are not blank; 0 if they have different numbers."""
    numbers = {line.count("\t") for line in first_lines(path, N_DETECTION_LINES) if line.strip()}
    return numbers.pop() if len(numbers) == 1 else 0


@dataclass(frozen=True, slots=True)
class PairFiles:
    """One file of pairs, or two parallel files of lines."""

    src: Path
    tgt: Path | None
    format: str
    keys: Mapping[str, str]

    @property
    def paths(self) -> tuple[Path, ...]:
        """The one or two files."""
        return (self.src,) if self.tgt is None else (self.src, self.tgt)


def pair_files(
    src: Sequence[Path], tgt: Sequence[Path] = (), format: str | None = None, keys: Sequence[str] = ()
) -> list[PairFiles]:
    """Pair source and target files in order, after checking that they can be opened.

    Raises:
        ConfigError: the files do not match each other or the format.
        CorpusError: a file is missing, a folder, or not permitted.
    """
    check_format(format)
    if not src:
        raise ConfigError("no source file given.\n  Give two text files, or one .tsv or .jsonl file.")
    check_readable(*src, *tgt, by_content=format is None)
    formats = [format or (format_of(path) if tgt else detect_format(path)) for path in src]
    if keys and not tgt:  # a table by another name
        formats = ["csv" if each == "lines" and format is None else each for each in formats]
    are_one_sided = {not PAIR_FORMATS[file_format].has_both_sides for file_format in formats}
    names = ", ".join(map(name, src))
    if len(are_one_sided) == 2:
        raise ConfigError(f"{names}: plain text and files of pairs are mixed.\n  Use files of one type per corpus.")
    if are_one_sided == {False} and tgt:
        raise ConfigError(
            f"{names}: contains both sides ({formats[0]}), but {name(tgt[0])} is given as target.\n"
            "  Leave the target out, or use --format lines if these are plain lines."
        )
    if are_one_sided == {True} and len(src) != len(tgt):
        raise ConfigError(
            f"{names}: plain text, {len(src)} source files for {len(tgt)} target files.\n"
            "  Give one target file for each source file, or a .tsv or .jsonl file with both sides."
        )
    for path in tgt:
        if format is None and PAIR_FORMATS[format_of(path)].has_both_sides:
            raise ConfigError(f"{path}: a file of pairs as target of plain text.\n  Give it alone, as the source.")
    if [*src, *tgt].count(STDIN) > 1:
        raise ConfigError("standard input (-) is given twice.\n  It can be read only once: save one side to a file.")
    for one, other in zip(src, tgt, strict=False):
        if format is None and (format_of(one) == "catalogue") != (format_of(other) == "catalogue"):
            raise ConfigError(f"{one} and {other}: a catalogue and plain text.\n  Give two files of one type.")
    targets: Sequence[Path | None] = tgt or [None for _ in src]
    field_keys = parse_keys(keys)
    return [PairFiles(*pair, field_keys) for pair in zip(src, targets, formats, strict=True)]


def check_entry_options(files: Sequence[Path], format: str | None, **options: object) -> None:
    """Check that options of files with entries have an effect.

    Args:
        format: their format. Default: by their names.
        options: values of the options.

    Raises:
        ConfigError: one is given, and no file has entries.
    """
    given = next((name for name, value in options.items() if value), None)
    if given and not any(has_entries(path, format) for path in files):
        raise ConfigError(
            f"--{given.replace('_', '-')}: without effect on pairs: no file is a translation memory, XLIFF or a gettext"
            " catalogue.\n  Leave it out."
        )


def read_pairs(
    src: Sequence[Path],
    tgt: Sequence[Path] = (),
    *,
    format: str | None = None,
    keys: Sequence[str] = (),
    languages: Sequence[str] = (),
    fuzzy: bool = False,
    skip_bad: bool = False,
    log: Callable[[str], None] | None = None,
) -> Iterator[Example]:
    """Read the sentence pairs of a corpus in order, including blank ones, in constant memory.

    Args:
        src: plain text (one sentence per line, needs `tgt`), .tsv (src TAB tgt), .jsonl, .tmx, .xlf, .po, or an archive
            of the last three; each may end in .gz.
        tgt: one plain text file for each file of `src`.
        format: a name in PAIR_FORMATS. Default: by file name, for other names by content.
        keys: FIELD=KEY of JSONL and tables, as in `parse_keys`.
        languages: source and target language in files that have several. Default: as the files say.
        fuzzy: also entries that a person has to check.
        skip_bad: leave out files with entries that cannot be read.
        log: called with the columns of a table, if they were not given, and with the number of entries left out.

    Raises:
        CorpusError: a line is not a pair; UnequalCountsError at the end if the files have different lengths.
        ConfigError: the files do not match each other or the format, an option has no effect, or the languages are not
            two different codes.
    """
    files = pair_files(src, tgt, format, keys)  # outside the generator, so that this call raises its errors

    check_entry_options(src, format, fuzzy=fuzzy, skip_bad=skip_bad)
    check_keys(keys, [(src, tgt)], format)
    asked = language_pair(languages)
    counts = Counts()

    def pairs() -> Iterator[Example]:
        for pair in files:
            if pair.format in ENTRY_FORMATS:
                yield from read_entries(pair.src, pair.format, asked, fuzzy=fuzzy, skip_bad=skip_bad, counts=counts)
            elif pair.format == "catalogue" and pair.tgt:
                yield from read_catalogue_pairs(pair.src, pair.tgt, counts)
            else:
                yield from (_read_two(pair.src, pair.tgt) if pair.tgt else _read_one(pair, asked, log))
        if log and counts.files:
            log(counts.summary(fuzzy=fuzzy))
            if counts.bad:
                log(counts.warning())

    return pairs()


def _read_one(file: PairFiles, asked: Languages, log: Callable[[str], None] | None) -> Iterator[Example]:
    path = str(file.src)
    if table := open_pair_table(file.src, file.format, file.keys, asked):
        are_named = len(file.keys) == 2 and not all(column.isdecimal() for column in file.keys.values())
        if log and not are_named:  # else the user knows which are used
            found = "source = column {!r}, target = column {!r}".format(*table.names)
            advice = "Other columns: --keys src=… tgt=…" if table.table.has_header else "The first row is a pair."
            log(f"{path}: {table.table.description()}; {found}. {advice}")
        yield from (Example(src, tgt, path, number) for number, src, tgt in table.pairs())
        return
    parser = parser_of(file.format, file.keys, asked)
    assert parser is not None
    encoding = encoding_of(file.src, file.format)
    if log and encoding.description:
        log(f"{path}: tab-separated, {encoding.description}, no header row; source = column '1', target = column '2'.")
    if log and file.format == "tsv" and not is_stream(file.src):
        rows = [line.split("\t") for line in first_lines(file.src, N_DETECTION_LINES)]
        if rows and len(rows[0]) == 2 and may_be_header(rows[0], rows[1:]):
            first, second = rows[0]
            log(
                f"{path}: the first row, {first!r} and {second!r}, is used as a pair. If it is a header, delete it, or"
                f" name the columns: --keys {shlex.quote(f'src={first}')} {shlex.quote(f'tgt={second}')}"
            )
    for number, line in enumerate(read_lines(file.src, encoding.recode), 1):
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
