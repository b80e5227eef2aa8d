"""Oracles: a reader of properties by Java's specification, json, and the bytes of the file."""

import contextlib
import json
import re
from xml.etree import ElementTree

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from glassformer.documents.catalogues import catalogue, unescaped
from glassformer.documents.codes import plain
from glassformer.documents.escaping import escaped
from glassformer.errors import CorpusError
from tests.documents.test_tmx import kept, read, shouted, shuffled, texts

quick = settings(max_examples=80)
ANY = st.text(
    st.characters(codec="utf-8", exclude_characters="\0") | st.sampled_from("ab'\"\\\n\t\r\f {}0:=#!<>&\U0001f600"),
    max_size=20,
)


def values(name: str, data: bytes) -> dict[str, str]:
    """Key -> text as it is in the program."""
    return {item.key: "".join(map(str, item.content)) for item in catalogue(name, data).items}


def java_properties(text: str) -> list[tuple[str, str]]:
    """As java.util.Properties.load."""
    found = []
    lines = iter(re.split("\r\n|\n|\r", text))
    for line in lines:
        line = line.lstrip(" \t\f")
        if not line or line[0] in "#!":
            continue
        while (len(line) - len(line.rstrip("\\"))) % 2:
            line = line[:-1] + next(lines, "").lstrip(" \t\f")
        match = re.match(r"((?:\\.|[^\\:= \t\f])*)[ \t\f]*[:=]?[ \t\f]*(.*)", line, re.DOTALL)
        key, value = (re.sub(r"\\(u[0-9a-fA-F]{4}|.)", java_escape, side) for side in match.groups())
        found.append((key, value.encode("utf-16", "surrogatepass").decode("utf-16")))
    return found


def java_escape(match: re.Match) -> str:
    escape = match[1]
    return (
        chr(int(escape[1:], 16))
        if len(escape) > 1
        else {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}.get(escape, escape)
    )


PROPERTY_TEXT = st.lists(
    st.sampled_from(["a", "key", "b c", "=", ":", " ", "  ", "=v \\\n", ":w\\\r\n", "\n", "\n", "\r\n", "#", "!", "\\ ",
        "\\n", "\\u0041", "\\\\", "\\=", "é", "'", "\t", "x=y"]),
    max_size=14,
).map("".join)  # fmt: skip


@given(PROPERTY_TEXT)
@settings(max_examples=300)
def test_properties_are_read_as_java_reads_them(text):
    expected = java_properties(text)
    assume(all(key for key, _ in expected))
    try:
        items = catalogue("a.properties", text.encode()).items
    except CorpusError:
        items = []
    found = [(item.key, "".join(map(str, item.content))) for item in items]
    assert [pair for pair in found if pair[1]] == [pair for pair in expected if pair[1]]


@given(PROPERTY_TEXT)
@quick
def test_properties_whose_texts_stay_keep_their_bytes(text):
    try:
        document = read("a.properties", text.encode())
    except CorpusError:
        return
    assert kept(document).decode() == text


@given(ANY.filter(lambda text: any(map(str.isalpha, text))), st.booleans())
@quick
def test_a_translation_of_properties_is_read_by_java(text, has_others):
    line = " ".join(text.split())
    document = read("a.properties", f"x = y\nz={'日本' if has_others else ''}\n".encode())
    result = document.render([line, *(["日本"] if has_others else [])]).decode()
    assert dict(java_properties(result))["x"] == line
    assert has_others or result.isascii()


def test_properties():
    text = (
        "# No = comment\r\ntitle = Café \\\r\n   one\r\nmessage=It''s {0} of \\u00e9 {1}\r\nplain=It's "
        "\\:\r\nlines=a\\nb\r\nn=12\r\n\r\n"
    )
    document = read("a.properties", text.encode())
    assert texts(document) == ["Café one", "It's {0} of é {1}", "It's :", "a", "b"]
    result = shouted(document).decode()
    assert result == (
        "# No = comment\r\ntitle = CAF\\u00c9 ONE\r\nmessage=IT''S {0} OF \\u00c9 {1}\r\nplain=IT'S :\r\n"
        "lines=A\\nB\r\nn=12\r\n\r\n"
    )
    assert kept(document).decode() == text


def test_properties_with_other_scripts_stay_readable():
    text = "a=日本\nb=cat\n"
    assert shouted(read("a.properties", text.encode())).decode() == "a=日本\nb=CAT\n"
    assert read("a.properties", text.encode()).render(["日本", "猫"]).decode() == "a=日本\nb=猫\n"


def test_properties_in_latin_1_stay_in_latin_1():
    data = "# é\na=caf\xe9 b\n".encode("latin-1")
    document = read("a.properties", data)
    assert kept(document) == data
    assert document.render(["€ \U0001f600"]) == "# é\na=\\u20ac \\ud83d\\ude00\n".encode("latin-1")


def test_a_space_at_the_beginning_of_a_property_stays():
    text = "a=\\ two words\nb=\\u0020x\n"
    assert dict(java_properties(shouted(read("a.properties", text)).decode())) == {"a": " TWO WORDS", "b": " X"}


@given(ANY)
@quick
def test_escapes_are_read_again(text):
    assert unescaped(escaped(text, "properties")) == text
    assert unescaped(escaped(text, "ascii-properties")) == text
    assert escaped(text, "ascii-properties").isascii()
    assert unescaped(escaped(text, "message")).replace("''", "'") == text
    assert json.loads(f'"{escaped(text, "json")}"') == text
    assert values("a.strings", f'"k" = "{escaped(text, "strings")}";'.encode()) == {"k": text}


STRINGS = (
    '/* A comment = "x"; */\n"open" = "Open \\"it\\"";\n// "no" = "No";\nclose.it = "a\\nb";\n"%d" = '
    '"12";\n"u" = "\\U00e9 x";\n'
)


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_strings_of_apple(codec, newline):
    text = STRINGS.replace("\n", newline)
    document = read("Localizable.strings", text.encode(codec))
    assert texts(document) == ['Open "it"', "a", "b", "é x"]
    assert kept(document) == text.encode(codec)
    expected = text.replace('Open \\"it\\"', 'OPEN \\"IT\\"').replace("a\\nb", "A\\nB").replace("\\U00e9 x", "É X")
    assert shouted(document) == expected.encode(codec)


ANDROID = """<?xml version="1.0" encoding="utf-8"?>
<!-- é -->
<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">
    <string name="a">Don\\'t &amp; <b>stop é</b>!\\nNow</string>
    <string name="b" translatable="false">No</string>
    <string name="c">Hello <xliff:g id="n" example="x">%1$s</xliff:g>
        you</string>
    <plurals name="d"><item quantity="one">%d day</item><item quantity="other">%d days</item></plurals>
    <string-array name="e"><item>First</item><item/><item>2</item></string-array>
    <string name="f"/><color name="g">#fff</color>
    <string name="h"><![CDATA[Some <i>text</i>]]></string>
</resources>
"""


def test_strings_of_android():
    document = read("strings.xml", ANDROID)
    assert texts(document) == ["Don't & stop é!", "Now", "Hello you", "%d day", "%d days", "First", "Some <i>text</i>"]
    assert kept(document).decode() == ANDROID
    result = shouted(document).decode()
    assert '<string name="a">DON\\\'T &amp; <b>STOP É</b>!\\nNOW</string>' in result
    assert '<string name="c">HELLO <xliff:g id="n" example="x">%1$s</xliff:g> YOU</string>' in result
    assert '<item quantity="one">%D DAY</item>' in result
    assert '<string name="b" translatable="false">No</string>' in result
    assert (
        '<item>FIRST</item><item/><item>2</item></string-array>\n    <string name="f"/><color name="g">#fff</color>'
        in result
    )
    assert "".join(ElementTree.fromstring(result).find("string[@name='h']").itertext()) == "SOME <I>TEXT</I>"


@given(
    st.lists(st.sampled_from(["Cat ", "<b>the</b> ", "<i>a <u>b</u></i>", '<xliff:g id="1">%s</xliff:g>', "It\\'s",
        " x. "]), min_size=1, max_size=5),
    st.integers(0, 1 << 32),
)  # fmt: skip
@quick
def test_each_code_of_a_string_of_android_is_once_in_its_translation(parts, seed):
    text = f'<resources xmlns:xliff="x"><string name="a">Text {"".join(parts)}</string></resources>'
    document = read("strings.xml", text)
    results = [ElementTree.fromstring(data)[0] for data in (text, shuffled(document, seed))]
    names = ("b", "i", "u", "g")
    counts = [sorted(node.tag.rpartition("}")[2] for node in root.iter() if node is not root) for root in results]
    assert counts[0] == counts[1]
    assert [node.text for node in results[1].iter() if node.tag.endswith("}g")] == ["%s"] * counts[0].count("g")
    assert set(counts[1]) <= set(names)


@pytest.mark.parametrize(
    ("value", "found", "expected"),
    [
        ("\\'<b>Hello</b>\\' you", "'Hello' you", None), ("\\'<b>Hello</b>\\'", "Hello", "\\'<b>HELLO</b>\\'"),
        ('\\"<b>Hello</b>\\"', "Hello", '\\"<b>HELLO</b>\\"'), ('"It\'s me"', "It's me", None),
        ('"  Two spaces"', "Two spaces", None),
    ],
)  # fmt: skip
def test_quotes_of_android_are_escaped(value, found, expected):
    document = read("strings.xml", f'<resources><string name="a">{value}</string></resources>')
    assert texts(document) == [found]
    result = shouted(document).decode().partition('"a">')[2].partition("</string>")[0]
    outside = result[1:-1] if result[0] == result[-1] == '"' else result
    assert not re.search(r"(?<!\\)['\"]", outside)
    assert expected is None or result == expected


def test_a_reference_to_another_string_of_android_stays():
    text = '<resources><string name="a">@string/other</string><string name="b">Cat</string></resources>'
    assert texts(read("strings.xml", text)) == ["Cat"]


def test_keys_of_android_are_names_with_quantities_and_numbers():
    assert list(values("strings.xml", ANDROID.encode())) == ["a", "c", "d/one", "d/other", "e/0", "e/2", "h"]


JSON = """{
  "@@locale": "en",
  "title": "Caf\\u00e9 \\"x\\"",
  "@title": {"description": "No text", "placeholders": {"a": {"type": "String"}}},
  "menu": {"open": "Open\\nit", "n": 3, "ok": true, "no": null, "": "Empty key"},
  "list": ["one", "two", "3"],
  "n": "{count, plural, one{a} other{b}}"
}
"""


@pytest.mark.parametrize("name", ["a.json", "a.arb", "A.ARB"])
def test_texts_of_json(name):
    document = read(name, JSON)
    assert texts(document) == ['Café "x"', "Open", "it", "Empty key", "one", "two"]
    assert kept(document).decode() == JSON
    result = json.loads(shouted(document))
    assert result["title"] == 'CAFÉ "X"'
    assert result["menu"] == {"open": "OPEN\nIT", "n": 3, "ok": True, "no": None, "": "EMPTY KEY"}
    assert result["list"] == ["ONE", "TWO", "3"]
    assert result["@title"] == json.loads(JSON)["@title"]
    assert document.notes == ("1 texts with plural forms of ICU, or quoted braces, are not translated",)


def test_catalogues_of_chrome_have_texts_only_in_messages():
    text = '{"hello": {"message": "Hello", "description": "A greeting"}}'
    assert shouted(read("messages.json", text)).decode() == text.replace("Hello", "HELLO")


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | ANY,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", 'c"{', "\\"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def upper(value):
    """The value whose texts with letters are in capitals, with single spaces in each line."""
    if isinstance(value, dict):
        return {key: upper(each) for key, each in value.items()}
    if isinstance(value, list):
        return list(map(upper, value))
    if isinstance(value, str) and any(map(str.isalpha, value)):
        return "".join(value.upper().split())
    return "".join(value.split()) if isinstance(value, str) else value


def without_spaces(value):
    if isinstance(value, dict):
        return {key: without_spaces(each) for key, each in value.items()}
    if isinstance(value, list):
        return list(map(without_spaces, value))
    return "".join(value.split()) if isinstance(value, str) else value


def has_text(value) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, str) or any(map(has_text, inner))


@given(JSON_VALUES, st.booleans(), st.sampled_from([None, 1, 2]))
@settings(max_examples=150)
def test_the_result_is_the_json_of_the_translated_texts(value, ascii_only, indent):
    data = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    try:
        document = read("a.json", data)
    except CorpusError:
        assert not has_text(value)
        return
    assert kept(document) == data
    assert without_spaces(json.loads(shouted(document))) == upper(value)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.json", '{"a": "b",\n "c"}', "a.json: not JSON: Expecting ':' delimiter in line 2"),
        ("a.json", "[" * 100_000, "a.json: "), ("a.arb", "", "not JSON"),
        ("a.json", '{"a": 1}', "no texts by key"), ("a.json", '{"a": "b"} x', "not JSON: Extra data in line 1"),
        ("a.json", b"\xff", "not UTF-8"),
        ("a.strings", '"a" = "b";\n"c" = "d"\n', "a.strings:2: expected \"key\" = \"text\"; found '\"c\" = \"d\"'"),
        ("a.strings", "hello", "a.strings:1: expected"),
        ("a.strings", "", "no texts by key"), ("a.properties", "# a\n", "no texts by key"),
        ("a.xml", "<resources/>", "no texts by key"), ("a.xml", "<html/>", "XML whose first element is <html>"),
        ("a.xml", "<resources><string>a</resources>", "a.xml:1: not well-formed"),
        ("a.xml", '<!DOCTYPE resources [<!ENTITY app "App">]><resources/>', "declares the entity 'app'"),
    ],
)  # fmt: skip
def test_a_catalogue_that_cannot_be_read_is_one_clear_error(name, data, message):
    with pytest.raises(CorpusError, match=re.escape(message)):
        read(name, data)


@pytest.mark.parametrize("name", ["a.properties", "a.strings", "a.json"])
@pytest.mark.parametrize("text", ["\\" * 300_000, '"' * 100_001, '"a" = "' * 30_000, "a=\\\n" * 50_000, "/*" * 100_000])
def test_hostile_catalogues_are_read_or_refused_in_time(name, text):
    with contextlib.suppress(CorpusError):
        read(name, text)


def test_texts_of_a_key_are_in_one_line_without_codes():
    items = catalogue("strings.xml", ANDROID.encode()).items
    assert [plain(item.content) for item in items][:2] == ["Don't & stop é! Now", "Hello you"]


def test_the_locale_of_arb_is_that_of_the_translation():
    text = '{\n  "@@locale": "en",\n  "hello": "Hello {name}",\n  "@hello": {"description": "x"}\n}\n'
    document = read("app_en.arb", text)
    assert kept(document).decode() == text
    expected = text.replace('"en"', '"pt_BR"').replace("Hello {name}", "HELLO {NAME}")
    assert shouted(document, languages=("en", "pt-BR")).decode() == expected
    assert [item.key for item in catalogue("app_en.arb", text.encode()).items] == ["hello"]


@pytest.mark.parametrize(
    ("value", "found", "expected"),
    [
        ("\\@home page", "@home page", "\\@HOME PAGE"), ("\\?Really", "?Really", "\\?REALLY"),
        ("Name:\\u0020", "Name:", "NAME:\\u0020"), ('"  Name: "', "Name:", "\\u0020NAME:\\u0020"),
        ("\n    Name: \n  ", "Name:", "NAME:"), ("by me@home", "by me@home", "BY ME@HOME"),
    ],
)  # fmt: skip
def test_what_android_reads_at_the_ends_of_a_text_stays(value, found, expected):
    document = read("strings.xml", f'<resources><string name="a">{value}</string></resources>')
    assert texts(document) == [found]
    assert kept(document).decode().partition('"a">')[2] == f"{value}</string></resources>"
    assert shouted(document).decode().partition('"a">')[2].partition("</string>")[0] == expected


def test_a_catalogue_with_a_key_message_is_not_of_chrome():
    text = '{"error": {"title": "Not saved", "message": "Try again", "description": "Full"}, "ok": "Close"}'
    assert texts(read("a.json", text)) == ["Not saved", "Try again", "Full", "Close"]
    chrome = '{"a": {"message": "Hello", "description": "x"}, "b": {"message": "Bye"}}'
    assert texts(read("messages.json", chrome)) == ["Hello", "Bye"]


def test_quoted_braces_of_message_format_stay():
    text = "a=Use '{'name'}' and {0}\nb=It''s {0}\nc=l''{0} is '{0}'\nd=l''{0} now\n"
    document = read("a.properties", text)
    assert texts(document) == ["It's {0}", "l'{0} now"]
    assert "2 texts" in document.notes[0]
    assert shouted(document).decode() == text.replace("It''s", "IT''S").replace("l''{0} now", "L''{0} NOW")


def test_colors_and_names_of_files_stay():
    values = ["#fff", "#A0B1C2", "images/logo.png", "Loading...", "Save as a.png", "编辑package.json"]
    text = json.dumps({str(i): value for i, value in enumerate(values)}, ensure_ascii=False)
    assert texts(read("a.json", text)) == values[3:]


def test_arrays_and_items_of_android_are_translated():
    text = (
        '<resources><array name="a"><item>A dog</item><item>#ff0000</item><item>@string/x</item></array>'
        '<item type="string" name="b">A cat</item><item type="id" name="c">No text</item></resources>'
    )
    assert texts(read("strings.xml", text)) == ["A dog", "A cat"]
