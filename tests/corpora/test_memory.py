"""Oracle: the edit distance by its recurrence; and a search through all texts."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.corpora.memory import Match, Memory, edit_distance, tokens_of

words = st.lists(st.integers(-1, 5), max_size=12)


def by_recurrence(first, second):
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(second, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


@given(words, words)
def test_the_edit_distance_is_that_of_the_recurrence(first, second):
    assert edit_distance(first, second) == by_recurrence(first, second)


def test_the_edit_distance_of_long_texts():
    rng = random.Random(1)
    first, second = ([rng.randrange(9) for _ in range(n)] for n in (150, 170))
    assert edit_distance(first, second) == by_recurrence(first, second)


MEMORY = Memory(
    [
        ("Open the file.", "Ouvrez le fichier."),
        ("Open the large red file now.", "Ouvrez le gros fichier rouge."),
        ("Close it.", "Fermez."),
        ("Close it.", "Fermez-le."),
        ("…", "…"),
    ]
)


def test_an_equal_text_has_the_last_of_its_translations():
    assert MEMORY.exact(" Close it. ") == Match("Close it.", "Fermez-le.", 1.0)
    assert MEMORY.exact("close it.") is None
    assert len(MEMORY) == 4


@pytest.mark.parametrize(
    ("text", "source", "similarity"),
    [
        ("Open the file", "Open the file.", 0.99), ("OPEN THE FILE!", "Open the file.", 0.99),
        ("Open the files.", "Open the file.", 2 / 3),
        ("Open this big red file now.", "Open the large red file now.", 4 / 6),
        ("close them", "Close it.", 0.5),
    ],
)  # fmt: skip
def test_the_most_similar_text(text, source, similarity):
    found = MEMORY.similar(text, 0.5)
    assert (found.source, found.similarity) == (source, pytest.approx(similarity))
    assert found.target == MEMORY.translations[source]


@pytest.mark.parametrize("text", ["Nothing of it", "", "Open", "!", "Open the window and the door and the box"])
def test_nothing_is_similar(text):
    assert MEMORY.similar(text, 0.5) is None


def test_an_equal_text_is_not_similar_to_itself():
    assert MEMORY.similar("Close it.", 0.4) is None
    assert MEMORY.similar("Open the file.", 0.5).source == "Open the large red file now."


def test_the_limit_is_included():
    assert MEMORY.similar("close them", 0.5001) is None


def test_texts_without_spaces_are_compared_by_letter():
    assert tokens_of("東京へ行くTaro1") == ["東", "京", "へ", "行", "く", "taro1"]
    memory = Memory([("東京へ行く。", "to Tokyo")])
    assert memory.similar("京都へ行く。", 0.5).similarity == pytest.approx(3 / 5)


def test_what_is_found_is_what_a_search_through_all_texts_finds():
    rng = random.Random(5)
    sources = [" ".join(rng.choice("abcdefghij") for _ in range(rng.randint(1, 9))) for _ in range(400)]
    memory = Memory((source, source.upper()) for source in sources)
    n_worse = 0
    for source in sources[::7]:
        text = " ".join((*source.split()[:-1], "x"))
        best = max(
            1 - by_recurrence(tokens_of(text), tokens_of(other)) / max(len(tokens_of(text)), len(tokens_of(other)))
            for other in memory.sources
            if other != text
        )
        found = memory.similar(text, 0.3)
        n_worse += (found.similarity if found else 0) < min(best, 0.99) - 1e-9 and best >= 0.3
    assert n_worse == 0


def test_an_empty_memory_has_nothing():
    memory = Memory([])
    assert (len(memory), memory.exact("a"), memory.similar("a b", 0.5)) == (0, None, None)


def test_vowel_signs_and_accents_are_parts_of_words():
    memory = Memory([("मेरी नाम रोम हो", "x"), ("cafe\u0301 noir", "y")])
    assert memory.similar("मेरा नाम राम है", 0.1).similarity == 0.25
    assert tokens_of("cafe\u0301 noir") == ["cafe\u0301", "noir"]
