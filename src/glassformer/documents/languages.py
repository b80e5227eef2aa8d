"""Languages that files name, and those that are asked for."""

import re
from functools import lru_cache

from glassformer.errors import CorpusError

REGION = re.compile(r"[A-Za-z]{2}|\d{3}")
SCRIPT = re.compile(r"[A-Za-z]{4}")
CHINESE = {"TW": "hant", "HK": "hant", "MO": "hant", "CN": "hans", "SG": "hans"}
"""Scripts of Chinese by the region."""


def primary(code: str) -> str:
    """The language of a code, without region or script: `en` of `en-US` and of `EN_us`."""
    return re.split(r"[-_]", code.strip().lower())[0]


def region(code: str) -> str:
    """The region of a code: `US` of `en-US`; an empty text without one."""
    return next((part.upper() for part in re.split(r"[-_]", code.strip())[1:] if REGION.fullmatch(part)), "")


def script(code: str) -> str:
    """The script of a code, in lower case: `hant` of `zh-Hant` and of `zh-TW`; an empty text if it names none."""
    named = next((part.lower() for part in re.split(r"[-_]", code.strip())[1:] if SCRIPT.fullmatch(part)), "")
    return named or (CHINESE.get(region(code), "") if primary(code) == "zh" else "")


@lru_cache(maxsize=1000)
def best_match(codes: tuple[str, ...], wanted: str) -> int | None:
    """Index of the language code that is the most like the wanted one; None if none is the same language, or all name
    another script."""
    exact = [code.strip().lower().replace("_", "-") for code in codes]
    asked = wanted.strip().lower().replace("_", "-")
    if asked in exact:
        return exact.index(asked)
    same = [i for i, code in enumerate(codes) if primary(code) == primary(asked)]
    scripts = {i: script(codes[i]) for i in same}
    possible = [i for i in same if not (scripts[i] and script(asked)) or scripts[i] == script(asked)]
    return min(possible, key=lambda i: scripts[i] != script(asked), default=None)


def differing(found: tuple[str, str], asked: tuple[str, str]) -> str:
    """Which of the languages that a file names is another one than asked for, as "from de"; an empty text if none is.
    An empty text among the languages: not known."""
    sides = ((word, own, other) for word, own, other in zip(("from", "to"), found, asked, strict=True) if own and other)
    return next((f"{word} {own}" for word, own, other in sides if best_match((own,), other) is None), "")


def is_swapped(name: str, found: tuple[str, str], languages: tuple[str, str]) -> bool:
    """Whether the source language of a file is the target language that is asked for.

    Raises:
        CorpusError: the file has other languages.
    """
    if not differing(found, languages):
        return False
    if all(best_match(languages, own) is not None for own in found if own):
        return True
    raise CorpusError(
        f"{name}: from {found[0] or '?'} to {found[1] or '?'},"
        f" not from {languages[0] or '?'} to {languages[1] or '?'}.\n"
        "  Leave the file out, or give its languages."
    )
