"""metrics.correlation against scipy."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from glassformer.metrics.correlation import (
    pearson,
    pearson_from,
    pearson_statistics,
    ranks,
    spearman,
)
from glassformer.metrics.registry import scores

scipy = pytest.importorskip("scipy.stats")

TIED = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=23)
quick = settings(max_examples=60)


def varying(pairs) -> tuple[list[float], list[float]]:
    x, y = ([float(value) for value in side] for side in zip(*pairs, strict=True))
    assume(len(set(x)) > 1 and len(set(y)) > 1)
    return x, y


@given(TIED)
@quick
def test_ties_get_their_mean_rank(pairs):
    x = [pair[0] for pair in pairs]
    np.testing.assert_allclose(ranks(x), scipy.rankdata(x))


@given(TIED)
@quick
def test_pearson_is_that_of_scipy(pairs):
    x, y = varying(pairs)
    assert pearson(x, y) == pytest.approx(scipy.pearsonr(x, y).statistic, abs=1e-9)


@given(TIED)
@quick
def test_spearman_is_that_of_scipy(pairs):
    x, y = varying(pairs)
    assert spearman(x, y) == pytest.approx(scipy.spearmanr(x, y).statistic, abs=1e-9)


@given(TIED, st.sampled_from([1e-9, 3.0, 1e9]), st.sampled_from([0.0, -7.0, 1e5]))
@quick
def test_scale_and_offset_change_nothing(pairs, scale, offset):
    x, y = varying(pairs)
    assume(offset < 1e-5 / scale or scale > 1e-3)
    moved = [scale * (value + offset) for value in x]
    assert pearson(moved, y) == pytest.approx(pearson(x, y), abs=1e-6)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_squares_neither_underflow_nor_overflow(scale):
    assert pearson([scale, 2 * scale, 4 * scale], [1, 2, 4]) == pytest.approx(1)


def test_a_large_common_offset_does_not_reduce_precision():
    x, y = [1e8 + 1, 1e8 + 2, 1e8 + 3, 1e8 + 5], [1.0, 2.0, 3.0, 7.0]
    assert pearson(x, y) == pytest.approx(scipy.pearsonr([1, 2, 3, 5], y).statistic, abs=1e-9)


@pytest.mark.parametrize("constant", [[7.0] * 3, [0.1] * 3, [0.0] * 3])
def test_a_constant_side_gives_0(constant):
    assert pearson(constant, [1, 2, 3]) == pearson([1, 2, 3], constant) == spearman(constant, [1, 2, 3]) == 0


@pytest.mark.parametrize("side", [0, 1])
def test_a_resample_that_is_constant_gives_0(side):
    sides = [0.1, 0.1, 0.7, 0.35], [3.1, 1.7, 5.3, 2.9]
    statistics = pearson_statistics(sides[side], sides[1 - side])
    counts = np.array([[i, j, 0, 0] for i in range(1, 31) for j in range(1, 31)])  # rounding hits only some of them
    assert not pearson_from(counts @ statistics).any()


def test_statistics_add_up():
    x, y = [1.0, 5, 2, 8, 3, 3], [2.0, 4, 4, 9, 1, 0]
    counts = np.array([2, 0, 1, 1, 3, 0])
    expected = scipy.pearsonr(np.repeat(x, counts), np.repeat(y, counts)).statistic
    assert pearson_from(counts @ pearson_statistics(x, y)) == pytest.approx(expected)


def test_scores_name_both():
    x, y = [1, 2, 3, 4], [1, 3, 2, 9]
    values = {score.name: score.value for score in scores("numbers", x, y)}
    assert values == {"Pearson": pearson(x, y), "Spearman": spearman(x, y)}


def test_a_number_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="example 1: nan is not finite"):
        pearson([1, float("nan")], [1, 2])
