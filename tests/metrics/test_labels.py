"""metrics.labels against scikit-learn."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.metrics.labels import (
    accuracy,
    accuracy_from,
    class_scores,
    confusion,
    label_statistics,
    macro_f1,
    macro_f1_from,
    matthews,
    matthews_from,
)
from glassformer.metrics.registry import scores

sklearn = pytest.importorskip("sklearn.metrics")
pytestmark = pytest.mark.filterwarnings("ignore:A single label was found:UserWarning")

PAIRS = st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from("abcde")), min_size=1, max_size=29)
quick = settings(max_examples=40)


def sides(pairs) -> tuple[list[str], list[str]]:
    predicted, expected = map(list, zip(*pairs, strict=True))
    return predicted, expected


@given(PAIRS)
@quick
def test_accuracy_is_that_of_scikit_learn(pairs):
    predicted, expected = sides(pairs)
    assert accuracy(predicted, expected) == pytest.approx(sklearn.accuracy_score(expected, predicted))


@given(PAIRS)
@quick
def test_macro_f1_is_that_of_scikit_learn(pairs):
    predicted, expected = sides(pairs)
    theirs = sklearn.f1_score(expected, predicted, average="macro", zero_division=0)
    assert macro_f1(predicted, expected) == pytest.approx(theirs)


@given(PAIRS)
@quick
def test_matthews_is_that_of_scikit_learn(pairs):
    predicted, expected = sides(pairs)
    assert matthews(predicted, expected) == pytest.approx(sklearn.matthews_corrcoef(expected, predicted))


def test_matthews_of_two_classes_is_the_textbook_formula():
    predicted, expected = sides([("1", "1")] * 11 + [("1", "0")] * 3 + [("0", "1")] * 5 + [("0", "0")] * 7)
    assert matthews(predicted, expected) == pytest.approx((11 * 7 - 3 * 5) / (14 * 16 * 10 * 12) ** 0.5)


def test_matthews_of_a_constant_answer_is_0():
    assert matthews(["a"] * 3, ["a", "b", "a"]) == 0


@given(PAIRS)
@quick
def test_each_class_is_scored_like_scikit_learn(pairs):
    predicted, expected = sides(pairs)
    theirs = sklearn.precision_recall_fscore_support(expected, predicted, zero_division=0)
    ours = class_scores(predicted, expected)
    assert [each.label for each in ours] == sorted({*predicted, *expected})
    assert [each.n_predicted for each in ours] == [predicted.count(each.label) for each in ours]
    rows = [(each.precision, each.recall, each.f1, each.n_expected) for each in ours]
    np.testing.assert_allclose(rows, np.stack(theirs, axis=-1))


@given(PAIRS)
@quick
def test_confusion_is_that_of_scikit_learn(pairs):
    predicted, expected = sides(pairs)
    table = confusion(predicted, expected, labels="edcba")
    assert table.labels == tuple("edcba")
    np.testing.assert_array_equal(table.counts, sklearn.confusion_matrix(expected, predicted, labels=[*"edcba"]))


@given(PAIRS, PAIRS)
@quick
def test_statistics_add_up(left, right):
    parts = [label_statistics(*sides(pairs), labels="abcde").sum(0) for pairs in (left, right)]
    whole = sides(left + right)
    for metric_from, metric in ((accuracy_from, accuracy), (macro_f1_from, macro_f1), (matthews_from, matthews)):
        assert metric_from(parts[0] + parts[1]) == pytest.approx(metric(*whole))


def test_metrics_accept_many_sums_at_once():
    statistics = label_statistics("abcab", "abbac")
    many = np.stack([statistics[:3].sum(0), statistics.sum(0)])
    for metric_from in (accuracy_from, macro_f1_from, matthews_from):
        np.testing.assert_allclose(metric_from(many), [metric_from(many[0]), metric_from(many[1])])


def test_scores_name_the_three_metrics():
    values = {score.name: score.value for score in scores("classes", "aab", "abb")}
    assert values == {"accuracy": accuracy("aab", "abb"), "F1": macro_f1("aab", "abb"), "MCC": matthews("aab", "abb")}


@pytest.mark.parametrize(
    ("predicted", "expected", "labels", "message"),
    [("a", "ab", None, "1 predictions for 2"), ("", "", None, "no examples"), ("ab", "aa", "a", "'b' is not among")],
)
def test_invalid_arguments_raise_value_error(predicted, expected, labels, message):
    with pytest.raises(ValueError, match=message):
        label_statistics(predicted, expected, labels)
    with pytest.raises(ValueError, match=message):
        confusion(predicted, expected, labels)


def test_memory_does_not_grow_with_examples_times_classes():
    rng = np.random.default_rng(0)
    predicted, expected = (list(map(str, rng.integers(0, 2000, 20_000))) for _ in range(2))
    tracemalloc.start()
    try:
        found = matthews(predicted, expected)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()
    assert found == pytest.approx(sklearn.matthews_corrcoef(expected, predicted))
