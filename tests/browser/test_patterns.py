"""The regular expressions of Python and those of JavaScript match the same parts of texts."""

import random
import re
import sys

import pytest

from glassformer.browser import patterns as p
from glassformer.browser.page import PACKAGES
from glassformer.corpora.terms import PATTERNS
from glassformer.inspection.bundle import source

SIGNS = " \t\n\x1c\x85\xa0\u2028aBzßé_09٣½-.,;:!?…()[]{}<>/\\\"'&#%$@+*•–«»“”’日本。、！x́\ufeff"
WORDS = [
    "{name}",
    "%(n)d",
    "<b>",
    "</b>",
    "&amp;",
    "https://a.b/c?d=e",
    "me@example.org",
    "[X1X]",
    "<f0>",
    "ha",
    "3.1) ",
    "- ",
    "5 km",
    "A",
]
FIND_ALL = """
([source, texts]) => texts.map((text) => [...text.matchAll(new RegExp(source, "gu"))].filter(([match]) => match)
  .map(({ 0: match, index }) => [index, index + match.length]))
"""


@pytest.mark.parametrize("name", [*p.patterns(), *PATTERNS])
def test_the_same_parts_match(browser, name):
    rng = random.Random(name)
    texts = ["".join(rng.choice((rng.choice(SIGNS), rng.choice(WORDS))) for _ in range(30)) for _ in range(500)]
    texts += ["ha" * 8, "so it is so it is so it is", "a-b-" * 5, "aaaaaaaaaaaaa", "no no no no"]
    source = p.SOURCES[name].pattern if name in p.SOURCES else PATTERNS[name]
    expression = re.compile(source)
    wanted = [[list(match.span()) for match in expression.finditer(text) if match[0]] for text in texts]
    tab = browser.new_page()
    assert tab.evaluate(FIND_ALL, [p.javascript(source), texts]) == wanted
    tab.close()


def test_white_space_is_the_same_in_both():
    space = {chr(i) for i in range(sys.maxunicode + 1) if chr(i).isspace()}
    assert {chr(i) for i in range(sys.maxunicode + 1) if re.match(f"[{p.SPACE}]", chr(i))} == space
    assert f'SPACE = "{p.SPACE}"'.replace("\\", "\\\\") in source("text.js", PACKAGES)


def test_what_cannot_be_translated_is_refused():
    with pytest.raises(ValueError, match="not translated"):
        p.javascript(r"a\b")
