"""Spans within a text, such as tags: taken out before it is translated, and put back by word alignment.

A model that was not trained with them would not only lose them but also translate the rest badly.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from glassformer.documents.spans import MAX_TOKEN, TAG, extended
from glassformer.documents.words import (
    OPENING_MARKS,
    UNSPACED,
    UNSPACED_SIGN,
    continues_letter,
    continues_word,
    is_word,
    unit_spans,
)

AFTER_SPAN = " \t,.;:!?)]}>–—-"
BEFORE_SPAN = " \t([{<–—-"
"""Characters that belong to a span at the beginning or the end of a text, between it and the sentence."""

FINAL = ".!?…。！？"
FULL_WIDTH_ENDS = {".": "。", "!": "！", "?": "？"}
BREAKS = ".,;:!?…。，、；：！？ \u00a0\u202f"
"""Punctuation after which a part of a sentence begins, and the space that French writes before it."""

CLOSING = re.compile(r"[.,;:!?…。，、；：！？)\]}»”\"）」』]*")
EMPTY_PAIR = re.compile(r"""[(\[{«“„‘"'「『（]([ \u00a0\u202f]?)(?=[)\]}»”“’"'」』）])""")
"""An opening bracket or quotation mark with nothing in it but a space."""
SPACED_MARK = re.compile(r"\w[ \u00a0\u202f][;:!?]")
"""A space before punctuation, as French has it."""
STRAY_SPACE = re.compile(r"[ \u00a0\u202f]+(?=[,.…)\]}。，、）])")
"""Space before punctuation that no language has."""
STRAY_SPACE_OF_MARK = re.compile(r"[ \u00a0\u202f]+(?=[;:!?；：！？])")
"""Space before punctuation that others than French do not have."""

ADDRESS = re.compile(r"""[^\s<>()\[\]{}"'&;,]{1,64}(?:@|://)[^\s<>()\[\]{}"'&;,]*[\w/]""")
"""An address of e-mail or on the web, in a text with or without entities."""

OPENING = tuple("([{«“（「『")
LESS, GREATER = "&lt;", "&gt;"
ENTITIES = ("&amp;", LESS, GREATER)


Position = tuple[int, bool]
"""Where a span is put: the index of a unit of the translation (`unit_spans`), and whether the span follows the unit
before that one."""


@dataclass(frozen=True, slots=True)
class Inner:
    """A span that was taken out of a sentence."""

    text: str
    unit: int
    """Number of units of the sentence before it."""
    joined_before: bool
    joined_after: bool
    """Whether there is no space between it and the word before, and the word after."""
    punctuation_after: str
    """The punctuation that follows it."""
    after_opening: bool = False
    """Whether it follows an opening bracket or quotation mark of a word."""
    is_enclosed: bool = False
    """Whether it is alone in brackets or quotation marks."""
    sign_before: str = ""
    sign_after: str = ""
    """The sign that is beside it without space, such as a hyphen; neither punctuation nor a bracket."""
    mark_before: str = ""
    """The punctuation before it, and before the spans that are directly before it."""


@dataclass(frozen=True, slots=True)
class Detached:
    """A text whose protected spans were taken out."""

    before: str
    """Spans before the sentence, with what separates them."""
    core: str
    """The sentence without them."""
    after: str
    """Spans after the sentence."""
    inner: tuple[Inner, ...]
    is_end_borrowed: bool = False
    """Whether the end mark of the sentence is that of `after`."""


def detach(text: str, spans: Sequence[tuple[int, int]], *, extends: bool = True) -> Detached:
    """Take spans out of a text.

    Args:
        spans: start and end of each, in order.
        extends: also take out what is written together with them (`spans.extended`).
    """
    spans = joined(text, extended(text, spans) if extends else spans)
    n_before, n_after = outer(text, spans)
    begin = spans[n_before - 1][1] if n_before else 0
    while 0 < begin < len(text) and text[begin] in AFTER_SPAN:
        begin += 1
    end = max(begin, spans[-n_after][0]) if n_after else len(text)
    while begin < end < len(text) and text[end - 1] in BEFORE_SPAN:
        end -= 1
    core, inner = "", list[Inner]()
    units: list[tuple[int, int]] = []
    position = begin
    for a, b in spans:
        if a < begin or b > end:
            continue
        core += text[position:a]
        before, after = text[a - 1 : a], text[b : b + 1]
        if before.isspace() and after.isspace():
            core = core.rstrip()
        elif continues_word(before + after, 1) and not continues_letter(before + after, 1):
            core += " "
        is_tag = TAG.fullmatch(text[a:b]) is not None
        joined_before, joined_after = (is_joined(c, is_tag) for c in (before, after))
        closing = CLOSING.match(text, b)
        units += unit_spans(core, units.pop()[0] if units else 0)
        begun = core[slice(*units[-1])] if units and not core[-1:].isspace() and after and not after.isspace() else ""
        is_inside = bool(begun) and OPENING_MARKS.issuperset(begun.replace(LESS, "("))
        n_before, punctuation = len(units) - is_inside, closing[0] if closing else ""
        punctuation = ">" if text.startswith(GREATER, b) else punctuation
        around = text[max(begin, a - 2) : a].rstrip()[-1:] + text[b : min(b + 2, end)].lstrip()[:1]
        is_enclosed = EMPTY_PAIR.match(around) is not None
        sign_before, sign_after = ("" if is_tag or is_plain(c) else c for c in (before, after))
        mark = text[max(begin, a - MAX_TOKEN) : a].rstrip()[-1:]
        mark = inner[-1].mark_before if inner and not text[position:a].strip() else mark if mark in BREAKS else ""
        inner.append(
            Inner(
                text[a:b], n_before, joined_before, joined_after, punctuation, is_inside, is_enclosed,
                sign_before, sign_after, mark,
            )
        )  # fmt: skip
        position = b
    core += text[position:end]
    after_text = text[end:]
    final = after_text.rstrip()[-1:]
    is_borrowed = bool(after_text and core) and final in FINAL and core[-1] not in FINAL
    return Detached(text[:begin], core + final * is_borrowed, after_text, tuple(inner), is_borrowed)


def is_joined(character: str, is_tag: bool) -> bool:
    """Whether a span belongs to the character beside it: a letter, unless it is of a script without spaces; a tag to
    all but white space."""
    if is_tag:
        return character != "" and not character.isspace()
    return character != "" and is_word(character) and not UNSPACED.match(character)


def is_plain(character: str) -> bool:
    """Whether a character is a letter, a digit, white space, punctuation, a bracket or a quotation mark, which an
    apostrophe is not; so is none.
    """
    is_opening = character in OPENING_MARKS and character != "'"
    return is_word(character) or character.isspace() or is_opening or CLOSING.fullmatch(character) is not None


def joined(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans of which a pair of tags is one if there is no text between them, as of a link around code."""
    n_texts = [0, *accumulate(bool(text[a[1] : b[0]].strip()) for a, b in pairwise(spans))]
    ends = {i: j for i, j in tag_pairs([text[a:b] for a, b in spans]) if n_texts[i] == n_texts[j]}
    results, i = [], 0
    while i < len(spans):
        end = ends.get(i, i)
        results.append((spans[i][0], spans[end][1]))
        i = end + 1
    return results


def outer(text: str, spans: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Number of spans before the sentence, and after it. Both tags of a pair are outside of the sentence or inside."""
    n_before = n_after = 0
    while n_before < len(spans):
        begin = spans[n_before - 1][1] if n_before else 0
        if any(map(is_word, text[begin : spans[n_before][0]])):
            break
        n_before += 1
    while n_after < len(spans) - n_before:
        end = spans[-n_after][0] if n_after else len(text)
        if any(map(is_word, text[spans[-n_after - 1][1] : end])):
            break
        n_after += 1
    pairs = list(tag_pairs([text[a:b] for a, b in spans]))
    while True:
        outside = {*range(n_before), *range(len(spans) - n_after, len(spans))}
        split = next(((i, j) for i, j in pairs if (i in outside) != (j in outside)), None)
        if split is None:
            return n_before, n_after
        i, j = split
        if i in outside:
            n_before = min(n_before, i)
            n_after = min(n_after, len(spans) - i - 1)
        else:
            n_before = min(n_before, j)
            n_after = min(n_after, len(spans) - j - 1)


def tag_pairs(spans: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Indices of the tags that belong together, inner ones first."""
    opened: list[tuple[str, int]] = []
    for i, span in enumerate(spans):
        match = TAG.fullmatch(span)
        if not match or match[3]:
            continue
        name = match[2].lower()
        if not match[1]:
            opened.append((name, i))
            continue
        start = next((k for k in reversed(range(len(opened))) if opened[k][0] == name), None)
        if start is not None:
            yield opened[start][1], i
            del opened[start:]


def put_back(detached: Detached, output: str, alignment: Sequence[tuple[int, int]]) -> str:
    """Put the spans into the translation of the sentence, where the alignment says.

    Args:
        alignment: see `aligned_positions`.
    """
    return put_at(detached, output, aligned_positions(detached, output, alignment))


def aligned_positions(detached: Detached, output: str, alignment: Sequence[tuple[int, int]]) -> list[Position]:
    """Where the spans belong in the translation of the sentence.

    Args:
        alignment: pairs of a unit of the sentence and a unit of its translation (`unit_spans`). If there are none,
            spans are put in proportion to their position. Addresses that both have are aligned in any case.
    """
    n_source, n_target = len(unit_spans(detached.core)), len(unit_spans(output))
    alignment = alignment or [(word, word * n_target // n_source) for word in range(n_source)]
    places = addresses(output)
    copied = {word: places[address] for address, word in addresses(detached.core).items() if address in places}
    others = ((s, t) for s, t in alignment if s not in copied and t not in copied.values())
    alignment = [*others, *copied.items()]
    return positions_of_spans(
        detached.inner, [(word, target) for word, target in alignment if target < n_target], n_target
    )


def addresses(text: str) -> dict[str, int]:
    """The addresses in a text, each with the index of its unit."""
    found = (ADDRESS.search(text[start:end]) for start, end in unit_spans(text))
    return {match[0]: i for i, match in enumerate(found) if match}


def put_at(detached: Detached, output: str, positions: Sequence[Position]) -> str:
    """Put the spans into the translation of the sentence.

    Args:
        positions: where each belongs. What is between two tags stays between them.
    """
    output = output.strip() if detached.core.strip() else detached.core
    units = unit_spans(output)
    enclosed = [i for i, span in enumerate(detached.inner) if span.is_enclosed]
    empty = list(EMPTY_PAIR.finditer(output))
    by_position = sorted(enclosed, key=lambda i: positions[i][0])
    pairs = dict(zip(by_position, empty, strict=True)) if len(empty) == len(enclosed) else {}
    offsets: list[int] = []
    texts: list[str] = []
    for i, (span, (place, closes)) in enumerate(zip(detached.inner, positions, strict=True)):
        if i in pairs:
            offsets.append(pairs[i].end())
            texts.append(span.text + pairs[i][1])
        elif closes or place >= len(units):
            at = units[place - 1][1] if units else 0
            is_joined = span.joined_before or output.endswith(OPENING, 0, at)
            is_joined |= bool(span.sign_before) and output.endswith(span.sign_before, 0, at)
            if span.punctuation_after or place >= len(units):
                at = between_punctuation(output, at, span)
                is_joined |= output.endswith(OPENING, 0, at)
                stray = STRAY_SPACE.match(output, at)
                if not stray and not SPACED_MARK.search(output):
                    stray = STRAY_SPACE_OF_MARK.match(output, at)
                if stray and at and span.punctuation_after and not span.joined_before:
                    at, is_joined = stray.end(), True
            offsets.append(at)
            is_joined |= span.joined_after and span.text.startswith("</")  # the space is before the tag in the source
            is_joined |= UNSPACED_SIGN.match(output[:at][-1:]) is not None
            texts.append(span.text if is_joined else f" {span.text}")
        else:
            at = units[place][0]
            while span.after_opening and at < units[place][1] - 1:
                if not output.startswith((LESS, *OPENING_MARKS), at):
                    break
                at += len(LESS) if output.startswith(LESS, at) else 1
            offsets.append(at)
            is_joined = span.joined_after or (span.after_opening and bool(span.punctuation_after))
            is_joined |= bool(span.sign_after) and output.startswith(span.sign_after, at)
            is_joined |= span.joined_before and opens(span.text)
            is_joined |= UNSPACED_SIGN.match(output, at) is not None
            texts.append(span.text if is_joined else f"{span.text} ")
    for at, i in reversed(insertions([span.text for span in detached.inner], offsets)):
        output = output[:at] + texts[i] + output[at:]
    after = detached.after
    if after and (detached.core[-1:] not in FINAL or detached.is_end_borrowed):
        bare = output.rstrip(FINAL + " ")
        mark, end = output[len(bare) :].strip(), len(after.rstrip())
        if mark and mark == FULL_WIDTH_ENDS.get(after[end - 1 : end]):
            after = after[: end - 1] + mark + after[end:]
        output = bare
    if UNSPACED_SIGN.match(output[-1:]):
        after = after.removeprefix(" ")
    return detached.before + output + after


def opens(span: str) -> bool:
    """Whether a span is a start tag."""
    match = TAG.fullmatch(span)
    return bool(match and not match[1] and not match[3])


def between_punctuation(text: str, end: int, span: Inner) -> int:
    """Offset at which a span belongs in the punctuation that a part of a text ends with: before that which follows it,
    and after that which it follows.
    """
    begin = before_punctuation(text, end, BREAKS + span.punctuation_after)
    mark, after = span.mark_before, span.punctuation_after[:1]
    n_marks = 1 + (after == mark and text[end:].lstrip()[:1] != after)
    if mark and text.count(mark, begin, end) >= n_marks:
        for _ in range(n_marks):
            end = text.rindex(mark, begin, end)
        return end + 1
    return begin


def before_punctuation(text: str, end: int, punctuation: str) -> int:
    """Offset of the punctuation that a part of a text ends with. Entities are not cut; `&gt;` is the sign `>`."""
    while end:
        if text.endswith(GREATER, 0, end) and ">" in punctuation:
            end -= len(GREATER)
        elif text.endswith(ENTITIES, 0, end) or text[end - 1] not in punctuation:
            break
        else:
            end -= 1
    return end


def insertions(spans: Sequence[str], offsets: list[int]) -> list[tuple[int, int]]:
    """Offset and index of each span, in the order of insertion, so that they are nested as they were: what is between
    two tags stays between them, and what is not stays out.

    Args:
        offsets: where each span belongs; some are moved.
    """
    ends = {i: i for i in range(len(spans))} | dict(tag_pairs(spans))
    closing = {end for i, end in ends.items() if end > i}
    children: dict[int, list[int]] = {-1: []}
    around = [-1]
    for i in range(len(spans)):
        if i in closing:
            around.pop()
            continue
        children[around[-1]].append(i)
        if ends[i] > i:
            children[i] = []
            around.append(i)
    for parent, inner in children.items():  # the outer ones first
        low, high = (0, max(offsets, default=0)) if parent < 0 else (offsets[parent], offsets[ends[parent]])
        inner.sort(key=lambda i: (offsets[i], offsets[ends[i]], i))
        for i in inner:
            offsets[i] = min(max(offsets[i], low), high)
            low = offsets[ends[i]] = min(max(offsets[ends[i]], offsets[i]), high)
    results: list[tuple[int, int]] = []
    waiting = children[-1][::-1]
    while waiting:
        i = waiting.pop()
        results.append((offsets[i], i))
        if ends[i] > i:
            waiting += [ends[i], *reversed(children[i])]
    return results


def positions_of_spans(inner: Sequence[Inner], alignment: Sequence[tuple[int, int]], n_target: int) -> list[Position]:
    """Where each span belongs by the alignment."""
    results = []
    for span in inner:
        place = position_of(span.unit, alignment, n_target)
        is_after_word = span.joined_before or bool(span.sign_before)
        belongs_before = bool(span.punctuation_after) or (
            is_after_word and not span.joined_after and not span.sign_after
        )
        closes = belongs_before and place > 0 and not span.after_opening
        results.append((place, span.text.startswith("</") or closes))
    for start, i in tag_pairs([span.text for span in inner]):
        covered = [t for s, t in alignment if inner[start].unit <= s < inner[i].unit]
        first, last = (min(covered), max(covered) + 1) if covered else (results[start][0],) * 2
        results[start], results[i] = (first, False), (last, last > first)
        for k in range(start + 1, i):  # what is between two tags stays between them
            place, closes = results[k]
            results[k] = min(max(place, first), last), (closes and place > first) or place >= last > first
    return results


def position_of(unit: int, alignment: Iterable[tuple[int, int]], n_target: int) -> int:
    """Index of the target unit before which something between two source units belongs.

    A link crosses it if the source unit is on one side of it and the target unit on the other. The position is the one
    with the least sum of 1 / distance^2 over the links that cross it, with the distance of the source unit; of several,
    the last one: words without a link, such as articles, belong to what follows them.

    Args:
        unit: number of source units before it.
    """
    balance = [0.0] * n_target
    for s, t in alignment:
        balance[t] += 1 / (s - unit + 1) ** 2 if s >= unit else -1 / (unit - s) ** 2
    crossing = [0.0, *accumulate(balance)]  # up to a constant
    return n_target - crossing[::-1].index(min(crossing))
