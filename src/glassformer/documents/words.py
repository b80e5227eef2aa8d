"""What is a word of a text, and its units: the parts that alignments, terms and inline codes refer to."""

import re
import unicodedata
from functools import cache
from itertools import pairwise

UNSPACED_RANGES = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Letters of scripts that have no spaces between words, as the inside of a class of a regular expression."""
FULL_WIDTH = "\u3001-\u303f\uff01-\uff65"
"""Signs of Chinese and Japanese, beside which no space is written, as the inside of a class too."""

NO_LETTER_AFTER = r"(?![A-Za-z0-9_\u00c0-\u024f\u0300-\u052f\u1e00-\u1fff])"
"""After a placeholder or a unit of measure: no Latin, Greek or Cyrillic letter, but Korean and Chinese ones."""

UNSPACED = re.compile(f"[{UNSPACED_RANGES}]")
"""A letter of a script that has no spaces between words."""
UNSPACED_SIGN = re.compile(f"[{UNSPACED_RANGES}{FULL_WIDTH}]")
"""A letter of such a script, or a sign."""
KATAKANA = re.compile("[\u30a0-\u30ff]{2}")
"""Letters of one word of Japanese: those of other words have another script."""

OPENING_MARKS = frozenset("([{«“„‘\"'¿¡（「『")
_OPENING = "".join(f"\\{sign}" if sign in "([{" else sign for sign in sorted(OPENING_MARKS))
_BEFORE_LETTER = "\u0e40-\u0e44\u0ec0-\u0ec4"
"""Vowels of Thai and Lao that are written before the consonant that they follow."""
_STACKING = "\u1039\u17d2"
"""Marks of Burmese and Khmer after which a consonant is below the one before."""
_MARKS = (
    "\u0e30-\u0e3a\u0e45\u0e47-\u0e4e\u0eb0-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064"
    "\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d\u17b4-\u17d3\u17dd\u3099\u309a\u0300-\u036f\u200c\u200d"
    "\ufe00-\ufe0f\U0001f3fb-\U0001f3ff\U000e0100-\U000e01ef"
)
"""What a reader sees as part of the letter before it: vowels and tone marks, also those that are letters of Unicode,
joiners, variation selectors and the skin tones of emoji."""
_WITH_ANY = rf"[{_STACKING}][{UNSPACED_RANGES}]|[{_MARKS}]"
"""What belongs to the character before it: these, and stacked consonants."""
_WITH_LETTER = rf"{_WITH_ANY}|[\u0e46\u0ec6ぁぃぅぇぉっゃゅょゎ\u309b-\u309eー々]"
"""What belongs to the letter before it: also signs of repetition and small kana."""
_ENTITY = "&(?:amp;)*(?:amp|lt|gt);"
"""A sign as it is escaped in a file, once or several times."""
UNIT = re.compile(
    rf"[{_OPENING}]{{0,4}}"
    rf"(?:[\u30a0-\u30ff][\u30a0-\u30ff{_MARKS}]*|[{_BEFORE_LETTER}{_STACKING}]?[{UNSPACED_RANGES}](?:{_WITH_LETTER})*)"
    rf"(?:{_ENTITY}|[^\w\s{UNSPACED_RANGES}{_OPENING}]|{_WITH_ANY})*"
    rf"|[^\s{UNSPACED_RANGES}](?:{_WITH_ANY}|[^\s{UNSPACED_RANGES}])*?"
    rf"(?=\s|[{_OPENING}]{{0,4}}(?![{_MARKS}])[{UNSPACED_RANGES}]|$)"
)
"""A unit of a text with letters of scripts without spaces."""
SPACED = re.compile(r"\S+")
PART_OF_LETTER = re.compile(rf"[{_BEFORE_LETTER}{_STACKING}][{UNSPACED_RANGES}]|.[{_MARKS}]|\u200d.", re.DOTALL)
"""Two characters of one letter."""


def unit_spans(text: str, start: int = 0) -> list[tuple[int, int]]:
    """Start and end of each unit of a text: the parts between white space; in scripts without spaces, each letter, or
    word of Katakana, with the punctuation beside it.

    Args:
        start: where the first one begins. More text after a text changes its last unit only, unless an entity goes on.
    """
    return [match.span() for match in (UNIT if UNSPACED.search(text, start) else SPACED).finditer(text, start)]


def space_between(before: str, after: str) -> str:
    """The space between two texts of which one is put beside the other."""
    if not before or not after or before[-1].isspace() or after[0].isspace():
        return ""
    return "" if UNSPACED_SIGN.match(before[-1]) or UNSPACED_SIGN.match(after) else " "


def is_word(character: str) -> bool:
    """Whether a character is part of a word: a letter, a digit, `_`, or a mark of a letter."""
    return character.isalnum() or character == "_" or is_mark(character)


@cache
def marks() -> str:
    """The marks of letters, as the inside of a class of a regular expression: `\\w` does not have them."""
    codes = [code for code in range(0x20000) if is_mark(chr(code))]
    begins = [code for before, code in pairwise([-2, *codes]) if code > before + 1]
    ends = [code for code, after in pairwise([*codes, 0x20000]) if after > code + 1]
    return "".join(f"{chr(begin)}-{chr(end)}" for begin, end in zip(begins, ends, strict=True))


def is_mark(character: str) -> bool:
    """Whether a character is a mark of the letter before it, such as an accent or a vowel sign."""
    return character != "" and unicodedata.category(character)[0] == "M"


def continues_letter(text: str, position: int) -> bool:
    """Whether a reader sees the character at a position and the one before as one letter."""
    both = text[max(0, position - 1) : position + 1]
    return len(both) == 2 and (is_mark(both[1]) or PART_OF_LETTER.fullmatch(both) is not None)


def continues_word(text: str, position: int) -> bool:
    """Whether the character at a position and the one before belong to one word; letters of scripts without spaces are
    words of their own."""
    if not 0 < position < len(text) or not (is_word(text[position - 1]) and is_word(text[position])):
        return False
    both = text[position - 1 : position + 1]
    return continues_letter(both, 1) or bool(KATAKANA.fullmatch(both)) or not UNSPACED.search(both)
