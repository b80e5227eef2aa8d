"""Words with a typing error are read as words of the training text, and others stay."""

import json
from itertools import product

import pytest

from glassformer.corpora.spelling import ALPHABET, KnownWords
from glassformer.errors import CheckpointError

TEXT = [
    *["The children play with a brown dog near the house."] * 300,
    *["They don't walk through the forest, because they were there."] * 200,
    *["Maria saw a bottle in Hamburg; where are the children of Maria?"] * 100,
    "A single marble, a kettle and an apron.",
]
GERMAN = [*["Die Kinder spielen im Garten mit Ralf und der Schwester."] * 40, "Ein Haus steht am Meer."]


def words(texts=TEXT, targets=(), language="en"):
    return KnownWords.of(texts, targets, language)


def repaired(text, known, spans=()):
    for reading in known.readings(text, spans):
        text = reading.in_text(text)
    return text


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("the chidlren play wiht a dog", "the children play with a dog"),
        ("near the huose, becuase", "near the house, because"),
        ("thrugh", "through"),
        ("(thruogh) “forset”!", "(through) “forest”!"),
        ("Wiht a dog. Tehy walk", "With a dog. They walk"),
        ("the chidlren's dog", "the children's dog"),
        ("brwn", "brown"),
    ],
)
def test_typing_errors_are_repaired(written, read):
    known = words([*TEXT, *["With a dog"] * 90])
    assert repaired(written, known) == read


@pytest.mark.parametrize(
    "text",
    [
        "the children play",  # known
        "umbrella",  # a new word
        "kubectl thrugh umbrella canyon zebra",  # among other new words
        "in Hamburk, of Mariä",  # names
        "teh dgo",  # short
        "WIHT a DOG",
        "wiHt",
        "wiht2 wiht_a see/wiht <wiht> a.wiht@b wiht-a $wiht wiht()",  # no words
        "wwwwwwwwwwwww",
        "x" * 100_000,
        "",
    ],
)
def test_other_words_stay(text):
    assert repaired(text, words()) == text


def test_words_of_terms_stay():
    assert repaired("wiht a wiht", words(), [(7, 11)]) == "with a wiht"


def test_where_nouns_have_capitals_names_are_those_that_the_translations_have():
    known = words(GERMAN, ["The children play in the garden with Ralf and the sister."] * 40, "de")
    for written, read in (("Kidner", "Kinder"), ("Schewster", "Schwester"), ("Gatren", "Garten"), ("Rolf", "Rolf")):
        assert repaired(f"Die {written} spielen im Garten", known) == f"Die {read} spielen im Garten"
    assert known.counts["Ralf"] == 0
    assert words(GERMAN, [], "de").counts["Ralf"] == 40
    assert repaired("die Kidner", words(GERMAN, [], "da")) == "die Kidner"


def test_scripts_without_capitals_are_not_counted():
    assert words(["猫が座っていた。 قطة सूर्य the"]).counts == {"the": 1}


def test_forms_are_all_words_that_one_error_makes_the_word():
    known = words(["abba caab"])
    assert known.letters == ["a", "b", "c"]

    def errors(word):
        for i in range(len(word)):
            yield word[:i] + word[i + 1 :]
            yield word[:i] + word[i : i + 2][::-1] + word[i + 2 :]
        for i, letter in product(range(len(word) + 1), "abc"):
            yield word[:i] + letter + word[i:]
            yield word[:i] + letter + word[i + 1 :]

    every = ["".join(letters) for n in range(1, 5) for letters in product("abc", repeat=n)]
    for word in ("abc", "cb", "aab"):
        found = {form for form, _, _ in known.forms(word)} - {word, ""}
        assert found == {other for other in every if word in errors(other)} - {word}


def test_the_model_of_letters_is_a_distribution():
    known = words()
    assert len(known.letters) < ALPHABET
    for before in ("", "th", "child", "qz"):
        after = [known.probability_of_letters(before + letter) for letter in known.letters]
        begun = known.probability_of_letters(before) / ending(known, before)
        ends = [ending(known, before + letter) for letter in known.letters]
        total = sum(p / end for p, end in zip(after, ends, strict=True)) / begun + ending(known, before)
        assert total == pytest.approx(1)


def ending(known, word):
    """Probability that the word ends after its letters, computed anew."""
    line = "\n" + word
    p = 1 / (len(known.letters) + 1)
    for n in range(min(4, len(line)) + 1):
        context = line[len(line) - n :]
        following = [known.lines[i + n] for i in range(len(known.lines) - n) if known.lines[i : i + n] == context]
        if not following:
            break
        p = (following.count("\n") + len(set(following)) * p) / (len(following) + len(set(following)))
    return p


def test_a_file_has_the_words(tmp_path):
    known = words(GERMAN, [], "de")
    path = tmp_path / "words.json"
    path.write_text(json.dumps(known.to_record()), encoding="utf-8")
    found = KnownWords.of_file(path)
    assert found == known
    assert found.to_record() == known.to_record()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"n_words": 0, "n_once": 0, "words": {}}',
        '{"n_words": 3, "n_once": 1, "words": {"x": "a"}}',
        '{"n_words": 3, "n_once": -1, "words": {"1": "a"}}',
        '{"n_words": 1e400, "n_once": 1, "words": {"1": "a"}}',
    ],
)
def test_a_damaged_file_is_an_error(tmp_path, text):
    path = tmp_path / "words.json"
    path.write_text(text)
    with pytest.raises(CheckpointError, match="damaged"):
        KnownWords.of_file(path)


def test_words_of_two_trainings():
    both = words(["the cat saw Ralf the"]).with_words_of(words(["the dog saw the cat Paul"], [], "en"))
    assert both.counts == {"the": 4, "cat": 2, "saw": 2, "Ralf": 0, "Paul": 0, "dog": 1}
    assert both.n_words == 11
