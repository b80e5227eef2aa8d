"""Texts in capitals and in title case, in the case that a model knows.

Training text has few such lines, and to a tokenizer `DOG` and `dog` have nothing in common. Each word gets the form
that the tokenizer knows best: the one with the fewest tokens, of which none is unknown. Source: the idea of truecasing
(Lita et al. 2003), with the vocabulary in place of counts of words.
"""

import re
import unicodedata

from glassformer.tokens.tokenizer import Tokenizer

WORD = re.compile(r"(?<![\w'’])(?<!\d-)[^\W\d_]+(?:['’][^\W\d_]+)*(?![\w'’]|-\d)")
"""A word of letters; not a part of a code, such as ABC-12 or x86."""

MIN_TITLE_WORDS, SHORT = 4, 3
"""A text is in title case if it has at least so many words, all with a capital (Blue-green as well), and one of them
has at most SHORT letters and is known without: `A Man In Red`. Most lists of names are not."""

UNKNOWN = ("<unk>", "[UNK]")


DOTTED = ("tr", "az")
"""Languages with i and ı, whose capitals are İ and I."""


SMALL_AMONG_CAPITALS = str.maketrans("", "", "ßªº")


def lower(text: str, language: str = "") -> str:
    """The text in small letters."""
    return (text.replace("İ", "i").replace("I", "ı") if language in DOTTED else text).lower()


def upper(text: str, language: str = "") -> str:
    """The text in capitals."""
    return (text.replace("i", "İ") if language in DOTTED else text).upper()


def is_capitals(text: str) -> bool:
    """Whether all letters of a text but ß, ª and º are capitals, and it has some. Those of scripts without capitals are
    not.
    """
    text = text.translate(SMALL_AMONG_CAPITALS)
    return text.isupper() and not any(unicodedata.category(character) == "Lo" for character in text)


def recased(text: str, tokenizer: Tokenizer, language: str = "") -> str:
    """A text in capitals or in title case as the tokenizer knows its words best; any other text as it is. The length
    stays."""
    words = list(WORD.finditer(text))
    in_capitals = is_capitals(text)
    starts = [match[0][0] for match in words if text[match.start() - 1 : match.start()] != "-"]
    if not in_capitals and (len(starts) < MIN_TITLE_WORDS or not is_capitals("".join(starts))):
        return text
    is_title = has_words = False
    pieces, end = [], 0
    for i, match in enumerate(words):
        form, n_tokens = best_form(match[0], tokenizer, language, is_first=i == 0)
        has_words |= n_tokens == 1 < len(form)
        is_title |= len(form) <= SHORT and form.islower() and form != match[0]
        pieces += [text[end : match.start()], form]
        end = match.end()
    # A vocabulary of characters does not tell which words are names.
    return "".join([*pieces, text[end:]]) if in_capitals or (is_title and has_words) else text


def best_form(word: str, tokenizer: Tokenizer, language: str = "", *, is_first: bool) -> tuple[str, int]:
    """The form of a word with the fewest tokens, and their number; of several forms the one without capitals, or for
    the first word of a text the one with a capital."""
    small = lower(word, language)
    title = upper(small[:1], language) + small[1:]
    forms = [form for form in ((title, small, word) if is_first else (small, title, word)) if len(form) == len(word)]
    unknown = {tokenizer.backend.token_to_id(token) for token in UNKNOWN}
    ids = dict(zip(forms, tokenizer.encode_words(forms), strict=True))
    best = min(forms, key=lambda form: (not unknown.isdisjoint(ids[form]), len(ids[form])))
    return best, len(ids[best])
