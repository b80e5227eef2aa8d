"""The engine of a page translates as the command line in int8: the same texts, log-probabilities and confidence."""

import pytest

from glassformer.corpora.terms import Glossary, Term, protect_pattern
from glassformer.decode_config import DecodeConfig
from glassformer.tasks.continuations import continuations
from glassformer.tasks.terms import Terms
from tests.browser.translators import TRAINED, random_translator

pytestmark = pytest.mark.slow
TEXTS = [
    *TRAINED,
    "Teh blakc cat sta on the cuoch, adn teh dog dind't: “Wolkn” Cuoch, naaß l'onbre.",
    "",
    "   ",
    "  two  spaces\tand a tab ",
    "使用 NATO 接口，and 25 DOGS",
    "THE BLACK CAT SAT ON THE STRASSE.",
    "The Black Cat Sat On The Couch In Berlin.",
    "- a list: one",
    "2.3) another 12",
    "12345",
    "...",
    "see https://example.org/a?b=c and me@example.org",
    "Привет, мир!",
    "日本語です。これも。",
    "emoji 🎉🎉 and e\u0301 accents, \u200bzero width",
    "lone \ud800 surrogate",
    "a\u2028b\u0085c\x1cd",
    "x" * 300,
    "กำเปิ้ล" * 20,
    "the cat sat. " * 12,
    "A man. The cat sat. Dr. Berlin! Is it?\nHe saw 5. dogs... The couch.",
    "猫。这只猫睡了！A man.",
    "the cat sat the cat sat the cat sat the cat sat",
    "İSTANBUL ΟΔΟΣ ǅ",
]


@pytest.fixture(scope="module", params=["transformer", "t5", "bart"])
def task(request, tmp_path_factory):
    return random_translator(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def call(task, engines):
    return engines(task)


@pytest.mark.parametrize("options", [{}, {"beam": 1}, {"nbest": 3}, {"beam": 2, "nbest": 2}, {"tag": "law"}])
def test_texts_log_probabilities_and_confidence_are_equal(task, call, options):
    wanted = task.translate(TEXTS, DecodeConfig(precision="int8", confidence=True, **options))
    for text, translations in zip(TEXTS, wanted, strict=True):
        found = call("translate", text=text, options={"confidence": True, **options})
        assert [x["text"] for x in found] == [x.text for x in translations]
        assert [x["logProbs"] for x in found] == [x.log_probs for x in translations]
        assert [x["readAs"] for x in found] == [list(map(list, x.read_as)) for x in translations]
        assert [x["ids"] for x in found] == [list(x.ids) for x in translations]
        assert found[0]["repeated"] == translations[0].repeated
        assert [x["score"] for x in found] == pytest.approx([x.score for x in translations], rel=1e-12)
        words = [[word for word, _ in x.words] for x in translations]
        assert [[word for word, _ in x["words"]] for x in found] == words
        p = [p for x in translations for _, p in x.words]
        assert [p for x in found for _, p in x["words"]] == pytest.approx(p, rel=1e-9)


def test_some_translations_repeat_themselves_and_are_decoded_again(task):
    """The guard against repetition is part of what is compared."""
    assert any(nbest[0].repeated for nbest in task.translate(TEXTS, DecodeConfig(precision="int8")))


def test_words_are_aligned_alike(task, call):
    """Sums of floats are added in another order, so that a tie may be decided otherwise."""
    n = n_equal = 0
    for text in TEXTS:
        ((wanted,),) = task.translate([text], DecodeConfig(precision="int8", align=True))
        (found,) = call("translate", text=text, options={"align": True})
        assert [t for _, t in found["alignment"]] == [t for _, t in wanted.alignment]
        n += len(wanted.alignment)
        n_equal += sum(a == list(b) for a, b in zip(found["alignment"], wanted.alignment, strict=True))
    assert n > 30
    assert n_equal >= 0.98 * n


def test_a_tag_changes_translations(task, call):
    ((plain,), (tagged,)) = (call("translate", text=TRAINED[0], options={"tag": tag}) for tag in (None, "law"))
    assert plain["logProbs"] != tagged["logProbs"]


@pytest.mark.parametrize("tag", ["", "law"])
@pytest.mark.parametrize("text", [TRAINED[0], "The blakc cat", "- a list: one", "THE BLACK CAT SAT.", "12345", ""])
def test_continuations_are_equal(task, call, text, tag):
    options = DecodeConfig(precision="int8", beam=2, confidence=True, tag=tag)
    engine = task.engine(options)
    ((best,),) = task.translate([text], DecodeConfig(precision="int8"))
    for prefix in ("", best.text[:1], " ".join(best.text.split()[:2])):
        wanted = engine.run(continuations(task, text, prefix, 5, options))
        found = call(
            "continuations", text=text, prefix=prefix, n=5, options={"beam": 2, "confidence": True, "tag": tag}
        )
        assert [x["text"] for x in found] == [x.text for x in wanted]
        assert [x["logProbs"] for x in found] == [x.log_probs for x in wanted]


def test_a_text_of_several_parts_has_no_continuations(task, call):
    with pytest.raises(Exception, match="there are no translations that begin with a given text"):
        call("continuations", text="word " * 300, prefix="", n=2, options={})


MARKED = [
    "The {name} cat sat on <b>the couch</b>, and the dog didn't.",
    "[X1X] The black cat [X2X]sat[X3X].",
    "<f0>A man</f0> in Berlin saw <x1/> dogs; they were big!",
    "Die Strße <b>berlni</b> wree {x} blcak wehre cloudz were.",
    "%s: see https://example.org/a, or {0} & {1}.",
    "A <a href='x'><code>man</code></a> saw 5 km of the couch.",
    "- THE BLACK {x} CAT SAT.",
    "<i>couch</i>",
    "{a}{b}",
    "nothing of it &amp; a dog",
    "word " * 230 + "{end}",
    "The cat 猫, 这只猫睡了 and कीमत मत, cafe\u0301 café カード A man.",
]
TERMS = [
    ["猫", "chat"],
    ["मत", "vote"],
    ["cafe", "bar"],
    ["カー", "Auto"],
    ["猫睡", "猫"],
    ["cat", "Katze|Kater"],
    ["black cat", "schwarze Katze"],
    ["couch", "Sofa"],
    ["Berlin", "Bärlin"],
    ["a man", "Mann"],
]


@pytest.mark.parametrize("terms", [[], TERMS])
@pytest.mark.parametrize("protect", ["all", "markers"])
def test_protected_text_and_terms_are_put_in_alike(task, call, terms, protect):
    glossary = Glossary(Term(*(tuple(side.split("|")) for side in pair)) for pair in terms) if terms else None
    options = DecodeConfig(precision="int8", nbest=2, confidence=True)
    texts = [*MARKED, *TRAINED]
    decoding = task.decoding(texts, options, terms=Terms(glossary, protect_pattern([protect])))
    wanted = task.engine(options).run(decoding)
    n_terms = 0
    for text, translations in zip(texts, wanted, strict=True):
        asked = {"terms": terms, "protect": protect, "nbest": 2, "confidence": True}
        found = call("translate", text=text, options=asked)
        assert [x["text"] for x in found] == [x.text for x in translations]
        assert [x["missing"] for x in found] == [list(x.missing) for x in translations]
        assert [x["truncated"] for x in found] == [x.is_truncated for x in translations]
        assert [x["forced"] for x in found] == [list(x.forced) for x in translations]
        p = [p for x in translations for _, p in x.words]
        assert [p for x in found for _, p in x["words"]] == pytest.approx(p, rel=1e-5)
        n_terms += len(translations[0].forced)
    assert bool(n_terms) == bool(terms)


NESTED = [
    "The <b>black <i>cat</i></b> sat, and the <a>dog</a> {0} didn't.",
    "THE <b>BLACK</b> CAT {0} SAT.",
    "<b></b>A man <i> </i>saw 25 dogs, <x/>they <y/>were <b>big</b> and <b>A man in Berlin</b>.",
]


def test_a_model_with_codes_says_where_they_are(engines, tmp_path, monkeypatch):
    task = random_translator("codes", tmp_path)
    call, texts, options = engines(task), [*MARKED[:9], *NESTED], DecodeConfig(precision="int8")
    terms = Terms(None, protect_pattern(["all"]))

    def translations():
        return [x.text for (x,) in task.engine(options).run(task.decoding(texts, options, terms=terms))]

    wanted = translations()
    assert [call("translate", text=text, options={"protect": "all"})[0]["text"] for text in texts] == wanted
    monkeypatch.setattr("glassformer.tasks.code_positions.code_ids", lambda tokenizer: {})
    assert sum(a != b for a, b in zip(wanted, translations(), strict=True)) > 5


@pytest.mark.parametrize("text", MARKED[:6])
@pytest.mark.parametrize("terms", [[], TERMS])
def test_continuations_with_protected_text_and_terms(task, call, text, terms):
    glossary = Glossary(Term(*(tuple(side.split("|")) for side in pair)) for pair in terms) if terms else None
    options = DecodeConfig(precision="int8", beam=2)
    engine, given = task.engine(options), Terms(glossary, protect_pattern(["all"]))
    ((best,),) = engine.run(task.decoding([text], options, terms=given))
    for prefix in ("", " ".join(best.text.split()[:3])):
        wanted = engine.run(continuations(task, text, prefix, 4, options, given))
        asked = {"beam": 2, "terms": terms, "protect": "all"}
        found = call("continuations", text=text, prefix=prefix, n=4, options=asked)
        assert [x["text"] for x in found] == [x.text for x in wanted]


def test_builds_with_relaxed_products_are_used_only_where_they_are_exact(task, engines):
    """The page loads the fastest build that this browser computes exactly."""
    call = engines(task, build=None)
    assert call("translate", text=TRAINED[0], options={})[0]["text"] == task(TRAINED[0], precision="int8")
