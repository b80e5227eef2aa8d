"""Oracle: the bytes of the file."""

import pytest
from hypothesis import given

from glassformer.documents.reader import read_document
from glassformer.errors import CorpusError
from tests.documents.test_html import markup
from tests.documents.test_tmx import by_alignment

CUE = "1\r\n00:00:01,000 --> 00:00:02,000\r\n"


def unchanged(name: str, data: bytes) -> bytes:
    found = read_document(name, data)
    texts = [segment.text for segment in found.segments]
    return by_alignment(found, texts, [[(i, i) for i in range(len(text.split()))] for text in texts])


@given(markup())
def test_texts_that_are_not_translated_keep_their_bytes(text):
    assert unchanged("a.html", text.encode()) == text.encode()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "a  b\tc\n"),
        ("a.html", "caf&eacute; x&nbsp;y\n  z"), ("a.html", "The <b>cat</b><i>!</i> un<b>do</b>"),
        ("a.srt", f"{CUE}<i>Hello</i> there\r\nyou\r\n\r\n"),
    ],
)  # fmt: skip
def test_examples(name, text):
    assert unchanged(name, text.encode()) == text.encode()


def test_subtitles_with_crlf_are_wrapped():
    found = read_document("a.srt", f"{CUE}Hello\r\nyou\r\n\r\n".encode())
    words = " ".join(["word"] * 12)
    half = " ".join(["word"] * 6)
    assert found.render([words]).decode() == f"{CUE}{half}\r\n{half}\r\n\r\n"


def test_a_lone_surrogate_is_a_user_error():
    with pytest.raises(CorpusError, match="lone surrogates"):
        read_document("a.txt", b"x").render(["\ud800"])
