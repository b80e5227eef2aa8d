"""Oracle: ElementTree reads the output again, and the bytes of the file."""

import random
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from glassformer.documents.origin import Origin
from glassformer.documents.words import unit_spans
from glassformer.documents.xliff import xliff_units
from glassformer.errors import CorpusError
from tests.documents.test_tmx import CODECS, by_alignment, codes_in, kept, read, shouted, shuffled, texts

quick = settings(max_examples=60)

START = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'
    '<file original="a" source-language="en-US" target-language="de" datatype="x"><header><note>No text</note>'
    "</header><body>\n"
)
END = "</body></file>\n</xliff>\n"
START2 = (
    '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="de">\n<file id="f1">\n'
)
END2 = "</file>\n</xliff>\n"


def file(*units: str) -> str:
    return START + "".join(f"  {unit}\n" for unit in units) + END


def unit(source: str, target: str | None = None, attributes: str = "", of_target: str = "") -> str:
    target = "" if target is None else f"<target{of_target}>{target}</target>"
    return f'<trans-unit id="1"{attributes}>\n    <source>{source}</source>{target}\n  </trans-unit>'


def file2(*segments: str) -> str:
    return START2 + "".join(f'<unit id="u{i}">{each}</unit>\n' for i, each in enumerate(segments)) + END2


def segment2(source: str, target: str | None = None, attributes: str = "") -> str:
    target = "" if target is None else f"<target>{target}</target>"
    return f"<segment{attributes}>\n <source>{source}</source>{target}\n</segment>"


def state(text: str) -> str:
    """The state of the only entry of a file."""
    (entry,) = read("a.xlf", text).entries
    (found,) = xliff_units("a.xlf", text.encode(), ("", ""))
    assert found.state == entry.state
    return entry.state


@pytest.mark.parametrize(
    ("target", "attributes", "of_target", "expected"),
    [
        (None, "", "", "empty"), ("", "", "", "empty"), (" ", "", ' state="translated"', "empty"),
        ("Katze", "", "", "translated"),
        ("Katze", "", ' state="translated"', "translated"), ("Katze", "", ' state="needs-translation"', "fuzzy"),
        ("Cat", "", ' state="needs-translation"', "empty"),
        ("Cat", "", ' state="new"', "empty"), ("Katze", "", ' state="new"', "fuzzy"),
        ("Katze", "", ' state="needs-review-translation"', "fuzzy"),
        ("Katze", "", ' state="needs-adaptation"', "fuzzy"), ("Katze", "", ' state="final"', "locked"),
        ("Katze", "", ' state="signed-off"', "locked"),
        ("Katze", ' approved="yes"', "", "locked"), ("Katze", ' approved="no"', "", "translated"),
        ("", ' approved="yes"', "", "locked"),
        ("Katze", "", ' state="translated" state-qualifier="mt-suggestion"', "fuzzy"),
        ("Katze", "", ' state-qualifier="leveraged-mt"', "fuzzy"),
        ("Katze", "", ' state-qualifier="exact-match"', "translated"),
        ("Katze", ' xmlns:m="m" m:confirmed="0" m:trans-origin="mt"', "", "fuzzy"),  # Phrase
        ("Katze", ' xmlns:m="m" m:confirmed="1" m:trans-origin="mt"', "", "translated"),
        ("Katze", ' xmlns:mq="m" mq:status="MachineTranslated"', "", "fuzzy"),  # memoQ
        ("Katze", ' xmlns:mq="m" mq:status="PartiallyEdited"', "", "fuzzy"),
        ("Katze", ' xmlns:mq="m" mq:status="ManuallyConfirmed"', "", "translated"),
    ],
)  # fmt: skip
def test_the_state_of_a_target_of_version_1(target, attributes, of_target, expected):
    assert state(file(unit("Cat", target, attributes, of_target))) == expected


@pytest.mark.parametrize(
    ("segments", "expected"),
    [
        ('<sdl:seg id="1" conf="Translated" origin="mt"/>', "translated"),
        ('<sdl:seg id="1" conf="ApprovedTranslation"/>', "translated"),
        ('<sdl:seg id="1" conf="Draft" origin="mt"/>', "fuzzy"),
        ('<sdl:seg id="1" origin="nmt"/>', "fuzzy"),
        ('<sdl:seg id="1" conf="Translated"/><sdl:seg id="2" conf="RejectedTranslation"/>', "fuzzy"),
    ],
)
def test_the_segments_of_trados_say_what_a_person_has_confirmed(segments, expected):
    definitions = f'<sdl:seg-defs xmlns:sdl="s">{segments}</sdl:seg-defs>'
    text = file(unit("Cat", "Katze")).replace("</trans-unit>", f"{definitions}</trans-unit>")
    assert state(text) == expected


@pytest.mark.parametrize(
    ("target", "attributes", "expected"),
    [
        (None, "", "empty"), (None, ' state="initial"', "empty"), ("", ' state="translated"', "empty"),
        ("Katze", "", "fuzzy"),
        ("Katze", ' state="initial"', "fuzzy"), ("Katze", ' state="translated"', "translated"),
        ("Katze", ' state="reviewed"', "locked"), ("Katze", ' state="final"', "locked"),
    ],
)  # fmt: skip
def test_the_state_of_a_segment_of_version_2(target, attributes, expected):
    assert state(file2(segment2("Cat", target, attributes))) == expected


def test_a_new_target_has_a_state_and_what_made_it():
    document = read("a.xlf", file(unit("A &amp; B"), unit("Open it", ""), unit("Done", "Fertig")))
    new = '<target state="translated" state-qualifier="mt-suggestion">'
    expected = file(
        unit("A &amp; B").replace("</source>", f"</source>\n    {new}A &amp; B</target>"),
        unit("Open it", "OPEN IT").replace("<target>", new),
        unit("Done", "Fertig"),
    )
    assert shouted(document.only("empty")).decode() == expected
    doubtful = shouted(document.only("empty"), doubtful=[True, True]).decode()
    assert doubtful == expected.replace('"translated"', '"needs-translation"')


def test_a_new_target_replaces_the_state_of_the_old_one():
    document = read(
        "a.xlf", file(unit("Cat", "x", "", " xml:lang='de' state='needs-translation' state-qualifier='fuzzy-match'"))
    )
    expected = '<target xml:lang=\'de\' state="translated" state-qualifier="mt-suggestion">CAT</target>'
    assert expected in shouted(document.only("fuzzy")).decode()


def test_a_new_target_of_version_2_has_its_state_at_the_segment():
    text = file2(
        segment2("Cat"), segment2("Dog", "", ' id="s1" state="initial"'), segment2("Cow", "Kuh", ' state="final"')
    )
    document = read("a.xlf", text).only("empty")
    by_model = ' subState="glassformer:mt"'
    expected = file2(
        segment2("Cat", None, f' state="translated"{by_model}').replace(
            "</source>", "</source>\n <target>CAT</target>"
        ),
        segment2("Dog", "DOG", f' id="s1" state="translated"{by_model}'),
        segment2("Cow", "Kuh", ' state="final"'),
    )
    assert shouted(document).decode() == expected
    doubtful = expected.replace('"translated"', '"initial"')
    assert shouted(document, doubtful=[True, True]).decode() == doubtful


SIMILAR = Origin(similarity=0.876, confidence=0.5, source="Cats & dogs", target="Katzen & Hunde")


def test_a_target_says_whether_the_memory_has_the_text_or_a_similar_one():
    document = read("a.xlf", file(unit("Cat"), unit("Dog"), unit("Cow")))
    data = shouted(document, origins=[Origin(similarity=1.0), SIMILAR, Origin(confidence=0.71)])
    root = ElementTree.fromstring(data)
    names = [target.get("state-qualifier") for target in root.iterfind(".//{*}trans-unit/{*}target")]
    assert names == ["exact-match", "fuzzy-match", "mt-suggestion"]
    its = "{http://www.w3.org/2005/11/its}"
    confidences = [target.get(f"{its}mtConfidence") for target in root.iterfind(".//{*}trans-unit/{*}target")]
    assert confidences == [None, "0.50", "0.71"]
    assert {t.get(f"{its}annotatorsRef") for t in root.iterfind(".//{*}target")} == {
        None, "mt-confidence|glassformer",
    }  # fmt: skip
    (proposal,) = root.iterfind(".//{*}alt-trans")
    assert (proposal.get("match-quality"), [child.text for child in proposal]) == (
        "87%", ["Cats & dogs", "Katzen & Hunde"],
    )  # fmt: skip
    assert texts(read("b.xlf", data)) == ["Cat", "Dog", "Cow"]


@pytest.mark.parametrize(
    "other", ["", ' xmlns:its="http://www.w3.org/2005/11/its" its:mtConfidence="0.9" its:person="A"']
)
def test_a_translation_that_is_made_again_says_it_once(other):
    data = file(unit("Cat", "Katze", "", other + " state='needs-translation'"))
    for similarity in (0.876, 0.9):
        document = read("a.xlf", data).only("all")
        data = shouted(document, origins=[replace(SIMILAR, similarity=similarity)]).decode()
    root = ElementTree.fromstring(data)
    (target,) = root.iterfind(".//{*}trans-unit/{*}target")
    its = "{http://www.w3.org/2005/11/its}"
    assert target.text == "CAT"
    assert (target.get(f"{its}mtConfidence"), target.get(f"{its}person")) == ("0.50", None)
    assert [each.get("match-quality") for each in root.iterfind(".//{*}alt-trans")] == ["90%"]


def test_a_similar_text_that_was_not_used_is_a_proposal_only():
    unused = replace(SIMILAR, used=False)
    root = ElementTree.fromstring(shouted(read("a.xlf", file(unit("Cat"))), origins=[unused]))
    (target,) = root.iterfind(".//{*}trans-unit/{*}target")
    assert target.get("state-qualifier") == "mt-suggestion"
    assert [x.get("match-quality") for x in root.iterfind(".//{*}alt-trans")] == ["87%"]
    (segment,) = ElementTree.fromstring(shouted(read("a.xlf", file2(segment2("Cat"))), origins=[unused])).iterfind(
        ".//{*}segment"
    )
    assert segment.get("subState") == "glassformer:mt-50"


def test_a_segment_of_version_2_says_the_percentage():
    document = read("a.xlf", file2(segment2("Cat"), segment2("Dog"), segment2("Cow", None, ' subState="x:y" id="1"')))
    data = shouted(document, origins=[Origin(similarity=1.0), SIMILAR, Origin(True, confidence=0.71)]).decode()
    assert re.findall("<segment([^>]*)>", data) == [
        ' state="translated" subState="glassformer:tm-100"',
        ' state="translated" subState="glassformer:tm-87"', ' subState="glassformer:mt-71" id="1" state="initial"',
    ]  # fmt: skip


def test_only_one_doubtful_translation_is_marked():
    document = read("a.xlf", file(unit("Cat"), unit("Dog"))).only("empty")
    states = re.findall(' state="([^"]*)"', shouted(document, doubtful=[False, True]).decode())
    assert states == ["translated", "needs-translation"]


@pytest.mark.parametrize("make", [lambda *t: file(unit(*t)), lambda *t: file2(segment2(*t))])
def test_a_file_whose_targets_are_there_keeps_its_bytes(make):
    text = make("The <g id='1'>cat</g> <![CDATA[<x>]]>", "Die <g id='1'>Katze</g> &#228;")
    document = read("a.xlf", text)
    for only in ("empty", *(["fuzzy"] if "1.2" in text else [])):
        assert document.only(only).segments == []
        assert kept(document.only(only)).decode() == text


@pytest.mark.parametrize("of_target", [' state="final"', ' state="signed-off"'])
def test_a_final_target_is_not_changed_by_any_choice(of_target):
    text = file(unit("Cat", "Katze", "", of_target))
    for only in ("empty", "fuzzy", "all"):
        assert shouted(read("a.xlf", text).only(only)).decode() == text


def test_all_includes_translations_and_fuzzy_those_to_be_checked():
    document = read(
        "a.xlf", file(unit("one"), unit("two", "zwei", "", ' state="needs-review-translation"'), unit("three", "drei"))
    )
    assert texts(document.only("empty")) == ["one"]
    assert texts(document.only("fuzzy")) == ["one", "two"]
    assert texts(document.only("all")) == ["one", "two", "three"]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_file_keeps_its_encoding_and_its_line_ends(codec, newline):
    accent = "" if codec == "us-ascii" else "é"
    declared = codec.upper().replace("UTF-8-SIG", "UTF-8").replace("UTF-16-LE", "UTF-16").replace("UTF-16-BE", "UTF-16")
    text = file(unit(f"caf{accent} one", ""), unit("two", f"zw{accent}"), unit("three")).replace("UTF-8", declared)
    text = text.replace("\n", newline)
    document = read("a.xlf", text.encode(codec)).only("empty")
    target = '<target state="translated" state-qualifier="mt-suggestion">'
    expected = text.replace("<target></target>", f"{target}CAF{accent.upper()} ONE</target>")
    expected = expected.replace("three</source>", f"three</source>{newline}    {target}THREE</target>")
    assert shouted(document) == expected.encode(codec)


def test_what_is_not_to_be_translated_is_no_segment():
    text = (
        START + '<group translate="no"><trans-unit id="1"><source>one</source></trans-unit>'
        '<trans-unit id="2" translate="yes"><source>two</source></trans-unit></group>'
        '<trans-unit id="3" translate="no"><source>three</source></trans-unit>'
        '<trans-unit id="4"><source>four</source><alt-trans><source>five</source><target>fünf</target>'
        "</alt-trans></trans-unit>"
        '<bin-unit id="5"><bin-source>six</bin-source></bin-unit><trans-unit id="6"><source> 1 </source></trans-unit>'
        + END
    )
    assert texts(read("a.xlf", text)) == ["two", "four", "1"]
    text = START2 + (
        '<unit id="1" translate="no"><segment><source>one</source></segment></unit>'
        '<group id="g"><unit id="2"><notes><note>No</note></notes><segment><source>two</source></segment>'
        "<ignorable><source> three </source></ignorable><segment><source>four</source></segment></unit></group>" + END2
    )
    assert texts(read("a.xlf", text)) == ["two", "four"]


def test_a_source_in_segments_makes_a_target_in_segments():
    text = file(
        '<trans-unit id="1"><source>One. Two.</source>\n<seg-source><mrk mtype="seg" mid="1">One.</mrk> '
        '<mrk mtype="seg" mid="2">Two <g id="1">b</g>.</mrk></seg-source></trans-unit>'
    )
    document = read("a.xlf", text)
    assert texts(document) == ["One.", "Two b."]
    target = '<mrk mtype="seg" mid="1">ONE.</mrk> <mrk mtype="seg" mid="2">TWO <g id="1">B</g>.</mrk></target>'
    assert target in shouted(document).decode()
    (found,) = xliff_units("a.xlf", text.encode(), ("", ""))
    assert found.src == "One. Two."


CODES = {
    "1.2": [
        ['<x id="1"/>'], ['<bx id="2" rid="r"/>', '<ex id="3" rid="r"/>'],
        ['<bpt id="4">&lt;b></bpt>', '<ept id="4">&lt;/b></ept>'],
        ['<ph id="5">%s</ph>'], ['<mrk mtype="protected" translate="no">Acme Inc</mrk>'], ['<g id="6"/>'],
    ],
    "2.0": [
        ['<ph id="1"/>'], ['<sc id="2"/>', '<ec startRef="2"/>'], ['<sm id="3"/>', '<em startRef="3"/>'],
        ['<mrk id="4" translate="no">Acme Inc</mrk>'],
        ['<cp hex="001A"/>'],
    ],
}  # fmt: skip
AROUND = {"1.2": "g", "2.0": "pc"}
WORDS = ["cat", "The", "a &amp; b", "x.", "é", "&lt;g id='1'&gt;", "end!", "up,"]


@st.composite
def rich(draw, version, spaces=("", " ")):
    """A text in which each code is at most once, and the codes of a pair are nested."""
    rng = random.Random(draw(st.integers(0, 1 << 32)))
    pieces = [rng.choice(WORDS) for _ in range(rng.randrange(1, 8))]
    for codes in rng.sample(CODES[version], rng.randrange(len(CODES[version]) + 1)):
        if len(codes) == 1:
            pieces.insert(rng.randrange(len(pieces) + 1), codes[0])
        else:
            start = rng.randrange(len(pieces))
            pieces[start] = codes[0] + rng.choice(["", " "]) + pieces[start] + rng.choice(["", " "]) + codes[1]
    for i in range(rng.randrange(3)):
        start = rng.randrange(len(pieces))
        end = rng.randrange(start, len(pieces)) + 1
        tag = f'{AROUND[version]} id="1{i}"'
        pieces[start:end] = [f"<{tag}>" + " ".join(pieces[start:end]) + f"</{AROUND[version]}>"]
    return rng.choice(spaces).join(pieces)


def check_codes(text: str, seed: int) -> None:
    """Each code of the source is once in the target, within the same others, and pairs are in order."""
    root = ElementTree.fromstring(shuffled(read("a.xlf", text), seed))
    pair = [next(node for node in root.iter() if node.tag.endswith(name)) for name in ("}source", "}target")]
    assert codes_in(pair[1]) == codes_in(pair[0])
    order = [node.tag.rpartition("}")[2] for node in pair[1].iter()]
    for start, end in (("bx", "ex"), ("bpt", "ept"), ("sc", "ec"), ("sm", "em")):
        if start in order:
            assert order.index(start) < order.index(end)


@given(rich("1.2"), st.integers(0, 1 << 32))
@quick
def test_each_code_of_a_source_of_version_1_is_once_in_the_target(source, seed):
    check_codes(file(unit(source)), seed)


@given(rich("2.0"), st.integers(0, 1 << 32))
@quick
def test_each_code_of_a_source_of_version_2_is_once_in_the_target(source, seed):
    check_codes(file2(segment2(source)), seed)


@example('a <g id="10">end! <ph id="4">x</ph> <ph id="5">%s</ph></g>')
@given(rich("1.2", " "))
@quick
def test_the_same_words_have_the_same_codes_between_them(source):
    root = ElementTree.fromstring(kept(read("a.xlf", file(unit(source)))))
    found = [next(node for node in root.iter() if node.tag.endswith(name)) for name in ("}source", "}target")]
    sides = [re.findall(r"[^\s.,!]", "".join(node.itertext())) for node in found]  # punctuation may be after a code
    assert sides[0] == sides[1]


def test_codes_follow_their_words():
    source = (
        'The <g id="1">black cat</g><x id="2"/> saw <mrk translate="no" mtype="protected">Acme Inc</mrk> '
        '<bx id="3"/>here<ex id="3"/>.'
    )
    document = read("a.xlf", file(unit(source)))
    assert texts(document) == ["The black cat saw here."]
    result = by_alignment(
        document, ["Hier sah die schwarze Katze."], [[(0, 2), (1, 3), (2, 4), (3, 1), (4, 0)]]
    ).decode()
    assert '<bx id="3"/>Hier<ex id="3"/>' in result
    assert '<g id="1">schwarze Katze</g>' in result
    assert result.count('<mrk translate="no" mtype="protected">Acme Inc</mrk>') == 2


@pytest.mark.parametrize("seed", range(50))
def test_no_code_is_put_within_an_entity_in_a_script_without_spaces(seed):
    rng = random.Random(seed)
    document = read("a.xlf", file(unit('The <g id="1">AT&amp;T</g> &lt;<x id="2"/>cat &amp; dog')), ("en", "ja"))
    output = "".join(rng.choices(["猫", "&", "<", ">", "犬", "と", "&amp;", "ネコ", " ", "。"], k=9)).strip()
    n, m = (len(unit_spans(text)) for text in (texts(document)[0], output))
    alignment = [(i, rng.randrange(m)) for i in range(n)]
    result = by_alignment(document, [output], [alignment])
    target = ElementTree.fromstring(result).find(".//{*}target")
    assert "".join("".join(target.itertext()).split()) == "".join(output.split())


def test_names_with_an_ampersand_are_read_as_they_are():
    document = read("a.xlf", file(unit('<g id="1">AT&amp;T</g> bought R&amp;D&#38;Q<x id="2"/>')))
    assert texts(document) == ["AT&T bought R&D&Q"]
    assert '<g id="1">AT&amp;T</g> BOUGHT R&amp;D&amp;Q<x id="2"/>' in shouted(document).decode()


def test_a_source_of_a_name_with_a_prefix_gets_a_target_with_it():
    text = (
        '<x:xliff xmlns:x="urn:oasis:names:tc:xliff:document:1.2" version="1.2"><x:file source-language="en"><x:body>'
        '<x:trans-unit id="1"><x:source>Cat</x:source></x:trans-unit></x:body></x:file></x:xliff>'
    )
    result = shouted(read("a.xlf", text)).decode()
    assert '<x:target state="translated" state-qualifier="mt-suggestion">CAT</x:target></x:trans-unit>' in result


def test_a_missing_target_language_is_filled_in():
    text = file(unit("Cat")).replace(' target-language="de"', "")
    document = read("a.xlf", text, ("en", "fr"))
    assert document.languages == ("en-US", "")
    assert 'source-language="en-US" datatype="x" target-language="fr">' in shouted(document).decode()
    assert read("a.xlf", file(unit("Cat")), ("en", "fr")).languages == ("en-US", "de")
    assert 'target-language="de"' in shouted(read("a.xlf", file(unit("Cat")), ("en", "fr"))).decode()
    text = file2(segment2("Cat")).replace(' trgLang="de"', "")
    assert 'srcLang="en" trgLang="fr">' in shouted(read("a.xlf", text, ("en", "fr"))).decode()


@pytest.mark.parametrize(
    ("own", "expected"),
    [("en", "de"), ("fr-FR", "de"), ("", "de"), ("de", "de"), ("de-AT", "de-AT")],
)
def test_a_target_that_names_another_language_gets_that_of_the_translation(own, expected):
    one = file(unit("Cat", "Cat", of_target=f' xml:lang="{own}" state="new"'))
    two = file2(segment2("Cat", "").replace("<target>", f'<target xml:space="preserve" xml:lang="{own}">'))
    assert f'<target xml:lang="{expected}" state="translated"' in shouted(read("a.xlf", one, ("en", "de"))).decode()
    assert f'preserve" xml:lang="{expected}">CAT</target>' in shouted(read("a.xlf", two, ("en", "de"))).decode()
    assert f'xml:lang="{own}" state="translated"' in shouted(read("a.xlf", one, ("", ""))).decode()
    approved = one.replace('id="1"', 'id="1" approved="yes"')
    assert shouted(read("a.xlf", approved, ("en", "de")).only("all")) == approved.encode()


def test_a_target_without_a_language_stays_without():
    assert b"xml:lang" not in shouted(read("a.xlf", file(unit("Cat", "")), ("en", "fr")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (file("<trans-unit id='1'><source>a</source>\n<target>b</target>\n<target>c</target></trans-unit>"),
            "a.xlf:6: a second <target> in one unit"),
        (file2("<segment><source>a</source><target>b</target><target>c</target></segment>"),
            "a.xlf:3: a second <target> in one unit"),
        ("<tmx/>", "not XLIFF: its first element is <tmx>"),
        (file("<a>" * 300 + "</a>" * 300), "a.xlf:4: elements within each other"),
        (file(unit("a&b;")), "a.xlf:5: not well-formed XML: undefined entity"),
        (file(unit("a</b>")), "a.xlf:5: not well-formed XML: mismatched tag"),
        ('<!DOCTYPE x [<!ENTITY a "b">]>' + file2(), "a.xlf:1: declares the entity 'a'"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_one_clear_error(text, message):
    for reading in (lambda: read("a.xlf", text), lambda: list(xliff_units("a.xlf", text.encode(), ("", "")))):
        with pytest.raises(CorpusError, match=re.escape(message)):
            reading()


def test_the_entries_of_a_file_have_lines_states_and_languages():
    data = file(unit("A <x id='1'/>cat", "Eine Katze"), unit("dog"), unit("Cow", "Cow", "", ' state="new"')).encode()
    found = list(xliff_units("a.xlf", data, ("en", "de")))
    assert [(u.src, u.tgt, u.state, u.number) for u in found] == [
        ("A cat", "Eine Katze", "translated", 5), ("dog", "", "empty", 8), ("Cow", "", "empty", 11),
    ]  # fmt: skip
    assert {u.languages for u in found} == {("en-US", "de")}


def test_the_reverse_languages_swap_the_sides_and_others_are_refused():
    data = file(unit("Cat", "Katze")).encode()
    assert [(u.src, u.tgt) for u in xliff_units("a.xlf", data, ("de", "en"))] == [("Katze", "Cat")]
    assert [(u.src, u.tgt) for u in xliff_units("a.xlf", data, ("en-GB", ""))] == [("Cat", "Katze")]
    assert next(xliff_units("a.xlf", data, ("de", "en"))).languages == ("de", "en-US")
    with pytest.raises(CorpusError, match=r"a\.xlf: from en-US to de, not from en to fr"):
        list(xliff_units("a.xlf", data, ("en", "fr")))


def test_files_of_several_languages_in_one_document_are_refused():
    one, other = file(unit("Cat", "Katze")), file(unit("Cat", "Chat")).replace('"de"', '"fr"')
    inner = other[other.index("<file") : other.index("</xliff>")]
    text = one.replace("</xliff>", inner + "</xliff>")
    for reading in (lambda: list(xliff_units("a.xlf", text.encode(), ("en", "de"))), lambda: read("a.xlf", text)):
        with pytest.raises(CorpusError, match="files from en-US to de and from en-US to fr in one document"):
            reading()


def test_marks_may_cross_elements():
    source = 'The <sc id="1"/>red <mrk id="m" type="term">cat<ec startRef="1"/> sat there</mrk> down now.'
    document = read("a.xlf", file2(segment2(source)))
    for seed in range(100):
        ElementTree.fromstring(shuffled(document, seed))


def test_protected_text_is_a_code():
    source = 'The <mrk mtype="protected">ACME</mrk> cat'
    assert texts(read("a.xlf", file(unit(source)))) == ["The cat"]
