import json

import pytest

from glassformer.corpora.demo.pairs import split_pairs
from glassformer.corpora.language_id import LanguageProfiles, n_grams
from glassformer.errors import CheckpointError

TRAIN, TEST = split_pairs(400, 100, 1)[:2]
PROFILES = LanguageProfiles.fit({"en": [src for src, _ in TRAIN], "fr": [tgt for _, tgt in TRAIN]})


def test_held_out_sentences_are_recognized():
    for src, tgt in TEST:
        assert PROFILES.detect(src)[0][0] == "en"
        assert PROFILES.detect(tgt)[0][0] == "fr"


@pytest.mark.parametrize("text", ["", "42", "!?", "\n"])
def test_texts_without_letters_have_equal_probabilities(text):
    assert [p for _, p in PROFILES.detect(text)] == [0.5, 0.5]


@pytest.mark.parametrize("text", ["The cat.", "Le chat " * 500, "x"])
def test_probabilities_sum_to_one(text):
    assert sum(p for _, p in PROFILES.detect(text)) == pytest.approx(1)


def test_n_grams_by_hand():
    assert n_grams("Ab, a") == {
        " ": 3, "a": 2, "b": 1, " a": 2, "ab": 1, "b ": 1, "a ": 1, " ab": 1, "ab ": 1, "b a": 1, " a ": 1, " ab ": 1,
        "ab a": 1, "b a ": 1,
    }  # fmt: skip


def test_files_are_read_again_and_damaged_ones_refused(tmp_path):
    path = tmp_path / "languages.json"
    path.write_text(PROFILES.to_json(), encoding="utf-8")
    assert LanguageProfiles.read([path, path]) == PROFILES
    for damaged in ("{", "[]", json.dumps({"en": {"total": "x", "counts": {}}}), json.dumps({"en": {}})):
        path.write_text(damaged)
        with pytest.raises(CheckpointError, match="damaged"):
            LanguageProfiles.read([path])


def test_of_a_language_in_several_files_the_one_with_more_text_is_used(tmp_path):
    small = LanguageProfiles.fit({"en": ["zzz"], "de": ["xxx"]})
    for name, profiles in (("a", small), ("b", PROFILES)):
        (tmp_path / name).write_text(profiles.to_json(), encoding="utf-8")
    found = LanguageProfiles.read([tmp_path / "a", tmp_path / "b"])
    assert found.languages == {**PROFILES.languages, "de": small.languages["de"]}
