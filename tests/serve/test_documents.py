import html
import io
import json
import re
import zipfile

import docx
import pytest

from glassformer.documents.escaping import CONTROLS, escaped
from glassformer.documents.tmx import tmx_units
from glassformer.documents.xliff import xliff_units

OK = {"source": "en", "target": "de"}


def upload(server, name, data, **fields):
    """Translate a file. Returns the answer."""
    parts = [f'--x\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in {**OK, **fields}.items()]
    parts.append(f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n')
    body = "".join(parts).encode() + data + b"\r\n--x--\r\n"
    return server.request("POST", "/translate_file", body, {"Content-Type": "multipart/form-data; boundary=x"})


def download(server, answer):
    assert answer.status == 200, answer.body
    return server.get(re.sub("^http://[^/]*", "", answer.json["translatedFileUrl"]))


def test_a_text_file_is_translated_line_by_line(server):
    lines = ["The cat.", "", "  A dog sat.", "42"]
    found = download(server, upload(server, "über.TXT", "\r\n".join(lines).encode()))
    expected = [server.translate(line.strip()).json["translatedText"] for line in ("The cat.", "A dog sat.")]
    expected = [" ".join(text.split()) for text in expected]
    assert found.body.decode() == f"{expected[0]}\r\n\r\n  {expected[1]}\r\n42"
    assert found.headers["content-disposition"] == "attachment; filename*=UTF-8''%C3%BCber.de.TXT"


def test_a_long_name_keeps_its_suffix(server):
    found = download(server, upload(server, "x" * 300 + ".txt", b"The cat."))
    assert found.headers["content-disposition"] == f"attachment; filename*=UTF-8''{'x' * 200}.de.txt"


def test_html_keeps_its_tags(server):
    text = '<p class="x">The <b>cat</b> &lt;sat&gt;.</p><script>a<b</script>'
    found = server.translate(text, format="html").json["translatedText"]
    assert re.findall("<[^>]*>", found) == ['<p class="x">', "<b>", "</b>", "</p>", "<script>", "<b</script>"]
    (listed,) = server.translate([text], format="html").json["translatedText"]
    assert listed == found
    file = download(server, upload(server, "a.html", text.encode()))
    assert file.body.decode() == found


def test_html_in_the_target_language_says_so_and_its_attributes_are_translated(server):
    text = '<html lang="en"><body><p>A dog.</p><img alt="The cat."></body></html>'
    alt = server.translate("The cat.").json["translatedText"]
    for found in (
        server.translate(text, format="html").json["translatedText"],
        server.translate(text, format="html", source="auto").json["translatedText"],
        download(server, upload(server, "a.html", text.encode())).body.decode(),
    ):
        assert found.startswith('<html lang="de">')
        assert f'<img alt="{html.escape(alt)}">' in found


def test_a_file_in_the_same_language_keeps_its_bytes(server):
    data = b"The cat.\r\n\tA  dog.\n"
    assert download(server, upload(server, "a.txt", data, target="en")).body == data


@pytest.mark.parametrize(
    ("name", "data", "fields", "message"),
    [
        ("a.pdf", b"x", {}, "format not supported"), ("a.txt", b"PK\x03\x04", {}, "zip archive"),
        ("a.txt", b"x", {"target": "xx"}, "xx is not supported"), ("../../a", b"x", {}, "a: format not supported"),
        ("a.txt", b"x", {"progress": "../x"}, "progress"), ("x" * 5000 + ".txt", b"x", {}, "form is damaged"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_translated_is_one_clear_error(server, name, data, fields, message):
    answer = upload(server, name, data, **fields)
    assert answer.status == 400
    assert message in answer.json["error"]


def test_a_request_without_a_file_and_a_file_that_is_too_large(server):
    assert "missing file" in server.post("/translate_file", OK).json["error"]
    assert upload(server, "a.txt", b"a" * (4 << 20)).status == 413
    assert server.get("/download_file/nope.txt").status == 404


def test_a_file_that_is_not_being_translated_has_no_progress(server):
    """The page may ask before the file has arrived; an error would be in the browser's console."""
    answer = server.get("/translate_file/progress/" + "0" * 32)
    assert (answer.status, json.loads(answer.body)) == (200, {"done": 0, "total": 0})


@pytest.mark.parametrize("name", ["a.txt", "a.html", "a.srt"])
def test_terms_and_glossaries_are_applied_to_files(server, name):
    cue = b"1\n00:00:01,000 --> 00:00:02,500\n" if name.endswith("srt") else b""
    data = cue + b"The cat sat with {name}.\n"
    assert b"Kater" not in download(server, upload(server, name, data)).body
    found = download(server, upload(server, name, data, glossary="animals", protect="true")).body
    assert b"Kater" in found
    assert b"{name}" in found
    assert b"Mieze" in download(server, upload(server, name, data, terms='[["cat", "Mieze"]]')).body


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"glossary": "xx"}, "there is no glossary 'xx'; there are: animals"), ({"terms": "cat"}, "list in JSON"),
        ({"terms": '[["cat"]]'}, "terms"), ({"terms": '{"a": 1}'}, "terms"),
    ],
)  # fmt: skip
def test_wrong_terms_of_a_file_are_one_clear_error(server, fields, message):
    answer = upload(server, "a.txt", b"The cat.", **fields)
    assert answer.status == 400
    assert message in answer.json["error"]


PO = (
    'msgid ""\nmsgstr "Language: de\\n"\n\nmsgid "The cat."\nmsgstr ""\n\n'
    '#, fuzzy\nmsgid "A dog sat."\nmsgstr "Ein"\n\nmsgid "The dog."\nmsgstr "Der Hund."\n'
)


def test_only_the_entries_that_are_asked_for_are_translated(server):
    texts = (server.translate(text).json["translatedText"] for text in ("The cat.", "A dog sat."))
    cat, dog = (escaped(" ".join(text.split()), "po") for text in texts)
    expected = PO.replace('"The cat."\nmsgstr ""', f'"The cat."\nmsgstr "{cat}"')
    assert download(server, upload(server, "a.po", PO.encode())).body.decode() == expected
    expected = expected.replace('#, fuzzy\nmsgid "A dog sat."\nmsgstr "Ein"', f'msgid "A dog sat."\nmsgstr "{dog}"')
    assert download(server, upload(server, "a.po", PO.encode(), only="fuzzy")).body.decode() == expected
    assert upload(server, "a.po", PO.encode(), only="some").status == 400


def test_less_confident_translations_are_marked(server):
    for least, is_fuzzy in (("1", True), ("0", False)):
        found = download(server, upload(server, "a.po", PO.encode(), min_confidence=least)).body.decode()
        assert ('#, fuzzy\nmsgid "The cat."' in found) == is_fuzzy


def test_a_file_says_what_the_memory_has(server):
    text = "The cat is in the memory."
    data = (
        '<xliff version="1.2"><file source-language="en" target-language="de"><body>'
        f'<trans-unit id="1"><source>{text}</source></trans-unit></body></file></xliff>'
    ).encode()
    found = download(server, upload(server, "a.xlf", data, memory="old")).body.decode()
    assert '<target state="translated" state-qualifier="exact-match">Die Katze hat ein Gedächtnis.</target>' in found


def visible(text: str) -> str:
    """A text without white space and controls."""
    return "".join(character for character in text if character > " " and not "\x7f" <= character < "\xa0")


@pytest.mark.parametrize(("to", "suffix"), [("tmx", ".tmx"), ("xliff", ".xlf")])
def test_the_texts_and_translations_as_a_file_of_two_languages(server, to, suffix):
    answer = upload(server, "a.md", b"# The cat.\n\nA *dog* sat.\n", to=to)
    assert answer.json["translatedFileUrl"].endswith(f".md{suffix}")
    data = download(server, answer).body
    units = tmx_units("a", [data], ("en", "de")) if to == "tmx" else xliff_units("a", data, ("en", "de"))
    texts = [server.translate(text).json["translatedText"] for text in ("The cat.", "A dog sat.")]
    assert [(unit.src, visible(unit.tgt), unit.state) for unit in units] == [
        ("The cat.", visible(texts[0]), "fuzzy"), ("A dog sat.", visible(texts[1]), "fuzzy"),
    ]  # fmt: skip
    assert upload(server, "a.md", b"x", to="pdf").status == 400


def test_a_file_of_other_languages_is_refused(server):
    answer = upload(server, "a.po", PO.replace("Language: de", "Language: fr").encode())
    assert (answer.status, b"a.po: to fr" in answer.body) == (400, True)


def test_the_answer_has_the_notes_of_a_file(server):
    file = io.BytesIO()
    document = docx.Document()
    document.add_paragraph("The cat.")
    document.save(file)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("word/vbaProject.bin", b"x")
    answer = upload(server, "a.docm", file.getvalue())
    assert answer.json["notes"] == ["has macros, which are copied"]
    found = docx.Document(io.BytesIO(download(server, answer).body))
    expected = " ".join(server.translate("The cat.").json["translatedText"].split())
    assert [paragraph.text for paragraph in found.paragraphs] == [CONTROLS.sub("", expected)]


def test_html_says_what_is_missing_and_cut_off(server):
    terms = [["cat", "Wort " * 30]]
    plain = server.translate("The cat sat on the mat.", terms=terms).json
    found = server.translate("<p>The cat sat on the mat.</p>", terms=terms, format="html").json
    assert found["missing"] == plain["missing"]
    assert found.get("truncated") == plain.get("truncated")
    both = server.translate(["<p>42</p>", "<p>The cat sat on the mat.</p>"], terms=terms, format="html").json
    assert both["missing"] == [[], plain["missing"]]


def test_notes_name_missing_terms_and_what_is_cut_off(server):
    lines = ["The cat sat on the mat.", "The cat. The cat. The cat. The cat.", "42"]
    found = [server.translate(line, terms=[["cat", "Wort " * 30]]).json for line in lines]
    n_cut, n_missing = (sum(bool(each.get(name)) for each in found) for name in ("truncated", "missing"))
    terms = json.dumps([["cat", "Wort " * 30]])
    answer = upload(server, "a.txt", "\n".join(lines).encode(), terms=terms).json
    assert n_missing == 2
    expected = [f"{n_cut} cut off at the maximum length"] if n_cut else []
    assert answer["notes"] == [*expected, f"2 without a term of the glossary: {('Wort ' * 30).strip()}"]
