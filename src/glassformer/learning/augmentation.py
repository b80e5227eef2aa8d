"""Augmentation of translation pairs: what users write, and training text has seldom."""

import re
from collections.abc import Callable, Sequence

import numpy as np

from glassformer.learning.lexicon import Lexicon
from glassformer.tokens.tokenizer import Tokenizer

Pair = tuple[str, str]
Random = np.random.Generator

LETTER = re.compile(r"[^\W\d_]")
WORD = re.compile(r"""(?<!\S)["'“‘«(¿¡]*([^\W\d_]{3,})["'”’».,;:!?…)]*(?!\S)""")
"""Three or more letters between spaces: no part of an address, a name in a program, or markup."""
MARKUP = re.compile(r"[`_<>{}\\|@#=/%]")
NUMBER = re.compile(r"(?<!\w)\d+(?!\w)")
END = re.compile(r"\s*[.!?…。！？]+$")

EMOJI = "😀😂🙂😉😍😎😢😡👍👏🙏💪🎉🔥✨❤✅⭐🚀💡🐶🌍☀🍕"
CODE_CHARACTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ0123456789"

LETTERS_PER_TYPO = 30
"""A text gets one typing error, and one more for each such number of letters."""


def choice(rng: Random, items: Sequence[str]) -> str:
    """A random item."""
    return items[int(rng.integers(len(items)))]


def lower_case(pair: Pair, rng: Random) -> Pair:
    """A source without capitals, unless it has markup or names in programs, whose capitals matter."""
    return (pair[0] if MARKUP.search(pair[0]) else pair[0].lower()), pair[1]


def typing_errors(pair: Pair, rng: Random) -> Pair:
    """Letters within words of the source exchanged, left out, doubled or replaced by others of the text."""
    text = pair[0]
    for _ in range(1 + len(LETTER.findall(text)) // LETTERS_PER_TYPO):
        positions = [i for match in WORD.finditer(text) for i in range(match.start(1) + 1, match.end(1) - 1)]
        if not positions:
            break
        i = positions[int(rng.integers(len(positions)))]
        letters = LETTER.findall(text)
        middle = (text[i + 1] + text[i], text[i + 1], 2 * text[i] + text[i + 1], choice(rng, letters) + text[i + 1])
        text = text[:i] + choice(rng, middle) + text[i + 2 :]
    return text, pair[1]


def no_end(pair: Pair, rng: Random) -> Pair:
    """No punctuation at the end."""
    if not all(END.search(text) for text in pair):
        return pair
    return END.sub("", pair[0]), END.sub("", pair[1])


def repeated_end(pair: Pair, rng: Random) -> Pair:
    """The mark at the end two or three times, or !, ? and ... in place of others."""
    matches = [END.search(text) for text in pair]
    if not all(matches):
        return pair
    n = int(rng.integers(2, 4))
    src, tgt = (text + (n - 1) * text[-1] for text in pair)
    return src, tgt


def emoji(pair: Pair, rng: Random) -> Pair:
    """The same emoji at the end, or at the beginning."""
    signs = choice(rng, EMOJI) * int(rng.integers(1, 3))
    if rng.random() < 0.75:
        return f"{pair[0]} {signs}", f"{pair[1]} {signs}"
    return f"{signs} {pair[0]}", f"{signs} {pair[1]}"


def numbers(pair: Pair, rng: Random) -> Pair:
    """Other digits in the numbers that both sides have."""
    src, tgt = pair
    for number in dict.fromkeys(NUMBER.findall(src)):
        pattern = re.compile(rf"(?<!\w){number}(?!\w)")
        if pattern.search(tgt):
            other = "".join(map(str, rng.integers(0, 10, len(number))))
            src, tgt = pattern.sub(other, src), pattern.sub(other, tgt)
    return src, tgt


def codes(pair: Pair, rng: Random) -> Pair:
    """A code or number that is copied, at the beginning or at the end."""
    length = int(rng.integers(2, 8))
    code = "".join(choice(rng, CODE_CHARACTERS) for _ in range(length))
    if rng.random() < 0.3:
        code = f"{code[: length // 2]}-{code[length // 2 :]}"
    before, after = (("", f" ({code})"), (f"{code}: ", ""), ("", f" {code}"))[int(rng.integers(3))]
    return before + pair[0] + after, before + pair[1] + after


Change = Callable[[Pair, Random], Pair]

CHANGES: dict[Change, float] = {
    lower_case: 3,
    typing_errors: 6,
    no_end: 4,
    repeated_end: 3,
    emoji: 4,
    numbers: 3,
    codes: 12,
}
"""The changes, and how frequent each is in relation to the others. Source of the types and the order of magnitude:
OpusTrainer, with which Mozilla trains its translators. Capitals and title case are changed before the model sees them
(`tasks.casing`)."""

JOINED, PHRASES = 4, 5
"""How frequently a pair is joined with another, and is replaced by a phrase pair of its own. No row
becomes longer than it is (`TranslationObjective.augmented`): of most pairs that are joined, the result is too long."""

LIMITS = np.cumsum([*CHANGES.values(), JOINED, PHRASES])


def drawn(rng: Random, fraction: float) -> int | None:
    """Which change a pair gets; None: it stays.

    Args:
        fraction: of the pairs that are changed.
    """
    index = int(np.searchsorted(fraction / LIMITS[-1] * LIMITS, rng.random(), side="right"))
    return index if index < len(LIMITS) else None


class Augmentation:
    """Changes of pairs.

    Args:
        pairs: the training text, or a sample.
        tokenizer: see `Lexicon`.
    """

    def __init__(self, pairs: Sequence[Pair], tokenizer: Tokenizer | None = None) -> None:
        self.space = " " if any(" " in tgt.strip() for _, tgt in pairs) else ""
        self.lexicon = Lexicon(pairs, tokenizer)

    def __call__(self, index: int, pair: Pair, other: Callable[[], Pair | None], rng: Random) -> Pair:
        """A pair with a change.

        Args:
            index: the change, from `drawn`.
            other: returns a pair that this one is joined with; None: it stays.
        """
        if index == len(CHANGES):
            following = other()
            if following is None:
                return pair
            return pair[0] + self.space + following[0], pair[1] + self.space + following[1]
        if index > len(CHANGES):
            return self.lexicon.phrase_pair(*pair, rng) or pair
        return list(CHANGES)[index](pair, rng)
