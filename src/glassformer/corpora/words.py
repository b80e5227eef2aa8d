"""What of a text a translator is not given: a list mark before it, and a text that has no words for it.

A model translates anything into a sentence, also "12345" or a text in a script that it was not trained on.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from glassformer.corpora.terms import PATTERNS

COMMON = "COMMON"
"""Script of digits, punctuation and symbols, as Unicode calls it."""

MIN_FRACTION = 0.001
"""Fraction of the letters of a text that are in a script, from which on the text has the script."""

MIN_LETTERLESS = 0.01
"""Fraction of pairs without letters in the source and with another target, from which on these are translated."""

ADDRESS = re.compile(f"{PATTERNS['urls']}|{PATTERNS['emails']}")
LIST_MARK = re.compile(
    r"(?:(?:[-*•‣◦▪–—]|\(?\d{1,3}(?:\.\d{1,3}){0,3}[.)]|\(?[A-Za-z]\))[ \t\u00a0\u202f]+){1,2}(?=\S)"
)
"""One or two list marks or numbers before a text: `- `, `• `, `1. `, `2.3) `, `a) `."""


def list_mark(text: str) -> str:
    """The list mark or number that a text begins with, with the space after it; empty if there is none."""
    match = LIST_MARK.match(text)
    return match[0] if match else ""


@lru_cache(maxsize=1 << 14)
def script_of(letter: str) -> str:
    """Script of a letter: the first word of its name in Unicode, such as LATIN, CYRILLIC or CJK."""
    return unicodedata.name(letter, COMMON).partition(" ")[0]


def letters_of(text: str) -> list[str]:
    """The letters of a text, without those of addresses on the web and of e-mail."""
    return [character for character in ADDRESS.sub(" ", text) if character.isalpha()]


def has_words(text: str, scripts: Iterable[str] | None) -> bool:
    """Whether a text has words to translate.

    Args:
        scripts: scripts of the sources of the training; `COMMON` if texts without letters are translated as well. None:
            not known, any letter is part of a word.
    """
    letters = letters_of(text)
    if not letters:
        return COMMON in (scripts or ())
    return scripts is None or not {script_of(letter) for letter in letters}.isdisjoint(scripts)


def scripts_of(texts: Iterable[str]) -> set[str]:
    """The scripts of the letters of texts, without those that are rare."""
    counts: Counter[str] = Counter(letter for text in texts for letter in letters_of(text))
    by_script: Counter[str] = Counter()
    for letter, n in counts.items():
        by_script[script_of(letter)] += n
    return {script for script, n in by_script.items() if n >= MIN_FRACTION * by_script.total()}


def source_scripts(pairs: Iterable[tuple[str, str]]) -> set[str]:
    """The scripts of the sources of sentence pairs; with `COMMON` if sources without letters are translated."""
    sources, n_letterless = [], 0
    for source, target in pairs:
        sources.append(source)
        n_letterless += not letters_of(source) and source.strip() != target.strip()
    return scripts_of(sources) | ({COMMON} if n_letterless > MIN_LETTERLESS * len(sources) else set())
