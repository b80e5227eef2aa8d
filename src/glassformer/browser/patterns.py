"""The regular expressions that page and command line share, in JavaScript."""

import re

from glassformer.corpora.repetition import CHARACTERS, COMPOUNDS, DIGIT_GROUPS, PUNCTUATION, SYLLABLES, WORDS
from glassformer.corpora.spelling import SENTENCE_BEGIN
from glassformer.corpora.spelling import WORD as SPELLED
from glassformer.corpora.terms import PATTERNS
from glassformer.corpora.words import ADDRESS, LIST_MARK
from glassformer.documents.inline import ADDRESS as ADDRESS_OF_UNIT
from glassformer.documents.inline import CLOSING, EMPTY_PAIR, SPACED_MARK, STRAY_SPACE, STRAY_SPACE_OF_MARK
from glassformer.documents.spans import BETWEEN, CUT_ENTITY, ENTITY, TAG, TECHNICAL_AFTER, TECHNICAL_BEFORE, TOKEN
from glassformer.tasks.casing import WORD
from glassformer.tasks.splitting import ABBREVIATED, SENTENCE_END

SPACE = r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""White space of Python, as the inside of a class. That of JavaScript differs."""

WORD_CHARACTER, DIGIT, LETTER = r"\p{L}\p{N}_", r"\p{Nd}", r"\p{L}\p{Nl}\p{No}"
ANY_LETTER = r"[^\W\d_]"
ESCAPES = {"w": WORD_CHARACTER, "d": DIGIT, "s": SPACE}

SOURCES = {
    "list_mark": LIST_MARK,
    "address": ADDRESS,
    "sentence_end": SENTENCE_END,
    "repeated_words": WORDS,
    "repeated_syllables": SYLLABLES,
    "repeated_compounds": COMPOUNDS,
    "repeated_characters": CHARACTERS,
    "digit_groups": DIGIT_GROUPS,
    "punctuation": PUNCTUATION,
    "abbreviated": ABBREVIATED,
    "cased_word": WORD,
    "spelled_word": SPELLED,
    "sentence_begin": SENTENCE_BEGIN,
    "tag": TAG,
    "closing": CLOSING,
    "address_of_unit": ADDRESS_OF_UNIT,
    "empty_pair": EMPTY_PAIR,
    "spaced_mark": SPACED_MARK,
    "stray_space": STRAY_SPACE,
    "stray_space_of_mark": STRAY_SPACE_OF_MARK,
    "between": BETWEEN,
    "entity": ENTITY,
    "cut_entity": CUT_ENTITY,
    "technical_before": TECHNICAL_BEFORE,
    "technical_after": TECHNICAL_AFTER,
    "token": TOKEN,
    "markers": re.compile(PATTERNS["markers"]),
    "all": re.compile("|".join(f"(?:{pattern})" for pattern in PATTERNS.values())),
}
"""The expressions by name."""


def javascript(pattern: str) -> str:
    r"""A regular expression of Python for the flag u of JavaScript. It may have \w, \d and \s everywhere, \S outside of
    classes, and [^\W\d_] for a letter."""
    result, is_class, i = "", False, 0
    while i < len(pattern):
        character = pattern[i]
        if pattern.startswith(ANY_LETTER, i):
            result, i = f"{result}[{LETTER}]", i + len(ANY_LETTER)
            continue
        if character == "\\":
            following, i = pattern[i + 1], i + 2
            if following in ESCAPES:
                result += ESCAPES[following] if is_class else f"[{ESCAPES[following]}]"
            elif following == "S" and not is_class:
                result += f"[^{SPACE}]"
            elif following.isalpha() and following not in "uxtnr":
                raise ValueError(f"{pattern}: \\{following} is not translated")
            else:
                quoted = following if following.isalnum() or following in "^$\\.*+?()[]{}|/-" else ""
                result += f"\\{quoted}" if quoted else following
            continue
        if character == "[" and not is_class:
            is_class = True
        elif character == "]" and is_class and pattern[i - 1] not in "[^":
            is_class = False
        elif character == "-" and is_class and pattern[i + 1] == "]":
            character = r"\-"  # after a class in a class, JavaScript takes it for a range
        result += character
        i += 1
    return result


def patterns() -> dict[str, str]:
    """The expressions by name, in JavaScript."""
    return {name: javascript(pattern.pattern) for name, pattern in SOURCES.items()}
