"""Corpus cleaning: checks that find errors in sentence pairs, and repair of text."""

import html
import re
import unicodedata

from glassformer.corpora.doctor.issues import MAX_CHARS, Issue
from glassformer.corpora.doctor.statistics import CorpusStatistics

COPY_MIN_WORDS = 4  # minimum number of words of a copy; shorter ones are often names, titles or loan words


# Without "\n": only texts from JSONL can contain it, and in the file it is escaped, so no tool splits the line there.
_BREAKS = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_BREAK = re.compile(f"[{_BREAKS}]")
_CONTROL = re.compile("[\x01-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f]")
# Without U+200C and U+200D, which Persian, Indic scripts and emoji need.
_INVISIBLE = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069]|(?<!^)\ufeff")
# Only with a semicolon: "?a=1&copy=2" is part of a URL.
_HTML = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")

# Character -> byte of Windows-1252 or, for C1 controls, Latin-1, as lenient programs decode undefined bytes.
_CP1252_BYTES = {chr(byte): byte for byte in range(0x80, 0x100)}
_CP1252_BYTES |= {
    bytes([byte]).decode("cp1252"): byte for byte in range(0x80, 0x100) if byte not in b"\x81\x8d\x8f\x90\x9d"
}
_CONTINUATION = "[" + "".join(char for char, byte in _CP1252_BYTES.items() if byte < 0xC0) + "]"
# Lead bytes of Latin, Cyrillic, punctuation, ligatures and emoji. No capital before a two-byte sequence:
# "SÃO", "CAFÉ»" and „Ä“ are correct text.
_MOJIBAKE = re.compile(f"(?:(?<![A-ZÀ-Þ„“‘«])[ÂÃÄÅÐÑ]{_CONTINUATION}|[âï]{_CONTINUATION}{{2}}|ð{_CONTINUATION}{{3}})+")

# Matches in every text in which one of the patterns above matches: most texts need only this search.
_ANY_SUSPECT = re.compile(
    f"[{_BREAKS}\0-\x08\x0e-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffd]"
    rf"|&[#A-Za-z][A-Za-z0-9]*;|[ÂÃÄÅÐÑâïð]{_CONTINUATION}"
)
_CODE = re.compile(r"`[^`]+`|<[^>]*>|\S*[/_@=\\(]\S*")  # code, tags and addresses stay untranslated
_PUNCTUATION = ".,;:!?…\"'()[]«»„“”‘’"


def _decoded(match: re.Match[str]) -> str:
    try:
        text = bytes(_CP1252_BYTES[char] for char in match.group()).decode()
    except UnicodeDecodeError:
        return match.group()
    return match.group() if _CONTROL.search(text) else text


def _unescaped(match: re.Match[str]) -> str:
    return re.sub(r"\s", " ", html.unescape(match.group()))  # &#10; must not become a line, &#9; a column


def _plain_control(match: re.Match[str]) -> str:
    # 0x80-0x9f are Windows-1252 punctuation that was read as Latin-1.
    return bytes([ord(match.group())]).decode("cp1252", "ignore") if match.group() >= "\x80" else ""


def repair_text(text: str) -> str:
    """Repair those issues of a text that have the action "repair" in `issues.CHECKS`; leave the others."""
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
    if (text.isascii() and text.isprintable() and "&" not in text) or not _ANY_SUSPECT.search(text):
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
