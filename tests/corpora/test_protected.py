"""Protected spans: taken out of texts, and put back in the right order, as often as they were there."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.corpora.protected import take_out
from glassformer.corpora.terms import matches, protect_pattern
from glassformer.documents.inline import put_back, tag_pairs
from glassformer.documents.spans import extended

PATTERN = protect_pattern(("all",))


@pytest.mark.parametrize(
    ("text", "core", "output", "alignment", "expected"),
    [
        ("{name}: A man sits.", "A man sits.", "Ein Mann sitzt.", "", "{name}: Ein Mann sitzt."),
        ("A man sits ({count}).", "A man sits.", "Ein Mann sitzt.", "", "Ein Mann sitzt ({count})."),
        ("A man sits {count}", "A man sits", "Ein Mann sitzt.", "", "Ein Mann sitzt {count}"),
        ("<b>A man sits.</b>", "A man sits.", "Ein Mann sitzt.", "", "<b>Ein Mann sitzt.</b>"),
        ("<b>A man</b> sits.", "A man sits.", "Ein Mann sitzt.", "0-0 1-1 2-2", "<b>Ein Mann</b> sitzt."),
        ("see <i>the man</i>", "see the man", "den Mann sehen", "0-2 1-0 2-1", "<i>den Mann</i> sehen"),
        ("A <b>red house</b>.", "A red house.", "Ein rotes Haus.", "0-0 1-1 2-2", "Ein <b>rotes Haus</b>."),
        ("the {n} men", "the men", "die Männer", "0-0 1-1", "die {n} Männer"),
        ("the {n} men", "the men", "Männer", "1-0", "{n} Männer"),
        ("by {n}, but men", "by , but men", "von aber Männern", "0-0 2-1 3-2", "von {n} aber Männern"),
        ('a <b>"big"</b> man', 'a "big" man', 'ein "großer" Mann', "0-0 1-1 2-2", 'ein <b>"großer"</b> Mann'),
        ("the {n} men", "the men", "die Männer", "", "die {n} Männer"),
        ("<a>x <b>y</b> z</a>", "x y z", "u w v", "0-0 1-2 2-1", "<a>u w <b>v</b></a>"),
        ("hi <br/> you", "hi you", "hallo du", "0-0 1-1", "hallo <br/> du"),
        ("get the {n} men", "get the men", "die Männer holen", "0-2 2-1", "die {n} Männer holen"),
        ("put in {n} right now", "put in right now", "nun gleich rein", "1-2 2-1 3-0", "{n} nun gleich rein"),
        ("if {n}, but men", "if , but men", "wenn, aber Männer", "0-0 2-1 3-2", "wenn {n}, aber Männer"),
        ("go (to {n}), men", "go (to ), men", "geht (nach), Männer", "0-0 1-1 3-2", "geht (nach {n}), Männer"),
        ("go ({n}), men", "go (), men", "geht (), Männer", "0-0 1-1 2-2", "geht ({n}), Männer"),
        ("see (a) {n}, men", "see (a) , men", "sieh (ein), Männer", "0-0 1-1 3-2", "sieh (ein) {n}, Männer"),
        ("a <b>{n} c</b> d", "a  c d", "e f g", "0-0 1-1 2-2", "e <b>{n} f</b> g"),
        ("a <b>c {n}</b> d", "a c  d", "e f g", "0-0 1-1 2-2", "e <b>f {n}</b> g"),
        ("a <b>c {n}</b>. d", "a c . d", "e f. g", "0-0 1-1 3-2", "e <b>f {n}</b>. g"),
        ("a <b>{n}</b> d", "a d", "e g", "0-0 1-1", "e <b>{n}</b> g"),
        ("{a}{b}", "", "", "", "{a}{b}"),
        ("File: {a}, size: {b}.", "File: , size:.", "Datei: , Größe:", "", "Datei: {a}, Größe: {b}."),
        ("Error: {n}; try.", "Error: ; try.", "Fehler: ; versuche.", "", "Fehler: {n}; versuche."),
        ("a, {x}, b", "a, , b", "a, , b", "", "a, {x}, b"),
        ("Ready, {n}?", "Ready,?", "Bereit, ?", "", "Bereit, {n}?"),
        ("Ready? {n}.", "Ready?", "Prêt ?", "", "Prêt ? {n}."),
        ("It is approx. {n}.", "It is approx.", "Es ist ca.", "", "Es ist ca. {n}."),
        ("in /home/{user}/files now", "in now", "jetzt in", "0-1 1-0", "jetzt in /home/{user}/files"),
        ("use --name={n} here", "use here", "hier", "", "hier --name={n}"),
        ("from €{a} to €{b} a day", "from to a day", "von bis am Tag", "0-0 1-1 2-2 3-3", "von €{a} bis €{b} am Tag"),
        ("ask {user}@a.de or {x}.txt", "ask or", "frage oder", "0-0 1-1", "frage {user}@a.de oder {x}.txt"),
        ("%d/%d files, {w}x{h}", "files,", "Dateien,", "0-0", "%d/%d Dateien, {w}x{h}"),
        ("up to {n}% of it", "up to of it", "bis zu davon", "0-0 1-1 2-2 3-2", "bis zu {n}% davon"),
        ("{n}/month it is", "/month it is", "/Monat sind es", "", "{n}/Monat sind es"),
        ("the E-Mail-{n} is", "the E-Mail- is", "die E-Mail- ist", "", "die E-Mail-{n} ist"),
        ("see {n}'s dog", "see 's dog", "see 's dog", "", "see {n}'s dog"),
        ("打开“{n}”文件", "打开“”文件", "open the “” file", "", "open the “{n}” file"),
        ("by {n} go on", "by go on", "点击打开。", "0-0 0-1 1-2 2-3", "点击{n}打开。"),
        ("press <b>Save</b> on", "press Save on", "按保存打开。", "0-0 1-1 1-2 2-3", "按<b>保存</b>打开。"),
        ("by <b>it {n}</b> go", "by it  go", "点它开", "0-0 1-1 2-2", "点<b>它{n}</b>开"),
        ("点<b>它</b>打开。", "点它打开。", "Click it to open.", "0-0 1-1 2-2 3-3", "Click <b>it</b> to open."),
        ("点击{n}打开。", "点击打开。", "Click to open.", "0-0 1-0 2-1 3-2", "Click {n} to open."),
        ("ファイル{n}コピー", "ファイル コピー", "file copy", "0-0 1-1", "file {n} copy"),
        ("see {n}.", "see.", "看。", "0-0", "看{n}。"),
        ("did you see <b>{n}</b>?", "did you see?", "见了？", "", "见了<b>{n}</b>？"),
        ("see {n}", "see", "看", "0-0", "看{n}"),
        ("the {n} men", "the men", "男人们（在）。", "0-0 1-2", "男人{n}们（在）。"),
        ('open "{a}" and "{b}"', 'open "" and "', 'öffne „“ und "', "", 'öffne „{a}“ und "{b}"'),
        ("  {a} ", "", "", "", "  {a} "),
    ],
)
def test_spans_are_put_back(text, core, output, alignment, expected):
    detached = take_out(text, PATTERN)
    assert detached.core.strip() == core
    pairs = [tuple(map(int, pair.split("-"))) for pair in alignment.split()]
    assert put_back(detached, output, pairs) == expected


@pytest.mark.parametrize("unit", ["a", "-.", "/", "=a", "€", "文", "a "])
def test_a_long_text_beside_a_span_takes_linear_time(unit):
    start = time.process_time()
    text = unit * (100_000 // len(unit))
    for around in (f"{text} {{x}} {text}", f"{text}{{x}}{text}"):
        detached = take_out(around, PATTERN)
        assert "{x}" in put_back(detached, "output", [])
    assert time.process_time() - start < 10  # 0.1 s here


def test_a_text_without_spans_is_left_alone():
    assert take_out("A man sits.", PATTERN) is None


PIECES = ("{x}", "<b>", "</b>", "<i>", "</i>", "%s", "&amp;", "a@b.de", "dog", "the", "(", ")", ".", ",", " ", " ")


@given(
    st.lists(st.sampled_from(PIECES), max_size=14).map("".join),
    st.lists(st.sampled_from(["Hund", "der", "Haus.", "und,"]), max_size=7).map(" ".join),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8),
)
def test_every_span_comes_back_as_often_as_it_was_there(text, output, alignment):
    detached = take_out(text, PATTERN)
    if detached is None:
        return
    n = len(output.split())
    result = put_back(detached, output, [(s, t) for s, t in alignment if t < n])
    expected = sorted(text[a:b] for a, b in extended(text, list(matches(PATTERN, text))))
    for span in set(expected):
        assert result.count(span) >= expected.count(span)
    if any(a != b and a in b for a in expected for b in expected):
        return  # a span within another cannot be told from it
    without = result
    for span in expected:
        without = without.replace(span, " ", 1)
    words = re.findall(r"\w+", output if detached.core.strip() else "")
    if words and detached.core.strip():
        assert re.findall(r"\w+", without) == words


@given(st.lists(st.sampled_from(["<b>", "<i>", "x", "</i>", "</b>"]), min_size=1, max_size=9), st.data())
def test_tags_that_are_nested_stay_nested(parts, data):
    text = " ".join(f"{part} w{i}" for i, part in enumerate(parts))
    tags = [part for part in parts if part != "x"]
    if len(list(tag_pairs(tags))) * 2 != len(tags):
        return  # not nested before
    detached = take_out(text, PATTERN)
    if detached is None:
        return
    n = data.draw(st.integers(1, 9))
    pairs = data.draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, n - 1)), max_size=12))
    result = put_back(detached, " ".join(f"v{i}" for i in range(n)), pairs)
    found = re.findall(r"</?[bi]>", result)
    assert sorted(found) == sorted(tags)
    assert len(list(tag_pairs(found))) * 2 == len(found), result


@given(
    st.lists(st.sampled_from(["<b>", "</b>", "<i>", "</i>", "{n}", "{n}", "dog", "cat"]), min_size=1, max_size=9),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=8),
)
def test_what_is_between_tags_stays_there(parts, alignment):
    text = " ".join(part.replace("n", str(i)) for i, part in enumerate(parts))
    if (detached := take_out(text, PATTERN)) is None:
        return
    assert depths(put_back(detached, "u v w x y z", alignment)) == depths(text)


def depths(text):
    """Names of the tags around each placeholder: for `<b>{0}` no tag, because the pair is not complete."""
    found = re.findall(r"</?[bi]>|\{\d\}", text)
    pairs = list(tag_pairs(found))
    return {
        span: sorted(found[start] for start, end in pairs if start < i < end)
        for i, span in enumerate(found)
        if span.startswith("{")
    }
