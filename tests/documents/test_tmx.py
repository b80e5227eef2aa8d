"""Oracle: ElementTree reads the output again, and the bytes of the file."""

import random
import re
from collections import Counter
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.documents.document import Document
from glassformer.documents.inline import aligned_positions
from glassformer.documents.languages import best_match, differing
from glassformer.documents.origin import Origin
from glassformer.documents.package import Package
from glassformer.documents.reader import read_document
from glassformer.documents.tmx import NOT_XML, TMX_END, read_tmx, tmx_entry, tmx_start, tmx_units
from glassformer.documents.words import unit_spans
from glassformer.errors import CorpusError

quick = settings(max_examples=60)


def read(name: str, data: bytes | str, languages: tuple[str, str] = ("", "")):
    """A document, and it is the same after it was sent by a child process."""
    data = data.encode() if isinstance(data, str) else data
    found = read_document(name, data, languages)
    if isinstance(found, Package):
        again = Package.from_record(found.to_record(), data)
        assert (again.parts, again.notes) == (found.parts, found.notes)
        return again
    assert Document.from_record(found.to_record()) == found
    return found


def texts(document) -> list[str]:
    return [segment.text for segment in document.segments]


def kept(document) -> bytes:
    """The document in which each translation is the text."""
    return by_alignment(document, texts(document), [[(i, i) for i in range(len(t.split()))] for t in texts(document)])


def by_alignment(document, translations, alignments, *rest) -> bytes:
    """The document with translations, whose tags are where the word alignments say."""
    positions = [
        aligned_positions(segment.detached, text, alignment) if segment.detached else ()
        for segment, text, alignment in zip(document.segments, translations, alignments, strict=True)
    ]
    return document.render(translations, positions, *rest)


def shouted(document, languages: tuple[str, str] | None = None, doubtful=(), origins=()) -> bytes:
    """The document in capitals: each word is aligned with itself."""
    origins = origins or [Origin(each) for each in doubtful]
    diagonals = [[(i, i) for i in range(len(unit_spans(text)))] for text in texts(document)]
    return by_alignment(document, [text.upper() for text in texts(document)], diagonals, languages, origins)


def shuffled(document, seed: int) -> bytes:
    """The document with other words, some with a meaning in markup, and any alignment."""
    rng = random.Random(seed)
    translations, alignments = [], []
    for text in texts(document):
        n, m = len(text.split()), rng.randrange(1, 7)
        translations.append(
            " ".join(rng.choice(["u", "<b>", "&amp;", "v.", "w", "]]>", '"', "<c0>"]) for _ in range(m))
        )
        alignments.append([(rng.randrange(n), rng.randrange(m)) for _ in range(rng.randrange(6))] if n else [])
    return by_alignment(document, translations, alignments)


HEADER = '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n<header srclang="en" datatype="x"/>\n<body>\n'
END = "</body>\n</tmx>\n"


BY_MACHINE = ' creationid="MT!"'


def tuv(language: str, text: str, attributes: str = "") -> str:
    return f'<tuv xml:lang="{language}"{attributes}><seg>{text}</seg></tuv>'


def memory(*units: str) -> str:
    return HEADER + "".join(f"<tu>{unit}</tu>\n" for unit in units) + END


MEMORY = memory(
    tuv("en", "Open &lt;file&gt;") + tuv("de", "Datei &lt;öffnen&gt;"),
    tuv("en", "Close it") + tuv("de", ""),
    tuv("en", "Save it") + '<tuv xml:lang="de"><seg/></tuv>',
    tuv("en", "Print it") + tuv("de", "Drucke es", ' creationid="MT!"'),
    f"\n  {tuv('en-US', 'Only source')}\n",
    tuv("fr", "Autre langue"),
    tuv("en", " 12 ") + tuv("de", "12"),
)


def test_only_entries_without_a_translation_change():
    document = read("a.tmx", MEMORY, ("en", "de")).only("empty")
    assert texts(document) == ["Close it", "Save it", "Only source"]
    expected = (
        MEMORY.replace('<tuv xml:lang="de"><seg></seg>', f'<tuv xml:lang="de"{BY_MACHINE}><seg>CLOSE IT</seg>')
        .replace("><seg/>", f"{BY_MACHINE}><seg>SAVE IT</seg>")
        .replace("Only source</seg></tuv>", f"Only source</seg></tuv>\n  {tuv('de', 'ONLY SOURCE', BY_MACHINE)}")
    )
    assert shouted(document).decode() == expected


def test_a_translation_by_a_machine_is_fuzzy():
    document = read("a.tmx", MEMORY, ("en", "de"))
    states = ["translated", "empty", "empty", "fuzzy", "empty", "translated"]
    assert [entry.state for entry in document.entries] == states
    assert "Print it" in texts(document.only("fuzzy"))
    assert "Open <file>" not in texts(document.only("fuzzy"))
    assert texts(document.only("all")) == ["Open <file>", "Close it", "Save it", "Print it", "Only source", "12"]


@pytest.mark.parametrize(
    ("attributes", "inner", "state"),
    [
        (' creationid="MT!"', "", "fuzzy"), (' creationid="mt" changeid="anna"', "", "translated"),
        (' changeid="MT"', "", "fuzzy"),
        ("", '<prop type="x-mt">MT</prop>', "fuzzy"), ("", '<prop type="x-note">MT</prop>', "translated"),
        (' creationid="smith"', "", "translated"),
    ],
)  # fmt: skip
def test_who_made_a_translation_last_says_whether_it_is_fuzzy(attributes, inner, state):
    unit = f'{tuv("en", "a")}<tuv xml:lang="de"{attributes}>{inner}<seg>b</seg></tuv>'
    assert [entry.state for entry in read("a.tmx", memory(unit), ("en", "de")).entries] == [state]
    assert [unit.state for unit in tmx_units("a.tmx", [memory(unit).encode()], ("en", "de"))] == [state]


def test_a_memory_without_an_empty_entry_keeps_its_bytes():
    text = memory(
        tuv("en", "a <![CDATA[<b>]]> &#233;") + "<!-- c -->" + tuv("de", "b &#228;"), tuv("en", "x") + tuv("de", "y")
    )
    document = read("a.tmx", text, ("en", "de")).only("empty")
    assert document.segments == []
    assert kept(document).decode() == text


def test_an_entry_that_is_translated_again_changes_only_its_target():
    document = read("a.tmx", MEMORY, ("en", "de")).only("all")
    result = shouted(document).decode()
    assert result.replace("OPEN &lt;FILE&gt;", "Datei &lt;öffnen&gt;").count("Datei &lt;öffnen&gt;") == 1
    assert result.startswith(HEADER + "<tu>" + tuv("en", "Open &lt;file&gt;"))


CODECS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "iso-8859-1", "windows-1252", "us-ascii"]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_memory_keeps_its_encoding_and_its_line_ends(codec, newline):
    declared = codec.upper().replace("UTF-8-SIG", "UTF-8").replace("UTF-16-LE", "UTF-16").replace("UTF-16-BE", "UTF-16")
    accent = "" if codec == "us-ascii" else "é"
    text = memory(tuv("en", f"caf{accent} one") + tuv("de", ""), tuv("en", "two") + tuv("de", f"zwei{accent}"))
    text = text.replace("UTF-8", declared).replace("\n", newline)
    data = text.encode(codec)
    document = read("a.tmx", data, ("en", "de"))
    made = f"{BY_MACHINE}><seg>%s</seg>"
    assert kept(document.only("empty")) == text.replace("><seg></seg>", made % f"caf{accent} one").encode(codec)
    shout = text.replace("><seg></seg>", made % f"CAF{accent.upper()} ONE")
    assert shouted(document.only("empty")) == shout.encode(codec)
    assert [(unit.src, unit.tgt) for unit in tmx_units("a.tmx", [data], ("en", "de"))] == [
        (f"caf{accent} one", ""), ("two", f"zwei{accent}"),
    ]  # fmt: skip


def test_a_character_that_the_encoding_does_not_have_is_written_as_a_reference():
    text = memory(tuv("en", "price") + tuv("de", "")).replace("UTF-8", "ISO-8859-1")
    document = read("a.tmx", text.encode("latin-1"), ("en", "de"))
    data = document.render(["5 € é"])
    assert b"<seg>5 &#8364; \xe9</seg>" in data
    assert ElementTree.fromstring(data).findall(".//seg")[1].text == "5 € é"


def test_text_in_two_lines_stays_in_two_lines():
    document = read("a.tmx", memory(tuv("en", "\n  one\n  two\n") + tuv("de", "")), ("en", "de"))
    assert texts(document) == ["one", "two"]
    assert "<seg>\n  ONE\n  TWO\n</seg>" in shouted(document).decode()


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (("en", "de"), ["EN"]), (("en-GB", "de"), ["EN-GB"]), (("en-us", "de-CH"), ["EN"]),
        (("EN_GB", "DE"), ["EN-GB"]), (("", "de"), ["EN"]),
        (("de", "en"), ["DE"]),
    ],
)  # fmt: skip
def test_the_variant_that_is_the_most_like_the_language_is_the_source(asked, found):
    text = memory(tuv("en", "EN") + tuv("en-GB", "EN-GB") + tuv("de-DE", "DE"))
    assert texts(read("a.tmx", text, asked)) == found


@pytest.mark.parametrize(
    ("codes", "wanted", "found"),
    [
        (("en", "zh-CN", "zh-TW"), "zh-Hant", 2), (("en", "zh-CN", "zh-TW"), "zh-HK", 2),
        (("zh-TW", "zh-CN"), "zh", 0), (("zh-TW", "zh"), "zh-CN", 1), (("zh-TW", "zh-Hans-HK"), "zh-SG", 1),
        (("en", "zh-CN"), "zh-TW", None), (("sr-Latn", "sr"), "sr-Cyrl", 1), (("sr-Latn",), "sr-Cyrl", None),
        (("pt-BR", "pt"), "pt-PT", 0), (("fr-CA", "fr"), "FR", 1),
    ],
)  # fmt: skip
def test_another_script_is_another_language(codes, wanted, found):
    assert best_match(codes, wanted) == found


def test_a_file_in_another_script_is_in_another_language():
    assert differing(("en-US", "zh-CN"), ("en", "zh-TW")) == "to zh-CN"
    assert not differing(("en-US", "zh"), ("en", "zh-TW"))
    assert not differing(("", "pt-BR"), ("en", "pt-PT"))


def test_no_text_is_its_own_translation():
    text = memory(tuv("en", "bus") + tuv("pt-BR", "ônibus"))
    (unit,) = tmx_units("a.tmx", [text.encode()], ("pt-BR", "pt-PT"))
    assert (unit.src, unit.tgt, unit.state) == ("ônibus", "", "empty")


def test_a_translation_of_the_memory_is_not_by_a_machine():
    data = shouted(read("a.tmx", memory(tuv("en", "Cat")), ("en", "de")), origins=[Origin(similarity=1.0)])
    assert b'<tuv xml:lang="de"><seg>CAT</seg></tuv>' in data


def test_languages_of_old_memories_are_in_an_attribute_without_prefix():
    text = memory('<tuv lang="en"><seg>Cat</seg></tuv>')
    assert '<tuv lang="de" creationid="MT!"><seg>CAT</seg></tuv>' in shouted(read("a.tmx", text, ("en", "de"))).decode()


def test_of_two_variants_the_one_that_is_not_the_source_is_the_target():
    document = read("a.tmx", memory(tuv("en", "Cat") + tuv("de", "")))
    assert document.languages == ("en", "")
    assert tuv("de", "CAT", BY_MACHINE) in shouted(document).decode()
    text = memory(tuv("en", "Cat") + tuv("de", "Katze")).replace('srclang="en"', 'srclang="*all*"')
    assert texts(read("a.tmx", text)) == ["Cat"]


def test_a_new_variant_names_the_target_language_as_xml():
    document = read("a.tmx", memory(tuv("en", "Cat")), ("en", 'd"&e'))
    root = ElementTree.fromstring(shouted(document))
    assert [tuv.get("{http://www.w3.org/XML/1998/namespace}lang") for tuv in root.iter("tuv")] == ["en", 'd"&e']


CODES = [
    '<bpt i="1" x="1">&lt;b&gt;</bpt>', '<ept i="1">&lt;/b&gt;</ept>', '<ph x="2">&lt;br&gt;</ph>',
    '<it pos="begin">&lt;i&gt;</it>',
    '<ph x="3"><sub>not text</sub></ph>', "<ut>{1}</ut>",
]  # fmt: skip


@st.composite
def rich(draw, depth=2):
    """Words, codes and nested parts."""
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.integers(0, 3 if depth else 2))
        if kind == 3:
            parts.append(f'<hi type="t{draw(st.integers(0, 9))}">{draw(rich(depth - 1))}</hi>')
        elif kind == 2:
            parts.append(draw(st.sampled_from(CODES[2:])))
        else:
            parts.append(draw(st.sampled_from(["cat", "The", "a &amp; b", "x.", "(", "é", "&lt;b&gt;"])))
        parts.append(draw(st.sampled_from(["", " ", " ", "  "])))
    return "".join(parts)


def codes_in(seg: ElementTree.Element) -> Counter:
    """Each code with its content, and the codes around it."""
    found: Counter = Counter()

    def walk(node, around):
        for child in node:
            name = child.tag.rpartition("}")[2]
            own = (name, tuple(sorted(child.attrib.items())))
            is_around = name in ("hi", "g", "pc")
            found[own, "" if is_around else "".join(child.itertext()), around] += 1
            if is_around:
                walk(child, (*around, own))

    walk(seg, ())
    return found


@given(rich(), rich(), st.integers(0, 1 << 32))
@quick
def test_each_code_of_a_text_is_once_in_its_translation(before, inside, seed):
    text = f"{before} {CODES[0]}{inside} word{CODES[1]} end"
    document = read("a.tmx", memory(tuv("en", text) + tuv("de", "")), ("en", "de"))
    data = shuffled(document, seed)
    source, target = ElementTree.fromstring(data).findall(".//seg")
    assert codes_in(target) == codes_in(source)
    names = [code.tag for code in target.iter() if code.tag in ("bpt", "ept")]
    assert names == ["bpt", "ept"]
    start, end = memory(tuv("en", text) + tuv("de", "|", BY_MACHINE)).split("|")
    assert data.decode().startswith(start)
    assert data.decode().endswith(end)


@given(rich())
@quick
def test_codes_are_no_part_of_the_text(text):
    document = read("a.tmx", memory(tuv("en", f"Word {text}") + tuv("de", "")), ("en", "de"))
    words = re.sub(r"<(bpt|ept|ph|it|ut).*?</\1>|</?hi[^>]*>", " ", text)
    words = words.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert re.findall(r"\w", texts(document)[0]) == re.findall(r"\w", f"Word{words}")


def test_codes_follow_their_words():
    text = 'The <hi type="b">black cat</hi> <ph x="1"/> slept <bpt i="1"/>here<ept i="1"/>.'
    document = read("a.tmx", memory(tuv("en", text) + tuv("de", "")), ("en", "de"))
    assert texts(document) == ["The black cat slept here."]
    result = by_alignment(
        document, ["Hier schlief die schwarze Katze."], [[(0, 2), (1, 3), (2, 4), (3, 1), (4, 0)]]
    ).decode()
    assert '<bpt i="1"/>Hier<ept i="1"/>' in result
    assert '<hi type="b">schwarze Katze</hi>' in result


def test_codes_around_one_word_in_parentheses_stay_around_it():
    text = 'See the (<hi type="b">Note</hi>) there now'
    document = read("a.tmx", memory(tuv("en", text) + tuv("de", "")), ("en", "de"))
    assert '<seg>SEE THE (<hi type="b">NOTE</hi>) THERE NOW</seg>' in shouted(document).decode()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1000])
def test_a_memory_that_is_read_in_parts_is_the_same(size):
    data = MEMORY.encode()
    whole = list(tmx_units("a.tmx", [data], ("en", "de")))
    assert len(whole) == 7
    assert [unit.tgt for unit in whole] == ["Datei <öffnen>", "", "", "Drucke es", "", "", "12"]
    assert list(tmx_units("a.tmx", [data[i : i + size] for i in range(0, len(data), size)], ("en", "de"))) == whole


@pytest.mark.parametrize("codec", ["utf-16", "iso-8859-1"])
@pytest.mark.parametrize("size", [401, 1000])
def test_a_memory_of_another_encoding_that_is_read_in_parts_is_the_same(codec, size):
    data = MEMORY.replace("UTF-8", codec.upper()).encode(codec)
    assert list(tmx_units("a.tmx", [data[i : i + size] for i in range(0, len(data), size)], ("en", "de"))) == list(
        tmx_units("a.tmx", [MEMORY.encode()], ("en", "de"))
    )


def test_the_text_of_a_reading_in_parts_has_no_codes():
    text = 'a <bpt i="1">&lt;b&gt;</bpt>b<ept i="1">&lt;/b&gt;</ept> <hi>c <ph>x</ph></hi><!-- no --> d'
    (unit,) = tmx_units("a.tmx", [memory(tuv("en", text) + tuv("de", "e\n f")).encode()], ("en", "de"))
    assert (unit.src, unit.tgt, unit.number, unit.languages) == ("a b c d", "e f", 1, ("en", "de"))


# What is no white space for str.split, but is a line end or a character that no text has, is left out.
TEXT = st.text(st.characters(codec="utf-8") | st.sampled_from("<>&\"' \t\n]\0\x0b\ufffe\x85\u2028"), max_size=30)


@given(TEXT, TEXT)
def test_a_memory_that_is_written_is_read_again(src, tgt):
    data = (tmx_start('e"n') + tmx_entry(src, tgt, ('e"n', "de")) + "\n" + TMX_END).encode()
    (unit,) = tmx_units("a.tmx", [data], ('e"n', "de"))
    clean = [" ".join(NOT_XML.sub("", text).replace("\r", "\n").split()) for text in (src, tgt)]
    assert [unit.src, unit.tgt] == clean
    assert unit.state == ("translated" if all(clean) else "empty")
    segs = [seg.text or "" for seg in ElementTree.fromstring(data).iter("seg")]
    assert [" ".join(seg.split()) for seg in segs] == clean


DTD = '<!DOCTYPE tmx SYSTEM "tmx14.dtd">'


def test_a_document_type_that_declares_nothing_is_read():
    text = memory(tuv("en", "a &#38; b &amp; c")).replace("<tmx", f"{DTD}\n<tmx")
    assert texts(read("a.tmx", text, ("en", "de"))) == ["a & b & c"]


ENTITY = '<!DOCTYPE tmx [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'
BROKEN = [
    (memory("").replace("<tmx", f"{ENTITY}<tmx"), "a.tmx:2: declares the entity 'a'"),
    (memory("").replace("<tmx", '<!DOCTYPE tmx [<!ENTITY % p SYSTEM "x">]><tmx'), "a.tmx:2: declares the entity 'p'"),
    (memory("").replace("<tmx", '<!DOCTYPE tmx [<!ENTITY a SYSTEM "file:///etc/passwd">]><tmx'),
        "a.tmx:2: declares the entity 'a'"),
    (memory(tuv("en", "a&nbsp;b")), "a.tmx:5: not well-formed XML: undefined entity"),
    (memory(tuv("en", "a&nbsp;b")).replace("<tmx", f"{DTD}<tmx"), "a.tmx:5: the entity &nbsp; is not known"),
    (memory("<a>" * 300 + "</a>" * 300), "a.tmx:5: elements within each other to a depth of more than 200"),
    (memory("<a>" * 100_000), "a.tmx:5: elements within each other"),
    (memory(tuv("en", "a")).replace("</tu>", ""), "a.tmx:6: not well-formed XML: mismatched tag"),
    ("", "not well-formed XML: no element found"), ("<a/>", "first element is <a>, not <tmx>"),
    ("<x:html xmlns:x='y'/>", "first element is <x:html>"),
    (memory("\x01"), "a.tmx:5: not well-formed XML"), ("PK\3\4", "not well-formed XML"),
    (HEADER.replace("UTF-8", "UTF-99"), "encoding 'UTF-99' is not known"),
    (HEADER.replace("UTF-8", "rot13"), "encoding 'rot13' is not known"),
    (HEADER.replace("UTF-8", "hex"), "encoding 'hex' is not known"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_a_memory_that_cannot_be_read_is_one_clear_error(text, message):
    for reading in (
        lambda: read("a.tmx", text, ("en", "de")),
        lambda: list(tmx_units("a.tmx", [text.encode()], ("en", "de"))),
    ):
        with pytest.raises(CorpusError, match=re.escape(message)):
            reading()


def test_bytes_of_another_encoding_are_an_error():
    data = memory(tuv("en", "caf\xe9")).encode("latin-1")
    with pytest.raises(CorpusError, match=r"a\.tmx: byte \d+ is not UTF-8, which the file says it is"):
        read("a.tmx", data, ("en", "de"))
    with pytest.raises(CorpusError, match=r"a\.tmx: not UTF-8, which the file says it is"):
        list(tmx_units("a.tmx", [data], ("en", "de")))


def test_an_element_of_many_attributes_is_read():
    attributes = "".join(f' a{i}="{i}>"' for i in range(20_000))
    text = memory(f'<tuv xml:lang="en"{attributes}><seg>Cat</seg></tuv>')
    assert tuv("de", "CAT", BY_MACHINE) in shouted(read("a.tmx", text, ("en", "de"))).decode()


def test_a_memory_of_several_languages_needs_two_names():
    text = memory(tuv("en", "a") + tuv("de", "b") + tuv("fr", "c"))
    with pytest.raises(CorpusError, match="texts in 3 languages: en, de, fr") as caught:
        list(tmx_units("a.tmx", [text.encode()], ("", "")))
    assert "--languages en de" in str(caught.value)
    (unit,) = tmx_units("a.tmx", [text.encode()], ("", "fr"))
    assert (unit.src, unit.tgt) == ("a", "c")


def test_a_memory_without_the_source_language_says_which_it_has():
    with pytest.raises(CorpusError, match="no text in it; its languages: de, en"):
        read("a.tmx", memory(tuv("en", "a") + tuv("de", "b")), ("it", "de"))


def test_a_language_and_its_reverse_swap_the_sides():
    data = memory(tuv("en", "Cat") + tuv("de", "Katze")).encode()
    (unit,) = tmx_units("a.tmx", [data], ("de", "en"))
    assert (unit.src, unit.tgt, unit.languages) == ("Katze", "Cat", ("de", "en"))


def test_a_doubtful_translation_is_not_written():
    data = (
        '<tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>Cat</seg></tuv></tu>'
        '<tu><tuv xml:lang="en"><seg>Dog</seg></tuv><tuv xml:lang="fr"><seg></seg></tuv></tu></body></tmx>'
    )
    document = read_tmx("a.tmx", data.encode(), ("en", "fr"))
    assert document.render(["Chat", "Chien"], origins=[Origin(True)] * 2).decode() == data
    written = document.render(["Chat", "Chien"], origins=[Origin(), Origin(True)])
    assert [(unit.src, unit.tgt, unit.state) for unit in tmx_units("a.tmx", [written], ("en", "fr"))] == [
        ("Cat", "Chat", "fuzzy"), ("Dog", "", "empty"),
    ]  # fmt: skip


def test_a_new_translation_has_the_maker_of_none_before():
    person = ' creationid="JOHN" creationdate=\'20240101T000000Z\' changeid="ANN" usagecount="3"'
    text = memory(tuv("en", "Cat") + tuv("de", "", person), tuv("en", "Dog") + tuv("de", "Hund", person))
    document = read("a.tmx", text, ("en", "de"))
    expected = memory(
        tuv("en", "Cat") + tuv("de", "CAT", f' usagecount="3"{BY_MACHINE}'),
        tuv("en", "Dog") + tuv("de", "Hund", person),
    )
    assert shouted(document.only("empty")).decode() == expected
    assert [unit.state for unit in tmx_units("a.tmx", [expected.encode()], ("en", "de"))] == ["fuzzy", "translated"]
