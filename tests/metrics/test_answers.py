"""metrics.answers: SQuAD's exact match and F1."""

import re
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.metrics.answers import answer_f1, answer_statistics, exact_match, normalize
from glassformer.metrics.registry import scores

WORDS = st.lists(st.sampled_from(["The", "a", "an", "cat", "Cat,", "sat", "—", "3.5", "über", "-"]), max_size=7)
TEXT = WORDS.map(" ".join)
quick = settings(max_examples=60)


def f1_by_pairing(predicted: str, true: str) -> float:
    """F1 computed by removing shared words one by one."""
    ours, theirs = normalize(predicted).split(), normalize(true).split()
    left = list(theirs)
    shared = 0
    for word in ours:
        if word in left:
            left.remove(word)
            shared += 1
    if not ours or not theirs:
        return float(ours == theirs)
    precision, recall = shared / len(ours), shared / len(theirs)
    return 2 * precision * recall / (precision + recall) if shared else 0.0


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The  Cat, sat!", "cat sat"),
        ("an apple a day", "apple day"),
        ("theatre another", "theatre another"),
        ("the-cat", "thecat"),
        ("a.b.c", "abc"),
        ("Äpfel — «x»", "äpfel — «x»"),
        ("The", ""),
    ],
)
def test_text_is_normalized_as_by_squad(text, normal):
    assert normalize(text) == normal


@given(st.text(max_size=23))
@quick
def test_normalization_equals_that_of_the_published_script(text):
    bare = "".join(char for char in text.lower() if char not in set(string.punctuation))
    assert normalize(text) == " ".join(re.sub(r"\b(a|an|the)\b", " ", bare, flags=re.UNICODE).split())


@given(TEXT, st.lists(TEXT, max_size=3))
@quick
def test_f1_is_the_best_over_the_references(predicted, references):
    usable = [each for each in references if normalize(each)] or [""]
    assert answer_f1(predicted, references) == pytest.approx(max(f1_by_pairing(predicted, each) for each in usable))


@given(TEXT, st.lists(TEXT, max_size=3))
@quick
def test_an_exact_match_has_f1_of_1(predicted, references):
    assert exact_match(predicted, references) in (0, 1)
    assert exact_match(predicted, references) <= answer_f1(predicted, references)


def test_repeated_words_are_counted_with_multiplicity():
    assert answer_f1("cat cat cat", ["cat cat sat sat"]) == pytest.approx(2 * 2 / (3 + 4))


@pytest.mark.parametrize(
    ("predicted", "references", "right"), [("", [], 1), ("the", [], 1), ("cat", [], 0), ("", ["cat"], 0)]
)
def test_an_empty_answer_is_correct_for_a_question_without_answer(predicted, references, right):
    assert exact_match(predicted, references) == answer_f1(predicted, references) == right


def test_a_reference_of_articles_only_does_not_make_an_empty_answer_correct():
    assert exact_match("", ["The", "cat"]) == answer_f1("", ["The", "cat"]) == 0


def test_scores_are_means_over_questions():
    predicted, expected = ["the cat", "dog", ""], [["Cat"], ["big dog", "x"], []]
    em, f1 = scores("answers", predicted, expected)
    assert (em.name, em.value) == ("EM", pytest.approx(2 / 3))
    assert (f1.name, f1.value) == ("F1", pytest.approx((1 + 2 / 3 + 1) / 3))


def test_a_missing_answer_raises_value_error():
    with pytest.raises(ValueError, match="1 predictions for 2"):
        answer_statistics(["a"], [["a"], ["b"]])
