"""Diagnosis of parallel corpora: all issues by file and line; of other text the lines that no reader accepts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from glassformer.corpora.corpus import find_misalignment
from glassformer.corpora.doctor.checks import pair_issues
from glassformer.corpora.doctor.issues import CHECKS, Issue, Severity
from glassformer.corpora.doctor.records import (
    CorpusFiles,
    DuplicateIndex,
    RecordReader,
    check_record,
    line_issues,
    locate_held_out,
    open_readers,
)
from glassformer.corpora.doctor.statistics import StatisticsSampler
from glassformer.corpora.encoding import Encoding
from glassformer.corpora.example import Example


@dataclass(frozen=True, slots=True)
class Finding:
    """One issue and its location; `kind` is a key of CHECKS."""

    kind: str
    severity: Severity
    path: str
    line: int
    detail: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind}{': ' if self.detail else ''}{self.detail}"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Issues of a corpus: the number of each type, and the first ones with their locations."""

    n_pairs: int
    """Number of pairs, labeled texts or lines."""
    counts: Mapping[str, int]
    findings: Sequence[Finding]

    @property
    def has_errors(self) -> bool:
        """Whether the corpus has issues of severity "error"."""
        return any(CHECKS[kind].severity == "error" for kind in self.counts)

    def rows(self) -> list[tuple[str, Severity, int, str, str]]:
        """(kind, severity, count, first location, meaning) for each type of issue found, errors first."""
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
class FindingCounter:
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
        kinds = [kind for kind in CHECKS if self.counts[kind]]
        counts = {kind: self.counts[kind] for kind in kinds}
        return Diagnosis(n_pairs, counts, [finding for kind in kinds for finding in self.findings[kind]])


def _with_side(issue: Issue) -> str:
    """The detail, marked as target where both sides are in one file."""
    return f"target: {issue.detail}" if issue.side == 1 else issue.detail


class PairChecker:
    """Checks of single pairs in one pass, as in training.

    Corpus-wide issues (length ratios, scripts, duplicates, overlap) are found by `diagnose` only.
    """

    def __init__(self, n_shown: int | None = 10):
        self._counter = FindingCounter(n_shown)
        self._n_pairs = 0

    def check(self, example: Example) -> list[Issue]:
        """Count and return the issues of a pair."""
        self._n_pairs += 1
        issues = pair_issues(example.src, example.tgt)
        for issue in issues:
            self._counter.add(issue.kind, example.path, example.line, _with_side(issue))
        return issues

    def diagnosis(self) -> Diagnosis:
        """The issues found so far."""
        return self._counter.diagnosis(self._n_pairs)


def diagnose(
    src: Sequence[Path],
    tgt: Sequence[Path] = (),
    *,
    held_out: Mapping[str, CorpusFiles] | None = None,
    format: str | None = None,
    keys: Sequence[str] = (),
    languages: Sequence[str] = (),
    n_shown: int | None = 10,
) -> Diagnosis:
    """Find all issues of a corpus.

    If two files have different numbers of lines, length ratios, scripts, duplicates and overlap are not
    checked, since the pairs are wrong.

    Args:
        held_out: held-out sets by name, each as (src, tgt); pairs of the corpus that are also in these are reported.
        format: a name in PAIR_FORMATS. Default: by file name, for other names by content.
        keys: FIELD=KEY of JSONL, as in `parse_keys`.
        languages: source and target language in files that have several. Default: as the files say.
        n_shown: maximum number of findings stored per type, None for all. All are counted.

    Raises:
        CorpusError: a file is missing, a folder, or not permitted. Issues in the files are findings, not errors.
        ConfigError: the files do not match each other or the format, or one is standard input.
    """
    readers = open_readers((src, tgt), format, keys, languages)
    held_out_locations = locate_held_out(held_out or {}, format, keys, languages)
    counter = FindingCounter(n_shown)
    sampler = StatisticsSampler()
    for reader in readers:
        for record in reader:
            if record.src is not None and record.tgt is not None:
                sampler.add(record.src, record.tgt)
        _check_files(reader, counter)
    statistics = sampler.statistics() if all(reader.has_equal_line_counts for reader in readers) else None
    duplicates = DuplicateIndex(held_out_locations)
    for reader in readers:
        duplicates.start_file(reader.path(0))
        index = duplicates if reader.has_equal_line_counts else None
        for record in reader:
            for issue in check_record(record, statistics, index):
                detail = issue.detail if reader.has_two_files else _with_side(issue)
                counter.add(issue.kind, reader.path(issue.side), record.line, detail)
    return counter.diagnosis(sum(min(reader.n_lines) for reader in readers))


def diagnose_lines(paths: Sequence[Path], *, n_shown: int | None = 10) -> Diagnosis:
    """Find the lines of UTF-8 text files that no reader accepts.

    Args:
        n_shown: maximum number of findings stored per type, None for all. All are counted.

    Raises:
        CorpusError: a file is missing, or cannot be read to its end.
    """
    counter = FindingCounter(n_shown)
    n_lines = 0
    for path in paths:
        for number, issue in line_issues(path, Encoding()):
            n_lines += 1
            if issue:
                counter.add(issue.kind, str(path), number, issue.detail)
    return counter.diagnosis(n_lines)


def _check_files(reader: RecordReader, counter: FindingCounter) -> None:
    for path, reason in reader.read_errors.items():
        line = reader.n_lines[reader.files.paths.index(path)] + 1
        counter.add("unreadable", str(path), line, reason)
    if reader.has_equal_line_counts or reader.read_errors:
        return
    src, tgt = reader.files.paths
    n_src, n_tgt = reader.n_lines
    misalignment = find_misalignment(src, tgt)
    location = "" if misalignment is None else f"; the files seem to be misaligned from about line {misalignment} on"
    longer = src if n_src > n_tgt else tgt
    line = misalignment or min(n_src, n_tgt) + 1
    counter.add("unequal-counts", str(longer), line, f"{src} has {n_src} lines, {tgt} has {n_tgt}{location}")
