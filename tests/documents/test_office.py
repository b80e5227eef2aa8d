"""Oracles: python-docx, python-pptx and openpyxl write the files and read the output again."""

import io
import random
import re
import zipfile
from xml.etree import ElementTree

import docx
import openpyxl
import pptx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.comments import Comment
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.table import Table
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.oxml import parse_xml

from glassformer.documents.package import Package
from glassformer.errors import CorpusError
from tests.documents.test_tmx import by_alignment, kept, read, shouted, shuffled, texts

quick = settings(max_examples=60)
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
NAMES = f'xmlns:w="{W}" xmlns:r="r" xmlns:a="a" xmlns:wp="wp" xmlns:wps="wps" xmlns:v="v" xmlns:mc="mc"'
XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'


def packed(files: dict[str, str | bytes]) -> bytes:
    """An archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def unpacked(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def word(body: str, **files: str) -> bytes:
    """A document of Word."""
    document = f"{XML}<w:document {NAMES}><w:body>{body}<w:sectPr/></w:body></w:document>"
    others = {f"word/{name}.xml": f"{XML}<w:x {NAMES}>{content}</w:x>" for name, content in files.items()}
    return packed({"[Content_Types].xml": "<Types/>", "word/document.xml": document, **others})


def run(text: str, properties: str = "") -> str:
    properties = f"<w:rPr>{properties}</w:rPr>" if properties else ""
    return f'<w:r>{properties}<w:t xml:space="preserve">{text}</w:t></w:r>'


def body_of(data: bytes) -> str:
    text = unpacked(data)["word/document.xml"].decode()
    ElementTree.fromstring(text)
    return text.partition("<w:body>")[2].removesuffix("<w:sectPr/></w:body></w:document>")


def runs_of(data: bytes) -> list[tuple[str, str]]:
    """Format and text of each run that has text; those of the same format that follow each other are one."""
    found: list[tuple[str, str]] = []
    for node in ElementTree.fromstring(unpacked(data)["word/document.xml"]).iter(f"{{{W}}}r"):
        properties = node.find(f"{{{W}}}rPr")
        format = "" if properties is None else " ".join(child.tag.rpartition("}")[2] for child in properties)
        text = "".join(each.text or "" for each in node.findall(f"{{{W}}}t"))
        if found and text and found[-1][0] == format:
            found[-1] = format, found[-1][1] + text
        elif text:
            found.append((format, text))
    return found


def same_files(one: bytes, other: bytes) -> bool:
    return unpacked(one) == unpacked(other) and list(unpacked(one)) == list(unpacked(other))


def test_a_space_at_an_edge_of_a_format_stays_one_space():
    for runs in (
        [("See the ", ""), ("big ", "<w:b/>"), ("dogs here today.", "")],
        [("See the", ""), (" big", "<w:b/>"), (" dogs here today.", "")],
    ):
        document = read("a.docx", word(f"<w:p>{''.join(run(*each) for each in runs)}</w:p>"))
        found = runs_of(shouted(document))
        assert "".join(text for _, text in found) == "SEE THE BIG DOGS HERE TODAY."
        assert ("b", "BIG") in [(format, text.strip()) for format, text in found]
        assert "  " not in "".join(text for _, text in runs_of(shuffled(document, 3)))


CROSSING = (
    run("The ") + '<w:commentRangeStart w:id="0"/>' + run("red ") + '<w:hyperlink r:id="r1">' + run("cat")
    + '<w:commentRangeEnd w:id="0"/>' + run(" sat there") + "</w:hyperlink>" + run(" down now.")
)  # fmt: skip


def test_ranges_may_cross_elements():
    document = read("a.docx", word(f"<w:p>{CROSSING}</w:p>"))
    for seed in range(100):
        body = body_of(shuffled(document, seed))  # well-formed
        assert body.index("<w:hyperlink") < body.index("</w:hyperlink>")


def test_properties_of_smart_tags_stay_first_and_hyphens_are_text():
    start = '<w:smartTag w:element="City"><w:smartTagPr><w:attr w:name="a"/></w:smartTagPr>'
    tag = f"{start}{run('Paris')}</w:smartTag>"
    hyphens = "<w:r><w:t>A well</w:t><w:noBreakHyphen/><w:t>known e</w:t><w:softHyphen/><w:t>mail of </w:t></w:r>"
    document = read("a.docx", word(f"<w:p>{hyphens}{tag}{run(' now.')}</w:p>"))
    assert texts(document) == ["A well-known email of Paris now."]
    body = body_of(shouted(document))
    assert re.search('<w:smartTag w:element="City"><w:smartTagPr><w:attr w:name="a"/></w:smartTagPr><w:r>', body)
    assert body.count("smartTagPr>") == 2


def test_cells_keep_the_prefix_of_their_names():
    rich = "<x:r><x:t xml:space='preserve'>Hello </x:t></x:r><x:r><x:rPr><x:b/></x:rPr><x:t>world</x:t></x:r>"
    text = f'{XML}<x:sst xmlns:x="x"><x:si>{rich}</x:si></x:sst>'
    document = read("a.xlsx", packed({"[Content_Types].xml": "<Types/>", "xl/sharedStrings.xml": text}))
    result = unpacked(shouted(document))["xl/sharedStrings.xml"]
    assert {node.tag.partition("}")[0] for node in ElementTree.fromstring(result).iter()} == {"{x"}
    assert "".join(ElementTree.fromstring(result).itertext()) == "HELLO WORLD"


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        (
            [("Please read the manual", ""), (" ", "<w:b/>"), ("before use", "<w:b/>")],
            [("", "PLEASE READ THE MANUAL "), ("b", "BEFORE USE")],
        ),
        (
            [("Then ", ""), ("click", "<w:b/>"), (" ", "<w:b/>"), ("here", "<w:b/>"), (" and wait for it.", "")],
            [("", "THEN "), ("b", "CLICK HERE"), ("", " AND WAIT FOR IT.")],
        ),
    ],
)
def test_spaces_in_runs_of_their_own_stay_where_they_are(runs, expected):
    document = read("a.docx", word(f"<w:p>{''.join(run(*each) for each in runs)}</w:p>"))
    assert runs_of(shouted(document)) == expected


LINK = f'<w:hyperlink r:id="r1" w:history="1">{run("the link", "<w:u/>")}</w:hyperlink>'
FIELD = (
    '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText xml:space="preserve"> {} </w:instrText></w:r>'
    '<w:r><w:fldChar w:fldCharType="separate"/></w:r>{}<w:r><w:fldChar w:fldCharType="end"/></w:r>'
)
NOTE = '<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:footnoteReference w:id="2"/></w:r>'
BOX = "<w:r><w:pict><v:textbox><w:txbxContent><w:p>{}</w:p></w:txbxContent></v:textbox></w:pict></w:r>"


@pytest.mark.parametrize(
    ("paragraph", "found"),
    [
        (run("The cat sat."), ["The cat sat."]),
        (run("The ") + run("black", "<w:b/>") + run(" cat."), ["The black cat."]),
        (run("See ") + LINK + run(" now"), ["See the link now"]),
        (run("One. Two."), ["One.", "Two."]), (run("O") + run("ne wo") + run("rd"), ["One word"]),
        (run("12") + NOTE, []), (run("A word") + NOTE + run(", next"), ["A word, next"]),
        ("<w:r><w:t>one</w:t><w:tab/><w:t>two</w:t><w:br/><w:t>three</w:t></w:r>", ["one two three"]),
        (run("Page ") + FIELD.format("PAGE", run("three")) + run(" of"), ["Page of"]),
        (f'<w:fldSimple w:instr="AUTHOR">{run("Anna")}</w:fldSimple>{run("Text")}', ["Text"]),
        (FIELD.format('HYPERLINK "x"', run("a link")), ["a link"]),
        (f"<w:ins w:id='1'>{run('new')}</w:ins><w:del w:id='2'><w:r><w:delText>old</w:delText></w:r>"
            f"</w:del>{run(' text')}", ["new text"]),
        (f"<w:moveFrom w:id='1'>{run('moved')}</w:moveFrom>{run('Text')}", ["Text"]),
        (f"<w:sdt><w:sdtPr><w:alias w:val='x'/></w:sdtPr><w:sdtContent>{run('Field')}</w:sdtContent>"
            f"</w:sdt>{run(' text')}", ["Field text"]),
        (f"<w:bookmarkStart w:id='1' w:name='b'/>{run('Text')}<w:bookmarkEnd w:id='1'/><w:proofErr w:type='x'/>",
            ["Text"]), (run(" &lt;b&gt; &amp; c "), ["<b> & c"]), ("", []), ("<w:r/>", []),
        (BOX.format(run("In a box")), ["In a box"]), (run("Text") + BOX.format(run("In a box")), ["Text", "In a box"]),
        (FIELD.format("PAGEREF x", run("three")) + BOX.format(run("In a box")), ["In a box"]),
        (run("x") + BOX.format(run("a") + BOX.format(run("b"))), ["x", "b", "a"]),
    ],
)  # fmt: skip
def test_segments_of_a_paragraph(paragraph, found):
    data = word(f'<w:p w:rsidR="1"><w:pPr><w:jc w:val="left"/></w:pPr>{paragraph}</w:p>')
    document = read("a.docx", data)
    assert sorted(texts(document)) == sorted(found)
    assert same_files(kept(document), data)
    result = shouted(document)
    assert unpacked(result).keys() == unpacked(data).keys()
    assert body_of(result).startswith('<w:p w:rsidR="1"><w:pPr><w:jc w:val="left"/></w:pPr>')
    visible = "".join(ElementTree.fromstring(f"<x {NAMES}>{body_of(result)}</x>").itertext())
    for text in found:
        assert all(each in visible for each in re.findall(r"\w+", text.upper()))


def test_formats_follow_their_words():
    data = word(f"<w:p>{run('The ')}{run('black cat', '<w:b/>')}{run(' sat ')}{run('here', '<w:i/>')}{run('.')}</w:p>")
    document = read("a.docx", data)
    result = by_alignment(document, ["Hier saß die schwarze Katze."], [[(0, 2), (1, 3), (2, 4), (3, 1), (4, 0)]])
    assert runs_of(result) == [("i", "Hier"), ("", " saß die "), ("b", "schwarze Katze"), ("", ".")]


def test_a_format_of_a_word_in_parentheses_stays_at_the_word():
    document = read("a.docx", word(f"<w:p>{run('See the (')}{run('Note', '<w:b/>')}{run(') there now')}</w:p>"))
    assert runs_of(shouted(document)) == [("", "SEE THE ("), ("b", "NOTE"), ("", ") THERE NOW")]


def test_a_footnote_follows_its_word_without_a_space():
    document = read("a.docx", word(f"<w:p>{run('A word')}{NOTE}{run(' and more text')}</w:p>"))
    result = re.sub("<w:footnoteReference[^>]*>", "*", body_of(shouted(document)))
    assert re.sub("<[^>]*>", "", result) == "A WORD* AND MORE TEXT"


def test_marks_of_the_speller_do_not_divide_a_text():
    languages = [f"<w:lang w:val='{code}'/>".replace("'", '"') for code in ("en-US", "de-DE")]
    paragraph = (
        run("The ", languages[0])
        + "<w:proofErr w:type='spellStart'/>"
        + run("cat", languages[1])
        + run(" sat", "<w:noProof/>")
    )
    document = read("a.docx", word(f"<w:p>{paragraph}</w:p>"))
    (segment,) = document.segments
    assert segment.codes == ()
    assert runs_of(shouted(document)) == [("", "THE CAT SAT")]


PIECES = {
    "bold": run("bold words", "<w:b/>"), "link": LINK, "tab": "<w:r><w:tab/></w:r>", "note": NOTE,
    "page": FIELD.format("PAGE", run("3")),
    "field link": FIELD.format('HYPERLINK "x"', run("other link")), "plain": run(" some words. And "),
    "comma": run(", "), "italic": run("it", "<w:i/>"),
    "bookmark": f'<w:bookmarkStart w:id="1"/>{run(" marked ")}<w:bookmarkEnd w:id="1"/>',
    "box": BOX.format(run("in a box")),
}  # fmt: skip


@given(st.permutations(list(PIECES)), st.integers(1, len(PIECES)), st.integers(0, 1 << 32))
@settings(max_examples=150)
def test_each_code_is_once_in_a_translation_and_those_of_a_pair_are_in_order(order, n, seed):
    rng = random.Random(seed)
    names = order[:n]
    data = word(f"<w:p>{run('Text')}{''.join(PIECES[name] for name in names)}</w:p>")
    document = read("a.docx", data)
    words = [" ".join(rng.choice(["u", "v.", "<w:p>"]) for _ in range(rng.randrange(1, 6))) for _ in document.segments]
    alignments = [
        [(rng.randrange(len(t.split())), rng.randrange(len(w.split()))) for _ in range(rng.randrange(6))]
        for t, w in zip(texts(document), words, strict=True)
    ]
    body = body_of(by_alignment(document, words, alignments))
    for code in (
        "<w:tab/>",
        "<w:footnoteReference ",
        "<w:hyperlink ",
        "<w:fldChar ",
        "<w:instrText ",
        "<w:bookmarkStart ",
        "<w:txbxContent>",
    ):
        assert body.count(code) == body_of(data).count(code)
    fields = re.findall('fldCharType="([^"]*)"', body)
    assert fields == ["begin", "separate", "end"] * (len(fields) // 3)
    written = "".join(ElementTree.fromstring(f"<x {NAMES}>{body}</x>").itertext())
    assert written.count("<w:p>") == sum(each.count("<w:p>") for each in words)


def test_a_field_of_a_link_is_begun_before_it_ends_in_any_order_of_words():
    data = word(f"<w:p>{run('See ')}{FIELD.format('HYPERLINK', run('the link text'))}{run(' now please')}</w:p>")
    result = body_of(by_alignment(read("a.docx", data), ["A b, c d e f"], [[(0, 1), (2, 0), (4, 0)]]))
    assert re.findall('fldCharType="([^"]*)"', result) == ["begin", "separate", "end"]


@pytest.mark.parametrize("mark", ["bookmark", "commentRange"])
def test_a_range_begins_before_it_ends_in_any_order_of_words(mark):
    text = f'{run("See, ")}<w:{mark}Start w:id="1"/>{run("the link, text")}<w:{mark}End w:id="1"/>{run(" now please")}'
    document = read("a.docx", word(f"<w:p>{text}</w:p>"))
    for alignment in ([(0, 3), (2, 0), (4, 4), (5, 3)], [(0, 5), (2, 4), (3, 2), (4, 1), (5, 5)]):
        result = body_of(by_alignment(document, ["A b, c d e f"], [alignment]))
        assert re.findall(f"{mark}(Start|End)", result) == ["Start", "End"]


@pytest.mark.parametrize("is_outer_changed", [False, True])
def test_a_text_in_a_box_stays_in_its_place(is_outer_changed):
    data = word(f"<w:p>{run('Before ')}{BOX.format(run('In the box'))}{run('after')}</w:p><w:p>{run('Next')}</w:p>")
    document = read("a.docx", data)
    translations = {"In the box": "IM KASTEN"}
    if is_outer_changed:
        translations["Before after"] = "Vor nach"
    result = body_of(document.render([translations.get(text, text) for text in texts(document)]))
    inner = re.search("<w:txbxContent>(.*?)</w:txbxContent>", result)[1]
    assert "".join(re.findall("<w:t[^>]*>([^<]*)", inner)) == "IM KASTEN"
    rest = result.replace(inner, "")
    outer = "Vor nach" if is_outer_changed else "Before after"
    assert " ".join("".join(re.findall("<w:t[ >][^<>]*>?([^<]*)", rest)).replace("Next", "").split()) == outer
    if not is_outer_changed:
        assert rest == body_of(data).replace(f"<w:p>{run('In the box')}</w:p>", "")


def test_a_box_and_its_copy_for_old_programs_are_both_translated():
    box = f"<w:txbxContent><w:p>{run('In the box')}</w:p></w:txbxContent>"
    both = (
        f"<w:r><mc:AlternateContent><mc:Choice><wps:txbx>{box}</wps:txbx></mc:Choice><mc:Fallback>{box}"
        "</mc:Fallback></mc:AlternateContent></w:r>"
    )
    for paragraph in (both, run("Text") + both, both + run("Text") + both):
        result = body_of(shouted(read("a.docx", word(f"<w:p>{paragraph}</w:p>"))))
        assert result.count("IN THE BOX") == paragraph.count("In the box")
        assert "In the box" not in result


def test_two_equal_boxes_can_have_different_translations():
    data = word(f"<w:p>{BOX.format(run('Box'))}{run('Text')}{BOX.format(run('Box'))}</w:p>")
    document = read("a.docx", data)
    numbers = iter("12")
    translations = [next(numbers) if text == "Box" else text for text in texts(document)]
    assert re.findall(r"<w:t[^>]*>([^<]+)</w:t>", body_of(document.render(translations))) == ["1", "Text", "2"]


def test_alternative_texts_are_translated():
    drawing = (
        '<w:r><w:drawing><wp:inline><wp:docPr id="1" name="Picture 1" descr="A &quot;cat&quot;" '
        "title='Cats'/></wp:inline></w:drawing></w:r>"
    )
    for paragraph in (drawing, run("Text") + drawing):
        data = word(f"<w:p>{paragraph}</w:p>")
        document = read("a.docx", data)
        assert {'A "cat"', "Cats"} <= {*texts(document)}
        assert same_files(kept(document), data)
        assert 'name="Picture 1" descr="A &quot;CAT&quot;" title="CATS"/>' in body_of(shouted(document))


def test_all_that_a_reader_sees_of_a_document_is_translated():
    document = docx.Document()
    document.core_properties.title = "My title"
    document.core_properties.author = "No Name"
    document.add_heading("A heading", 1)
    paragraph = document.add_paragraph("Some ")
    paragraph.add_run("bold").bold = True
    paragraph.add_run(" text.")
    document.add_table(1, 2).cell(0, 1).text = "A cell"
    document.sections[0].header.paragraphs[0].text = "A header"
    document.sections[0].footer.paragraphs[0].text = "A footer"
    if hasattr(document, "add_comment"):
        document.add_comment(paragraph.runs, text="A comment", author="Anna")
    out = io.BytesIO()
    document.save(out)
    found = read("a.docx", out.getvalue())
    assert same_files(kept(found), out.getvalue())
    again = docx.Document(io.BytesIO(shouted(found)))
    assert [p.text for p in again.paragraphs if p.text] == ["A HEADING", "SOME BOLD TEXT."]
    assert again.paragraphs[0].style.name == "Heading 1"
    assert [r.text for p in again.paragraphs for r in p.runs if r.bold] == ["BOLD"]
    assert again.tables[0].cell(0, 1).text == "A CELL"
    assert again.sections[0].header.paragraphs[0].text == "A HEADER"
    assert again.sections[0].footer.paragraphs[0].text == "A FOOTER"
    assert (again.core_properties.title, again.core_properties.author) == ("MY TITLE", "No Name")
    if hasattr(document, "add_comment"):
        assert [comment.text for comment in again.comments] == ["A COMMENT"]


@pytest.mark.parametrize("name", ["header1", "footer2", "footnotes", "endnotes", "comments"])
def test_other_parts_of_a_document_are_translated(name):
    data = word(f"<w:p>{run('Text')}</w:p>", **{name: f"<w:p>{run('Other text')}</w:p>"})
    assert b"OTHER TEXT" in unpacked(shouted(read("a.docx", data)))[f"word/{name}.xml"]


def test_a_link_whose_words_have_no_translation_is_around_the_word_beside_it():
    link = f'<w:hyperlink r:id="r1">{run("this")}</w:hyperlink>'
    document = read("a.docx", word(f"<w:p>{run('Read ')}{link}{run(' now.')}</w:p>"))
    body = body_of(by_alignment(document, ["Lies jetzt."], [[(0, 0), (2, 1)]]))
    inside = body.partition("<w:hyperlink")[2].partition("</w:hyperlink>")[0]
    assert re.sub("<[^>]*>", "", f"<w{inside}").strip() == "jetzt"


@pytest.mark.parametrize("suffix", [".docm", ".dotx", ".dotm"])
def test_templates_are_documents(suffix):
    data = word(f"<w:p>{run('Text')}</w:p>")
    assert shouted(read(f"a{suffix}", data)) == shouted(read("a.docx", data))


def test_the_language_of_styles_becomes_the_target_language():
    data = word(f"<w:p>{run('Text')}</w:p>", styles='<w:lang w:val="en-US" w:eastAsia="ja-JP"/><w:lang w:val="fr-FR"/>')
    result = unpacked(shouted(read("a.docx", data), ("en", "de")))["word/styles.xml"].decode()
    assert '<w:lang w:val="de" w:eastAsia="ja-JP"/><w:lang w:val="fr-FR"/>' in result
    assert same_files(kept(read("a.docx", data)), data)


@pytest.mark.parametrize(
    ("paragraph", "files", "note"),
    [
        (f"<w:ins w:id='1'>{run('a')}</w:ins>", {},
            "has tracked changes: inserted text is translated, deleted text stays"),
        (f"{run('a')}<w:del w:id='1'/>", {}, "has tracked changes: inserted text is translated, deleted text stays"),
        (run("a"), {"_xmlsignatures/sig1.xml": "<x/>"}, "was signed: the signature is not valid any more"),
        (run("a"), {"word/vbaProject.bin": b"\0"}, "has macros, which are copied"),
    ],
)  # fmt: skip
def test_what_a_person_should_know_is_a_note(paragraph, files, note):
    data = packed({**unpacked(word(f"<w:p>{paragraph}</w:p>")), **files})
    found = read("a.docx", data)
    assert found.notes == (note,)
    assert (
        unpacked(shouted(found)).items()
        >= {name: content.encode() if isinstance(content, str) else content for name, content in files.items()}.items()
    )
    assert read("a.docx", word(f"<w:p>{run('a')}</w:p>")).notes == ()


def test_the_languages_of_formats_of_a_presentation_become_the_target_language():
    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[5])
    slide.shapes.title.text = "The title\vof it"
    frame = slide.shapes.add_textbox(0, 0, 9, 9).text_frame
    frame.text = "12"
    end = '<a:endParaRPr xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" lang="en-GB" altLang="en-US"/>'
    for paragraph in (frame.add_paragraph(), slide.shapes.title.text_frame.paragraphs[0]):
        paragraph._p.append(parse_xml(end))
    for paragraph in (*frame.paragraphs, slide.shapes.title.text_frame.paragraphs[0]):
        for format in paragraph._p.iter():
            if format.tag.endswith(("}r", "}br")):
                format.get_or_add_rPr().set("lang", "en-US")
    slide.notes_slide.notes_text_frame.text = "Bonjour"
    slide.notes_slide.notes_text_frame.paragraphs[0].runs[0]._r.get_or_add_rPr().set("lang", "fr-FR")
    out = io.BytesIO()
    show.save(out)
    data = out.getvalue()
    before, after = unpacked(data), unpacked(shouted(read("a.pptx", data), ("en", "de")))
    slide_text = after["ppt/slides/slide1.xml"].decode()
    assert '</a:r><a:br><a:rPr lang="de"/></a:br><a:r>' in slide_text
    assert '<a:rPr lang="de"/><a:t>12</a:t>' in slide_text
    assert slide_text.count('lang="de" altLang="en-US"/>') == 2
    for name in ("presentation", "slideMasters/slideMaster1", "slideLayouts/slideLayout1", "notesMasters/notesMaster1"):
        changed = re.sub(rb'\slang="en-\w+"', b' lang="de"', before[f"ppt/{name}.xml"])
        assert changed == after[f"ppt/{name}.xml"] != before[f"ppt/{name}.xml"]
    assert not [name for name, content in after.items() if re.search(rb'\slang="en', content)]
    assert same_files(kept(read("a.pptx", data)), data)


def test_slides_their_notes_and_tables_are_translated():
    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[5])
    slide.shapes.title.text = "The title"
    frame = slide.shapes.add_textbox(0, 0, 9, 9).text_frame
    frame.text = "A box\vsecond line"
    runs = [frame.paragraphs[0].add_run() for _ in range(2)]
    runs[0].text, runs[1].text, runs[0].font.bold = " is bold", " here", True
    slide.shapes.add_table(1, 1, 0, 0, 9, 9).table.cell(0, 0).text = "A cell"
    slide.notes_slide.notes_text_frame.text = "What to say"
    slide.shapes[1]._element.nvSpPr.cNvPr.set("descr", "Alternative text")
    show.core_properties.title = "My show"
    out = io.BytesIO()
    show.save(out)
    document = read("a.pptx", out.getvalue())
    assert {"The title", "What to say", "A cell", "Alternative text", "My show"} <= {*texts(document)}
    assert not any("Click to edit" in text for text in texts(document))
    assert same_files(kept(document), out.getvalue())
    again = pptx.Presentation(io.BytesIO(shouted(document)))
    shapes = again.slides[0].shapes
    assert shapes.title.text == "THE TITLE"
    paragraph = shapes[1].text_frame.paragraphs[0]
    assert [r.text for r in paragraph.runs if r.font.bold] == ["IS BOLD"]
    assert paragraph.text.endswith("SECOND LINE IS BOLD HERE")
    assert shapes[1].text_frame.text.replace("\v", " ").split() == ["A", "BOX", "SECOND", "LINE", "IS", "BOLD", "HERE"]
    assert shapes[1].text_frame.text.count("\v") == 1
    assert shapes[2].table.cell(0, 0).text == "A CELL"
    assert again.slides[0].notes_slide.notes_text_frame.text == "WHAT TO SAY"
    assert shapes[1]._element.nvSpPr.cNvPr.get("descr") == "ALTERNATIVE TEXT"
    assert again.slide_layouts[5].name == show.slide_layouts[5].name


def workbook(fill) -> bytes:
    book = openpyxl.Workbook()
    fill(book.active)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def test_cells_comments_and_headers_of_a_workbook_are_translated():
    def fill(sheet):
        sheet["A1"], sheet["A2"], sheet["A3"], sheet["B1"] = "Some text. More text.", "12", 7, '=IF(A3>1,"yes","no")'
        sheet["A4"] = "Some text. More text."
        sheet["A1"].comment = Comment("A comment", "Anna")
        sheet.oddHeader.center.text = "Page &P of &N"
        sheet.title = "My sheet"

    data = workbook(fill)
    document = read("a.xlsx", data)
    assert {"Some text.", "More text.", "A comment"} <= {*texts(document)}
    assert not {"12", "yes", "My sheet"} & {*texts(document)}
    assert same_files(kept(document), data)
    sheet = openpyxl.load_workbook(io.BytesIO(shouted(document))).active
    assert [sheet[cell].value for cell in ("A1", "A2", "A3", "B1", "A4")] == [
        "SOME TEXT. MORE TEXT.", "12", 7, '=IF(A3>1,"yes","no")', "SOME TEXT. MORE TEXT.",
    ]  # fmt: skip
    assert sheet["A1"].comment.text == "A COMMENT"
    assert (sheet.oddHeader.center.text, sheet.title) == ("PAGE &P OF &N", "My sheet")


def test_names_of_columns_of_a_table_stay_and_a_note_says_so():
    def fill(sheet):
        sheet.append(["Name", "Price"])
        sheet.append(["Chair", "low"])
        sheet.add_table(Table(displayName="T", ref="A1:B2"))

    document = read("a.xlsx", workbook(fill))
    assert document.notes == ("2 names of columns of tables are not translated, because formulas may use them",)
    sheet = openpyxl.load_workbook(io.BytesIO(shouted(document))).active
    assert [[cell.value for cell in row] for row in sheet.rows] == [["Name", "Price"], ["CHAIR", "LOW"]]
    assert sheet.tables["T"].column_names == ["Name", "Price"]


def cells(*strings: str, **files: str) -> bytes:
    shared = f'{XML}<sst xmlns="x">{"".join(f"<si>{each}</si>" for each in strings)}</sst>'
    return packed(
        {"xl/workbook.xml": "<x/>", "xl/sharedStrings.xml": shared, **{f"xl/{n}.xml": t for n, t in files.items()}}
    )


@pytest.mark.parametrize("header", ["<t>Unit\nprice</t>", "<r><t>Unit</t></r><r><rPr><b/></rPr><t> price</t></r>"])
def test_names_of_columns_with_formats_or_line_ends_stay(header):
    name = "Unit price" if "<r>" in header else "Unit_x000a_price"
    data = cells(
        header,
        "<t>Chair</t>",
        **{"tables/table1": f'<table><tableColumns><tableColumn id="1" name="{name}"/></tableColumns></table>'},
    )
    assert texts(read("a.xlsx", data)) == ["Chair"]


def test_a_line_after_an_end_mark_is_a_sentence_of_its_own():
    document = read("a.xlsx", cells("<t>a dog runs.\na man\nsits there.\n\ntwo women</t>"))
    assert texts(document) == ["a dog runs.", "a man sits there.", "two women"]


@pytest.mark.parametrize("end", ["\n", "_x000D_\n"])
def test_lines_of_a_cell_stay_lines(end):
    plain = f'<t xml:space="preserve">Name: John{end}{end}Address: Main Street{end}of London. See below</t>'
    rich = f'<r><t>One{end}Two and more </t></r><r><rPr><b/></rPr><t xml:space="preserve">three{end}Four</t></r>'
    data = cells(plain, rich)
    document = read("a.xlsx", data)
    assert texts(document) == [
        "Name: John",
        "Address: Main Street of London.",
        "See below",
        "One",
        "Two and more three Four",
    ]
    assert same_files(kept(document), data)
    result = unpacked(shouted(document))["xl/sharedStrings.xml"].decode()
    assert f"NAME: JOHN{end}{end}ADDRESS: MAIN STREET {end}OF LONDON. SEE BELOW<" in result
    text = "".join(node.text for node in list(ElementTree.fromstring(result))[1].iter() if node.text)
    assert text == f"ONE{end}TWO AND MORE THREE {end}FOUR"


def test_formats_in_a_cell_follow_their_words():
    text = (
        '<r><t xml:space="preserve">The </t></r><r><rPr><b/></rPr><t>black cat</t></r><r><t '
        'xml:space="preserve"> sat on it</t></r>'
    )
    document = read("a.xlsx", cells(text, "<t>a &lt; b</t>", "<t/>"))
    assert texts(document) == ["The black cat sat on it", "a < b"]
    assert same_files(kept(document), cells(text, "<t>a &lt; b</t>", "<t/>"))
    result = unpacked(
        by_alignment(
            document, ["Da saß die schwarze Katze", "<c>"], [[(0, 2), (1, 3), (2, 4), (3, 1), (4, 0), (5, 0)], []]
        )
    )
    found = ElementTree.fromstring(result["xl/sharedStrings.xml"])
    runs = [(r.find("{x}rPr") is not None, r.find("{x}t").text or "") for r in found[0]]
    assert "".join(text for is_bold, text in runs if is_bold) == "schwarze Katze"
    assert "".join(text for _, text in runs) == "Da saß die schwarze Katze"
    assert found[1][0].text == "<c>"


@pytest.mark.parametrize("name", ["a.docx", "a.docm", "a.pptx", "a.pptm", "a.xlsx", "a.xlsm", "A.DOCX"])
def test_the_kind_of_a_file_is_in_its_content(name):
    assert texts(read(name, word(f"<w:p>{run('Text')}</w:p>"))) == ["Text"]


def test_xml_of_a_package_that_is_not_well_formed_names_the_file_and_the_line():
    with pytest.raises(CorpusError, match=r"a\.docx: word/document\.xml:2: not well-formed XML: mismatched tag"):
        read("a.docx", word("<w:p>"))
    data = packed({"word/document.xml": '<!DOCTYPE x [<!ENTITY a "b">]><x/>'})
    with pytest.raises(CorpusError, match=r"a\.docx: word/document\.xml:1: declares the entity 'a'"):
        read("a.docx", data)


def test_a_document_without_texts_is_copied():
    data = word("<w:p/>")
    document = read("a.docx", data)
    assert (document.segments, document.entries, document.only("all")) == ([], [], document)
    assert isinstance(document, Package)
    assert same_files(kept(document), data)


def test_characters_that_xml_does_not_have_are_left_out():
    found = read("a.docx", word(f"<w:p>{run('A cat')}</w:p>")).render(["Un \x19chat\x00"])
    assert [text for _, text in runs_of(found)] == ["Un chat"]


def test_threaded_comments_of_a_workbook_are_translated():
    comment = (
        '<ThreadedComments><threadedComment ref="A1"><text>See the note</text></threadedComment></ThreadedComments>'
    )
    data = cells("<t>Chair</t>", **{"threadedComments/threadedComment1": comment})
    document = read("a.xlsx", data)
    assert sorted(texts(document)) == ["Chair", "See the note"]
    assert b"SEE THE NOTE" in unpacked(shouted(document))["xl/threadedComments/threadedComment1.xml"]


@pytest.mark.parametrize("prefix", ["ns0:", ""])
def test_another_prefix_than_that_of_office_is_refused(prefix):
    document = unpacked(word(f"<w:p>{run('The cat.')}</w:p>"))["word/document.xml"].decode()
    names = f"xmlns:{prefix[:-1]}=" if prefix else "xmlns="
    other = document.replace("xmlns:w=", names).replace("<w:", f"<{prefix}").replace("</w:", f"</{prefix}")
    message = rf"a\.docx: word/document\.xml: its elements have the prefix '{prefix[:-1]}' in place of 'w'\.\n  Save"
    with pytest.raises(CorpusError, match=message):
        read("a.docx", packed({"[Content_Types].xml": "<Types/>", "word/document.xml": other}))


def test_labels_of_charts_are_translated_and_a_note_names_their_tables():
    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[6])
    data = CategoryChartData()
    data.categories = ["East region", "2019"]
    data.add_series("First quarter", (1.5, 2))
    slide.shapes.add_chart(XL_CHART_TYPE.PIE, 0, 0, 99, 99, data)
    out = io.BytesIO()
    show.save(out)
    document = read("a.pptx", out.getvalue())
    assert {"East region", "First quarter"} <= {*texts(document)}
    assert "2019" not in texts(document)
    assert document.notes == (
        "has embedded tables, such as those of charts (they stay): a chart has them again when it is edited",
    )
    chart = pptx.Presentation(io.BytesIO(shouted(document))).slides[0].shapes[0].chart
    assert list(chart.plots[0].categories) == ["EAST REGION", "2019"]
    assert chart.series[0].name == "FIRST QUARTER"


def test_a_note_names_texts_of_cells_that_are_compared():
    def fill(sheet):
        for row in (["Done", 1], ["Open", 2], ["Later", 3], ["Never", 4], ["Free text", 5]):
            sheet.append(row)
        sheet["C1"] = '=SUMIF(A1:A2,"Done",B1:B2)&"Unused"'
        sheet.add_data_validation(DataValidation(type="list", formula1='"Open,Closed"', sqref="A1:A9"))
        sheet.auto_filter.ref = "A1:A5"
        sheet.auto_filter.add_filter_column(0, ["Later"])

    notes = read("a.xlsx", workbook(fill)).notes
    assert notes == (
        "3 texts of cells are compared in formulas, lists of values or filters, which stay: Done, Later, Open",
    )
    assert not read("a.xlsx", workbook(lambda sheet: sheet.append(["Done", "=1+1"]))).notes


def test_watermarks_and_captions_of_tables_are_translated():
    shape = '<v:shape id="s" alt="A stamp"><v:textpath style="x" string="Draft copy"/></v:shape>'
    table = '<w:tbl><w:tblPr><w:tblCaption w:val="All prices"/></w:tblPr></w:tbl>'
    data = word(table, header1=f"<w:p><w:r><w:pict>{shape}</w:pict></w:r></w:p>")
    document = read("a.docx", data)
    assert sorted(texts(document)) == ["A stamp", "All prices", "Draft copy"]
    assert same_files(kept(document), data)
    found = unpacked(shouted(document))
    assert b'alt="A STAMP"><v:textpath style="x" string="DRAFT COPY"/>' in found["word/header1.xml"]
    assert b'w:val="ALL PRICES"' in found["word/document.xml"]


def test_the_language_of_properties_becomes_the_target_language():
    core = "<cp:coreProperties><dc:title>A book</dc:title><dc:language>en-US</dc:language></cp:coreProperties>"
    core = core.replace("<cp:coreProperties", '<cp:coreProperties xmlns:cp="cp" xmlns:dc="dc"')
    files = unpacked(word(f"<w:p>{run('Text')}</w:p>")) | {"docProps/core.xml": core.encode()}
    document = read("a.docx", packed(files))
    found = unpacked(shouted(document, ("en", "de")))["docProps/core.xml"].decode()
    assert found == core.replace("A book", "A BOOK").replace("en-US", "de")
