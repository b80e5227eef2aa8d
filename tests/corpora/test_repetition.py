"""Text that repeats itself is detected, ordinary text is not."""

import random

import pytest

from glassformer.corpora.demo.pairs import sample_pairs
from glassformer.corpora.repetition import may_repeat, repeats


@pytest.mark.parametrize(
    "text",
    [
        "a salad salad salad",
        "The man, the man, the man, sits.",
        "von einem Schneideideideideidigen",
        "aaaaaaaaaaaaaaaa",
        "ein Hund und ein Hund und ein Hund und",
        "x" * 30_000,
        "so so so",
        "……………………………………",
        "ein weiß-weiß-weiß-weiß-weiß-weißes Haus",
        "la,la,la,la,la",
        "000 000 000 000 000 000 000 000 000",
    ],
)
def test_repetition_is_detected(text):
    assert repeats(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "papa and mama",
        "had had",
        "1000000000000",
        "a a b b a a b b",
        "Nahverkehr ... na ja",
        "a-b-a-b-a-b",
        "ha-ha-ha!",
        "1 000 000 000 d'euros",
        "1\u202f000\u202f000\u202f000",
    ],
)
def test_ordinary_text_is_not(text):
    assert not repeats(text)


def test_sentences_of_the_demo_do_not_repeat_themselves():
    assert not any(repeats(text) for pair in sample_pairs(2000, 1) for text in pair)


@pytest.mark.parametrize("seed", range(5))
def test_every_loop_is_detected_after_any_beginning(seed):
    rng = random.Random(seed)
    for _ in range(200):
        word = lambda: "".join(rng.choices("abcdefgh", k=rng.randint(1, 7)))
        loop = " ".join(word() for _ in range(rng.randint(1, 8)))
        start = " ".join(word() for _ in range(rng.randint(0, 9)))
        assert repeats(f"{start} {' '.join([loop] * rng.randint(3, 9))} {word()[: rng.randint(0, 3)]}".strip()), loop


def test_translations_of_repeated_words_with_marks_between_may_repeat_themselves():
    assert may_repeat("It is very, very, very good.")
    assert not repeats("It is very, very, very good.")
    assert not may_repeat("It is very, very good.")
