import asyncio
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.documents.document import ADDRESSES, wrapped
from glassformer.documents.reader import DocumentReader, read_document
from glassformer.documents.text import read_subtitles, read_text
from glassformer.errors import CorpusError
from tests.documents.test_tmx import by_alignment, kept, read, shouted, texts

SRT = (
    "1\r\n00:00:01,000 --> 00:00:02,000\r\nThe cat\r\nsat <i>here</i>.\r\n\r\n"
    "2\r\n00:00:03,000 --> 00:00:04,500 X1:1\r\n- 42 -\r\n"
)


@given(
    st.text(st.sampled_from("ab1 .\t\r\n\u2028é\u00a0"), max_size=60), st.sampled_from(["utf-8", "utf-8-sig", "utf-16"])
)
def test_a_text_file_keeps_its_lines_and_its_encoding(text, encoding):
    data = text.encode(encoding)
    document = read_text("a.txt", data)
    rendered = document.render([segment.text for segment in document.segments])
    if all(" ".join(line.split()) == line.strip(" \t\ufeff") for line in text.replace("\r", "\n").split("\n")):
        assert rendered == data
    assert rendered.decode(encoding).split() == text.split()


def test_subtitles_keep_numbers_times_and_positions():
    document = read_subtitles("a.srt", SRT.encode())
    assert [segment.text for segment in document.segments] == ["The cat sat here."]
    rendered = by_alignment(document, ["Die Katze saß hier."], [[(i, i) for i in range(4)]]).decode()
    assert rendered == SRT.replace("The cat\r\nsat <i>here</i>.", "Die Katze saß <i>hier</i>.")


def test_long_subtitles_have_lines_of_equal_length():
    text = "a bc def ghij klmno pqrstu vwxyzab cdefghij klm nop qrs"
    lines = wrapped(text, 42, 3)
    assert " ".join(lines) == text
    assert [len(line) for line in lines] == [26, 28]
    assert wrapped("x" * 100, 42, 3) == ["x" * 100]


WORDS = st.text("ab", min_size=1, max_size=30)


@given(st.lists(WORDS, min_size=1, max_size=20), st.integers(1, 4))
def test_lines_are_longer_than_the_width_only_if_there_are_as_many_as_allowed(words, max_lines):
    lines = wrapped(" ".join(words), 42, max_lines)
    assert " ".join(lines).split() == words
    assert len(lines) <= max_lines
    assert all(len(line) <= 42 for line in lines) or len(words) <= max_lines or len(lines) == max_lines


def test_subtitles_have_no_more_lines_than_before():
    document = read_subtitles("a.srt", SRT.replace("The cat\r\nsat <i>here</i>.", "The cat.").encode())
    translation = "Die große schwarze Katze mit dem langen Schwanz."
    rendered = document.render([translation]).decode()
    assert rendered == SRT.replace("The cat\r\nsat <i>here</i>.", translation)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.txt", b"PK\x03\x04", "zip archive"), ("a.txt", b"%PDF-1", "a PDF file"),
        ("a.txt", b"\xe9t\xe9", "not UTF-8"),
        ("a.html", b"a\0b", "NUL"), ("a.docx", b"x", "no zip archive"),
        ("a.pdf", b"x", "format not supported"), ("a", b"x", "format not supported"),
        ("a.srt", b"hello", "no subtitles"), ("a.txt", b"\xff\xfea", "not UTF-16-LE"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_one_clear_error(name, data, message):
    with pytest.raises(CorpusError, match=message):
        read_document(name, data)


HOSTILE = {
    "deep": b"<b>" * 100_000 + b"x", "comments": b"<!--" * 50_000, "attributes": b"<a " + b"x=1 " * 50_000 + b">y</a>",
    "quotes": b'<a x="' * 30_000, "closing": b"</b>" * 50_000 + b"x", "entities": b"&amp" * 50_000,
    "sentences": b"A. " * 20_000, "spans": b"a <b>b</b> " * 5_000,
}  # fmt: skip


def test_hostile_documents_are_read_or_refused_in_time_by_the_same_reader():
    async def read_all():
        reader = DocumentReader()
        try:
            results = {}
            for name, data in HOSTILE.items():
                try:
                    results[name] = await reader.read("a.html", data)
                except CorpusError as error:
                    results[name] = error
                good = await reader.read("A.HTML", b"<p>The cat.</p>")
                assert [segment.text for segment in good.segments] == ["The cat."]
            return results
        finally:
            await reader.close()

    results = asyncio.run(asyncio.wait_for(read_all(), 60))
    refused = [name for name, result in results.items() if isinstance(result, CorpusError)]
    assert not refused


def test_without_the_library_of_html_the_message_says_how_to_install_it(monkeypatch):
    monkeypatch.delitem(sys.modules, "glassformer.documents.html", raising=False)
    monkeypatch.setitem(sys.modules, "turbohtml", None)
    with pytest.raises(CorpusError, match=r"a\.html: needs the package turbohtml.*\n.*glassformer\[serve\]"):
        read_document("a.html", b"<p>x</p>")


def test_each_person_of_a_cue_has_lines_of_its_own():
    cue = "1\n00:00:01,000 --> 00:00:02,000\n"
    text = f"{cue}- Are you coming,\nor not?\n- No, <i>never</i>.\n\n{cue}- It is one --\nperson.\n"
    document = read("a.srt", text)
    assert texts(document) == ["- Are you coming, or not?", "- No, never.", "- It is one -- person."]
    assert kept(document).decode() == text
    assert "- ARE YOU COMING, OR NOT?\n- NO, <i>NEVER</i>.\n\n1" in shouted(document).decode()


def test_an_empty_line_or_none_ends_no_cue_of_subrip():
    times = "00:00:01,000 --> 00:00:02,000"
    text = f"1\n{times}\nThe cat\n\nsat here.\n2\n{times}\nTen\n10\n\n\n3\n{times}\n\nLate\n"
    document = read("a.srt", text)
    assert texts(document) == ["The cat", "sat here.", "Ten 10", "Late"]
    assert kept(document).decode() == text
    assert texts(read("a.vtt", f"WEBVTT\n\n{times}\nThe cat\n\nno text\n")) == ["The cat"]


VTT = """\
WEBVTT - Kind: captions

STYLE
::cue { color: white }

NOTE This is a comment

intro
00:01.000 --> 00:02.500 align:start
<v Fred>Hello <i>there</i>, R&amp;D

00:00:02.500 --> 00:00:04.000
{\\an8}The <00:03.000>cat
"""


def test_the_language_of_webvtt_is_that_of_the_translation():
    text = "WEBVTT\nKind: captions\nLanguage: {0}\n\nNOTE Language: en\n\n00:01.000 --> 00:02.000\n{1}\n"
    document = read_subtitles("a.vtt", text.format("en-US", "Language: en").encode())
    assert shouted(document, ("en", "de")).decode() == text.format("de", "LANGUAGE: EN")


@pytest.mark.parametrize("name", ["a.vtt", "a.srt"])
def test_subtitles_of_webvtt(name):
    document = read(name, VTT)
    assert texts(document) == ["Hello there, R&amp;D", "The cat"]
    assert document.protect == (*ADDRESSES, "entities")
    assert kept(document).decode() == VTT
    expected = VTT.replace("Hello", "HELLO").replace("there", "THERE").replace("R&amp;D", "R&AMP;D")
    assert shouted(document).decode() == expected.replace("The <", "THE <").replace("cat", "CAT")
