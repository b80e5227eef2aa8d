"""Diagnosis of parallel corpora: all faults by file and line."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from glassformer.corpora.checks import CHECKS, Fault, NormSampler, Severity, pair_faults
from glassformer.corpora.corpus import Example, Format, find_misalignment
from glassformer.corpora.records import Corpus, DuplicateIndex, RecordReader, check_record, held_out_locations, readers
from glassformer.corpora.repair import RepairResult, fix

__all__ = ["CHECKS", "Diagnosis", "Finding", "PairChecker", "RepairResult", "examine", "fix"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault and its location; `kind` is a key of CHECKS."""

    kind: str
    severity: Severity
    path: str
    line: int
    detail: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind}{': ' if self.detail else ''}{self.detail}"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Faults of a corpus: the number of each type, and the first ones with their locations."""

    n_pairs: int
    counts: Mapping[str, int]
    findings: Sequence[Finding]

    @property
    def has_errors(self) -> bool:
        """Whether the corpus has faults of severity "error"."""
        return any(CHECKS[kind].severity == "error" for kind in self.counts)

    def rows(self) -> list[tuple[str, Severity, int, str, str]]:
        """(kind, severity, count, first location, meaning) for each type of fault found, errors first."""
        first = {finding.kind: finding for finding in reversed(self.findings)}
        return [
            (kind, CHECKS[kind].severity, n, f"{first[kind].path}:{first[kind].line}", CHECKS[kind].meaning)
            for kind, n in self.counts.items()
        ]

    def to_json(self) -> dict[str, object]:
        """The diagnosis as dictionaries and lists, for `json.dumps`."""
        return {
            "n_pairs": self.n_pairs,
            "has_errors": self.has_errors,
            "counts": dict(self.counts),
            "findings": [asdict(finding) for finding in self.findings],
        }


@dataclass
class _Tally:
    """Counts all findings and stores the first `n_shown` of each type."""

    n_shown: int | None
    counts: Counter[str] = field(default_factory=Counter)
    findings: dict[str, list[Finding]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.n_shown is not None and self.n_shown < 1:
            raise ValueError(f"n_shown must be at least 1, is {self.n_shown}")

    def add(self, kind: str, path: str, line: int, detail: str) -> None:
        self.counts[kind] += 1
        if self.n_shown is None or self.counts[kind] <= self.n_shown:
            self.findings.setdefault(kind, []).append(Finding(kind, CHECKS[kind].severity, path, line, detail))

    def diagnosis(self, n_pairs: int) -> Diagnosis:
        found = [kind for kind in CHECKS if self.counts[kind]]
        counts = {kind: self.counts[kind] for kind in found}
        return Diagnosis(n_pairs, counts, [finding for kind in found for finding in self.findings[kind]])


def _on_side(fault: Fault) -> str:
    """The detail, marked as target where both sides are in one file."""
    return f"target: {fault.detail}" if fault.side == 1 else fault.detail


class PairChecker:
    """Checks of single pairs in one pass, as in training.

    Corpus-wide faults (length ratios, scripts, duplicates, overlap) are found by `examine` only.
    """

    def __init__(self, n_shown: int | None = 10):
        self._tally = _Tally(n_shown)
        self._n_pairs = 0

    def check(self, example: Example) -> list[Fault]:
        """Count and return the faults of a pair."""
        self._n_pairs += 1
        faults = pair_faults(example.src, example.tgt)
        for fault in faults:
            self._tally.add(fault.kind, example.path, example.line, _on_side(fault))
        return faults

    def diagnosis(self) -> Diagnosis:
        """The faults found so far."""
        return self._tally.diagnosis(self._n_pairs)


def examine(
    src: Sequence[Path],
    tgt: Sequence[Path] = (),
    *,
    against: Mapping[str, Corpus] | None = None,
    format: Format | None = None,
    keys: Sequence[str] = (),
    n_shown: int | None = 10,
) -> Diagnosis:
    """Find all faults of a corpus.

    If two files have different numbers of lines, only single lines are checked, since the pairs are wrong.

    Args:
        against: held-out sets by name, each as (src, tgt); pairs of the corpus that are also in these are reported.
        format: "lines", "tsv" or "jsonl". Default: by file name, for other names by content.
        keys: FIELD=KEY of JSONL, as in `parse_keys`.
        n_shown: maximum number of findings stored per type, None for all. All are counted.

    Raises:
        CorpusError: a file is missing, a folder, or not permitted. Faults in the files are findings, not errors.
        ConfigError: the files do not match each other or the format, or one is standard input.
    """
    corpus = readers((src, tgt), format, keys)
    held_out = held_out_locations(against or {}, format, keys)
    tally = _Tally(n_shown)
    sampler = NormSampler()
    for reader in corpus:
        for record in reader:
            if record.src is not None and record.tgt is not None:
                sampler.add(record.src, record.tgt)
        _note_files(reader, tally)
    norms = sampler.norms() if all(reader.has_equal_line_counts for reader in corpus) else None
    duplicates = DuplicateIndex(held_out)
    for reader in corpus:
        duplicates.start_file(reader.path(0))
        pairing = duplicates if reader.has_equal_line_counts else None
        for record in reader:
            for fault in check_record(record, norms, pairing):
                detail = fault.detail if reader.has_two_files else _on_side(fault)
                tally.add(fault.kind, reader.path(fault.side), record.line, detail)
    return tally.diagnosis(sum(min(reader.n_lines) for reader in corpus))


def _note_files(reader: RecordReader, tally: _Tally) -> None:
    for path, reason in reader.damage.items():
        line = reader.n_lines[reader.source.paths.index(path)] + 1
        tally.add("unreadable", str(path), line, reason)
    if reader.has_equal_line_counts or reader.damage:
        return
    src, tgt = reader.source.paths
    n_src, n_tgt = reader.n_lines
    misalignment = find_misalignment(src, tgt)
    guess = "" if misalignment is None else f"; the files seem to be misaligned from about line {misalignment} on"
    longer = src if n_src > n_tgt else tgt
    line = misalignment or min(n_src, n_tgt) + 1
    tally.add("unequal-counts", str(longer), line, f"{src} has {n_src} lines, {tgt} has {n_tgt}{guess}")
