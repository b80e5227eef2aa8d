"""Translators read words with a typing error as words of their training text, and say so."""

import glassformer as gf
from glassformer.corpora.spelling import KnownWords
from glassformer.corpora.terms import Glossary, Term, protect_pattern
from glassformer.decode_config import DecodeConfig
from glassformer.documents.notes import notes_of
from glassformer.serve.libretranslate import response
from glassformer.serve.translation import Translate
from glassformer.serve.worker.results import translated
from glassformer.tasks.confidence import N_FEATURES, Confidence
from glassformer.tasks.continuations import continuations
from glassformer.tasks.terms import Terms
from glassformer.tasks.translated import record_of
from tests.tasks.test_terms import LINES, translator

RIGHT = "the black couch slept"
WRITTEN = "the blakc couch selpt"
READ_AS = (("blakc", "black"), ("selpt", "slept"))


def with_words():
    task = translator()
    task.words = KnownWords.of([*LINES] * 200, [])
    return task


def test_the_translation_is_that_of_the_right_words():
    task, warned = with_words(), []
    options = DecodeConfig(align=True, nbest=2)
    (found,) = task.translate([WRITTEN], options, warn=lambda i, what: warned.append((i, what)))
    (expected,) = task.translate([RIGHT], options)
    assert [(t.text, t.ids, t.log_probs, t.alignment) for t in found] == [
        (t.text, t.ids, t.log_probs, t.alignment) for t in expected
    ]
    assert [t.read_as for t in found] == [READ_AS] * 2
    assert [t.source for t in found] == [WRITTEN] * 2
    assert record_of(found)["read_as"] == [["blakc", "black"], ["selpt", "slept"]]
    assert "read_as" not in record_of(expected)
    what = "words that the training text does not have were read as known ones: 'blakc' as 'black', 'selpt' as 'slept'"
    assert (0, what) in warned


def test_words_are_kept_if_that_is_wanted_and_without_known_words():
    task = with_words()
    (kept,) = task.translate([WRITTEN], keep_spelling=True)
    task.words = None
    (without,) = task.translate([WRITTEN])
    assert kept == without
    assert kept[0].read_as == ()
    assert kept[0].text != with_words().translate([RIGHT])[0][0].text


def test_words_between_protected_text_and_those_of_terms():
    task = with_words()
    options = DecodeConfig(protect=("placeholders",))
    written, right = (f"the {word} {{name}} couch {{x}}" for word in ("blakc", "black"))
    assert task.translate([written], options)[0][0].text == task.translate([right], options)[0][0].text
    terms = Terms(Glossary([Term(("blakc",), ("Katze",))]), None)
    ((best,),) = task.engine(options).run(task.decoding([WRITTEN], DecodeConfig(), terms=terms))
    assert best.read_as == READ_AS[1:]
    assert "Katze" in best.text


def test_what_is_not_translated_stays_as_it_is_written():
    task = with_words()
    task.confidence = Confidence((0.0,) * N_FEATURES, (1.0,) * N_FEATURES, (-9.0,) * (N_FEATURES + 1), 1)
    assert task.translate([f"- {WRITTEN} "], min_confidence=0.9)[0][0].text == f"- {WRITTEN} "


def test_alternatives_are_those_of_the_right_words():
    task = with_words()
    options, terms = DecodeConfig(align=True), Terms(Glossary([]), protect_pattern(["placeholders"]))
    found, expected = (
        task.engine(options).run(continuations(task, f"{text} {{x}}", "", 3, options, terms))
        for text in (WRITTEN, RIGHT)
    )
    assert [t.text for t in found] == [t.text for t in expected]


def test_notes_of_files_and_answers_of_the_server_name_the_words():
    nbest = with_words().translate([WRITTEN])[0]
    assert list(notes_of(0, 0, [()], [nbest[0].read_as])) == [
        "words read as known ones (2): blakc as black, selpt as slept"
    ]
    body = Translate(q=WRITTEN, source="en", target="de")
    assert response(body, [translated([nbest], [])], None)["readAs"] == [*READ_AS]
    assert "readAs" not in response(body, [translated([with_words().translate([RIGHT])[0]], [])], None)


def test_a_folder_has_the_words(tmp_path):
    task = with_words()
    task.save(tmp_path / "model")
    found = gf.load(tmp_path / "model")
    assert found.words == task.words
    assert found(WRITTEN) == task(RIGHT)


def test_training_counts_the_words_and_fine_tuning_adds_its_own(tmp_path):
    rows = [("the black cat slept", "die schwarze Katze schlief"), ("Tom saw a dog", "Tom sah einen Hund")] * 30
    for name, pairs in (("a", rows), ("b", [("a yellow bird", "ein gelber Vogel")] * 60)):
        for side, language in enumerate(("en", "de")):
            (tmp_path / f"{name}.{language}").write_text("".join(f"{pair[side]}\n" for pair in pairs))
    files = lambda name: {"src": tmp_path / f"{name}.en", "tgt": tmp_path / f"{name}.de"}
    dev = {"dev_src": tmp_path / "a.en", "dev_tgt": tmp_path / "a.de"}
    options = {"steps": 1, "threads": 1, "quiet": True, **dev}
    task = gf.train(**files("a"), out=tmp_path / "first", vocab_size=280, max_len=40, **options)
    assert task.words.counts == {**dict.fromkeys(("a", "black", "cat", "dog", "saw", "slept", "the"), 30), "Tom": 0}
    tuned = gf.train(**files("b"), out=tmp_path / "tuned", init_from=tmp_path / "first", **options)
    assert tuned.words.counts == {**task.words.counts, "a": 90, "yellow": 60, "bird": 60}
    task.words = None
    task.save(tmp_path / "unknown")
    imported = gf.train(**files("b"), out=tmp_path / "imported", init_from=tmp_path / "unknown", **options)
    assert imported.words is None  # the first training may have had any
