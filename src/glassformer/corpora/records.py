"""Every line of a corpus with what is wrong with it: a reader that never stops, and the judge of its records."""

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
    """One line of a source as far as it can be read; a side is None where it cannot, or where its file has ended."""

    line: int
    src: str | None
    tgt: str | None
    faults: list[Fault]
    raws: tuple[bytes | None, ...]


class RecordReader:
    """The records of one source, whatever is wrong with them; may be iterated again.

    After an iteration `n_lines` holds the lines of each of its files, and `damage` why a file broke off, by file.
    """

    def __init__(self, source: Source):
        self.source = source
        self.parser: PairParser | None = None
        self.n_lines: list[int] = []
        self.damage: dict[Path, str] = {}

    def path(self, side: int) -> str:
        """The file that holds this side."""
        return str(self.source.paths[min(side, len(self.source.paths) - 1)])

    @property
    def has_two_files(self) -> bool:
        """Whether the path tells the side."""
        return self.source.tgt is not None

    @property
    def is_equal(self) -> bool:
        """Whether its files have one number of lines."""
        return len(set(self.n_lines)) == 1

    def _lines(self, side: int) -> Iterator[bytes]:
        path = self.source.paths[side]
        try:
            for raw in byte_lines(path):
                self.n_lines[side] += 1
                yield raw
        except CorpusError as error:
            why = str(error).removeprefix(f"{path}:").removeprefix("1:")  # a finding names the place itself
            self.damage[path] = " ".join(why.split())

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
        ConfigError: standard input, which cannot be read twice; or sides that do not fit each other.
        CorpusError: a file is missing, a folder, or not permitted.
    """
    refuse_streams((*corpus[0], *corpus[1]), "a corpus is examined by reading it more than once")
    return [RecordReader(source) for source in sources(*corpus, format, keys)]


def _digest(src: str, tgt: str | None = None) -> int:
    # The length keeps ("ab", "c") and ("a", "bc") apart; a source alone has none.
    data = src if tgt is None else f"{len(src)}\0{src}{tgt}"
    return int.from_bytes(blake2b(data.encode(), digest_size=8).digest(), "little")


def held_out_places(against: Mapping[str, Corpus], format: Format | None, keys: Sequence[str] = ()) -> dict[int, str]:
    """Hash of every pair and source of the held-out sets -> "dev, dev.en:17"."""
    places: dict[int, str] = {}
    for label, corpus in against.items():
        for reader in readers(corpus, format, keys):
            has_pairs = False
            for record in reader:
                has_pairs = has_pairs or (record.src is not None and record.tgt is not None)
                place = f"{label}, {reader.path(0)}:{record.line}"
                if record.src is not None and record.src.strip():
                    places.setdefault(_digest(record.src), place)
                    if record.tgt is not None:
                        places.setdefault(_digest(record.src, record.tgt), place)
            if not has_pairs:
                raise CorpusError(f"{reader.path(0)}: no line of the {label} set can be read as a pair.")
    return places


class DuplicateIndex:
    """Which pairs and sources stand earlier in the corpus or in a held-out set, by 8-byte hash."""

    def __init__(self, held_out: Mapping[int, str]):
        self._held_out = held_out
        self._pairs: dict[int, int] = {}
        self._sources: dict[int, int] = {}
        self._starts: list[int] = []
        self._paths: list[str] = []
        self._n = 0

    def open(self, path: str) -> None:
        """From here on, lines are of this file."""
        self._starts.append(self._n)
        self._paths.append(path)

    def faults(self, src: str, tgt: str, line: int) -> list[Fault]:
        """Where the pair or its source was seen before; remembers it."""
        self._n = ordinal = self._starts[-1] + line
        pair, source = _digest(src, tgt), _digest(src)
        faults = []
        earlier = self._sources.setdefault(source, ordinal)
        if (same := self._pairs.setdefault(pair, ordinal)) != ordinal:
            faults.append(Fault("duplicate", 0, f"first at {self._place(same)}: {src[:60]!r}"))
        elif earlier != ordinal:
            faults.append(Fault("many-targets", 0, f"first at {self._place(earlier)}: {src[:60]!r}"))
        if place := self._held_out.get(pair):
            faults.append(Fault("overlap-pair", 0, f"also in {place}: {src[:60]!r}"))
        elif place := self._held_out.get(source):
            faults.append(Fault("overlap-source", 0, f"also in {place}: {src[:60]!r}"))
        return faults

    def _place(self, ordinal: int) -> str:
        file = bisect_right(self._starts, ordinal - 1) - 1
        return f"{self._paths[file]}:{ordinal - self._starts[file]}"


def check_record(record: Record, norms: Norms | None, duplicates: DuplicateIndex | None) -> list[Fault]:
    """All faults of one record; without `duplicates`, those that need no other line."""
    src, tgt = record.src, record.tgt
    if src is None or tgt is None:
        found = [text_faults(text, side) for side, text in enumerate((src, tgt)) if text is not None]
        return record.faults + [fault for faults in found for fault in faults]
    faults = record.faults + pair_faults(src, tgt, norms)
    if duplicates is not None and src.strip() and tgt.strip():
        faults += duplicates.faults(src, tgt, record.line)
    return faults
