"""Lines in capitals and in title case: what the model is given, and what becomes of its output."""

import pytest

from glassformer.corpora.terms import Glossary, Term
from glassformer.decode_config import DecodeConfig
from glassformer.models.transformer import Transformer, TransformerConfig
from glassformer.tasks.casing import recased, upper
from glassformer.tasks.continuations import continuations
from glassformer.tasks.registry import load
from glassformer.tasks.terms import Terms
from glassformer.tasks.translation import Translator
from glassformer.tokens.tokenizer import Tokenizer

TEXT = [
    "Der Hund und die Katze sind in Berlin.",
    "Ein Mann in der roten Jacke sieht den Hund.",
    "Die NATO und der Mann sind in Berlin.",
    "A dog and a cat don't sleep in the house.",
    "The man saw it in Berlin, and the dog did too.",
    "Will Brown and Mark Stone will saw brown and stone.",
]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TEXT * 20, vocab_size=400)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("THE MAN SAW A DOG IN BERLIN.", "The man saw a dog in Berlin."),
        ("DER HUND SIEHT DEN MANN", "Der Hund sieht den Mann"),
        ("THE NATO IN BERLIN", "The NATO in Berlin"),
        ("A CAT DON'T SLEEP", "A cat don't sleep"),
        ("THE DOG X86 ABC-12", "The dog X86 ABC-12"),
        ("The Man Saw A Dog In Berlin.", "The man saw a dog in Berlin."),
        ("The Man-dog Saw A Dog", "The man-dog saw a dog"),
        ("NATO", "NATO"),
        ("THE MAN SAW THE 1ª DOG", "The man saw the 1ª dog"),
        ("DER MANN, DER IN DER STRAßE", "Der Mann, der in der straße"),
        ("The man in Berlin saw NATO.", "The man in Berlin saw NATO."),
        ("The Man In", "The Man In"),
        ("Will Brown, Mark Stone", "Will Brown, Mark Stone"),
        ("12 %", "12 %"),
        ("", ""),
        ("日本語", "日本語"),
        ("使用 NATO 接口", "使用 NATO 接口"),
        ("NATO में DOG", "NATO में DOG"),
    ],
)
def test_words_get_the_form_that_the_vocabulary_knows(tokenizer, text, expected):
    assert recased(text, tokenizer) == expected


@pytest.mark.parametrize("text", ["İSTANBUL", "ŞIŞLI DAĞ İÇ", "ΟΔΟΣ ΣΟΦΟΣ", "ǅ ǅ ǅ ǅa", "FUSS ẞ"])
def test_the_length_stays(tokenizer, text):
    assert len(recased(text, tokenizer)) == len(text)


@pytest.fixture
def task(tokenizer) -> Translator:
    ids = {"pad_id": tokenizer.pad_id, "bos_id": tokenizer.bos_id, "eos_id": tokenizer.eos_id}
    layers = {"n_encoder_layers": 1, "n_decoder_layers": 1}
    sizes = {"vocab_size": tokenizer.vocab_size, "d_model": 24, "n_heads": 2, "d_ff": 33, "max_len": 60}
    return Translator(Transformer(TransformerConfig(**sizes, **layers, **ids)), tokenizer)


USUAL, CAPITALS = "The man saw a dog in Berlin.", "THE MAN SAW A DOG IN BERLIN."


@pytest.mark.filterwarnings("ignore:at least one text")
def test_a_line_in_capitals_is_translated_as_without_and_put_into_capitals(task):
    (usual,), (capitals,) = task.translate([USUAL, f"- {CAPITALS}"])
    assert capitals.text == f"- {usual.text.upper()}"
    assert capitals.source == f"- {CAPITALS}"
    assert capitals.ids == usual.ids
    assert (usual.recased, capitals.recased) == (False, True)
    assert "recased" not in task.records([USUAL])[0]
    assert task.records([CAPITALS])[0]["recased"] is True


def test_a_line_in_title_case_is_translated_as_without(task):
    (usual,), (title,) = task.translate([USUAL, "The Man Saw A Dog In Berlin."])
    assert title.text == usual.text
    assert title.recased


def test_protected_text_keeps_its_case_and_alignment_is_that_of_the_usual_text(task):
    options = DecodeConfig(protect=("placeholders",), align=True)
    (usual,), (capitals,) = task.translate(["The man saw {name} in Berlin.", "THE MAN SAW {name} IN BERLIN."], options)
    assert "{name}" in capitals.text
    assert capitals.text.replace("{name}", "") == usual.text.replace("{name}", "").upper()
    assert len(capitals.alignment) == len(usual.alignment)


@pytest.mark.parametrize("options", [{"prefix": "der"}, {"ban": ("HUND",)}])
def test_what_the_output_is_to_begin_with_or_not_to_have_keeps_its_case(task, options):
    ((translation,),) = task.translate([CAPITALS], DecodeConfig(**options))
    assert not translation.recased
    assert translation.text.startswith(options.get("prefix", ""))


def test_continuations_of_a_line_in_capitals_are_in_capitals(task):
    options = DecodeConfig()
    engine = task.engine(options)
    usual = engine.run(continuations(task, USUAL, "", 3, options))
    found = engine.run(continuations(task, CAPITALS, "", 3, options))
    assert [t.text for t in found] == [t.text.upper() for t in usual]
    after = engine.run(continuations(task, CAPITALS, "DER HUND", 3, options))
    assert all(t.text.startswith("DER HUND") and t.text.isupper() for t in after)
    assert [t.text for t in after] == [
        t.text.upper() for t in engine.run(continuations(task, USUAL, "Der Hund", 3, options))
    ]


def test_a_vocabulary_without_capitals_and_a_folder(task, tmp_path):
    lower = Tokenizer.train([text.lower() for text in TEXT * 20], vocab_size=400)
    assert recased(CAPITALS, lower) == CAPITALS.lower()
    task.save(tmp_path / "model")
    assert load(tmp_path / "model", device="cpu")(CAPITALS) == task(CAPITALS)


@pytest.mark.parametrize("kind", ["word", "wordpiece"])
def test_a_known_word_does_not_become_an_unknown_one(kind):
    tokenizer = Tokenizer.train(TEXT * 20, kind=kind, vocab_size=400)
    assert recased("The Man In Berlin Saw It", tokenizer) == "The man in Berlin saw it"
    assert recased("THE NATO IN BERLIN", tokenizer) == "The NATO in Berlin"


@pytest.mark.parametrize("kind", ["char", "byte"])
def test_characters_do_not_tell_which_words_are_names(kind):
    tokenizer = Tokenizer.train(TEXT * 20, kind=kind)
    assert recased("Anna Marie Kim Brown", tokenizer) == "Anna Marie Kim Brown"
    assert recased("THE MAN", tokenizer) == "The man"


def test_terms_of_a_line_in_capitals_are_found(task):
    glossary = Glossary([Term(("MAN",), ("Ibéem",)), Term(("dog",), ("Köter",))])
    decoding = task.decoding([CAPITALS], DecodeConfig(), terms=Terms(glossary, None))
    ((translation,),) = task.engine(DecodeConfig()).run(decoding)
    assert {"Ibéem", "Köter"} <= set(translation.forced)
    assert "IBÉEM" in translation.text
    assert "KÖTER" in translation.text
    assert translation.missing == ()


def test_what_is_written_stays_before_a_continuation_in_capitals(task):
    """A letter that becomes two in capitals is not cut."""
    options = DecodeConfig()
    found = task.engine(options).run(continuations(task, CAPITALS, "straße", 3, options))
    assert all(t.text.startswith("straße ") for t in found)
    assert all(t.text[len("straße ") :].isupper() for t in found)


@pytest.mark.parametrize("language", ["tr", "az"])
def test_the_dot_of_the_turkish_i_stays(language):
    texts = ["kız kapıyı açtı ve istanbul güzel idi"] * 9
    tokenizer = Tokenizer.train(texts, kind="word", vocab_size=300)
    assert recased("KIZ KAPIYI AÇTI", tokenizer, language) == "kız kapıyı açtı"
    assert recased("İSTANBUL GÜZEL İDİ", tokenizer, language) == "istanbul güzel idi"
    assert upper("kız istanbul", language) == "KIZ İSTANBUL"
    assert upper("kız istanbul") == "KIZ ISTANBUL"
