"""Spans are taken out of texts and put back as in Python."""

import dataclasses
import random
import re

import pytest

from glassformer.browser.page import PACKAGES
from glassformer.browser.patterns import SOURCES, patterns
from glassformer.corpora.terms import matches
from glassformer.documents.inline import detach, put_back
from glassformer.documents.spans import TAG
from glassformer.documents.words import continues_word, unit_spans
from glassformer.inspection.bundle import bundle

PIECES = [
    *("<b>", "</b>", "<i>", "</i>", "<a href='x'>", "</a>", "<br/>", "{x}", "{y}", "%s", "&amp;", "https://a.b/c"),
    *(
        " ",
        " ",
        " ",
        " ",
        "word",
        "two words",
        "x",
        ".",
        ",",
        "!",
        " (",
        ") ",
        "« ",
        " »",
        "日本",
        "。",
        "カタ",
        "ー",
        "เปิด",
        "ำ",
        "\u3099",
        "「",
        "」",
        "12",
        "\u00a0",
        "-",
        "/",
        "€",
        "=",
        "@",
        ":",
        "'",
        '"',
        "“",
        "”",
        "_",
        "a/",
        ".txt",
    ),
]


@pytest.fixture(scope="module")
def inline(browser):
    """A function that calls a method of `Inline` for each of some lists of arguments."""
    tab = browser.new_page()
    others = "{ unitSpans: $sentences.unitSpans, continuesWord: $terms.continuesWord }"
    made = f"Object.assign(new $inline.Inline(patterns), {others})"
    tab.evaluate(f"(patterns) => {{ {bundle('inline', PACKAGES)} window.inline = {made}; }}", patterns())
    yield lambda method, calls: tab.evaluate(
        "([method, calls]) => calls.map((x) => inline[method](...x))", [method, calls]
    )
    tab.close()


def texts(n):
    rng = random.Random(7)
    found = ["".join(rng.choice(PIECES) for _ in range(rng.randint(1, 14))) for _ in range(n)]
    return [text for text in found if list(matches(SOURCES["all"], text))]


def record(detached):
    """A detached text as in JavaScript."""
    if not dataclasses.is_dataclass(detached):
        return [record(x) for x in detached] if isinstance(detached, tuple) else detached
    names = [field.name for field in dataclasses.fields(detached)]
    return {re.sub("_(.)", lambda m: m[1].upper(), name): record(getattr(detached, name)) for name in names}


def test_spans_are_taken_out_alike(inline):
    given = texts(3000)
    calls = [[text, list(map(list, matches(SOURCES["all"], text)))] for text in given]
    calls.append(["ask [X7X]@foo&amp; bar", [[4, 9]]])  # an entity that is no span
    for (text, spans), found in zip(calls, inline("detach", calls), strict=True):
        wanted = detach(text, [(a, b) for a, b in spans])
        assert found == record(wanted), text


OUTPUTS = ["eins", "zwei. ", " ", " ", "drei,", "(vier", "&amp;", "!", "“”", " :", ": ,", "-", '""', "/"]
OUTPUTS += ["文件を", "「保存", "」", "、", "ファイル", "ไฟล์", "（", "。", "。", "？"]
OUTPUTS += ["กำ", "ี", "က္", "カ\u3099", "葛\U000e0101", "&lt;", "\u200d", "𠮷"]


def utf_16(text, i):
    """Index in units of UTF-16, as in JavaScript."""
    return len(text[:i].encode("utf-16-le")) // 2


def test_units_are_the_same(inline):
    given = ["".join(random.Random(i).choices(PIECES + OUTPUTS, k=6)) for i in range(2000)]
    for text, found in zip(given, inline("unitSpans", [[text] for text in given]), strict=True):
        assert list(map(tuple, found)) == [(utf_16(text, a), utf_16(text, b)) for a, b in unit_spans(text)], text


def test_words_go_on_alike(inline):
    given = ["".join(random.Random(i).choices(PIECES + OUTPUTS, k=4)) for i in range(500)]
    places = [(text, i) for text in given for i in range(len(text) + 1)]
    calls = [[text, utf_16(text, i)] for text, i in places]
    for (text, i), found in zip(places, inline("continuesWord", calls), strict=True):
        assert found == continues_word(text, i), (text, i)


def test_spans_are_put_back_alike(inline):
    rng = random.Random(9)
    calls, wanted = [], []
    for text, output in (("An &lt;<b>a@b.c</b>&gt; x", "z &lt;a@b.c&gt;, y"), ("<i>x</i>&gt; z", "z &gt;")):
        detached = detach(text, [match.span() for match in TAG.finditer(text)])
        calls.append([record(detached), output, []])
        wanted.append(put_back(detached, output, []))
    for text in texts(3000):
        detached = detach(text, list(matches(SOURCES["all"], text)))
        output = "".join(rng.choice(OUTPUTS) for _ in range(rng.randint(0, 9)))
        n, m = len(unit_spans(detached.core)), len(unit_spans(output))
        alignment = [[rng.randrange(n), rng.randrange(m)] for _ in range(rng.randint(0, 6))] if n and m else []
        calls.append([record(detached), output, alignment])
        wanted.append(put_back(detached, output, [(s, t) for s, t in alignment]))
    for text, output in (("See <b>a@b.c</b> now", "nun a@b.c seht"), ("<i>x://y/?a&amp;b,</i> z", "z z x://y/?a&b")):
        detached = detach(text, [match.span() for match in TAG.finditer(text)])
        calls.append([record(detached), output, [[0, 0], [1, 0], [2, 2]]])
        wanted.append(put_back(detached, output, [(0, 0), (1, 0), (2, 2)]))
    for call, found, text in zip(calls, inline("putBack", calls), wanted, strict=True):
        assert found == text, call
