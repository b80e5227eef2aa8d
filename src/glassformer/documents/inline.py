"""Spans within a text, such as tags: taken out before it is translated, and put back by word alignment.

A model that was not trained with them would not only lose them but also translate the rest badly.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

TAG = re.compile(r"""<(/?)([A-Za-z][\w:.-]*)(?:"[^"]*"|'[^']*'|[^'"<>])*?(/?)>""")
AFTER_SPAN = " \t,.;:!?)]}–—-"
BEFORE_SPAN = " \t([{–—-"
"""Characters that belong to a span at the beginning or the end of a text, between it and the sentence."""

FINAL = ".!?…。！？"


@dataclass(frozen=True, slots=True)
class Inner:
    """A span that was taken out of a sentence."""

    text: str
    word: int
    """Number of words of the sentence before it."""
    joined_before: bool
    joined_after: bool
    """Whether there is no space between it and the word before, and the word after."""
    punctuation_after: bool


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


def is_word(character: str) -> bool:
    """Whether a character is part of a word."""
    return character.isalnum() or character == "_"


def detach(text: str, spans: Sequence[tuple[int, int]]) -> Detached:
    """Take spans out of a text.

    Args:
        spans: start and end of each, in order.
    """
    n_before, n_after = outer(text, spans)
    begin = spans[n_before - 1][1] if n_before else 0
    while 0 < begin < len(text) and text[begin] in AFTER_SPAN:
        begin += 1
    end = max(begin, spans[-n_after][0]) if n_after else len(text)
    while begin < end < len(text) and text[end - 1] in BEFORE_SPAN:
        end -= 1
    core, inner = "", []
    position = begin
    for a, b in spans:
        if a < begin or b > end:
            continue
        core += text[position:a]
        before, after = text[a - 1 : a], text[b : b + 1]
        if before.isspace() and after.isspace():
            core = core.rstrip()
        elif is_word(before[-1:]) and is_word(after):
            core += " "
        is_tag = TAG.fullmatch(text[a:b]) is not None
        joined_before, joined_after = (
            bool(c) and (is_word(c) or (is_tag and not c.isspace())) for c in (before, after)
        )
        punctuation = bool(after) and not is_word(after) and not after.isspace()
        inner.append(Inner(text[a:b], len(core.split()), joined_before, joined_after, punctuation))
        position = b
    core += text[position:end]
    after_text = text[end:]
    if after_text and core and (final := after_text.rstrip()[-1:]) in FINAL and core[-1] not in FINAL:
        core += final
    return Detached(text[:begin], core, after_text, tuple(inner))


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
        if not match[1]:
            opened.append((match[2], i))
            continue
        start = next((k for k in reversed(range(len(opened))) if opened[k][0] == match[2]), None)
        if start is not None:
            yield opened[start][1], i
            del opened[start:]


def put_back(detached: Detached, output: str, alignment: Sequence[tuple[int, int]]) -> str:
    """Put the spans into the translation of the sentence.

    Args:
        alignment: pairs of a word of the sentence and a word of its translation; words are separated by white space.
            If there are none, spans are placed in proportion to their position.
    """
    output = output.strip() if detached.core.strip() else detached.core
    words = [match.span() for match in re.finditer(r"\S+", output)]
    n_source = len(detached.core.split())
    alignment = alignment or [(word, word * len(words) // n_source) for word in range(n_source)]
    offsets: list[int] = []
    texts: list[str] = []
    for span, (place, closes) in zip(
        detached.inner, places(detached.inner, alignment, n_source, len(words)), strict=True
    ):
        if closes or place >= len(words):
            at = words[place - 1][1] if words else 0
            while (span.punctuation_after or place >= len(words)) and at and not is_word(output[at - 1]):
                at -= 1
            texts.append(span.text if span.joined_before else f" {span.text}")
        else:
            at = words[place][0]
            texts.append(span.text if span.joined_after else f"{span.text} ")
        offsets.append(at)
    for at, i in reversed(insertions([span.text for span in detached.inner], offsets)):
        output = output[:at] + texts[i] + output[at:]
    if detached.after and (detached.core[-1:] not in FINAL or detached.after.rstrip()[-1:] in FINAL):
        output = output.rstrip(FINAL + " ")
    return detached.before + output + detached.after


def insertions(spans: Sequence[str], offsets: list[int]) -> list[tuple[int, int]]:
    """Offset and index of each span, in the order of insertion, so that pairs of tags are nested as they were: a pair
    stays within the one around it, and the pairs within one follow each other.

    Args:
        offsets: where each span belongs; those of tags are moved.
    """
    pairs = sorted(tag_pairs(spans))
    children: dict[int, list[tuple[int, int]]] = {-1: []}
    around: list[tuple[int, int]] = []
    for pair in pairs:
        while around and around[-1][1] < pair[0]:
            around.pop()
        children[around[-1][0] if around else -1].append(pair)
        children[pair[0]] = []
        around.append(pair)
    ends = dict(pairs)
    for parent, inner in children.items():  # the outer ones first
        low, high = (0, max(offsets, default=0)) if parent < 0 else (offsets[parent], offsets[ends[parent]])
        for opening, closing in sorted(inner, key=lambda pair: (offsets[pair[0]], pair)):
            offsets[opening] = min(max(offsets[opening], low), high)
            low = offsets[closing] = min(max(offsets[closing], offsets[opening]), high)
    starts = {closing: opening for opening, closing in pairs}

    def order(i: int) -> tuple[int, int, int]:
        at = offsets[i]
        if i in starts and offsets[starts[i]] < at:
            return at, 0, -starts[i]  # ends what begins before: the inner ones first
        if i in ends and offsets[ends[i]] > at:
            return at, 2, i
        return at, 1, i

    return [(offsets[i], i) for i in sorted(range(len(spans)), key=order)]


def places(
    inner: Sequence[Inner], alignment: Sequence[tuple[int, int]], n_source: int, n_target: int
) -> list[tuple[int, bool]]:
    """For each span the index of the target word that it is inserted at, and whether it follows the word before."""
    results = [(place_of(span.word, alignment, n_source, n_target), span.text.startswith("</")) for span in inner]
    for start, i in tag_pairs([span.text for span in inner]):
        covered = [t for s, t in alignment if inner[start].word <= s < inner[i].word]
        first, last = (min(covered), max(covered) + 1) if covered else (results[start][0],) * 2
        results[start], results[i] = (first, False), (last, last > first)
        for k in range(start + 1, i):  # what is between two tags stays between them
            place, closes = results[k]
            results[k] = min(max(place, first), last), closes or place >= last > first
    return results


def place_of(word: int, alignment: Iterable[tuple[int, int]], n_source: int, n_target: int) -> int:
    """Index of the target word before which something before a source word belongs."""
    aligned = list(alignment)
    if following := [t for s, t in aligned if s == word]:
        return min(following)
    if previous := [t for s, t in aligned if s == word - 1]:
        return max(previous) + 1
    return round(word * n_target / max(n_source, 1))
