"""What a translator leaves as it is: texts without words, list marks; and what it says of terms that were put in."""

import warnings

import numpy as np
import pytest

import glassformer as gf
from glassformer.corpora.terms import Glossary, Term, protect_pattern, unmet
from glassformer.decode_config import DecodeConfig
from glassformer.documents.words import unit_spans
from glassformer.errors import ConfigError
from glassformer.tasks.confidence import N_FEATURES, Confidence, word_features, words_in
from glassformer.tasks.continuations import begins_word, continuations
from glassformer.tasks.joining import space_after
from glassformer.tasks.splitting import SENTENCE_END, split_text
from glassformer.tasks.terms import Terms, edits
from tests.tasks.test_terms import translator

WITHOUT_WORDS = ["12345", "...", "🎉🎉", "https://example.org/cat", "Привет, мир!", "日本語", " - 12 ", "%", "¿?"]


@pytest.mark.parametrize("text", WITHOUT_WORDS)
def test_a_text_without_words_stays(text):
    task = translator()
    options = DecodeConfig(protect=("all",), nbest=2)
    for nbest in (*task.translate([text]), *task.translate([text], options)):
        assert {translation.text for translation in nbest} == {text}
        assert nbest[0].source == text
    assert task(text) == text
    assert [t.text for t in task.engine(options).run(continuations(task, text, "", 3, options))] == [text]


def test_protected_text_in_a_text_without_words_stays_where_it_is():
    text = "1 {x} 2 {y} 3 {z} 4 %s 5"
    assert translator().translate([text], DecodeConfig(protect=("all",)))[0][0].text == text


def test_a_text_without_words_has_full_confidence_and_no_alignment_error():
    task = translator()
    task.confidence = Confidence((0.0,) * N_FEATURES, (1.0,) * N_FEATURES, (0.01,) * (N_FEATURES + 1), 1)
    options = DecodeConfig(confidence=True, min_confidence=0.0, align=True)
    (best,), (other,) = task.translate(["🎉 12", "a cat"], options)
    assert (best.text, best.confidence) == ("🎉 12", 1.0)
    assert other.text != "a cat"


@pytest.mark.parametrize("mark", ["- ", "* ", "•  ", "1. ", "a) ", "- 2. "])
def test_a_list_mark_stays_and_the_rest_is_translated_as_without_it(mark):
    task = translator()
    text = "a black cat sat"
    (with_mark,), (without,) = task.translate([mark + text, text])
    assert with_mark.text == mark + without.text
    assert with_mark.source == mark + text


def test_a_list_mark_stays_before_protected_text_and_in_alternatives():
    task = translator()
    options = DecodeConfig(protect=("placeholders",))
    ((best,),) = task.translate(["- {name} slept"], options)
    assert best.text.startswith("- ")
    assert "{name}" in best.text
    found = task.engine(options).run(continuations(task, "- a cat", "", 3, options))
    assert found
    assert all(t.text.startswith("- ") for t in found)
    begun = found[0].text.split()[:2]
    again = task.engine(options).run(continuations(task, "- a cat", " ".join(begun), 3, options))
    assert all(t.text.startswith(" ".join(begun)) for t in again)


def test_a_folder_keeps_the_scripts_of_its_training(tmp_path):
    pairs = "".join(f"котик номер {i}\tcat number {i}\n" for i in range(40))
    (tmp_path / "train.tsv").write_text(pairs, encoding="utf-8")
    options = dict(steps=1, preset="tiny", vocab_size=300, threads=1, quiet=True)
    task = gf.train(tmp_path / "train.tsv", out=tmp_path / "run", **options)
    assert gf.load(tmp_path / "run").scripts == task.scripts == ("CYRILLIC",)
    assert task("a cat 1") == "a cat 1"
    assert task("котик") != "котик"
    # What the model was trained on before is still translated.
    (tmp_path / "more.tsv").write_text("".join(f"αβγ {i}\tabc {i}\n" for i in range(40)), encoding="utf-8")
    tuned = gf.train(tmp_path / "more.tsv", out=tmp_path / "tuned", init_from=tmp_path / "run", steps=1, threads=1)
    assert tuned.scripts == ("CYRILLIC", "GREEK")


def test_a_folder_keeps_how_many_sentences_are_translated_at_once(tmp_path):
    pairs = "".join(f"A cat. A dog {i}.\tKatze mit Hund {i}\n" for i in range(40))
    (tmp_path / "train.tsv").write_text(pairs, encoding="utf-8")
    options = dict(steps=1, preset="tiny", vocab_size=300, threads=1, quiet=True)
    gf.train(tmp_path / "train.tsv", out=tmp_path / "run", **options)
    assert gf.load(tmp_path / "run").n_sentences == 2
    more = "".join(f"A cat. A dog {i}.\tKatze. Hund {i}.\n" for i in range(40))
    (tmp_path / "more.tsv").write_text(more, encoding="utf-8")
    tuned = gf.train(tmp_path / "more.tsv", out=tmp_path / "tuned", init_from=tmp_path / "run", steps=1, threads=1)
    assert tuned.n_sentences == 2
    gf.train(tmp_path / "more.tsv", out=tmp_path / "single", **options)
    assert gf.load(tmp_path / "single").n_sentences == 1


def test_a_training_on_numbers_translates_numbers(tmp_path):
    pairs = "".join(f"{i}\tnumber {i % 7}\n" for i in range(40))
    (tmp_path / "train.tsv").write_text(pairs, encoding="utf-8")
    options = dict(steps=1, preset="tiny", vocab_size=300, threads=1, quiet=True)
    task = gf.train(tmp_path / "train.tsv", out=tmp_path / "run", **options)
    assert task("12") != "12"


def test_an_older_folder_has_the_scripts_of_its_vocabulary(tmp_path):
    task = translator()
    assert task.scripts == ()
    assert task.scripts_of_vocabulary == ("LATIN",)
    assert translator(kind="byte").scripts_of_vocabulary is None


def test_words_in():
    assert words_in(["neues Sofa"], ["ein", "neues", "Sofa,", "ein"]).tolist() == [False, True, True, False]
    assert words_in(["ein"], ["ein", "eins", "ein"]).tolist() == [True, False, True]
    assert words_in([], ["a"]).tolist() == [False]


def test_tokens_of_a_term_that_was_put_in_are_no_features():
    words, owners = ["a", "Sofa", "b"], [0, 1, 1, 2]
    forced = np.array([False, True, False])
    probable, improbable = (
        word_features(words, [-0.5, x, 2 * x, -0.25], owners, forced)[[0, 2]] for x in (-0.1, -90.0)
    )
    assert (probable == improbable).all()
    assert word_features(words, [-0.5, -1.0, -1.0, -0.25], owners)[0].tolist() != probable[0].tolist()


def test_the_confidence_of_a_line_with_a_term_is_that_of_its_other_words(tmp_path):
    task = translator()
    rng = np.random.default_rng(1)
    coefficients = (*rng.normal(size=N_FEATURES).tolist(), 0.0)
    task.confidence = Confidence((0.0,) * N_FEATURES, (0.001,) * N_FEATURES, coefficients, 1)
    path = tmp_path / "terms.tsv"
    path.write_text("cat\tneues Sofa\n", encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as an overflow
        ((best,),) = task.translate(["the black cat sat"], DecodeConfig(glossary=path, confidence=True, max_length=12))
    assert "neues Sofa" in best.text
    assert {p for word, p in best.words if word in ("neues", "Sofa")} == {1.0}
    owners_free = [p for word, p in best.words if word not in ("neues", "Sofa")]
    assert all(0 <= p <= 1 for p in owners_free)


TERMS = Terms(Glossary([Term(("cat",), ("Kater",))]), protect_pattern(["markers"]))


@pytest.mark.parametrize("family", ["transformer", "rnn"])
def test_alternatives_have_the_terms_and_the_protected_text(family):
    task = translator(kind="word", family=family)
    options = DecodeConfig(beam=2, max_length=12)
    text = "[X7X] the black cat sat on [X12X] a couch"
    first = task.engine(options).run(continuations(task, text, "", 4, options, TERMS))
    assert len(first) > 1
    for translation in first:
        assert unmet(TERMS.required(text), translation.text) == []
        assert all(translation.text.count(marker) == 1 for marker in ("[X7X]", "[X12X]"))
    words = first[0].text.split()
    for n in range(1, len(words)):
        prefix = " ".join(words[:n])
        for translation in task.engine(options).run(continuations(task, text, prefix, 3, options, TERMS)):
            assert translation.text.startswith(prefix)
            assert translation.source == text
            assert unmet(TERMS.required(text), translation.text) == []
            assert all(translation.text.count(marker) == 1 for marker in ("[X7X]", "[X12X]")), prefix


def test_a_term_within_a_text_begins_with_a_small_letter():
    required = next(Glossary([Term(("cat",), ("kater",))]).find("cat"))
    assert any(text.startswith("Kater") for text in edits(" x y", required, 0))
    assert not any("Kater" in text for text in edits(" x y", required, 0, begins_text=False))


def test_an_edit_keeps_white_space():
    required = next(Glossary([Term(("cat",), ("chatte",))]).find("cat"))
    found = list(edits("Où est le chat\u00a0? Il coûte 12\u00a0000\u00a0€.", required, 3))
    assert "Où est le chatte\u00a0? Il coûte 12\u00a0000\u00a0€." in found
    assert "Où est le chatte chat\u00a0? Il coûte 12\u00a0000\u00a0€." in found
    assert list(edits("", required, 0)) == ["chatte", "Chatte"]
    assert "x chatte" in list(edits(" x ", required, 0))


def test_a_prefix_stays_when_a_term_is_put_in():
    task = translator()
    options = DecodeConfig(prefix="Kunde sofort", max_length=9)
    decoding = task.decoding(["the cat sat"], options, terms=TERMS)
    ((best,),) = task.engine(options).run(decoding)
    assert best.text.startswith("Kunde sofort")
    assert "Kater" in best.text


@pytest.mark.parametrize(
    "text", ["The [X7X] cat", "Save <f0>the file</f0> now <x1/>.", "<f0>", "a [X0X][X12X] b", "<b3/>x"]
)
def test_markers_of_clients_are_protected(text):
    terms = Terms(None, protect_pattern(["markers"]))
    assert terms.take_out(text) is not None
    assert terms.take_out("the [X] cat <b> x [Y7Y]") is None


def test_a_prefix_begins_the_first_part_of_a_long_text_only():
    task = translator()
    n = task.config.max_len // 2
    options = DecodeConfig(prefix="Kunde", max_length=5, beam=1)
    ((long,), (short,)) = task.translate(["the cat sat on the mat. " * n, "the cat sat"], options)
    assert long.text.startswith("Kunde")
    assert short.text.startswith("Kunde")
    assert long.text.count("Kunde") == 1
    with pytest.raises(ConfigError, match=r"--prefix: .* tokens, and a translation of this model has at most"):
        task.translate(["the cat sat"], DecodeConfig(prefix="Kunde sofort " * n))


def test_a_text_that_is_translated_in_parts_has_no_continuations():
    task = translator()
    text = "a black cat sat " * task.config.max_len
    with pytest.raises(ConfigError, match="there are no translations that begin with a given text"):
        task.engine(DecodeConfig()).run(continuations(task, text, "", 3, DecodeConfig()))


@pytest.mark.parametrize(
    ("before", "space", "expected"),
    [
        ("Hello.", "", " "), ("Hello.", " ", " "), ("Hello.", "\n", "\n"), ("猫。", " ", ""), ("猫。", "", ""),
        ("猫。", "\n", "\n"), ("猫", "", ""), ("แมว", " ", " "), ("猫」", " ", ""),
    ],
)  # fmt: skip
def test_the_space_between_sentences_is_that_of_the_script(before, space, expected):
    assert space_after(before, space) == expected


@pytest.mark.parametrize("begun", ["1.", "1. ", " "])
def test_what_begins_with_a_list_mark_only_begins_with_nothing(begun):
    task, options = translator(), DecodeConfig()
    found, wanted = (
        task.engine(options).run(continuations(task, "1. a cat", prefix, 3, options)) for prefix in (begun, "")
    )
    assert [t.text for t in found] == [t.text for t in wanted]
    assert found


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("「本当？」と彼は聞いた。「はい。」", ["「本当？」と彼は聞いた。", "「はい。」"]),
        ("すごい！！行こう。", ["すごい！！", "行こう。"]),
        ("“好的。”他说。", ["“好的。”", "他说。"]), ("Yes. No! ", ["Yes.", "No!"]),
    ],
)  # fmt: skip
def test_sentences_of_long_texts_end_at_their_marks(text, sentences):
    assert [sentence for _, sentence in split_text(SENTENCE_END, text)] == sentences


def test_a_translation_goes_on_within_a_text_without_spaces():
    task = translator("char", texts=["猫が座った。", "犬が食べた。", "窓を開けて下さい。"])
    options = DecodeConfig(align=True)
    found = task.engine(options).run(continuations(task, "猫が座った", "猫が", 4, options))
    assert found
    assert all(t.text.startswith("猫が") and len(t.text) > 2 for t in found)
    n = len(unit_spans(found[0].text))
    assert n > 1
    assert {t for _, t in found[0].alignment} == set(range(n))
    assert {s for s, _ in found[0].alignment} <= set(range(5))


@pytest.mark.parametrize(
    ("prefix", "rest", "begins"),
    [("the cat", " sat", True), ("the cat", "s", False), ("猫", "が", True), ("猫 a", "b", False), ("a", "猫", True)],
)
def test_what_follows_a_prefix_begins_a_word(prefix, rest, begins):
    assert begins_word(prefix, rest) == begins
