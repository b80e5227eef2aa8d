"""Types of issues of corpora: severity, how they are repaired, and meaning."""

from typing import Literal, NamedTuple

Severity = Literal["error", "warning"]
Action = Literal["refuse", "drop", "repair", "keep"]
"""What `--fix` does: refuse the whole corpus, drop the pair, repair it, or keep it."""

MAX_CHARS = 5_000  # longer sides are documents, which training would truncate or skip


class Check(NamedTuple):
    """One type of issue. An error breaks pairing, reading or training; a warning may be intended."""

    severity: Severity
    action: Action
    meaning: str


CHECKS: dict[str, Check] = {
    "unreadable": Check("error", "refuse", "the file cannot be read to its end"),
    "unequal-counts": Check("error", "refuse", "the two files have different numbers of lines"),
    "malformed": Check("error", "drop", "the line is not a pair in the file's format"),
    "not-utf8": Check("error", "drop", "the line is not UTF-8 text"),
    "over-limit": Check("error", "drop", "the line is longer than any reader accepts"),
    "blank-side": Check("error", "drop", "one side is blank, the other is not"),
    "nul": Check("error", "repair", "a NUL character: binary data, which `train` does not read"),
    # An error, although our readers handle it: str.splitlines and universal newlines shift all later pairs.
    "line-break": Check("error", "repair", "a character at which other tools split the line"),
    "blank-both": Check("warning", "drop", "both sides are blank"),
    "bom": Check("warning", "repair", "a byte order mark"),
    "crlf": Check("warning", "repair", "Windows line ends (reported once per file)"),
    "control": Check("warning", "repair", "an invisible control character"),
    "invisible": Check("warning", "keep", "a zero-width or direction character"),
    "html": Check("warning", "repair", "an HTML escape, such as &amp;"),
    "mojibake": Check("warning", "repair", "UTF-8 read as Windows-1252, such as Ã©"),
    "replacement": Check("warning", "drop", "U+FFFD: a character was lost in an earlier conversion"),
    "copy": Check("warning", "drop", "the target is the untranslated source"),
    "length-ratio": Check("warning", "drop", "the ratio of the lengths is extreme"),
    "over-long": Check("warning", "drop", f"a side is longer than {MAX_CHARS} characters"),
    "wrong-script": Check("warning", "drop", "most letters are in a script that is unusual for this side"),
    "duplicate": Check("warning", "drop", "the same pair occurs earlier"),
    "duplicate-source": Check("warning", "keep", "the same source occurs earlier with another target"),
    "overlap-pair": Check("warning", "drop", "the pair is also in a held-out set, whose scores would be too high"),
    "overlap-source": Check("warning", "drop", "the source is also in a held-out set"),
    # Labeled text
    "unusable-row": Check("error", "drop", "the row has no label, or cannot be read"),
    "contradicting-label": Check("error", "keep", "the same text occurs earlier with another label"),
    "no-text": Check("warning", "drop", "the row has no text"),
    "duplicate-text": Check("warning", "drop", "the same text occurs earlier with the same label"),
    "similar-labels": Check("warning", "keep", "labels that differ only by case or spaces"),
    "overlap-text": Check("warning", "drop", "the text is also in a held-out set, whose scores would be too high"),
}


class Issue(NamedTuple):
    """One issue of a line. `kind` is a key of CHECKS, `side` 0 is the source, 1 the target."""

    kind: str
    side: int
    detail: str
