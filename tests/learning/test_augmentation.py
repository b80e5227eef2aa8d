"""Changes of training pairs: each change does what its name tells, and the pairs stay translations of each other."""

from collections import Counter

import numpy as np
import pytest

from glassformer.learning import augmentation as a
from glassformer.learning.lexicon import Lexicon

PAIR = "The man saw 25 dogs.", "Der Mann sah 25 Hunde."
NOUNS = ["dog/Hund", "cat/Katze", "house/Haus", "tree/Baum", "child/Kind", "car/Auto", "boat/Boot"]
VERBS = ["sees/sieht", "likes/mag", "finds/findet", "paints/malt"]


def sentences() -> list[tuple[str, str]]:
    """A small language in which each word has one translation."""
    pairs = []
    for subject in NOUNS:
        for verb in VERBS:
            for object_ in NOUNS:
                src, tgt = zip(*(word.split("/") for word in (subject, verb, object_)), strict=True)
                if subject != object_:
                    pairs.append((f"Every {' '.join(src)}.", f"Jedes {' '.join(tgt)}."))
    return pairs


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


def test_a_source_without_capitals():
    assert a.lower_case(PAIR, rng()) == ("the man saw 25 dogs.", PAIR[1])
    markup = "See `Path` in the Docs.", "Siehe `Path` in den Docs."
    assert a.lower_case(markup, rng()) == markup


def test_typing_errors_are_in_the_source_and_keep_the_ends_of_its_words():
    texts = {a.typing_errors(PAIR, rng(seed)) for seed in range(200)}
    assert len(texts) > 30
    assert all(tgt == PAIR[1] and abs(len(src) - len(PAIR[0])) <= 1 for src, tgt in texts)
    for src, _ in texts:
        assert [word[0] for word in src.split()] == ["T", "m", "s", "2", "d"]
    assert a.typing_errors(("12 - 34", "x"), rng()) == ("12 - 34", "x")
    for text in ("Path.exists(name) https://example.org/page %(name)s :mod:`tempfile`", "a b of 12th"):
        assert a.typing_errors((text, "x"), rng()) == (text, "x")


def test_a_long_text_gets_more_typing_errors():
    words = ("letters " * 30).strip()
    changed = a.typing_errors((words, ""), rng())[0]
    assert 3 <= sum(x != y for x, y in zip(changed.split(), words.split(), strict=True)) <= 8


def test_marks_at_the_end():
    assert a.no_end(PAIR, rng()) == ("The man saw 25 dogs", "Der Mann sah 25 Hunde")
    assert a.no_end(("a dog .", "ein hund ."), rng()) == ("a dog", "ein hund")
    assert a.no_end(("a dog", "ein Hund."), rng()) == ("a dog", "ein Hund.")
    assert {a.repeated_end(("No!", "Nein!"), rng(s)) for s in range(20)} == {("No!!", "Nein!!"), ("No!!!", "Nein!!!")}


def test_what_is_copied_is_the_same_on_both_sides():
    for seed in range(50):
        src, tgt = a.emoji(PAIR, rng(seed))
        assert src.replace(PAIR[0], "") == tgt.replace(PAIR[1], "") != ""
        src, tgt = a.codes(PAIR, rng(seed))
        assert src.replace(PAIR[0], "") == tgt.replace(PAIR[1], "") != ""


def test_numbers_that_both_sides_have_get_other_digits():
    src, tgt = a.numbers(PAIR, rng(3))
    number = src.split()[3]
    assert number.isdigit()
    assert len(number) == 2
    assert tgt == f"Der Mann sah {number} Hunde."
    assert a.numbers(("in 1999", "im Jahr 99"), rng()) == ("in 1999", "im Jahr 99")


def test_pairs_get_the_changes_with_their_fractions():
    n = 20_000
    counts = Counter(a.drawn(rng(seed), 0.4) for seed in range(n))
    frequencies = [*a.CHANGES.values(), a.JOINED, a.PHRASES]
    for index, frequency in enumerate(frequencies):
        assert counts[index] / n == pytest.approx(0.4 * frequency / sum(frequencies), abs=0.006)
    assert counts[None] / n == pytest.approx(0.6, abs=0.02)
    assert {a.drawn(rng(seed), 0.0) for seed in range(100)} == {None}
    assert None not in {a.drawn(rng(seed), 1.0) for seed in range(100)}


def test_joined_pairs_and_parts():
    change = a.Augmentation(sentences())
    joined, parts = len(a.CHANGES), len(a.CHANGES) + 1
    assert change(joined, PAIR, lambda: ("Yes.", "Ja."), rng()) == (f"{PAIR[0]} Yes.", f"{PAIR[1]} Ja.")
    found = {change(parts, ("Every dog sees boat.", "Jedes Hund sieht Boot."), None, rng(s)) for s in range(50)}
    assert ("dog", "Hund") in found
    assert ("sees boat", "sieht Boot") in found
    assert all(len(src.split()) == len(tgt.split()) for src, tgt in found)
    unknown = ("Something else.", "Etwas anderes.")
    assert change(parts, unknown, None, rng()) == unknown


def test_text_without_spaces_is_joined_without_one():
    change = a.Augmentation([("A dog.", "犬。"), ("A cat.", "猫。")])
    assert change(len(a.CHANGES), ("A dog.", "犬。"), lambda: ("A cat.", "猫。"), rng()) == ("A dog.A cat.", "犬。猫。")


def test_the_lexicon_has_the_words_that_translate_each_other():
    lexicon = Lexicon(sentences())
    expected = {tuple(word.lower().split("/")) for word in [*NOUNS, *VERBS, "Every/Jedes"]}
    assert lexicon.pairs == expected


def test_the_lexicon_of_nothing_is_empty():
    assert Lexicon([]).phrase_pair(*PAIR, rng()) is None
    assert Lexicon([("", ""), ("1 2", "3")]).pairs == set()
