"""Translation memories: an equal text is not translated anew, and the translation of a similar one is given to a model
that was trained with them."""

import json
from dataclasses import replace
from itertools import chain

import pytest

from glassformer.corpora.example import Example
from glassformer.corpora.memory import Match
from glassformer.decode_config import DecodeConfig
from glassformer.errors import ConfigError, CorpusError
from glassformer.learning.translation import MIN_TRAINING_MATCH, TranslationObjective
from glassformer.models.transformer import TransformerConfig
from glassformer.tasks.memories import description, read_memory
from glassformer.tasks.translated import record_of
from glassformer.tasks.translation import Translator
from glassformer.tokens.tags import MATCH, match_id, with_match, without_match
from glassformer.tokens.tokenizer import Tokenizer
from glassformer.train_config import TrainConfig
from tests.documents.test_tmx import memory, tuv

TEXTS = ["the cat sat on the mat", "die Katze saß auf der Matte", "a dog came", "1. ein Hund kam %s"] * 9
TMX = memory(
    tuv("en", "the cat sat on the mat") + tuv("de", "die Katze saß auf der Matte"),
    tuv("en", "a dog came") + tuv("de", "ein Hund %s kam"),
    tuv("en", "cats") + tuv("de", "Katzen", ' creationid="MT!"'),
)


def translator(*, max_len: int = 64, with_matches: bool = True) -> Translator:
    special = (MATCH,) if with_matches else ()
    tokenizer = Tokenizer.train(TEXTS, vocab_size=300, extra_special_tokens=special)
    config = TransformerConfig(
        vocab_size=tokenizer.vocab_size, d_model=32, n_heads=2, d_ff=32, n_encoder_layers=1, n_decoder_layers=1,
        max_len=max_len, pad_id=tokenizer.pad_id, bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id,
    )  # fmt: skip
    task = Translator.build(config, tokenizer)
    task.languages = ("en", "de")
    return task


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "memory.tmx"
    path.write_text(TMX)
    return path


def sources_of(task, text: str, path, **options) -> list[list[int]]:
    """What the model is given."""
    return [list(ids) for ids in next(task.decoding([text], DecodeConfig(memory=(path,), **options))).ids]


def test_an_equal_text_is_not_translated_anew(path):
    (found,), (marked,) = translator().translate(
        [" the cat sat on the mat", "1. a dog came"], memory=[path], align=True, beam=1
    )
    assert found.text == " die Katze saß auf der Matte"
    assert found.match == Match("the cat sat on the mat", "die Katze saß auf der Matte", 1.0)
    assert (found.log_probs, bool(found.alignment)) == ([], True)
    assert marked.text == "1. ein Hund %s kam"


def test_a_model_that_was_not_trained_with_matches_uses_equal_texts_only(path):
    task = translator(with_matches=False)
    assert task.translate(["a dog came"], memory=[path])[0][0].text == "ein Hund %s kam"
    plain, found = (task.translate(["a dog comes"], memory=each, max_length=8)[0][0] for each in ((), (path,)))
    assert (found.text, found.match) == (plain.text, None)
    assert description(task, read_memory((path,), (), ("en", "de"))) == (
        "Memory: 2 texts; only equal texts are used: the model was not trained with --fuzzy-matches."
    )


def test_the_translation_of_a_similar_text_follows_the_source(path):
    task = translator()
    t, match = task.tokenizer, match_id(task.tokenizer)
    text = "the cat sat on a mat"
    assert sources_of(task, text, path) == [
        [*t.encode(text), match, *t.encode("die Katze saß auf der Matte"), t.eos_id]
    ]
    assert sources_of(task, text, path, min_match=0.9) == [[*t.encode(text), t.eos_id]]
    found = task.translate([text], memory=[path], max_length=5)[0]
    assert found[0].match.similarity == pytest.approx(5 / 6)
    assert record_of(found)["match"]["source"] == "the cat sat on the mat"
    assert json.loads(json.dumps(record_of(found))) == record_of(found)


def test_a_protected_span_is_taken_out_of_the_match_as_well(path):
    task = translator()
    t, match = task.tokenizer, match_id(task.tokenizer)
    (ids,) = sources_of(task, "a dog came in", path, protect=("placeholders",))
    assert ids == [*t.encode("a dog came in"), match, *t.encode("ein Hund kam"), t.eos_id]


def test_a_text_in_several_parts_has_no_match(path):
    task = translator(max_len=16)
    assert len(sources_of(task, "a dog came. the cat sat on the mat. " * 2, path, min_match=0.1)) > 1
    (found,) = task.translate(["a dog came. the cat sat on the mat. " * 2], memory=[path], min_match=0.1)
    assert found[0].match is None


def test_a_match_is_cut_off_at_the_maximum_length():
    assert with_match([5, 6], [7, 8, 9], 3, 4) == [5, 6, 3, 7]
    assert with_match([5, 6], [7], 3, 2) == [5, 6]
    for ids in ([5, 6, 3, 7], [5, 6], [5, 6, 3]):
        assert without_match(ids, 3) == [5, 6]
    assert without_match([5, 3, 6], None) == [5, 3, 6]


@pytest.mark.parametrize("options", [{"ban": ("Hund",)}, {"prefix": "der"}])
def test_a_translation_of_the_memory_that_may_not_be_is_not_used(path, options):
    found = translator().translate(["a dog came"], memory=[path], max_length=6, **options)[0][0]
    assert found.text != "ein Hund %s kam"


def test_terms_that_the_translation_of_the_memory_lacks_are_reported(path, tmp_path):
    glossary = tmp_path / "terms.tsv"
    glossary.write_text("dog\tKöter\n")
    (found,) = translator().translate(["a dog came"], memory=[path], glossary=glossary)
    assert (found[0].text, found[0].missing) == ("ein Hund %s kam", ("Köter",))


def test_a_changed_memory_is_read_again(path):
    task = translator()
    assert task("a dog came", memory=[path]) == "ein Hund %s kam"
    path.write_text(TMX.replace("ein Hund", "der Hund"))
    assert task("a dog came", memory=[path]) == "der Hund %s kam"


def test_tables_folders_and_the_text_of_a_training_are_memories(path, tmp_path):
    (tmp_path / "pairs.tsv").write_text("a bird\tein Vogel\n")
    paths = (path.parent, tmp_path / "pairs.tsv")
    assert read_memory(paths, (), ("en", "de")).translations.keys() == {
        "the cat sat on the mat",
        "a dog came",
        "a bird",
    }


def test_files_without_translations_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("a\n")
    with pytest.raises(ConfigError, match=r"--memory .*a.txt: has no translations"):
        translator().translate(["a"], memory=[tmp_path / "a.txt"])
    (tmp_path / "a.tmx").write_text(memory(tuv("en", "a")))
    with pytest.raises(ConfigError, match=r"a.tmx: no translated text"):
        translator().translate(["a"], memory=[tmp_path / "a.tmx"])
    with pytest.raises(CorpusError, match="no such file"):
        translator().translate(["a"], memory=[tmp_path / "b.tmx"])


# Training.


def objective(task=None, **options) -> TranslationObjective:
    found = TranslationObjective(task or translator())
    found.configure(TrainConfig(src=("a.en",), tgt=("a.de",), out="run", **options))
    return found


PAIRS = [
    Example("the cat sat on the mat", "die Katze saß auf der Matte", "a.en", 1),
    Example("the cat sat on a mat", "die Katze saß auf einer Matte", "a.en", 2),
    Example("a dog came", "ein Hund kam", "a.en", 3),
]


def test_each_pair_with_a_similar_one_is_used_a_second_time_with_its_translation():
    logged = []
    found = list(objective(fuzzy_matches=True).extended(iter(PAIRS), lambda: iter(PAIRS), logged.append))
    expected = [[PAIRS[0], replace(PAIRS[0], match=PAIRS[1].tgt)], [PAIRS[1], replace(PAIRS[1], match=PAIRS[0].tgt)]]
    assert found == [*chain.from_iterable(expected), PAIRS[2]]
    assert logged == [
        f"Fuzzy matches: 2 of 3 pairs have another text that is similar by at least {MIN_TRAINING_MATCH:.0%}; they are"
        " used with its translation as well."
    ]
    assert list(objective().extended(iter(PAIRS), lambda: iter(PAIRS), logged.append)) == PAIRS


def test_the_rows_of_the_training_are_what_the_model_is_given_in_use(path):
    task = translator()
    rows, _ = objective(task, fuzzy_matches=True).encode([replace(PAIRS[1], match=PAIRS[0].tgt), PAIRS[2]])
    assert [[*rows[0][0], task.tokenizer.eos_id]] == sources_of(task, PAIRS[1].src, path)
    assert list(rows[1][0]) == task.tokenizer.encode("a dog came")
    assert objective(task, fuzzy_matches=True).texts(rows[0]) == (PAIRS[1].src, PAIRS[1].tgt)
    assert [objective(task, fuzzy_matches=True).is_plain(row) for row in rows] == [False, True]


def test_a_model_without_the_token_cannot_be_trained_with_matches():
    with pytest.raises(ConfigError, match="--fuzzy-matches: the model of --init-from was not trained with them"):
        objective(translator(with_matches=False), fuzzy_matches=True)
