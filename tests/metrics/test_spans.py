"""metrics.spans against nervaluate, and against the CoNLL rules."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.metrics.registry import scores
from glassformer.metrics.score import f1_from
from glassformer.metrics.spans import (
    are_span_tags,
    entity_f1,
    entity_scores,
    entity_statistics,
    find_spans,
    tag_accuracy,
    tag_statistics,
)

TAG = st.sampled_from(["O", "B-per", "I-per", "B-creative-work", "I-creative-work"])
PAIR = st.lists(st.tuples(TAG, TAG), min_size=1, max_size=11)
CORPUS = st.lists(PAIR, min_size=1, max_size=5)
quick = settings(max_examples=60)


def split(corpus) -> tuple[list[list[str]], list[list[str]]]:
    return [[tag for tag, _ in pairs] for pairs in corpus], [[true for _, true in pairs] for pairs in corpus]


@given(CORPUS)
@quick
def test_entities_are_scored_like_nervaluate(corpus):
    nervaluate = pytest.importorskip("nervaluate")
    predicted, expected = split(corpus)
    kinds = ["per", "creative-work"]
    theirs = nervaluate.Evaluator(expected, predicted, tags=kinds, loader="list").evaluate()
    values = {score.name: score.value for score in scores("tags", predicted, expected)}
    if are_span_tags([*chain(*expected)]):
        strict = theirs["overall"]["strict"]
        assert values["precision"] == pytest.approx(strict.precision)
        assert values["recall"] == pytest.approx(strict.recall)
        assert values["F1"] == entity_f1(predicted, expected) == pytest.approx(strict.f1)
    assert [each.label for each in entity_scores(predicted, expected)] == sorted(theirs["entities"])
    for each in entity_scores(predicted, expected):
        strict = theirs["entities"][each.label]["strict"]
        assert (each.precision, each.recall, each.f1) == pytest.approx((strict.precision, strict.recall, strict.f1))


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("B-a I-a O B-a", [("a", 0, 2), ("a", 3, 4)]),
        ("B-a B-a", [("a", 0, 1), ("a", 1, 2)]),
        ("B-a I-b I-b", [("a", 0, 1), ("b", 1, 3)]),
        ("O I-a I-a", [("a", 1, 3)]),
        ("I-a O I-a", [("a", 0, 1), ("a", 2, 3)]),
        ("B-a I-a E-a S-a S-b B-a E-a", [("a", 0, 3), ("a", 3, 4), ("b", 4, 5), ("a", 5, 7)]),
        ("B-a E-a I-a", [("a", 0, 2), ("a", 2, 3)]),
        ("B-a E-b O", [("a", 0, 1), ("b", 1, 2)]),
        ("B-a S-a I-a", [("a", 0, 1), ("a", 1, 2), ("a", 2, 3)]),
        ("B-a-b I-a-b", [("a-b", 0, 2)]),
        ("O O", []),
        ("", []),
    ],
)
def test_spans_are_those_of_conlleval(tags, spans):
    assert find_spans(tags.split()) == spans


@given(st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=13))
@quick
def test_spans_of_iob2_tags_are_the_spans_that_were_tagged(kinds):
    tags, spans, i = [], [], 0
    for n, kind in enumerate(kinds):
        length = n % 3 + 1 if kind else 1
        tags += [f"B-{kind}", *[f"I-{kind}"] * (length - 1)] if kind else ["O"]
        spans += [(kind, i, i + length)] if kind else []
        i += length
    assert find_spans(tags) == spans


@pytest.mark.parametrize("tag", ["NOUN", "B-", "B", "", "o", "X-per"])
def test_a_tag_that_marks_no_span_is_refused(tag):
    with pytest.raises(ValueError, match=f"tag 1, {tag!r}"):
        find_spans(["O", tag])
    assert not are_span_tags(["B-a", tag])


@given(CORPUS)
@quick
def test_tag_accuracy_counts_words_not_sentences(corpus):
    flat = [*chain(*corpus)]
    assert tag_accuracy(*split(corpus)) == pytest.approx(np.mean([tag == true for tag, true in flat]))


@given(CORPUS)
@quick
def test_statistics_add_up(corpus):
    predicted, expected = split(corpus)
    assert f1_from(entity_statistics(predicted, expected).sum(0)) == entity_f1(predicted, expected)
    parts = [tag_statistics([tags], [true])[0] for tags, true in zip(predicted, expected, strict=True)]
    np.testing.assert_array_equal(tag_statistics(predicted, expected), parts)


def test_parts_of_speech_get_an_accuracy_only():
    found = scores("tags", [["NOUN", "VERB"], ["X"]], [["NOUN", "NOUN"], ["X"]])
    assert [(score.name, score.value) for score in found] == [("accuracy", pytest.approx(2 / 3))]


def test_tags_that_are_all_outside_mark_no_spans():
    assert not are_span_tags(["O", "O"])


def test_no_entity_anywhere_gives_0():
    assert entity_f1([["O"]], [["O"]]) == 0
    assert entity_scores([["O"]], [["O"]]) == []


def test_a_sentence_with_a_wrong_number_of_tags_is_reported():
    with pytest.raises(ValueError, match="sentence 1: 1 tags predicted for 2 words"):
        tag_accuracy([["O"], ["O"]], [["O"], ["O", "O"]])


def test_a_predicted_tag_that_marks_no_span_counts_as_outside():
    expected = [["B-X", "I-X", "O"], ["O", "B-Y", "O"]]
    predicted = [["B-X", "I-X", "BX"], ["B-", "B-Y", "NOUN"]]
    plain = [["B-X", "I-X", "O"], ["O", "B-Y", "O"]]
    assert entity_f1(predicted, expected) == entity_f1(plain, expected) == 1
    assert [each.label for each in entity_scores(predicted, expected)] == ["X", "Y"]
    assert entity_f1([["BX", "I-X"]], [["B-X", "I-X"]]) == 0
