"""Training pairs with codes, from which a model learns where a code of the source belongs in the translation."""

import re
from collections import Counter

import numpy as np

from glassformer.documents.codes import ALONE, CLOSE, OPEN
from glassformer.documents.words import FULL_WIDTH, UNSPACED, UNSPACED_RANGES
from glassformer.learning.lexicon import Lexicon
from glassformer.tokens.codes import CODE

Pair = tuple[str, str]

_UNSPACED = f"{UNSPACED_RANGES}{FULL_WIDTH}"
COPIED = re.compile(
    rf"(?<![^\s{_UNSPACED}])[(\[{{«“\"']*([^\s{_UNSPACED}]*(?:(?![{_UNSPACED}])\w|`)[^\s{_UNSPACED}]*?)"
    rf"[)\]}}»”\"'.,;:!?…]*(?![^\s{_UNSPACED}])"
)
"""A word, without the punctuation around it; none in a script without spaces."""

BEFORE = re.compile(rf"(?:^|[\s(\[{{«“\"'¿¡{_UNSPACED}])$")
AFTER = re.compile(rf"[)\]}}»”\"'.,;:!?…]*(?:\s|$|[{_UNSPACED}])")
"""What is before and after a phrase, which has no letters of a script without spaces at its own ends."""

COPIED_FRACTION, ALONE_FRACTION = 0.5, 0.9
"""Fraction of the codes that are at a word of both sides, if there is one; and of these, of the codes instead of it."""


def with_code(pair: Pair, lexicon: Lexicon, rng: np.random.Generator) -> Pair | None:
    """A pair with a code: instead of a word that both sides have, or a pair of tags around such a word or around
    words that the lexicon knows to be translations of each other. None if there are none.
    """
    if any(map(CODE.search, pair)):
        return None
    if rng.random() < COPIED_FRACTION and (spans := copied_word(pair, rng)):
        alone = rng.random() < ALONE_FRACTION
        src, tgt = (replaced(text, span, alone=alone) for text, span in zip(pair, spans, strict=True))
    elif (spans := lexicon.phrase_spans(*pair, rng)) and all(map(is_apart, pair, spans)):
        src, tgt = (replaced(text, span, alone=False) for text, span in zip(pair, spans, strict=True))
    else:
        return None
    return src, tgt


def is_apart(text: str, span: tuple[int, int]) -> bool:
    """Whether a span is between white space and punctuation, and not a part of a word or of a code; letters of scripts
    without spaces need none."""
    start, end = span
    is_begun = BEFORE.search(text, 0, start) or UNSPACED.match(text, start)
    return bool(is_begun and (AFTER.match(text, end) or UNSPACED.match(text, end - 1)))


def replaced(text: str, span: tuple[int, int], *, alone: bool) -> str:
    """A text with a code instead of a span, or with tags around it."""
    start, end = span
    inner = ALONE if alone else f"{OPEN}{text[start:end]}{CLOSE}"
    return text[:start] + inner + text[end:]


def copied_word(pair: Pair, rng: np.random.Generator) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Where a random word is that both sides have once; None if there is none, or no other word."""
    sides = [list(COPIED.finditer(text)) for text in pair]
    counts = [Counter(match[1] for match in side) for side in sides]
    words = sorted(word for word, n in counts[0].items() if n == 1 == counts[1][word] and len(sides[0]) > 1)
    if not words:
        return None
    word = words[int(rng.integers(len(words)))]
    source, target = (next(match.span(1) for match in side if match[1] == word) for side in sides)
    return source, target
