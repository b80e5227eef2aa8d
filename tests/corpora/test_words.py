"""Texts without words, and list marks."""

import pytest

from glassformer.corpora.words import COMMON, has_words, list_mark, scripts_of, source_scripts


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("- a cat", "- "), ("* a", "* "), ("•\ta", "•\t"), ("1. a", "1. "), ("a) b", "a) "), ("(12) b", "(12) "),
        ("2.3) b", "2.3) "), ("- 1. a", "- 1. "), ("-a", ""), ("a cat", ""), ("1.5 liters", ""), ("A. Smith", ""),
        ("- ", ""), ("1.", ""), ("", ""), ("12345 a", ""), ("- - - - a", "- - "),
    ],
)  # fmt: skip
def test_list_marks(text, mark):
    assert list_mark(text) == mark


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a cat", True), ("12345", False), ("...", False), ("🎉 🎉", False), ("https://example.org/a?b=c", False),
        ("see https://example.org/a", True), ("a.b@example.org", False), ("Привет, мир", False), ("東京", False),
        ("Москва is big", True), ("", False), ("é", True), ("½ ² ³", False),
    ],
)  # fmt: skip
def test_words_are_those_in_a_script_of_the_training(text, expected):
    assert has_words(text, ["LATIN"]) == expected


def test_without_known_scripts_all_letters_are_words():
    assert has_words("Привет", None)
    assert not has_words("123", None)


def test_rare_scripts_are_left_out():
    assert scripts_of(["the cat sat"] * 200 + ["α"]) == {"LATIN"}
    assert scripts_of(["кот", "ネコ", "cat"]) == {"CYRILLIC", "KATAKANA", "LATIN"}


def test_texts_without_letters_are_translated_if_the_training_does():
    words = [("a cat", "eine Katze")] * 90
    assert source_scripts([*words, *[("12", "12")] * 10]) == {"LATIN"}
    assert source_scripts([*words, *[("12", "zwölf")] * 10]) == {"LATIN", COMMON}
    assert has_words("12", ["LATIN", COMMON])
