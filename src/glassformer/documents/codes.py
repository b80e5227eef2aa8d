"""Texts with codes: what is in a text of a file and is no text, such as the tags of formatting."""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from glassformer.documents.document import Segment
from glassformer.documents.escaping import MARKUP, Escaping, escaped, plain_of
from glassformer.documents.inline import detach

WHITE_SPACE = re.compile(r"[ \t\n\r\f\v]+")
ENDS = ".!?…:;。！？"
ABBREVIATIONS = (
    "Dr", "Mr", "Ms", "Mrs", "Prof", "St", "Sr", "Sra", "Srta", "Jr", "Hr", "Mme", "Mlle", "vs", "ca",
    "cf", "bzw", "usw", "etc", "evtl", "ggf", "inkl", "approx", "Tel", "Art", "Abs", "Abb", "Fig", "fig", "Bd", "Vol",
    "vol", "pp", "Inc", "Ltd", "Corp", "pág", "Ud", "Uds", "Jan", "Feb", "Apr", "Aug", "Sept", "Oct", "Okt",
    "Nov", "Dec", "Dez",
)  # fmt: skip
"""Frequent ones after which a sentence goes on with a capital or a number."""
NO_END = r"(?<!\b[^\W_])(?<!\b\d\d)(?!(?:(?<=\bNo)|(?<=\bNr)|(?<=\bnúm))\.\s+\d)" + "".join(
    rf"(?<!\b(?:{'|'.join(words)}))" for _, words in groupby(sorted(ABBREVIATIONS, key=len), len)
)
SENTENCE_END = re.compile(
    rf"""(?:{NO_END}\.|[!?…])["'”’»)\]]*(\s+)(?=[^\s\Wa-zß-öø-ÿ]|["“«(¿¡])"""
    r"|[。！？](\s*)"
)
"""The end of a sentence and the space after it. No sentence begins with a small letter, or ends with a single letter,
an ordinal or an abbreviation."""

MAX_CODES = 100
"""Sentences with more codes are translated in parts, from code to code: the time to put them back is quadratic."""

MIN_WRAPPED = 50
"""Minimum length of a line after which a line of the same sentence may follow, in characters."""


OPEN, CLOSE, ALONE = "\ue000", "\ue001", "\ue002"
"""Characters instead of the codes in a text that a model reads: of those of a pair, and of one without a partner.
Private ones of Unicode."""


@dataclass(frozen=True, slots=True)
class Code:
    """What is no text."""

    raw: str
    """As it is written in the file."""
    kind: Literal["open", "close", "alone"] = "alone"
    pair: str = ""
    """What the two codes of a pair have in common."""
    is_mark: bool = False
    """A mark of one end of a range, which may cross elements."""
    is_break: bool = False
    """A new line or a tab: the sentence goes on after it only with a small letter."""


Content = Sequence[str | Code]
"""Texts without escapes, and the codes between them."""


def plain(content: Content) -> str:
    """The text without codes, in one line. Words that only codes separate stay separate."""
    return " ".join("".join(part if isinstance(part, str) else "" for part in content).split())


def marked(content: Content) -> str:
    """The text with a character for each code, in one line."""
    partners = paired(content)
    marks = (
        part if isinstance(part, str) else ALONE if i not in partners else OPEN if partners[i] > i else CLOSE
        for i, part in enumerate(content)
    )
    return " ".join("".join(marks).split())


def marked_pair(src: Content, tgt: Content) -> tuple[str, str] | None:
    """A text and its translation with a character for each code; None unless both have the same codes, and some."""
    if all(isinstance(part, str) for part in src):
        return None
    pair = marked(src), marked(tgt)
    counts = [[text.count(mark) for mark in (OPEN, CLOSE, ALONE)] for text in pair]
    is_own = any(mark in plain(content) for content in (src, tgt) for mark in (OPEN, CLOSE, ALONE))
    return pair if counts[0] == counts[1] and not is_own else None


def segment(content: Content, escaping: Escaping) -> list[str | Segment]:
    """A text as a segment, and the white space around it, as they are written in the file."""
    if sum(isinstance(part, Code) for part in content) > MAX_CODES:
        return [
            piece
            for part in content
            for piece in (
                [part.raw] if isinstance(part, Code) else segment([part], escaping) if part.strip() else [part]
            )
        ]
    partners = paired(content)
    rich = ""
    spans: list[tuple[int, int]] = []
    codes: list[str] = []
    numbers: dict[int, int] = {}
    for i, part in enumerate(content):
        if isinstance(part, str):
            rich += escaped(part, escaping) if escaping in MARKUP else html.escape(part, quote=False)
            continue
        if part.is_break and rich[-1:].strip():
            rich += " "  # it separates words
        start = len(rich)
        if i in partners and partners[i] > i:
            numbers[i] = len(codes)
            other = content[partners[i]]
            assert isinstance(other, Code)
            codes += [part.raw, other.raw]
            rich += f"<c{numbers[i]}>"
        elif i in partners:
            rich += f"</c{numbers[partners[i]]}>"
        else:
            rich += f"<c{len(codes)}/>"
            codes.append(part.raw)
        spans.append((start, len(rich)))
    lead, trail = len(rich) - len(rich.lstrip()), len(rich) - len(rich.rstrip())
    inner, moved = one_line(rich[lead : len(rich) - trail], [(a - lead, b - lead) for a, b in spans])
    detached = detach(inner, moved) if spans else None
    core = " ".join(plain_of(html.unescape(detached.core if detached else inner), escaping).split())
    found = Segment(core, detached, escaping=escaping, codes=tuple(codes))
    return [escaped(rich[:lead], escaping), found, escaped(rich[len(rich) - trail :], escaping)]


def one_line(text: str, spans: Sequence[tuple[int, int]]) -> tuple[str, list[tuple[int, int]]]:
    """A text with single spaces, and where its spans, which have none, are then."""
    result, moved, end = "", [], 0
    for a, b in spans:
        result += WHITE_SPACE.sub(" ", text[end:a])
        moved.append((len(result), len(result) + b - a))
        result += text[a:b]
        end = b
    return result + WHITE_SPACE.sub(" ", text[end:]), moved


def paired(content: Content) -> dict[int, int]:
    """Index of each code of a pair -> that of the other. Pairs that are not nested are none."""
    partners: dict[int, int] = {}
    opened: list[int] = []
    for i, part in enumerate(content):
        if not isinstance(part, Code) or part.kind == "alone":
            continue
        if part.kind == "open":
            opened.append(i)
            continue
        match = next((k for k in reversed(opened) if kind_of(content[k]) == part.pair), None)
        if match is None:
            continue
        at = opened.index(match)
        if part.is_mark and not all(is_mark(content[k]) for k in opened[at:]):
            del opened[at]  # an element goes on
            continue
        del opened[at:]
        partners |= {match: i, i: match}
    return partners


def is_mark(part: str | Code) -> bool:
    """Whether a part is a mark of one end of a range."""
    return isinstance(part, Code) and part.is_mark


def kind_of(part: str | Code) -> str:
    """The pair of a code."""
    return part.pair if isinstance(part, Code) else ""


def lines(content: Content) -> Iterator[tuple[list[str | Code], str]]:
    """The lines of a text, each with the line end after it. A line end between the codes of a pair ends no line, nor
    does one within a sentence in lines of a fixed width."""
    partners = paired(content)
    line: list[str | Code] = []
    until = -1
    for i, part in enumerate(content):
        until = max(until, partners.get(i, -1))
        if not isinstance(part, str) or i < until:
            line.append(part)
            continue
        pieces = re.split(r"(\r\n|\r|\n)", part)
        for k in range(0, len(pieces), 2):
            if pieces[k]:
                line.append(pieces[k])
            if k + 1 < len(pieces):
                if is_wrapped(plain(line), "".join(pieces[k + 2 : k + 3])):
                    line.append(" ")
                    continue
                yield line, pieces[k + 1]
                line = []
    yield line, ""


def sentences(content: Content) -> Iterator[list[str | Code]]:
    """The sentences of a text. None ends between the codes of a pair."""
    partners = paired(content)
    sentence: list[str | Code] = []
    until = -1
    for i, part in enumerate(content):
        until = max(until, partners.get(i, -1))
        if isinstance(part, Code) and part.is_break and i >= until and is_end(sentence, content, i):
            yield sentence
            yield [part]
            sentence = []
            continue
        if not isinstance(part, str) or i < until:
            sentence.append(part)
            continue
        start = 0
        for match in SENTENCE_END.finditer(part):
            yield [*sentence, part[start : match.end()]]
            sentence, start = [], match.end()
        if part[start:]:
            sentence.append(part[start:])
    if sentence:
        yield sentence


def is_end(sentence: Content, content: Content, i: int) -> bool:
    """Whether a sentence ends at the break at an index: it has an end mark, or what follows has no small letter."""
    before, after = first_text(reversed(sentence)), first_text(content[i:])
    return before.endswith(tuple(ENDS)) or not after[:1].islower()


def first_text(parts: Iterable[str | Code]) -> str:
    """The first text that is not blank."""
    return next((text for part in parts if isinstance(part, str) and (text := part.strip())), "")


def flowing(content: Content, escaping: Escaping) -> list[str | Segment]:
    """The sentences of a paragraph as segments, and the white space around them; without letters, no segment."""
    results: list[str | Segment] = []
    for sentence in sentences(content):
        if any(map(str.isalpha, plain(sentence))):
            results += segment(sentence, escaping)
        else:
            results += [escaped(part, escaping) if isinstance(part, str) else part.raw for part in sentence]
    return [part for part in results if part != ""]


def is_wrapped(line: str, following: str) -> bool:
    """Whether a sentence goes on in the line that follows."""
    return len(line) >= MIN_WRAPPED and line[-1] not in ENDS and following[:1].islower()


def segments(content: Content, escaping: Escaping, line_end: str | None = None) -> list[str | Segment]:
    """The lines of a text as segments, what is between them, and the white space around.

    Args:
        line_end: how line ends are written in the file. Default: as they are.
    """
    results: list[str | Segment] = []
    for line, end in lines(content):
        if plain(line):
            results += segment(line, escaping)
        else:
            results += [escaped(part, escaping) if isinstance(part, str) else part.raw for part in line]
        results.append(end if line_end is None or not end else line_end)
    return [part for part in results if part != ""]


def merged(content: list[str | Code]) -> list[str | Code]:
    """Content in which texts that follow each other are one."""
    results: list[str | Code] = []
    for part in content:
        if isinstance(part, str) and results and isinstance(results[-1], str):
            results[-1] += part
        else:
            results.append(part)
    return results
