"""Diagnosis of labeled text: rows without label or text, duplicates, contradicting labels, overlap with a dev set."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from glassformer.corpora.doctor.checks import text_issues
from glassformer.corpora.doctor.diagnosis import Diagnosis, FindingCounter
from glassformer.corpora.doctor.records import line_issues, text_hash
from glassformer.corpora.encoding import Encoding, detect_encoding
from glassformer.corpora.labeled import BadRowError, Labeled, is_json, read_rows
from glassformer.corpora.lines import refuse_streams
from glassformer.corpora.read_options import ReadOptions
from glassformer.errors import CorpusError


def diagnose_labeled(
    paths: Sequence[Path],
    options: ReadOptions,
    *,
    held_out: Mapping[str, Sequence[Path]],
    n_shown: int | None = 10,
) -> Diagnosis:
    """Find all issues of labeled text.

    Args:
        held_out: held-out sets by name; texts that are also in these are reported.
        n_shown: maximum number of findings stored per type, None for all. All are counted.

    Raises:
        ColumnsError: the columns of text and label are not known.
        CorpusError: a file is missing, or cannot be read to its end. Lines that are not text are findings.
    """
    refuse_streams([*paths, *(path for files in held_out.values() for path in files)], "doctor reads it several times")
    locations = {
        text_hash(*texts(row)): f"{set_name}, {row.path}:{row.line}"
        for set_name, files in held_out.items()
        for row in read_rows(files, options)
        if isinstance(row, Labeled)
    }
    counter = FindingCounter(n_shown)
    bad_lines = set()
    for path in paths:
        encoding = Encoding() if is_json(path, options.format) else detect_encoding(path)
        for number, issue in line_issues(path, encoding):
            if issue:
                bad_lines.add((str(path), number))
                counter.add(issue.kind, str(path), number, issue.detail)
    first: dict[int, tuple[str, str]] = {}
    labels: dict[str, dict[str, Labeled]] = {}
    n_rows = 0
    for row in read_rows(paths, options):
        n_rows += 1
        if (row.path, row.line) in bad_lines:
            continue
        if isinstance(row, BadRowError):
            counter.add("unusable-row", row.path, row.line, row.reason)
            continue
        if not any(text.strip() for text in texts(row)):
            counter.add("no-text", row.path, row.line, "")
            continue
        for kind, detail in issues_of(row, first, locations):
            counter.add(kind, row.path, row.line, detail)
        labels.setdefault("".join(row.label.casefold().split()), {}).setdefault(row.label, row)
    if not n_rows:
        raise CorpusError(f"{paths[0]}: no row of labeled text.\n  Give a file with texts and labels.")
    for variants in labels.values():
        for row in list(variants.values())[1:]:
            counter.add("similar-labels", row.path, row.line, f"{row.label!r} and {next(iter(variants))!r}")
    return counter.diagnosis(n_rows)


def issues_of(
    row: Labeled, first: dict[int, tuple[str, str]], held_out: Mapping[int, str]
) -> Iterator[tuple[str, str]]:
    """Types and details of the issues of an example with a text.

    Args:
        first: hash of each earlier text -> its label and location. The text is added.
        held_out: hash of each text of the held-out sets -> its location.
    """
    for side, text in enumerate(texts(row)):
        yield from ((issue.kind, issue.detail) for issue in text_issues(text, side))
    key, here = text_hash(*texts(row)), f"{row.path}:{row.line}"
    label, location = first.setdefault(key, (row.label, here))
    if label != row.label:
        yield "contradicting-label", f"{row.label!r}; {label!r} at {location}: {row.text[:60]!r}"
    elif location != here:
        yield "duplicate-text", f"first at {location}: {row.text[:60]!r}"
    if key in held_out:
        yield "overlap-text", f"also in {held_out[key]}: {row.text[:60]!r}"


def texts(row: Labeled) -> tuple[str, ...]:
    """The text or the pair of texts."""
    return (row.text,) if row.text2 is None else (row.text, row.text2)
