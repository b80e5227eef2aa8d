"""Detection of text that repeats itself, a frequent failure of text generation."""

import re

MAX_CHARACTERS = 20_000
"""Only this many characters at the end of a text are examined: what repeats itself does so until the end."""

WORDS = re.compile(r"(?<!\S)(\S+(?:\s+\S+){0,9}?)(?:\s+\1){2,}(?!\S)")
"""Up to ten words, three times in a row."""

SYLLABLES = re.compile(r"([^\W\d_]{2,20}?)\1{3,}")
"""Two to twenty letters within a word, four times in a row."""

COMPOUNDS = re.compile(r"(?<![^\W\d_])([^\W\d_]{1,20}[^\w\s]{1,3})\1{3,}")
"""Letters and punctuation, as in "white-white-white-white-", four times in a row."""

CHARACTERS = re.compile(r"([^\s\d])\1{9,}|(\d{3})\2{7,}")
"""A character ten times in a row, or three digits eight times."""

DIGIT_GROUPS = re.compile(r"(?<=\d)[ \u00a0\u202f](?=\d{3}(?!\d))")
"""The space within a number, such as 1 000 000 000."""

PUNCTUATION = re.compile(r"[^\w\s]")
"""A character that is no letter, digit or white space."""


def repeats(text: str) -> bool:
    """Whether a text repeats itself.

    Example:
        >>> repeats("a salad salad salad"), repeats("papa and mama")
        (True, False)
    """
    end = DIGIT_GROUPS.sub("", text[-MAX_CHARACTERS:].lower())
    return any(pattern.search(end) for pattern in (WORDS, SYLLABLES, COMPOUNDS, CHARACTERS))


def may_repeat(source: str) -> bool:
    """Whether a translation of a text may repeat itself, because the text does: also with marks between the words, as
    in "very, very, very good"."""
    return repeats(source) or repeats(PUNCTUATION.sub("", source))
