"""Oracle: polib reads the output again, and the bytes of the file."""

import contextlib
import json
import re

import polib
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from glassformer.corpora.terms import matches, protect_pattern
from glassformer.documents.escaping import escaped
from glassformer.documents.po import po_units, unescaped
from glassformer.errors import CorpusError
from tests.documents.test_tmx import kept, read, shouted, texts

quick = settings(max_examples=80)

HEADER = (
    'msgid ""\nmsgstr ""\n"Project-Id-Version: x\\n"\n"Language: de\\n"\n"Content-Type: text/plain; '
    'charset=UTF-8\\n"\n\n'
)
MESSAGES = (
    '# A translator says\n#. extracted\n#: a.c:1 b.c:2\n#, c-format\nmsgid "Open %s"\nmsgstr ""\n\n'
    '#, fuzzy, c-format\n#| msgid "Close"\nmsgid "Close it"\nmsgstr "Zu"\n\n'
    'msgctxt "menu"\nmsgid "Save"\nmsgstr "Sichern"\n\n'
    '#, fuzzy\nmsgid "Print"\nmsgstr ""\n\n'
    'msgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\n\n'
    '#~ msgid "Old"\n#~ msgstr "Alt"\n'
)
PO = HEADER + MESSAGES


def entries(data: bytes):
    return polib.pofile(data.decode())


def test_only_messages_without_a_translation_change():
    document = read("a.po", PO).only("empty")
    assert texts(document) == ["Open %s", "Print", "%d file", "%d files"]
    expected = (
        PO.replace('msgid "Open %s"\nmsgstr ""', 'msgid "Open %s"\nmsgstr "OPEN %S"')
        .replace('#, fuzzy\nmsgid "Print"\nmsgstr ""', 'msgid "Print"\nmsgstr "PRINT"')
        .replace('msgstr[0] ""\nmsgstr[1] ""', 'msgstr[0] "%D FILE"\nmsgstr[1] "%D FILES"')
    )
    assert shouted(document).decode() == expected


def test_polib_reads_the_translations():
    found = entries(shouted(read("a.po", PO).only("all")))
    assert [entry.msgstr or entry.msgstr_plural for entry in found if not entry.obsolete] == [
        "OPEN %S", "CLOSE IT", "SAVE", "PRINT", {0: "%D FILE", 1: "%D FILES"},
    ]  # fmt: skip
    assert [entry.flags for entry in found if not entry.obsolete] == [["c-format"], ["c-format"], [], [], []]
    assert found[0].occurrences == [("a.c", "1"), ("b.c", "2")]
    assert (found[0].comment, found[0].tcomment, found[2].msgctxt) == ("extracted", "A translator says", "menu")
    assert [entry.msgid for entry in found.obsolete_entries()] == ["Old"]


def test_messages_of_white_space_stay():
    blank = PO + '\nmsgid " "\nmsgstr ""\n\nmsgid "  "\nmsgstr "x"\n'
    document = read("a.po", blank).only("all")
    assert texts(document) == texts(read("a.po", PO).only("all"))
    assert shouted(document) == shouted(read("a.po", PO).only("all")) + blank.removeprefix(PO).encode()


def test_a_doubtful_translation_is_fuzzy_and_other_flags_stay():
    document = read("a.po", PO).only("all")
    found = entries(shouted(document, doubtful=[True] * 6))
    assert [sorted(entry.flags) for entry in found if not entry.obsolete] == [
        ["c-format", "fuzzy"], ["c-format", "fuzzy"], ["fuzzy"], ["fuzzy"], ["fuzzy"],
    ]  # fmt: skip
    found = entries(shouted(document, doubtful=[False] * 5 + [True]))
    assert [entry.fuzzy for entry in found if not entry.obsolete] == [False] * 4 + [True]


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        ("empty", ["Open %s", "Print", "%d file", "%d files"]),
        ("fuzzy", ["Open %s", "Close it", "Print", "%d file", "%d files"]),
        ("all", ["Open %s", "Close it", "Save", "Print", "%d file", "%d files"]),
    ],
)  # fmt: skip
def test_the_choice_of_messages(only, expected):
    assert texts(read("a.po", PO).only(only)) == expected


def test_a_catalogue_without_an_empty_message_keeps_its_bytes():
    text = HEADER + '#,fuzzy,  c-format\nmsgid  "a"\n"b"\n  msgstr "c"\n\n\nmsgid "x"\nmsgstr "y"  \n# end'
    document = read("a.po", text).only("empty")
    assert document.segments == []
    assert kept(document).decode() == text


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1", "windows-1252"])
def test_a_catalogue_keeps_its_encoding_and_its_line_ends(newline, codec):
    declared = codec.upper() if codec[0] != "u" else "UTF-8"
    text = HEADER.replace("UTF-8", declared) + 'msgid "é\\ntwo\\n"\nmsgstr ""\n\nmsgid "x"\nmsgstr "ü"\n'
    text = text.replace("\n", newline)
    document = read("a.po", text.encode(codec)).only("empty")
    expected = text.replace(
        f'msgstr ""{newline}{newline}msgid "x"', f'msgstr ""{newline}"É\\n"{newline}"TWO\\n"{newline}{newline}msgid "x"'
    )
    assert expected != text
    assert shouted(document) == expected.encode(codec)
    assert shouted(document, doubtful=[True, True]) == expected.replace(
        'msgid "é', f'#, fuzzy{newline}msgid "é'
    ).encode(codec)


def test_a_translation_that_the_encoding_does_not_have_is_an_error():
    text = HEADER.replace("UTF-8", "ISO-8859-1") + 'msgid "price"\nmsgstr ""\n'
    with pytest.raises(CorpusError, match=re.escape("cannot be written as ISO-8859-1")) as caught:
        read("a.po", text).render(["5 €"])
    assert "'€'" in str(caught.value)
    assert "UTF-8" in str(caught.value)


@pytest.mark.parametrize(
    ("n", "expected"), [(1, ["%D FILES"]), (2, ["%D FILE", "%D FILES"]), (3, ["%D FILE", "%D FILES", "%D FILES"])]
)
def test_each_plural_form_has_a_translation(n, expected):
    text = HEADER + 'msgid "%d file"\nmsgid_plural "%d files"\n' + "".join(f'msgstr[{i}] ""\n' for i in range(n))
    (entry,) = entries(shouted(read("a.po", text)))
    assert list(entry.msgstr_plural.values()) == expected


def test_a_message_of_which_one_plural_form_is_missing_is_empty():
    text = HEADER + 'msgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] "%d Datei"\nmsgstr[1] ""\n'
    assert [entry.state for entry in read("a.po", text).entries] == ["empty"]


TEXT = st.text(
    st.characters(codec="utf-8", exclude_characters="\0") | st.sampled_from("ab\"\\\n\t\r'%[] "), max_size=20
)


def lines_of(text: str) -> list[str]:
    """The lines of a text with single spaces."""
    return [" ".join(line.split()) for line in re.split("\r\n|\r|\n", text)]


@given(TEXT.filter(lambda text: text.strip()), st.integers(10, 90))
@example("0\f", 10)
@quick
def test_what_polib_writes_is_read_and_written_so_that_polib_reads_it(text, width):
    catalogue = polib.POFile(wrapwidth=width)
    catalogue.metadata = {"Content-Type": "text/plain; charset=UTF-8", "Language": "de"}
    catalogue.append(polib.POEntry(msgid=f"a{text}"))
    catalogue.append(polib.POEntry(msgid="b", msgstr=f"b{text}"))
    data = str(catalogue).encode()
    if entries(data)[0].msgid != f"a{text}":  # polib does not read all that it writes
        return
    document = read("a.po", data)
    found = entries(kept(document.only("empty")))
    assert found[0].msgid == f"a{text}"
    if not any(len(line) >= 50 for line in text.splitlines()):
        assert lines_of(found[0].msgstr) == lines_of(f"a{text}")
    assert found[1].msgstr == f"b{text}"
    assert [unit.tgt for unit in po_units("a.po", data, ("", ""))] == ["", " ".join(f"b{text}".split())]


@given(TEXT)
def test_escapes_of_a_text_are_read_again(text):
    assert unescaped(f'"{escaped(text, "po")}"') == text
    assert not re.search(r'(?<!\\)(\\\\)*"', escaped(text, "po"))


def test_escapes_in_octal_and_hexadecimal_are_read():
    assert unescaped(r'"\101\x42\"\\n\n\q"') == 'AB"\\n\nq'


def test_a_language_that_the_header_leaves_open_is_filled_in():
    text = PO.replace("Language: de", "Language: ")
    document = read("a.po", text, ("en", "fr"))
    assert document.languages == ("", "")
    assert entries(shouted(document.only("empty"))).metadata["Language"] == "fr"
    assert b'"Language: fr\\n"\n' in shouted(document.only("empty"))
    assert entries(shouted(read("a.po", PO, ("en", "fr")))).metadata["Language"] == "de"
    assert read("a.po", PO).languages == ("", "de")
    assert (
        kept(read("a.po", text).only("fuzzy"))
        .decode()
        .startswith('msgid ""\nmsgstr ""\n"Project-Id-Version: x\\n"\n"Language: \\n"')
    )


def test_comments_between_the_flags_and_the_message_stay():
    text = HEADER + '#, c-format\n#: a.c:1\n# note\nmsgid "Open"\nmsgstr ""\n'
    assert shouted(read("a.po", text)).decode() == text.replace('"Open"\nmsgstr ""', '"Open"\nmsgstr "OPEN"')
    (entry,) = entries(shouted(read("a.po", text), doubtful=[True]))
    assert (entry.occurrences, entry.tcomment) == ([("a.c", "1")], "note")


def test_flags_in_two_lines_stay():
    text = HEADER + '#, c-format\n#, no-wrap\nmsgid "Open"\nmsgstr ""\n'
    for doubtful in (False, True):
        (entry,) = entries(shouted(read("a.po", text), doubtful=[doubtful]))
        assert sorted(entry.flags) == ["c-format", *["fuzzy"] * doubtful, "no-wrap"]


def test_an_obsolete_message_with_flags_between_others_stays_and_its_flags_are_its_own():
    text = HEADER + '#, fuzzy\n#~ msgid "Old"\n#~ msgstr "Alt"\n\nmsgid "New"\nmsgstr "Neu"\n'
    document = read("a.po", text)
    assert [entry.state for entry in document.entries] == ["translated"]
    assert shouted(document.only("all")).decode() == text.replace("Neu", "NEW")


def test_a_template_without_a_header_is_read():
    assert texts(read("a.pot", 'msgid "Open"\nmsgstr ""\n')) == ["Open"]


@pytest.mark.parametrize(("forms", "n"), [("", 1), ('"Plural-Forms: nplurals=2; plural=n != 1;\\n"\n', 0)])
def test_plural_messages_without_plural_forms_in_the_header_are_named(forms, n):
    text = HEADER.rstrip("\n") + "\n" + forms + "\n" + MESSAGES
    assert len(read("a.po", text).notes) == n
    assert not read("a.po", HEADER + 'msgid "Open"\nmsgstr ""\n').notes


def test_placeholders_are_protected():
    assert "placeholders" in read("a.po", PO).protect


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":count files of :total_size", [":count", ":total_size"]),
        ("The :attribute must be between :min-:max (:unit), “:name” or ':value'.",
            [":attribute", ":min", ":max", ":unit", ":name", ":value"]),
        ("Hello <b>:name</b>, user/:id, $:price, :Name은 :名前 :name。",
            ["<b>", ":name", "</b>", ":id", ":price", ":Name", ":name"]),
        ("Great :smile: :+1: :thumbs_up:!", [":smile:", ":+1:", ":thumbs_up:"]),
        ("Note: see 12:30:45, a:b, Foo::Bar, ::before, std ::vector, :Straße, : x, :12, {a}:b, f():c “a”:b", ["{a}"]),
        ("See :ref:`the guide <guide>`, :title-reference:`it` and :py:mod:`csv`", []),
        ('"key":value', []),
    ],
)  # fmt: skip
def test_names_after_a_colon_and_emoji_are_protected(text, expected):
    catalogues = {"a.po": f'msgid {json.dumps(text)}\nmsgstr ""\n', "a.json": json.dumps({"a": text})}
    for name, content in catalogues.items():
        pattern = protect_pattern(read(name, content).protect)
        found = [text[a:b] for a, b in matches(pattern, text)]
        assert [span for span in found if span != "<guide>"] == expected
    for name in ("a.md", "a.html", "a.txt"):
        assert not any(":" in each for each in read(name, text).protect)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + 'msgid "a\nmsgstr "b"\n', "a.po:7: not a line of a gettext catalogue: 'msgid \"a'"),
        ("msgid 'a'\n", "a.po:1: not a line"),
        (HEADER + 'msgid "a"\nmsgstr b\n', "a.po:8: not a line"),
        (HEADER + 'msgstr "b"\n', "a.po:7: a translation without msgid"),
        ('"a"\n', "a.po:1: not a line"), ("", "no message"), ("# a\n", "no message"), ("hello\n", "a.po:1: not a line"),
        ("PK\3\4", "zip archive"),
        (HEADER.replace("UTF-8", "KLINGON") + 'msgid "a"\n', "not KLINGON, which its header says"),
    ],
)  # fmt: skip
def test_a_catalogue_that_cannot_be_read_is_one_clear_error(text, message):
    with pytest.raises(CorpusError, match=re.escape(message)):
        read("a.po", text)


def test_bytes_of_another_encoding_are_an_error():
    with pytest.raises(CorpusError, match="is not UTF-8"):
        read("a.po", (HEADER + 'msgid "é"\nmsgstr ""\n').encode("latin-1"))


@pytest.mark.parametrize("length", [10_000, 1_000_000])
def test_a_long_line_of_backslashes_is_read_or_refused_in_time(length):
    for text in ("\\" * length, '\\"' * (length // 2)):
        with contextlib.suppress(CorpusError):
            read("a.po", f'msgid "{text}\nmsgstr ""\n')


def test_the_messages_of_a_catalogue_have_lines_states_and_languages():
    text = PO.replace('msgstr[0] ""\nmsgstr[1] ""', 'msgstr[0] "%d Datei"\nmsgstr[1] "%d Dateien"')
    found = list(po_units("a.po", text.encode(), ("en", "de")))
    assert [(u.src, u.tgt, u.state) for u in found] == [
        ("Open %s", "", "empty"), ("Close it", "Zu", "fuzzy"), ("Save", "Sichern", "translated"),
        ("Print", "", "empty"),
        ("%d file", "%d Datei", "translated"), ("%d files", "%d Dateien", "translated"),
    ]  # fmt: skip
    assert [text.split("\n")[u.number - 1].partition(" ")[2].strip('"') for u in found[:4]] == [
        u.src for u in found[:4]
    ]
    assert {u.languages for u in found} == {("", "de")}


def test_the_reverse_languages_swap_the_sides_and_others_are_refused():
    found = list(po_units("a.po", PO.encode(), ("de", "en")))
    assert (found[2].src, found[2].tgt) == ("Sichern", "Save")
    with pytest.raises(CorpusError, match="to de, not from en to fr"):
        list(po_units("a.po", PO.encode(), ("en", "fr")))


def test_plural_forms_that_are_there_stay():
    text = HEADER + 'msgid "a file"\nmsgid_plural "many files"\nmsgstr[0] "eine Datei"\nmsgstr[1] ""\n'
    document = read("a.po", text)
    assert texts(document.only("empty")) == ["many files"]
    expected = text.replace('msgstr[1] ""', 'msgstr[1] "MANY FILES"')
    assert shouted(document.only("empty")).decode() == expected


def test_what_an_encoding_does_not_have_is_an_error_that_leads_to_another():
    text = HEADER.replace("UTF-8", "ISO-8859-1") + 'msgid "café"\nmsgstr ""\n'
    document = read("a.po", text.encode("latin-1"))
    with pytest.raises(CorpusError, match="convert the file, with its header: msgconv -t UTF-8"):
        document.render(["\u20ac"])


@pytest.mark.parametrize("charset", ["CHARSET", "ASCII", "us-ascii"])
def test_the_header_names_the_encoding_that_a_translation_needs(charset):
    text = HEADER.replace("UTF-8", charset) + 'msgid "over charset=ASCII"\nmsgstr ""\n'
    document = read("a.po", text)
    assert f"charset={charset}" in document.render(["uber"]).decode()
    written = document.render(["über"]).decode()
    assert "charset=UTF-8" in written
    assert 'msgid "over charset=ASCII"' in written


def test_a_note_says_that_a_template_needs_plural_forms():
    text = 'msgid ""\nmsgstr ""\n"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"\n\nmsgid "cat"\nmsgstr ""\n'
    assert "Plural-Forms" in read("a.pot", text).notes[0]
    assert not read("a.po", text.replace("INTEGER", "2").replace("EXPRESSION", "n != 1")).notes
