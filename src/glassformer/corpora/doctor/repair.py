"""Repair of parallel corpora: unambiguous issues are repaired, other pairs are dropped and listed in a file."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TextIO

from glassformer.corpora.corpus import UnequalCountsError, find_misalignment
from glassformer.corpora.doctor.checks import repair_text
from glassformer.corpora.doctor.issues import CHECKS
from glassformer.corpora.doctor.records import (
    CorpusFiles,
    DuplicateIndex,
    Record,
    RecordReader,
    check_record,
    locate_held_out,
    open_readers,
)
from glassformer.corpora.doctor.statistics import StatisticsSampler
from glassformer.documents.tmx import TMX_END, tmx_entry, tmx_start
from glassformer.errors import ConfigError, CorpusError

DROPPED = "dropped.tsv"
N_SHOWN = 3
"""Maximum number of names in a message."""

NO_NAMES: Mapping[Path, Path] = MappingProxyType({})
_ESCAPES = {ord(char): char.encode("unicode_escape").decode() for char in "\\\t\n\r\v\f\0\x1c\x1d\x1e\x85\u2028\u2029"}


@dataclass(frozen=True, slots=True)
class RepairResult:
    """Result of `repair_corpus`: numbers of pairs, dropped pairs and repaired issues by type, and the files written."""

    n_pairs: int
    n_kept: int
    dropped: Mapping[str, int]
    repaired: Mapping[str, int]
    files: Sequence[Path]


def repair_corpus(
    src: Sequence[Path],
    tgt: Sequence[Path],
    out: Path,
    *,
    held_out: Mapping[str, CorpusFiles] | None = None,
    format: str | None = None,
    keys: Sequence[str] = (),
    languages: Sequence[str] = (),
    names: Mapping[Path, Path] = NO_NAMES,
) -> RepairResult:
    """Write a repaired corpus to the folder `out`, under the same file names (uncompressed, without .gz). Of XLIFF and
    gettext catalogues, a translation memory (TMX) is written, which has no codes.

    Issues with "repair" in CHECKS are repaired; pairs with "drop" are written to `out`/dropped.tsv with location,
    types and text. The remaining pairs keep their order. `diagnose` finds no issue in them that this function repairs
    or drops.

    Args:
        held_out: held-out sets by name; pairs of the corpus that are also in these are dropped.
        format: a name in PAIR_FORMATS. Default: by file name, for other names by content.
        keys: FIELD=KEY of JSONL, as in `parse_keys`.
        languages: source and target language in files that have several. Default: as the files say.
        names: paths in `out`, for instance those in the folder that the files are from. Default: the name of each file.

    Raises:
        CorpusError: a file is damaged or already exists in `out`, two files would have the same path there, or no pair
            remains; UnequalCountsError: two files have different numbers of lines, which cannot be repaired
            automatically.
        ConfigError: the files do not match each other or the format, one is standard input, or the languages of a
            translation memory are not known.
    """
    readers, targets = open_repair(src, tgt, out, format=format, keys=keys, languages=languages, names=names)
    held_out_locations = locate_held_out(held_out or {}, format, keys, languages)
    sampler = StatisticsSampler()
    for reader in readers:
        for record in _repaired(reader):
            if record.src is not None and record.tgt is not None:
                sampler.add(record.src, record.tgt)
        _check_repairable(reader)
    n_pairs = sum(reader.n_lines[0] for reader in readers)
    dropped = _pairs_to_drop(readers, sampler, held_out_locations)
    if len(dropped) == n_pairs:
        raise CorpusError(
            f"{readers[0].path(0)}:1: no pair of {n_pairs} is left after dropping: {_most_frequent(dropped)}.\n"
            "  Run `glassformer doctor` without --fix to list all issues."
        )
    for folder in {out, *(path.parent for pair in targets for path in pair)}:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CorpusError(
                f"{folder}: cannot be made a folder ({error.strerror}).\n  Name another folder with --fix."
            ) from None
    repaired = _write(readers, dropped, targets, out / DROPPED)
    counts = Counter(kind for kinds in dropped.values() for kind in kinds)
    files = [path for pair in targets for path in pair]
    return RepairResult(n_pairs, n_pairs - len(dropped), counts, repaired, [*files, out / DROPPED])


def open_repair(
    src: Sequence[Path],
    tgt: Sequence[Path],
    out: Path,
    *,
    format: str | None = None,
    keys: Sequence[str] = (),
    languages: Sequence[str] = (),
    names: Mapping[Path, Path] = NO_NAMES,
) -> tuple[list[RecordReader], list[list[Path]]]:
    """The readers of a corpus, and for each of them the paths of the repaired files. The corpus is not read.

    Raises:
        CorpusError, ConfigError: see `repair_corpus`; those that are known without reading the corpus.
    """
    readers = open_readers((src, tgt), format, keys, languages)
    if table := next((reader for reader in readers if reader.is_table), None):
        raise ConfigError(
            f"{table.path(0)}: --fix does not write tables, which may have other columns.\n"
            "  Save source and target as two text files, or as TSV without a header row."
        )
    targets = [
        [
            out / repaired_name(names.get(path, Path(path.name)), has_entries=reader.has_entries)
            for path in reader.files.paths
        ]
        for reader in readers
    ]
    sources = {out / DROPPED: ["the list of dropped pairs"]}
    for reader, pair in zip(readers, targets, strict=True):
        for path, target in zip(reader.files.paths, pair, strict=True):
            sources.setdefault(target, []).append(str(path))
    if duplicates := [target for target, paths in sources.items() if len(paths) > 1]:
        names_there = [f"{target.relative_to(out)} ({_listed(sources[target])})" for target in duplicates]
        raise CorpusError(
            f"{out}: two files would have one name there: {_listed(names_there)}.\n"
            "  Rename one, fix them one by one into different folders, or name a folder that they are in: its"
            " subfolders are kept."
        )
    if found := next((target for target in sources if target.exists()), None):
        raise CorpusError(f"{found}: exists already and is never overwritten.\n  Name a new or an empty folder.")
    return readers, targets


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:N_SHOWN]) + (", …" if len(names) > N_SHOWN else "")


def repaired_name(path: Path, *, has_entries: bool) -> Path:
    """The path of a repaired file."""
    path = path.with_suffix("") if path.suffix == ".gz" else path
    return path.with_suffix(".tmx") if has_entries else path


def _repaired(reader: RecordReader) -> Iterator[Record]:
    for record in reader:
        if record.src is not None and record.tgt is not None:
            record.src, record.tgt = repair_text(record.src), repair_text(record.tgt)
        yield record


def _check_repairable(reader: RecordReader) -> None:
    for path, reason in reader.read_errors.items():
        raise CorpusError(f"{path}: {reason}\n  A file can be fixed only if it can be read to its end.")
    if not reader.has_equal_line_counts:
        src, tgt = reader.files.paths
        n_src, n_tgt = reader.n_lines
        raise UnequalCountsError(src, tgt, n_src, n_tgt, find_misalignment(src, tgt))
    if reader.has_entries and not all(reader.known_languages):
        raise ConfigError(
            f"{reader.path(0)}: of which languages? It does not name both, as the translation memory that is written"
            " must.\n  Give their codes, for example: --languages en fr"
        )


def _pairs_to_drop(
    readers: Sequence[RecordReader], sampler: StatisticsSampler, held_out_locations: Mapping[int, str]
) -> dict[tuple[int, int], list[str]]:
    """Types of issues of each pair to drop, by (index of the reader, line).

    The corpus statistics are computed again from the remaining pairs, until no further pair is dropped.
    """
    dropped: dict[tuple[int, int], list[str]] = {}
    duplicates: DuplicateIndex | None = DuplicateIndex(held_out_locations)
    while True:
        statistics = sampler.statistics()
        sampler = StatisticsSampler()
        n_before = len(dropped)
        for n, reader in enumerate(readers):
            if duplicates is not None:
                duplicates.start_file(reader.path(0))
            for record in _repaired(reader):
                location = n, record.line
                if location in dropped:
                    continue
                kinds = [
                    issue.kind
                    for issue in check_record(record, statistics, duplicates)
                    if CHECKS[issue.kind].action == "drop"
                ]
                if kinds:
                    dropped[location] = kinds
                elif record.src is not None and record.tgt is not None:
                    sampler.add(record.src, record.tgt)
        if len(dropped) == n_before:
            return dropped
        duplicates = None  # duplicates and overlap do not change when pairs are dropped


def _most_frequent(dropped: Mapping[tuple[int, int], Sequence[str]]) -> str:
    counts = Counter(kind for kinds in dropped.values() for kind in kinds)
    return ", ".join(f"{kind} ({n})" for kind, n in counts.most_common(5))


def _write(
    readers: Sequence[RecordReader],
    dropped: Mapping[tuple[int, int], Sequence[str]],
    targets: Sequence[Sequence[Path]],
    dropped_path: Path,
) -> Counter[str]:
    repaired: Counter[str] = Counter()
    with dropped_path.open("x", encoding="utf-8", newline="\n") as dropped_file:
        dropped_file.write("path\tline\tkinds\tsrc\ttgt\n")
        for n, (reader, paths) in enumerate(zip(readers, targets, strict=True)):
            repaired += _write_files(n, reader, dropped, paths, dropped_file)
    return repaired


def _write_files(
    n: int,
    reader: RecordReader,
    dropped: Mapping[tuple[int, int], Sequence[str]],
    paths: Sequence[Path],
    dropped_file: TextIO,
) -> Counter[str]:
    repaired: Counter[str] = Counter()
    with ExitStack() as files:
        outs = [files.enter_context(path.open("x", encoding="utf-8", newline="\n")) for path in paths]
        names = reader.known_languages
        if reader.has_entries:
            outs[0].write(tmx_start(names[0]))
            files.callback(outs[0].write, TMX_END)
        for record in reader:
            kinds = dropped.get((n, record.line))
            if kinds is not None:
                cells = [reader.path(0), str(record.line), ",".join(dict.fromkeys(kinds)), *_original_texts(record)]
                dropped_file.write("\t".join(cells) + "\n")
                continue
            repaired.update(
                issue.kind for issue in check_record(record, None, None) if CHECKS[issue.kind].action == "repair"
            )
            assert record.src is not None
            assert record.tgt is not None
            pair = repair_text(record.src), repair_text(record.tgt)
            if reader.has_entries:
                lines: Sequence[str] = [tmx_entry(*pair, (names[0], names[1]))]
            else:
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
