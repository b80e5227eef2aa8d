"""Repair of parallel corpora: unambiguous faults are repaired, other pairs are dropped and listed in a file."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from glassformer.corpora.checks import CHECKS, NormSampler, repair
from glassformer.corpora.corpus import Format, UnequalCountsError, find_misalignment
from glassformer.corpora.records import (
    Corpus,
    DuplicateIndex,
    Record,
    RecordReader,
    check_record,
    held_out_locations,
    readers,
)
from glassformer.errors import CorpusError

DROPPED = "dropped.tsv"
_ESCAPES = {ord(char): char.encode("unicode_escape").decode() for char in "\\\t\n\r\v\f\0\x1c\x1d\x1e\x85\u2028\u2029"}


@dataclass(frozen=True, slots=True)
class RepairResult:
    """Result of `fix`: numbers of pairs, dropped pairs and repaired faults by type, and the files written."""

    n_pairs: int
    n_kept: int
    dropped: Mapping[str, int]
    repaired: Mapping[str, int]
    files: Sequence[Path]


def fix(
    src: Sequence[Path],
    tgt: Sequence[Path],
    out: Path,
    *,
    against: Mapping[str, Corpus] | None = None,
    format: Format | None = None,
    keys: Sequence[str] = (),
) -> RepairResult:
    """Write a repaired corpus to the folder `out`, under the same file names (uncompressed, without .gz).

    Faults with "repair" in CHECKS are repaired; pairs with "drop" are written to `out`/dropped.tsv with location,
    types and text. The remaining pairs keep their order, and `examine` finds no fault in them that `fix` repairs or
    drops.

    Args:
        against: held-out sets by name; pairs of the corpus that are also in these are dropped.
        format: "lines", "tsv" or "jsonl". Default: by file name, for other names by content.
        keys: FIELD=KEY of JSONL, as in `parse_keys`.

    Raises:
        CorpusError: a file is damaged or already exists in `out`, or no pair remains; UnequalCountsError: two files
            have different numbers of lines, which cannot be repaired automatically.
        ConfigError: the files do not match each other or the format, or one is standard input.
    """
    corpus = readers((src, tgt), format, keys)
    targets = _targets(corpus, out)
    held_out = held_out_locations(against or {}, format, keys)
    sampler = NormSampler()
    for reader in corpus:
        for record in _repaired(reader):
            if record.src is not None and record.tgt is not None:
                sampler.add(record.src, record.tgt)
        _refuse(reader)
    n_pairs = sum(reader.n_lines[0] for reader in corpus)
    dropped = _to_drop(corpus, sampler, held_out)
    if len(dropped) == n_pairs:
        raise CorpusError(
            f"{corpus[0].path(0)}:1: no pair of {n_pairs} is left after dropping: {_most(dropped)}.\n"
            "  Run `glassformer doctor` without --fix to list all faults."
        )
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CorpusError(f"{out}: cannot be made a folder ({error.strerror}).\n  Name another folder.") from None
    repaired = _write(corpus, dropped, targets, out / DROPPED)
    counts = Counter(kind for kinds in dropped.values() for kind in kinds)
    files = [path for pair in targets for path in pair]
    return RepairResult(n_pairs, n_pairs - len(dropped), counts, repaired, [*files, out / DROPPED])


def _targets(corpus: Sequence[RecordReader], out: Path) -> list[list[Path]]:
    targets = [
        [out / (path.stem if path.suffix == ".gz" else path.name) for path in reader.source.paths] for reader in corpus
    ]
    paths = [path for pair in targets for path in pair] + [out / DROPPED]
    if len({*paths}) < len(paths):
        raise CorpusError(
            f"{out}: two files would have one name there: {', '.join(path.name for path in paths)}.\n"
            "  Rename one, or fix them one by one into different folders."
        )
    for path in paths:
        if path.exists():
            raise CorpusError(f"{path}: exists already and is never overwritten.\n  Name a new or an empty folder.")
    return targets


def _repaired(reader: RecordReader) -> Iterator[Record]:
    for record in reader:
        if record.src is not None and record.tgt is not None:
            record.src, record.tgt = repair(record.src), repair(record.tgt)
        yield record


def _refuse(reader: RecordReader) -> None:
    for path, why in reader.damage.items():
        raise CorpusError(f"{path}: {why}\n  A file can be fixed only if it can be read to its end.")
    if not reader.has_equal_line_counts:
        src, tgt = reader.source.paths
        n_src, n_tgt = reader.n_lines
        raise UnequalCountsError(src, tgt, n_src, n_tgt, find_misalignment(src, tgt))


def _to_drop(
    corpus: Sequence[RecordReader], sampler: NormSampler, held_out: Mapping[int, str]
) -> dict[tuple[int, int], list[str]]:
    """Kinds by (source, line). What is usual is learned again from what is left, until nothing more falls out."""
    dropped: dict[tuple[int, int], list[str]] = {}
    duplicates: DuplicateIndex | None = DuplicateIndex(held_out)
    while True:
        norms = sampler.norms()
        sampler = NormSampler()
        n_before = len(dropped)
        for n, reader in enumerate(corpus):
            if duplicates is not None:
                duplicates.start_file(reader.path(0))
            for record in _repaired(reader):
                place = n, record.line
                if place in dropped:
                    continue
                kinds = [
                    fault.kind
                    for fault in check_record(record, norms, duplicates)
                    if CHECKS[fault.kind].repair == "drop"
                ]
                if kinds:
                    dropped[place] = kinds
                elif record.src is not None and record.tgt is not None:
                    sampler.add(record.src, record.tgt)
        if len(dropped) == n_before:
            return dropped
        duplicates = None  # duplicates and overlap do not change when pairs are dropped


def _most(dropped: Mapping[tuple[int, int], Sequence[str]]) -> str:
    counts = Counter(kind for kinds in dropped.values() for kind in kinds)
    return ", ".join(f"{kind} ({n})" for kind, n in counts.most_common(5))


def _write(
    corpus: Sequence[RecordReader],
    dropped: Mapping[tuple[int, int], Sequence[str]],
    targets: Sequence[Sequence[Path]],
    note: Path,
) -> Counter[str]:
    repaired: Counter[str] = Counter()
    with ExitStack() as files:
        notes = files.enter_context(note.open("x", encoding="utf-8", newline="\n"))
        notes.write("path\tline\tkinds\tsrc\ttgt\n")
        for n, (reader, paths) in enumerate(zip(corpus, targets, strict=True)):
            outs = [files.enter_context(path.open("x", encoding="utf-8", newline="\n")) for path in paths]
            for record in reader:
                kinds = dropped.get((n, record.line))
                if kinds is not None:
                    cells = [reader.path(0), str(record.line), ",".join(dict.fromkeys(kinds)), *_original_texts(record)]
                    notes.write("\t".join(cells) + "\n")
                    continue
                repaired.update(
                    fault.kind for fault in check_record(record, None, None) if CHECKS[fault.kind].repair == "repair"
                )
                assert record.src is not None
                assert record.tgt is not None
                pair = repair(record.src), repair(record.tgt)
                lines = pair if reader.parser is None else (reader.parser.render(*pair),)
                for file, line in zip(outs, lines, strict=True):
                    file.write(line + "\n")
    return repaired


def _original_texts(record: Record) -> list[str]:
    """Both sides without repairs, each on one line; of a malformed line, the complete line."""
    texts = [record.src, record.tgt]
    for side, raw in enumerate(record.raws):
        if texts[side] is None and raw is not None:
            texts[side] = raw[:1000].decode("utf-8", "surrogateescape")
    cells = [(text or "").translate(_ESCAPES) for text in texts]
    return [cell.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace") for cell in cells]
