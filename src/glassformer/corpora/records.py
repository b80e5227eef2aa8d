"""Fault-tolerant reading of a corpus, record by record, and the checks of each record."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import zip_longest
from pathlib import Path

from glassformer.corpora.checks import Fault, Norms, pair_faults, text_faults
from glassformer.corpora.corpus import PairParser, Source, parser_of, sources
from glassformer.corpora.lines import BadLine, byte_lines, decode, refuse_streams
from glassformer.corpora.read_options import Format
from glassformer.errors import CorpusError

Corpus = tuple[Sequence[Path], Sequence[Path]]


@dataclass(slots=True)
class Record:
    """One line of a source. A side is None if it cannot be read, or if its file has ended."""

    line: int
    src: str | None
    tgt: str | None
    faults: list[Fault]
    raws: tuple[bytes | None, ...]


class RecordReader:
    """Iterates over the records of one source, including faulty ones. Can be iterated repeatedly.

    After an iteration, `n_lines` contains the number of lines of each file, and `damage` the reason why a file could
    not be read to its end, by file.
    """

    def __init__(self, source: Source):
        self.source = source
        self.parser: PairParser | None = None
        self.n_lines: list[int] = []
        self.damage: dict[Path, str] = {}

    def path(self, side: int) -> str:
        """The file of a side."""
        return str(self.source.paths[min(side, len(self.source.paths) - 1)])

    @property
    def has_two_files(self) -> bool:
        """Whether source and target are in separate files."""
        return self.source.tgt is not None

    @property
    def has_equal_line_counts(self) -> bool:
        """Whether the files have equal numbers of lines."""
        return len(set(self.n_lines)) == 1

    def _lines(self, side: int) -> Iterator[bytes]:
        path = self.source.paths[side]
        try:
            for raw in byte_lines(path):
                self.n_lines[side] += 1
                yield raw
        except CorpusError as error:
            reason = str(error).removeprefix(f"{path}:").removeprefix("1:")  # findings include the location
            self.damage[path] = " ".join(reason.split())

    def __iter__(self) -> Iterator[Record]:
        self.parser = parser_of(self.source.format, self.source.keys)
        sides = range(len(self.source.paths))
        self.n_lines = [0 for _ in sides]
        self._crlf_unseen = {*sides}
        for number, raws in enumerate(zip_longest(*map(self._lines, sides)), 1):
            faults: list[Fault] = []
            texts = [self._text(raw, side, number, faults) for side, raw in enumerate(raws)]
            src, tgt = texts if self.parser is None else self._parse(self.parser, texts[0], faults)
            yield Record(number, src, tgt, faults, raws)

    def _text(self, raw: bytes | None, side: int, number: int, faults: list[Fault]) -> str | None:
        if raw is None:
            return None
        try:
            text = decode(raw, self.source.paths[side])
        except BadLine as bad:
            faults.append(Fault(bad.kind, side, bad.detail.replace("of the file", "of the line")))
            return None
        if side in self._crlf_unseen and raw.endswith(b"\r"):
            self._crlf_unseen.remove(side)
            faults.append(Fault("crlf", side, "the line ends in CR LF"))
        if number == 1 and text.startswith("\ufeff"):
            faults.append(Fault("bom", side, "U+FEFF at the start of the file"))
            text = text[1:]
        return text

    def _parse(self, parser: PairParser, text: str | None, faults: list[Fault]) -> tuple[str | None, str | None]:
        if text is None:
            return None, None
        try:
            return parser.parse(text)
        except BadLine as bad:
            faults.append(Fault(bad.kind, 0, " ".join(bad.detail.split())))
            return None, None


def readers(corpus: Corpus, format: Format | None, keys: Sequence[str] = ()) -> list[RecordReader]:
    """One reader for each source of a corpus.

    Raises:
        ConfigError: standard input, which cannot be read twice; or the files do not match each other.
        CorpusError: a file is missing, a folder, or not permitted.
    """
    refuse_streams((*corpus[0], *corpus[1]), "a corpus is examined by reading it more than once")
    return [RecordReader(source) for source in sources(*corpus, format, keys)]


def _digest(src: str, tgt: str | None = None) -> int:
    # The length distinguishes ("ab", "c") from ("a", "bc"). A source alone has no length.
    data = src if tgt is None else f"{len(src)}\0{src}{tgt}"
    return int.from_bytes(blake2b(data.encode(), digest_size=8).digest(), "little")


def held_out_locations(
    against: Mapping[str, Corpus], format: Format | None, keys: Sequence[str] = ()
) -> dict[int, str]:
    """Hash of every pair and source of the held-out sets -> "dev, dev.en:17"."""
    locations: dict[int, str] = {}
    for label, corpus in against.items():
        for reader in readers(corpus, format, keys):
            has_pairs = False
            for record in reader:
                has_pairs = has_pairs or (record.src is not None and record.tgt is not None)
                location = f"{label}, {reader.path(0)}:{record.line}"
                if record.src is not None and record.src.strip():
                    locations.setdefault(_digest(record.src), location)
                    if record.tgt is not None:
                        locations.setdefault(_digest(record.src, record.tgt), location)
            if not has_pairs:
                raise CorpusError(f"{reader.path(0)}: no line of the {label} set can be read as a pair.")
    return locations


class DuplicateIndex:
    """Index of earlier pairs and sources, and of those of held-out sets, by 8-byte hash."""

    def __init__(self, held_out: Mapping[int, str]):
        self._held_out = held_out
        self._pairs: dict[int, int] = {}
        self._sources: dict[int, int] = {}
        self._starts: list[int] = []
        self._paths: list[str] = []
        self._n = 0

    def start_file(self, path: str) -> None:
        """Set the file of the following lines."""
        self._starts.append(self._n)
        self._paths.append(path)

    def check_and_add(self, src: str, tgt: str, line: int) -> list[Fault]:
        """Faults of a pair that occurred before, or whose source did. Adds the pair to the index."""
        self._n = ordinal = self._starts[-1] + line
        pair, source = _digest(src, tgt), _digest(src)
        faults = []
        first_source = self._sources.setdefault(source, ordinal)
        if (first_pair := self._pairs.setdefault(pair, ordinal)) != ordinal:
            faults.append(Fault("duplicate", 0, f"first at {self._location(first_pair)}: {src[:60]!r}"))
        elif first_source != ordinal:
            faults.append(Fault("many-targets", 0, f"first at {self._location(first_source)}: {src[:60]!r}"))
        if location := self._held_out.get(pair):
            faults.append(Fault("overlap-pair", 0, f"also in {location}: {src[:60]!r}"))
        elif location := self._held_out.get(source):
            faults.append(Fault("overlap-source", 0, f"also in {location}: {src[:60]!r}"))
        return faults

    def _location(self, ordinal: int) -> str:
        file = bisect_right(self._starts, ordinal - 1) - 1
        return f"{self._paths[file]}:{ordinal - self._starts[file]}"


def check_record(record: Record, norms: Norms | None, duplicates: DuplicateIndex | None) -> list[Fault]:
    """All faults of a record; without `duplicates`, only those that do not depend on other lines."""
    src, tgt = record.src, record.tgt
    if src is None or tgt is None:
        faults_of_sides = [text_faults(text, side) for side, text in enumerate((src, tgt)) if text is not None]
        return record.faults + [fault for faults in faults_of_sides for fault in faults]
    faults = record.faults + pair_faults(src, tgt, norms)
    if duplicates is not None and src.strip() and tgt.strip():
        faults += duplicates.check_and_add(src, tgt, record.line)
    return faults
