"""Checks of sentence pairs: table of all checks, detection of issues, and repair of text."""

import html
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from typing import Literal, NamedTuple

Severity = Literal["error", "warning"]
Action = Literal["refuse", "drop", "repair", "keep"]

MAX_CHARS = 5_000  # longer sides are documents, which training would truncate or skip
COPY_MIN_WORDS = 4  # minimum number of words of a copy; shorter ones are often names, titles or loan words
RATIO_MIN_CHARS = 20  # in shorter texts, one word more or less makes a ratio extreme
RATIO_FACTOR = 3.0  # a ratio is extreme only if it differs from the corpus median by more than this factor
RATIO_MAX_DEVIATIONS = 7.0  # and by more than this number of robust standard deviations
SCRIPT_MIN_LETTERS = 10  # minimum number of foreign letters; lines with fewer contain a name, not another language
SCRIPT_MIN_FRACTION = 0.1  # minimum fraction of lines for a script to be expected in the corpus
MIN_STATISTICS_PAIRS = 20  # minimum number of pairs for statistics


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
    "over-limit": Check("error", "drop", "the line exceeds the maximum length of all readers"),
    "blank-side": Check("error", "drop", "one side is blank, the other is not"),
    "nul": Check("error", "repair", "a NUL character: binary data, refused by the readers"),
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
}


class Issue(NamedTuple):
    """One issue of a line. `kind` is a key of CHECKS, `side` 0 is the source, 1 the target."""

    kind: str
    side: int
    detail: str


# Not "\n": it occurs only escaped in JSON, where no tool splits at it.
_BREAKS = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_BREAK = re.compile(f"[{_BREAKS}]")
_CONTROL = re.compile("[\x01-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f]")
# Without U+200C and U+200D, which Persian, Indic scripts and emoji need.
_INVISIBLE = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069]|(?<!^)\ufeff")
# Only with a semicolon: "?a=1&copy=2" is part of a URL.
_HTML = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")

# Windows-1252 as decoded by lenient programs: its five undefined bytes are control characters of Latin-1.
_CP1252 = {chr(byte): byte for byte in range(0x80, 0x100)}
_CP1252 |= {bytes([byte]).decode("cp1252"): byte for byte in range(0x80, 0x100) if byte not in b"\x81\x8d\x8f\x90\x9d"}
_TAIL = "[" + "".join(char for char, byte in _CP1252.items() if byte < 0xC0) + "]"
# Lead bytes of Latin, Cyrillic, punctuation, ligatures and emoji. No capital before a two-byte sequence:
# "SÃO", "CAFÉ»" and „Ä“ are correct text.
_MOJIBAKE = re.compile(f"(?:(?<![A-ZÀ-Þ„“‘«])[ÂÃÄÅÐÑ]{_TAIL}|[âï]{_TAIL}{{2}}|ð{_TAIL}{{3}})+")

# Matches in every text in which one of the patterns above matches: most texts need only this search.
_ANY_SUSPECT = re.compile(
    f"[{_BREAKS}\0-\x08\x0e-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffd]"
    rf"|&[#A-Za-z][A-Za-z0-9]*;|[ÂÃÄÅÐÑâïð]{_TAIL}"
)
_CODE = re.compile(r"`[^`]+`|<[^>]*>|\S*[/_@=\\(]\S*")  # code, tags and addresses stay untranslated
_PUNCTUATION = ".,;:!?…\"'()[]«»„“”‘’"


def _decoded(match: re.Match[str]) -> str:
    try:
        text = bytes(_CP1252[char] for char in match.group()).decode()
    except UnicodeDecodeError:
        return match.group()
    return match.group() if _CONTROL.search(text) else text


def _unescaped(match: re.Match[str]) -> str:
    return re.sub(r"\s", " ", html.unescape(match.group()))  # &#10; must not become a line, &#9; a column


def _plain_control(match: re.Match[str]) -> str:
    # 0x80-0x9f are Windows-1252 punctuation that was read as Latin-1.
    return bytes([ord(match.group())]).decode("cp1252", "ignore") if match.group() >= "\x80" else ""


def repair_text(text: str) -> str:
    """Repair all issues of a text whose action in CHECKS is "repair". Other issues are unchanged."""
    while _ANY_SUSPECT.search(text):
        before = text
        text = _HTML.sub(_unescaped, text.replace("\0", "").lstrip("\ufeff"))
        text = _MOJIBAKE.sub(_decoded, text)
        text = _BREAK.sub(" ", text)
        text = _CONTROL.sub(_plain_control, text)
        if text == before:
            break
    return text


_CONTROL_NAMES = {
    "\0": "NULL", "\r": "CARRIAGE RETURN", "\v": "VERTICAL TAB", "\f": "FORM FEED", "\x1c": "FILE SEPARATOR",
    "\x1d": "GROUP SEPARATOR", "\x1e": "RECORD SEPARATOR", "\x85": "NEXT LINE",
}  # fmt: skip


def _location(text: str, index: int) -> str:
    char = text[index]
    char_name = unicodedata.name(char, _CONTROL_NAMES.get(char, ""))
    return f"U+{ord(char):04X}{' ' + char_name if char_name else ''} at column {index + 1}"


def text_issues(text: str, side: int) -> list[Issue]:
    """Issues of one side of a pair."""
    issues = []
    if len(text) > MAX_CHARS:
        issues.append(Issue("over-long", side, f"{len(text)} characters"))
    if not _ANY_SUSPECT.search(text):
        return issues
    if "\0" in text:
        issues.append(Issue("nul", side, _location(text, text.index("\0"))))
    for kind, pattern in (("line-break", _BREAK), ("control", _CONTROL), ("invisible", _INVISIBLE)):
        if match := pattern.search(text):
            issues.append(Issue(kind, side, _location(text, match.start())))
    if text.startswith("\ufeff"):
        issues.append(Issue("bom", side, "U+FEFF at column 1"))
    if "\ufffd" in text:
        issues.append(Issue("replacement", side, _location(text, text.index("\ufffd"))))
    for kind, pattern, fix in (("html", _HTML, _unescaped), ("mojibake", _MOJIBAKE, _decoded)):
        for match in pattern.finditer(text):
            if (fixed := fix(match)) != match.group():
                issues.append(Issue(kind, side, f"{match.group()!r} for {fixed!r} at column {match.start() + 1}"))
                break
    return issues


def _is_copy(src: str, tgt: str) -> bool:
    if src != tgt and src.strip().casefold() != tgt.strip().casefold():
        return False
    words = [word.strip(_PUNCTUATION) for word in _CODE.sub(" ", src).split()]
    words = [word for word in words if word.replace("'", "").isalpha()]
    # Capitalized words are names, which are not translated; scripts without case or spaces are counted by letter.
    lowercase = [word for word in words if word[0].islower() and len(word) > 1]
    uncased = sum(len(word) for word in words if word.lower() == word.upper())
    return (len(words) >= COPY_MIN_WORDS and len(lowercase) >= COPY_MIN_WORDS - 1) or uncased >= 4 * COPY_MIN_WORDS


@lru_cache(maxsize=1 << 16)
def _script(char: str) -> str:
    if not char.isalpha():
        return ""
    first = unicodedata.name(char, "").split(" ")[0]
    if first in ("CJK", "HIRAGANA", "KATAKANA", "HALFWIDTH", "BOPOMOFO", "KATAKANA-HIRAGANA"):
        return "CJK"
    return "LATIN" if first in ("FULLWIDTH", "FEMININE", "MASCULINE") else first


def _all_latin(text: str) -> bool:
    return text.isascii() or max(text) < "\u0250"  # the end of Latin Extended-B


def _script_counts(text: str) -> Counter[str]:
    """Number of letters of each script."""
    counts = Counter(map(_script, text))
    counts.pop("", None)
    return counts


def _log_ratio(src: str, tgt: str) -> float:
    return math.log((len(tgt) + 5) / (len(src) + 5))


@dataclass(frozen=True, slots=True)
class CorpusStatistics:
    """Statistics of a corpus: median log length ratio, its tolerance, and the usual scripts of each side."""

    log_ratio: float
    tolerance: float
    scripts: tuple[frozenset[str], frozenset[str]]

    def issues(self, src: str, tgt: str) -> Iterator[Issue]:
        """Issues of a pair relative to these statistics."""
        ratio = _log_ratio(src, tgt) - self.log_ratio
        if abs(ratio) > self.tolerance and max(len(src), len(tgt)) >= RATIO_MIN_CHARS:
            shorter = tgt if len(src) > len(tgt) else src
            usual = f"usual is 1 to {math.exp(self.log_ratio):.2f}"
            yield Issue(
                "length-ratio", int(ratio > 0), f"{len(src)} characters to {len(tgt)} {shorter[:40]!r}; {usual}"
            )
        for side, text in enumerate((src, tgt)):
            if not self.scripts[side] or ("LATIN" in self.scripts[side] and _all_latin(text)):
                continue
            letters = _script_counts(text)
            foreign = {script: n for script, n in letters.items() if script not in self.scripts[side]}
            n_foreign = sum(foreign.values())
            if n_foreign >= SCRIPT_MIN_LETTERS and 2 * n_foreign > sum(letters.values()):
                most = max(foreign, key=lambda script: foreign[script])
                usual_scripts = ", ".join(sorted(self.scripts[side]))
                yield Issue("wrong-script", side, f"{n_foreign} letters in {most}; this side is {usual_scripts}")


class StatisticsSampler:
    """Computes `CorpusStatistics` from an evenly spaced sample of a stream of unknown length."""

    def __init__(self, n_sample: int = 20_000):
        self.n_sample = n_sample
        self.step = 1
        self.n_seen = 0
        self.sample: list[tuple[str, str]] = []

    def add(self, src: str, tgt: str) -> None:
        """Add a pair of the stream."""
        if self.n_seen % self.step == 0:
            self.sample.append((src, tgt))
            if len(self.sample) == 2 * self.n_sample:
                del self.sample[1::2]
                self.step *= 2
        self.n_seen += 1

    def statistics(self) -> CorpusStatistics | None:
        """The statistics, or None for fewer than MIN_STATISTICS_PAIRS pairs."""
        pairs = [(src, tgt) for src, tgt in self.sample if src.strip() and tgt.strip()]
        if len(pairs) < MIN_STATISTICS_PAIRS:
            return None
        # The ratios of short pairs vary more: estimate the spread from pairs that are long enough to be checked.
        ratios = [_log_ratio(*pair) for pair in pairs if max(map(len, pair)) >= RATIO_MIN_CHARS]
        if len(ratios) < MIN_STATISTICS_PAIRS:
            ratios = [_log_ratio(*pair) for pair in pairs]
        median_ratio = median(ratios)
        spread = 1.4826 * median(abs(ratio - median_ratio) for ratio in ratios)
        tolerance = max(math.log(RATIO_FACTOR), RATIO_MAX_DEVIATIONS * spread)
        src_scripts, tgt_scripts = (_usual_scripts([pair[side] for pair in pairs]) for side in (0, 1))
        return CorpusStatistics(median_ratio, tolerance, (src_scripts, tgt_scripts))


def _usual_scripts(texts: Sequence[str]) -> frozenset[str]:
    lines = Counter(
        max(letters, key=lambda script: letters[script]) for text in texts if (letters := _script_counts(text))
    )
    return frozenset(script for script, n in lines.items() if n >= SCRIPT_MIN_FRACTION * lines.total())


def pair_issues(src: str, tgt: str, statistics: CorpusStatistics | None = None) -> list[Issue]:
    """Issues of a pair; with `statistics` also relative to the rest of the corpus."""
    issues = text_issues(src, 0) + text_issues(tgt, 1)
    src_blank, tgt_blank = not src.strip(), not tgt.strip()
    if src_blank or tgt_blank:
        if src_blank and tgt_blank:
            issues.append(Issue("blank-both", 0, ""))
        else:
            other = tgt if src_blank else src
            issues.append(Issue("blank-side", int(tgt_blank), f"the other side is {other[:40]!r}"))
        return issues
    if _is_copy(src, tgt):
        issues.append(Issue("copy", 1, f"{src[:60]!r}"))
    if statistics is not None:
        issues.extend(statistics.issues(src, tgt))
    return issues
