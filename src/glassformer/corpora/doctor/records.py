"""Reading of a corpus record by record, including records that are not valid, and the checks of each record."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import zip_longest
from pathlib import Path

from glassformer.corpora.bilingual import Languages, read_units
from glassformer.corpora.corpus import PairFiles, pair_files
from glassformer.corpora.doctor.checks import pair_issues, text_issues
from glassformer.corpora.doctor.issues import Issue
from glassformer.corpora.doctor.statistics import CorpusStatistics
from glassformer.corpora.encoding import Encoding
from glassformer.corpora.languages import language_pair
from glassformer.corpora.lines import LineError, byte_lines, decode, refuse_streams
from glassformer.corpora.pair_formats import ENTRY_FORMATS, PairParser, parser_of
from glassformer.corpora.pair_tables import PairTable, encoding_of, open_pair_table
from glassformer.errors import ConfigError, CorpusError

CorpusFiles = tuple[Sequence[Path], Sequence[Path]]
"""Source files and target files; the second is empty if each file contains both sides."""


@dataclass(slots=True)
class Record:
    """One line of a file of pairs, or of two parallel files. A side is None if it cannot be read or its file ended."""

    line: int
    src: str | None
    tgt: str | None
    issues: list[Issue]
    raws: tuple[bytes | None, ...]


class RecordReader:
    """Iterates over the records of a `PairFiles`, including those that cannot be parsed. Can be iterated repeatedly.

    After an iteration, `n_lines` contains the number of lines of each file, and `read_errors` for each file that could
    not be read to its end the reason.
    """

    def __init__(self, files: PairFiles, languages: Languages = ("", "")):
        self.files = files
        self.languages = languages
        self.parser: PairParser | None = None
        self.n_lines: list[int] = []
        self.read_errors: dict[Path, str] = {}
        self.found_languages: Languages = ("", "")

    def path(self, side: int) -> str:
        """The file of a side."""
        return str(self.files.paths[min(side, len(self.files.paths) - 1)])

    @property
    def has_two_files(self) -> bool:
        """Whether source and target are in separate files."""
        return self.files.tgt is not None

    @property
    def has_equal_line_counts(self) -> bool:
        """Whether the files have equal numbers of lines."""
        return len(set(self.n_lines)) == 1

    def _lines(self, side: int) -> Iterator[bytes]:
        path = self.files.paths[side]
        try:
            for raw in byte_lines(path, encoding_of(path, self.files.format).recode):
                self.n_lines[side] += 1
                yield raw
        except CorpusError as error:
            reason = str(error).removeprefix(f"{path}:").removeprefix("1:")  # a finding has its own location
            self.read_errors[path] = " ".join(reason.split())

    def _table(self, *, whole: bool = True) -> PairTable | None:
        files = self.files
        return open_pair_table(files.src, files.format, files.keys, self.languages, whole=whole, lenient=True)

    @property
    def is_table(self) -> bool:
        """Whether the pairs are columns of a table."""
        return self._table(whole=False) is not None

    def _table_records(self, table: PairTable) -> Iterator[Record]:
        """A record for each line that is not text, then one for each row that begins in another line."""
        self.n_lines = [0]
        bad_lines = set()
        try:
            for number, issue in line_issues(self.files.src, table.table.encoding):
                if issue:
                    bad_lines.add(number)
                    yield Record(number, None, None, [issue], ())
            for number, cells in table.rows():
                self.n_lines[0] += 1
                if number in bad_lines:
                    continue
                issues: list[Issue] = []
                src = tgt = None
                try:
                    src, tgt = table.pair(cells, number)
                except CorpusError as error:
                    reason = str(error).split("\n")[0].removeprefix(f"{self.path(0)}:{number}: ")
                    issues.append(Issue("malformed", 0, reason))
                yield Record(number, src, tgt, issues, ())
        except CorpusError as error:
            self.read_errors[self.files.src] = " ".join(str(error).split())

    @property
    def known_languages(self) -> Languages:
        """Source and target language: those that are asked for, else those of the file, once it has been read."""
        src, tgt = (asked or found for asked, found in zip(self.languages, self.found_languages, strict=True))
        return src, tgt

    @property
    def has_entries(self) -> bool:
        """Whether the pairs are entries of a memory, XLIFF or a gettext catalogue."""
        return self.files.format in ENTRY_FORMATS

    def _entries(self) -> Iterator[Record]:
        """The entries that a training uses without --fuzzy. Their numbers are unique in a file."""
        self.n_lines = [0]
        number = 0
        try:
            for _, units in read_units(self.files.src, self.files.format, self.languages):
                for unit in units:
                    if unit.state in ("translated", "locked") and unit.src:
                        number = max(unit.number, number + 1)
                        self.n_lines[0] += 1
                        self.found_languages = unit.languages
                        yield Record(number, unit.src, unit.tgt, [], ())
        except CorpusError as error:
            self.read_errors[self.files.src] = " ".join(str(error).split())

    def __iter__(self) -> Iterator[Record]:
        if self.has_entries:
            yield from self._entries()
            return
        if table := self._table():
            yield from self._table_records(table)
            return
        self.parser = parser_of(self.files.format, self.files.keys, self.languages)
        sides = range(len(self.files.paths))
        self.n_lines = [0 for _ in sides]
        self._sides_without_crlf = {*sides}
        for number, raws in enumerate(zip_longest(*map(self._lines, sides)), 1):
            issues: list[Issue] = []
            texts = [self._text(raw, side, number, issues) for side, raw in enumerate(raws)]
            src, tgt = texts if self.parser is None else self._parse(self.parser, texts[0], issues)
            yield Record(number, src, tgt, issues, raws)

    def _text(self, raw: bytes | None, side: int, number: int, issues: list[Issue]) -> str | None:
        if raw is None:
            return None
        try:
            text = decode(raw, self.files.paths[side])
        except LineError as error:
            issues.append(line_issue(error, side))
            return None
        if side in self._sides_without_crlf and raw.endswith(b"\r"):
            self._sides_without_crlf.remove(side)
            issues.append(Issue("crlf", side, "the line ends in CR LF"))
        if number == 1 and text.startswith("\ufeff"):
            issues.append(Issue("bom", side, "U+FEFF at the start of the file"))
            text = text[1:]
        return text

    def _parse(self, parser: PairParser, text: str | None, issues: list[Issue]) -> tuple[str | None, str | None]:
        if text is None:
            return None, None
        try:
            return parser.parse(text)
        except LineError as error:
            issues.append(Issue(error.kind, 0, " ".join(error.detail.split())))
            return None, None


def line_issue(error: LineError, side: int) -> Issue:
    """The issue of a line that is not text."""
    return Issue(error.kind, side, error.detail.replace("of the file", "of the line"))


def line_issues(path: Path, encoding: Encoding) -> Iterator[tuple[int, Issue | None]]:
    """For each line of a file its number, counted from 1, and why no reader accepts it: it is not UTF-8, binary or too
    long. None: it is accepted.

    Raises:
        CorpusError: the file cannot be read to its end.
    """
    for number, raw in enumerate(byte_lines(path, replace(encoding, lenient=False).recode), 1):
        try:
            text = decode(raw, path)
        except LineError as error:
            yield number, line_issue(error, 0)
        else:
            yield number, next((issue for issue in text_issues(text, 0) if issue.kind == "nul"), None)


def open_readers(
    corpus: CorpusFiles, format: str | None, keys: Sequence[str] = (), languages: Sequence[str] = ()
) -> list[RecordReader]:
    """One reader for each file of pairs, or pair of files, of a corpus.

    Raises:
        ConfigError: standard input, which cannot be read twice; the files do not match each other; or the languages are
            not two different codes.
        CorpusError: a file is missing, a folder, or not permitted.
    """
    refuse_streams((*corpus[0], *corpus[1]), "a corpus is examined by reading it more than once")
    asked = language_pair(languages)
    found = pair_files(*corpus, format, keys)
    if bad := next((files for files in found if files.format in ("archive", "catalogue")), None):
        raise ConfigError(
            f"{bad.src}: {'an archive' if bad.format == 'archive' else 'a catalogue of one language'}, which is not"
            f" examined.\n  {'Extract it, and name' if bad.format == 'archive' else 'Name'} TMX, XLIFF or PO files,"
            " or a folder of them."
        )
    return [RecordReader(files, asked) for files in found]


def text_hash(src: str, tgt: str | None = None) -> int:
    """64-bit hash of a text or a pair of texts."""
    # The length distinguishes ("ab", "c") from ("a", "bc"). A source alone has no length.
    data = src if tgt is None else f"{len(src)}\0{src}{tgt}"
    return int.from_bytes(blake2b(data.encode(), digest_size=8).digest(), "little")


def locate_held_out(
    held_out: Mapping[str, CorpusFiles],
    format: str | None,
    keys: Sequence[str] = (),
    languages: Sequence[str] = (),
) -> dict[int, str]:
    """Hash of every pair and every source text of the held-out sets -> its location, such as "dev, dev.en:17"."""
    locations: dict[int, str] = {}
    for label, corpus in held_out.items():
        for reader in open_readers(corpus, format, keys, languages):
            has_pairs = False
            for record in reader:
                has_pairs = has_pairs or (record.src is not None and record.tgt is not None)
                location = f"{label}, {reader.path(0)}:{record.line}"
                if record.src is not None and record.src.strip():
                    locations.setdefault(text_hash(record.src), location)
                    if record.tgt is not None:
                        locations.setdefault(text_hash(record.src, record.tgt), location)
            if not has_pairs:
                raise CorpusError(
                    f"{reader.path(0)}: no line of the {label} set can be read as a pair.\n  Give files with pairs."
                )
    return locations


class DuplicateIndex:
    """Index of earlier pairs and source texts, and of those of held-out sets, by 8-byte hash.

    Args:
        held_out_locations: as returned by `locate_held_out`.
    """

    def __init__(self, held_out_locations: Mapping[int, str]):
        self._held_out_locations = held_out_locations
        self._pairs: dict[int, int] = {}
        self._sources: dict[int, int] = {}
        self._starts: list[int] = []
        self._paths: list[str] = []
        self._n = 0

    def start_file(self, path: str) -> None:
        """Set the file of the pairs added from now on."""
        self._starts.append(self._n)
        self._paths.append(path)

    def check_and_add(self, src: str, tgt: str, line: int) -> list[Issue]:
        """Issues of a pair if it, or its source text, occurred before. Adds the pair to the index."""
        self._n = ordinal = self._starts[-1] + line
        pair, source = text_hash(src, tgt), text_hash(src)
        issues = []
        first_source = self._sources.setdefault(source, ordinal)
        if (first_pair := self._pairs.setdefault(pair, ordinal)) != ordinal:
            issues.append(Issue("duplicate", 0, f"first at {self._location(first_pair)}: {src[:60]!r}"))
        elif first_source != ordinal:
            issues.append(Issue("duplicate-source", 0, f"first at {self._location(first_source)}: {src[:60]!r}"))
        if location := self._held_out_locations.get(pair):
            issues.append(Issue("overlap-pair", 0, f"also in {location}: {src[:60]!r}"))
        elif location := self._held_out_locations.get(source):
            issues.append(Issue("overlap-source", 0, f"also in {location}: {src[:60]!r}"))
        return issues

    def _location(self, ordinal: int) -> str:
        file = bisect_right(self._starts, ordinal - 1) - 1
        return f"{self._paths[file]}:{ordinal - self._starts[file]}"


def check_record(record: Record, statistics: CorpusStatistics | None, duplicates: DuplicateIndex | None) -> list[Issue]:
    """All issues of a record; without `duplicates`, only those that do not depend on other lines."""
    src, tgt = record.src, record.tgt
    if src is None or tgt is None:
        issues_of_sides = [text_issues(text, side) for side, text in enumerate((src, tgt)) if text is not None]
        return record.issues + [issue for issues in issues_of_sides for issue in issues]
    issues = record.issues + pair_issues(src, tgt, statistics)
    if duplicates is not None and src.strip() and tgt.strip():
        issues += duplicates.check_and_add(src, tgt, record.line)
    return issues
