import re

import pytest

from glassformer.corpora.demo import pairs
from glassformer.corpora.demo.pairs import HANDWRITTEN_EXAMPLES, sample_pairs, split_pairs

WORD = re.compile(r"[\w-]+'?")


@pytest.fixture(scope="module")
def split():
    return split_pairs(20_000, 1_000, seed=7)


def test_the_same_seed_gives_the_same_pairs():
    assert sample_pairs(300, seed=5) == sample_pairs(300, seed=5)


def test_another_seed_gives_other_pairs():
    assert sample_pairs(300, seed=5) != sample_pairs(300, seed=6)


def test_pairs_are_distinct():
    assert len({en for en, _ in sample_pairs(2_000, seed=1)}) == 2_000


def test_no_held_out_sentence_is_in_training_in_either_language(split):
    train, held_out = split
    for side in range(2):
        assert not {pair[side] for pair in train} & {pair[side] for pair in held_out}


def test_english_twins_of_a_held_out_french_sentence_are_not_in_training(monkeypatch):
    his, her = ("His cat slept.", "Son chat dormait."), ("Her cat slept.", "Son chat dormait.")
    drawn = [his, her, ("He ate.", "Il a mangé.")]
    monkeypatch.setattr(pairs, "sentences", lambda _: iter(drawn))
    assert split_pairs(1, 1, seed=0) == (drawn[2:], drawn[:1])


def test_held_out_pairs_do_not_depend_on_the_size_of_training():
    assert split_pairs(50, 40, seed=2)[1] == split_pairs(10, 40, seed=2)[1]


def test_handwritten_examples_are_never_sampled(monkeypatch):
    other = ("The cat slept.", "Le chat dormait.")
    monkeypatch.setattr(pairs, "sentences", lambda _: iter([*HANDWRITTEN_EXAMPLES, other]))
    assert sample_pairs(1, seed=0) == [other]


def test_too_large_a_corpus_is_an_error_with_the_number_of_pairs(monkeypatch):
    monkeypatch.setattr(pairs, "sentences", lambda _: iter([("A.", "B.")] * 20_000))
    with pytest.raises(ValueError, match=r"asked for 2 .* gave 1"):
        sample_pairs(2, seed=0)


def test_a_negative_count_is_an_error():
    with pytest.raises(ValueError, match="-1"):
        sample_pairs(-1, seed=0)


def test_every_held_out_word_occurs_in_training(split):
    train, held_out = split
    for side in range(2):
        known = {word for pair in train for word in WORD.findall(pair[side])}
        assert {word for pair in held_out for word in WORD.findall(pair[side])} <= known


def test_all_elisions_are_applied(split):
    missed = re.compile(r"\b(?:le|la|de|ne|je|que|se|me|ce|ma|sa) (?=([aeiouyhàâéèêëîïôœ][\w-]*))", re.IGNORECASE)
    aspirated = {"héros", "hérisson", "hérissons", "hibou", "hiboux", "haricot", "haricots", "hache", "haches"}
    assert not {word for part in split for _, fr in part for word in missed.findall(fr)} - aspirated


def test_all_contractions_are_applied(split):
    assert not [fr for part in split for _, fr in part if re.search(r"\b(de|à) les? ", fr)]


def test_a_and_an_depend_on_the_next_letter(split):
    assert not [en for part in split for en, _ in part if re.search(r"\b(a [aeiou]|an [^aeiou])", en, re.IGNORECASE)]
