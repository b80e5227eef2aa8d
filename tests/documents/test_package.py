"""Archives: limits, damage, passwords; and reading in a process of its own."""

import io
import re
import struct
import time
import zipfile

import pytest

from glassformer.documents import package
from glassformer.documents.reader import FORMATS, read_document, read_in_child
from glassformer.errors import CorpusError
from tests.documents.test_office import packed, run, unpacked, word
from tests.documents.test_tmx import kept, memory, read, shouted, texts, tuv

DOCX = word(f"<w:p>{run('Some text')}</w:p>")


def with_flag(data: bytes) -> bytes:
    """The archive whose first file is encrypted, as it says."""
    changed = bytearray(data)
    changed[data.index(b"PK\1\2") + 8] |= 1
    changed[data.index(b"PK\3\4") + 6] |= 1
    return bytes(changed)


def doubled(data: bytes) -> bytes:
    out = io.BytesIO(data)
    with zipfile.ZipFile(out, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("word/document.xml", "<x/>")
    return out.getvalue()


def damaged(data: bytes) -> bytes:
    """The archive in which a byte of the compressed data of the document is changed."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        info = archive.getinfo("word/document.xml")
    changed = bytearray(data)
    for i in range(8):
        changed[info.header_offset + 30 + len(info.filename) + info.compress_size // 2 + i] ^= 0xFF
    return bytes(changed)


def lying(data: bytes) -> bytes:
    """The archive that says that its document has another size."""
    changed = bytearray(data)
    at = data.index(b"PK\1\2", data.index(b"PK\1\2") + 1)
    changed[at + 24 : at + 28] = struct.pack("<I", 10)
    return bytes(changed)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.docx", package.OLE + b"\0" * 500, "a.docx: encrypted, or a file of Office before 2007"),
        ("a.odt", package.OLE, "a.odt: encrypted"),
        ("a.docx", with_flag(DOCX), "a.docx: encrypted"),
        ("a.docx", b"hello", "not what its suffix says: no zip archive"), ("a.xlsx", b"", "no zip archive"),
        ("a.docx", DOCX[:-30], "no zip archive"), ("a.docx", DOCX[: len(DOCX) // 2], "no zip archive"),
        ("a.docx", damaged(DOCX), "word/document.xml is damaged"),
        ("a.docx", lying(DOCX), "word/document.xml is damaged"),
        ("a.docx", packed({"x": "y"}), "an archive without word/, ppt/ or xl/"),
        ("a.odt", DOCX, "an archive without content.xml"),
        ("a.epub", DOCX, "its mimetype is not that of EPUB"),
        ("a.docx", packed({"content.xml": "<x/>"}), "not what its suffix says"),
        ("a.pdf", DOCX, "format not supported"),
        ("a.xml", DOCX, "a.xml"), ("a.po", DOCX, "zip archive"), ("a.tmx", DOCX, "a.tmx"),
        ("a.md", DOCX, "zip archive"),
        ("a.docx", packed({"word/document.xml": b"\0" * (8 << 20)}), "compressed more than 500 times"),
        ("a.docx", packed({"word/document.xml": b"\xff\xfe"}), "a.docx: word/document.xml"),
    ],
)  # fmt: skip
def test_an_archive_that_cannot_be_read_is_one_clear_error(name, data, message):
    with pytest.raises(CorpusError, match=re.escape(message)):
        read(name, data)


def test_two_files_of_one_name_are_an_error():
    with pytest.raises(CorpusError, match="two files of one name"):
        read("a.docx", doubled(DOCX))


@pytest.mark.parametrize(("limit", "value"), [("MAX_FILES", 1), ("MAX_TOTAL_BYTES", 100)])
def test_an_archive_of_too_many_files_or_bytes_is_an_error(monkeypatch, limit, value):
    monkeypatch.setattr(package, limit, value)
    with pytest.raises(CorpusError, match="beyond the limits"):
        read("a.docx", DOCX)


def test_a_small_file_may_be_compressed_very_much():
    body = "<w:p/>" * 10_000
    assert texts(read("a.docx", word(f"{body}<w:p>{run('Text')}</w:p>"))) == ["Text"]


def test_all_other_files_of_an_archive_are_copied_in_order_with_what_it_says_of_them():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.comment = b"a comment"
        stored = zipfile.ZipInfo("mimetype", (1999, 3, 4, 5, 6, 8))
        stored.external_attr, stored.comment = 0o644 << 16, b"c"
        archive.writestr(stored, "x")
        archive.writestr("word/", "")
        archive.writestr("word/document.xml", unpacked(DOCX)["word/document.xml"], zipfile.ZIP_DEFLATED)
        archive.writestr("word/media/a.png", b"\0\1\2" * 50, zipfile.ZIP_STORED)
        archive.writestr("customXml/item.xml", "<text>Not changed</text>", zipfile.ZIP_BZIP2)
    document = read("a.docx", out.getvalue())
    result = document.render([text.upper() for text in texts(document)])
    with zipfile.ZipFile(out) as old, zipfile.ZipFile(io.BytesIO(result)) as new:
        assert new.namelist() == old.namelist()
        assert new.comment == b"a comment"
        for one, other in zip(old.infolist(), new.infolist(), strict=True):
            assert (one.date_time, one.external_attr, one.comment) == (
                other.date_time,
                other.external_attr,
                other.comment,
            )
            if one.filename != "word/document.xml":
                assert old.read(one) == new.read(other)
        assert [info.compress_type for info in new.infolist()] == [0, 0, 8, 0, 8]
        assert b"SOME TEXT" in new.read("word/document.xml")


def test_the_texts_of_each_file_of_an_archive_get_their_own_translations():
    data = word(
        f"<w:p>{run('one')}</w:p>",
        header1=f"<w:p>{run('two')}</w:p><w:p>{run('three')}</w:p>",
        footnotes=f"<w:p>{run('four')}</w:p>",
    )
    result = unpacked(shouted(read("a.docx", data)))
    assert [re.findall(b"[A-Z]{3,}", result[f"word/{name}.xml"])[-2:] for name in ("document", "header1",
    "footnotes")] == [
        [b"UTF", b"ONE"], [b"TWO", b"THREE"], [b"UTF", b"FOUR"],
    ]  # fmt: skip


def test_every_suffix_has_a_reader_that_raises_clear_errors():
    for suffix in FORMATS:
        with pytest.raises(CorpusError, match=re.escape(f"x{suffix}")):
            read_document(f"x{suffix}", b"\0\xff\xfe\x80")


FILES = {"a.tmx": memory(tuv("en", "Cat")).encode(), "a.docx": DOCX, "a.md": b"# *Cat*\n"}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_read_by_a_child_process_is_the_same(name):
    document = read_in_child(name, FILES[name], ("en", "de"))
    assert kept(document) == kept(read(name, FILES[name], ("en", "de")))
    assert shouted(document) == shouted(read(name, FILES[name], ("en", "de")))


@pytest.mark.parametrize(("name", "data"), [("a.tmx", b"<tmx>"), ("a.docx", damaged(DOCX))])
def test_a_broken_file_is_the_same_error_in_a_child_process(name, data):
    with pytest.raises(CorpusError) as own:
        read_document(name, data)
    with pytest.raises(CorpusError) as of_child:
        read_in_child(name, data, ("", ""))
    assert str(of_child.value) == str(own.value)


def test_a_file_that_takes_too_long_is_beyond_the_limits():
    start = time.monotonic()
    with pytest.raises(CorpusError, match=r"a\.md: cannot be read within the limits of time and memory"):
        read_in_child("a.md", b"# Cat", ("", ""), 0.01)
    assert time.monotonic() - start < 5
