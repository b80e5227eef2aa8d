"""Oracles: ElementTree reads the output again, and the bytes of the files."""

import random
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.errors import CorpusError
from tests.documents.test_office import packed, same_files, unpacked
from tests.documents.test_tmx import by_alignment, kept, read, shouted, texts

NAMES = " ".join(
    f'xmlns:{name}="{name}"'
    for name in (
        "office",
        "text",
        "table",
        "draw",
        "svg",
        "fo",
        "style",
        "meta",
        "dc",
        "presentation",
        "number",
        "xlink",
    )
)
XML = '<?xml version="1.0" encoding="UTF-8"?>\n'


def content(body: str) -> str:
    return (
        f"{XML}<office:document-content {NAMES}><office:body><office:text>{body}</office:text></office:body>"
        "</office:document-content>"
    )


def odt(body: str, **files: str) -> bytes:
    """A text of LibreOffice."""
    others = {f"{name}.xml": f"{XML}<office:x {NAMES}>{text}</office:x>" for name, text in files.items()}
    return packed(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": content(body),
            **others,
            "Pictures/a.png": b"\0\1",
        }
    )


def body_of(data: bytes) -> str:
    text = unpacked(data)["content.xml"].decode()
    ElementTree.fromstring(text)
    return text.partition("<office:text>")[2].partition("</office:text>")[0]


BOX = "<draw:frame><draw:text-box><text:p>In a box</text:p></draw:text-box><svg:desc>Described</svg:desc></draw:frame>"
FOOTNOTE = (
    '<text:note text:id="1"><text:note-citation>1</text:note-citation><text:note-body><text:p>A note'
    "</text:p></text:note-body></text:note>"
)


@pytest.mark.parametrize(
    ("body", "found", "expected"),
    [
        ("<text:p>The cat. Two.</text:p>", ["The cat.", "Two."], "<text:p>THE CAT. TWO.</text:p>"),
        ("<text:h text:outline-level='1'>A title</text:h>", ["A title"],
            "<text:h text:outline-level='1'>A TITLE</text:h>"),
        ("<text:p>The <text:span text:style-name='T1'>black cat</text:span> sat</text:p>", ["The black cat sat"],
            "<text:p>THE <text:span text:style-name='T1'>BLACK CAT</text:span> SAT</text:p>"),
        ("<text:p>see <text:a xlink:href='x'>the link</text:a></text:p>", ["see the link"],
            "<text:p>SEE <text:a xlink:href='x'>THE LINK</text:a></text:p>"),
        ("<text:p>one<text:tab/>two <text:s text:c='2'/>x</text:p>", ["one two x"], None),
        ("<text:p>page <text:page-number>3</text:page-number> of</text:p>", ["page of"], None),
        ("<text:p>A &lt; b &amp; c</text:p>", ["A < b & c"], "<text:p>A &lt; B &amp; C</text:p>"),
        ("<text:p> 12 </text:p><text:p/>", [], "<text:p> 12 </text:p><text:p/>"),
        (f"<text:p>Text{FOOTNOTE}</text:p>", ["A note", "Text"],
            f"<text:p>TEXT{FOOTNOTE.replace('A note', 'A NOTE')}</text:p>"),
        (f"<text:p>{BOX}</text:p>", ["Described", "In a box"],
            f"<text:p>{BOX.replace('In a box', 'IN A BOX').replace('Described', 'DESCRIBED')}</text:p>"),
        (f"<text:p>{BOX}Text</text:p>", ["Described", "In a box", "Text"],
            f"<text:p>{BOX.replace('In a box', 'IN A BOX').replace('Described', 'DESCRIBED')}TEXT</text:p>"),
        ("<table:table-cell table:formula='of:=A1' office:string-value='no'><text:p>no</text:p>"
            "</table:table-cell><table:table-cell><text:p>yes</text:p></table:table-cell>", ["yes"], None),
        ("<text:tracked-changes><text:changed-region><text:deletion><text:p>old</text:p></text:deletion>"
            "</text:changed-region></text:tracked-changes><text:p>new</text:p>", ["new"], None),
        ("<office:annotation><dc:creator>Anna</dc:creator><text:p>A comment</text:p></office:annotation>",
            ["A comment"], None),
        ("<text:list><text:list-item><text:p>item</text:p></text:list-item></text:list>", ["item"],
            "<text:list><text:list-item><text:p>ITEM</text:p></text:list-item></text:list>"),
    ],
)  # fmt: skip
def test_segments_of_a_text(body, found, expected):
    data = odt(body)
    document = read("a.odt", data)
    assert sorted(texts(document)) == found
    assert same_files(kept(document), data)
    result = shouted(document)
    assert {**unpacked(result), "content.xml": b""} == {**unpacked(data), "content.xml": b""}
    assert expected is None or body_of(result) == expected


def test_a_text_in_a_box_is_translated_also_if_the_text_around_it_stays():
    document = read("a.odt", odt(f"<text:p>Text{BOX}</text:p>"))
    result = body_of(document.render([text.replace("In a box", "Im Kasten") for text in texts(document)]))
    assert result == f"<text:p>Text{BOX.replace('In a box', 'Im Kasten')}</text:p>"


def test_formats_follow_their_words():
    body = (
        "<text:p>The <text:span text:style-name='b'>black cat</text:span> sat <text:span "
        "text:style-name='i'>here</text:span>.</text:p>"
    )
    document = read("a.odt", odt(body))
    assert body_of(
        by_alignment(document, ["Hier saß die schwarze Katze."], [[(0, 2), (1, 3), (2, 4), (3, 1), (4, 0)]])
    ) == (
        "<text:p><text:span text:style-name='i'>Hier</text:span> saß die <text:span "
        "text:style-name='b'>schwarze Katze</text:span>.</text:p>"
    )


PIECES = st.lists(
    st.sampled_from([
        "some words ", "<text:span text:style-name='a'>bold <text:span text:style-name='b'>it</text:span></text:span>",
        "<text:tab/>", "<text:s/>", FOOTNOTE, BOX,
        "<text:a xlink:href='x'>link</text:a>", ". And ", "<text:bookmark text:name='n'/>",
        "<text:span text:style-name='c'/>", "(", "<!-- c -->", "<text:line-break/>",
    ]), min_size=1, max_size=6,
).map("".join)  # fmt: skip


@given(PIECES, st.integers(0, 1 << 32))
@settings(max_examples=100)
def test_each_code_is_once_in_a_translation(text, seed):
    rng = random.Random(seed)
    data = odt(f"<text:p>Text {text}</text:p>")
    document = read("a.odt", data)
    assert same_files(kept(document), data)
    words = [
        " ".join(rng.choice(["u", "v.", "<text:p>"]) for _ in range(rng.randrange(1, 6))) for _ in document.segments
    ]
    alignments = [
        [(rng.randrange(len(t.split())), rng.randrange(len(w.split()))) for _ in range(rng.randrange(6))]
        for t, w in zip(texts(document), words, strict=True)
    ]
    result = body_of(by_alignment(document, words, alignments))
    tags = [sorted(re.findall("<[^>]*>", each)) for each in (result, body_of(data))]
    assert tags[0] == tags[1]


def test_headers_properties_and_languages_are_translated():
    styles = (
        '<style:text-properties fo:language="en" fo:country="US"/><style:text-properties fo:language="none"/>'
        "<style:master-page><style:header><text:p>A header</text:p></style:header><draw:frame "
        'presentation:class="title">'
        "<draw:text-box><text:p>Click to edit</text:p></draw:text-box></draw:frame></style:master-page>"
    )
    data = odt(
        "<text:p>Text</text:p>", styles=styles, meta="<dc:title>My title</dc:title><dc:creator>Anna</dc:creator>"
    )
    document = read("a.odt", data)
    assert texts(document) == ["Text", "A header", "My title"]
    assert same_files(kept(document), data)
    result = unpacked(shouted(document, ("en", "de")))
    assert b'fo:language="de" fo:country="none"' in result["styles.xml"]
    assert b'fo:language="none"' in result["styles.xml"]
    assert b"<text:p>A HEADER</text:p>" in result["styles.xml"]
    assert b"<dc:title>MY TITLE</dc:title><dc:creator>Anna</dc:creator>" in result["meta.xml"]


def test_what_a_person_should_know_is_a_note():
    data = unpacked(odt("<text:tracked-changes/><text:p>Text</text:p>"))
    document = read("a.odt", packed({**data, "META-INF/documentsignatures.xml": "<x/>"}))
    assert document.notes == (
        "was signed: the signature is not valid any more",
        "has tracked changes: inserted text is translated, deleted text stays",
    )  # fmt: skip
    assert read("a.odt", odt("<text:p>Text</text:p>")).notes == ()


@pytest.mark.parametrize("name", ["a.odt", "a.ods", "a.odp", "a.ott", "a.odg"])
def test_an_encrypted_file_is_an_error(name):
    files = {
        **unpacked(odt("")),
        "META-INF/manifest.xml": "<manifest:file-entry><manifest:encryption-data/></manifest:file-entry>",
    }
    with pytest.raises(CorpusError, match=f"{name}: encrypted"):
        read(name, packed(files))


def test_xml_that_is_not_well_formed_names_the_file_and_the_line():
    with pytest.raises(CorpusError, match=r"a\.odt: content\.xml:2: not well-formed XML"):
        read("a.odt", odt("<text:p>"))


PAGE = (
    '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html>\n<html xmlns="http://www.w3.org/1999/xhtml" '
    'xml:lang="en"><head>'
    '<title>A page</title></head><body><p>The <b>black cat</b> sat.<br/>More</p><img src="a.png" alt="A cat"/>'
    "</body></html>\n"
)
OPF = (
    '<package xmlns:dc="dc"><metadata><dc:title>A book</dc:title><dc:creator>Anna</dc:creator><dc:language>en-US'
    "</dc:language>"
    "</metadata></package>"
)
NCX = "<ncx><navMap><navPoint><navLabel><text>Chapter one</text></navLabel></navPoint></navMap></ncx>"


def epub(**files: str | bytes) -> bytes:
    own = {
        "mimetype": "application/epub+zip",
        "OEBPS/a.xhtml": PAGE,
        "OEBPS/content.opf": OPF,
        "OEBPS/toc.ncx": NCX,
        "OEBPS/style.css": "p {}",
    }
    return packed({**own, **files})


def test_a_book():
    document = read("a.epub", epub())
    assert texts(document) == ["A page", "The black cat sat.", "More", "A cat", "A book", "Chapter one"]
    assert same_files(kept(document), epub())
    result = unpacked(shouted(document, ("en", "de")))
    assert result["OEBPS/a.xhtml"].decode() == (
        PAGE.replace('xml:lang="en"', 'xml:lang="de"').replace("A page", "A PAGE").replace("The <b>black cat</b> sat",
        "THE <b>BLACK CAT</b> SAT")
        .replace("More", "MORE").replace("A cat", "A CAT")
    )  # fmt: skip
    ElementTree.fromstring(result["OEBPS/a.xhtml"])
    assert result["OEBPS/content.opf"].decode() == OPF.replace("A book", "A BOOK").replace("en-US", "de")
    assert b"<text>CHAPTER ONE</text>" in result["OEBPS/toc.ncx"]
    assert result["OEBPS/style.css"] == b"p {}"


def test_pages_of_a_book_may_have_names_of_xml():
    names = {"OEBPS/b.xml": PAGE, "OEBPS/C.XHTML": PAGE, "META-INF/container.xml": "<container>no text</container>"}
    assert texts(read("a.epub", epub(**names))).count("The black cat sat.") == 3


def test_a_book_that_is_protected_is_an_error():
    with pytest.raises(CorpusError, match=r"a\.epub: protected against copying"):
        read("a.epub", epub(**{"META-INF/encryption.xml": "<encryption><EncryptedKey/></encryption>"}))
    assert read("a.epub", epub(**{"META-INF/encryption.xml": "<encryption><EncryptedData/></encryption>"})).segments


def test_texts_of_charts_and_words_with_ruby_are_translated():
    ruby = "<text:ruby><text:ruby-base>Tokyo</text:ruby-base><text:ruby-text>reading</text:ruby-text></text:ruby>"
    data = odt(f"<text:p>We see {ruby} today.</text:p>", **{"Object 1/content": "<text:p>Title of a chart</text:p>"})
    document = read("a.odt", data)
    assert texts(document) == ["We see Tokyo today.", "Title of a chart"]
    assert same_files(kept(document), data)
    result = shouted(document)
    assert "<text:ruby-base>TOKYO</text:ruby-base><text:ruby-text>reading</text:ruby-text>" in body_of(result)
    assert b"TITLE OF A CHART" in unpacked(result)["Object 1/content.xml"]


def test_names_of_authors_and_descriptions_in_html_stay():
    ncx = (
        '<ncx xml:lang="en"><docAuthor><text>Jane Smith</text></docAuthor><docTitle><text>A book</text></docTitle>'
        "</ncx>"
    )
    opf = (
        "<package xml:lang='en-GB' xmlns:dc=\"dc\"><metadata><dc:title>Title</dc:title>"
        "<dc:description>&lt;p&gt;A cat.&lt;/p&gt;</dc:description></metadata></package>"
    )
    document = read("a.epub", epub(**{"OEBPS/toc.ncx": ncx, "OEBPS/content.opf": opf}))
    assert not {"Jane Smith", "A cat."} & {*texts(document)}
    result = unpacked(shouted(document, ("en", "de")))
    assert result["OEBPS/toc.ncx"].decode() == ncx.replace('"en"', '"de"').replace("A book", "A BOOK")
    assert result["OEBPS/content.opf"].decode() == opf.replace("'en-GB'", '"de"').replace("Title", "TITLE")
