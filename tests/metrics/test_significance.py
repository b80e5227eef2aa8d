"""metrics.significance against all possible resamples, scipy, sacrebleu and repeated sampling."""

from itertools import product

import numpy as np
import pytest

from glassformer.metrics import significance
from glassformer.metrics.correlation import pearson_from, pearson_statistics
from glassformer.metrics.labels import label_statistics, macro_f1, macro_f1_from
from glassformer.metrics.score import mean_from, mean_statistics
from glassformer.metrics.significance import bootstrap, paired_bootstrap
from glassformer.metrics.translation import bleu, bleu_from, bleu_statistics

RNG = np.random.default_rng(7)
WORDS = [*"abcdefg"]
REFERENCES = [" ".join(RNG.choice(WORDS, 11)) for _ in range(61)]


def corrupted(rate: float, seed: int) -> list[str]:
    """The references with a fraction `rate` of the words replaced."""
    rng = np.random.default_rng(seed)
    return [" ".join(w if rng.random() > rate else rng.choice(WORDS) for w in line.split()) for line in REFERENCES]


def test_the_interval_of_four_examples_is_that_of_all_256_resamples():
    values = np.array([0.0, 1.0, 3.0, 11.0])
    every = [values[list(drawn)].mean() for drawn in product(range(4), repeat=4)]
    found = bootstrap(mean_statistics(values), mean_from, confidence=0.8, n_resamples=20_011)
    assert found.value == values.mean()
    assert (found.low, found.high) == pytest.approx(np.quantile(every, [0.1, 0.9]), abs=0.26)  # a step of the metric


def test_the_p_value_of_four_examples_is_that_of_all_256_resamples():
    first, second = np.array([0.0, 1.0, 3.0, 11.0]), np.array([1.0, 1.0, 5.0, 12.0])
    every = np.array([(second - first)[list(drawn)].mean() for drawn in product(range(4), repeat=4)])
    exact = np.mean(np.abs(every - 1) >= 1)
    found = paired_bootstrap(mean_statistics(first), mean_statistics(second), mean_from, n_resamples=20_011)
    assert found.p_value == pytest.approx(exact, abs=0.02)
    assert (found.first, found.second, found.difference.value) == (3.75, 4.75, 1)


def test_the_interval_of_a_correlation_is_that_of_scipy():
    scipy = pytest.importorskip("scipy.stats")
    correlation = lambda x, y: np.corrcoef(x, y)[0, 1]
    x = np.random.default_rng(3).normal(size=(2, 47))
    x[1] += x[0]
    found = bootstrap(pearson_statistics(*x), pearson_from, n_resamples=5003)
    theirs = scipy.bootstrap(
        x, correlation, paired=True, vectorized=False, method="percentile",
        n_resamples=2003, rng=5,
    ).confidence_interval  # fmt: skip
    assert (found.low, found.high) == pytest.approx(tuple(theirs), abs=0.03)


def test_the_interval_contains_the_true_value_at_the_confidence_level():
    rng = np.random.default_rng(5)
    n_tests, n = 400, 53
    held = 0
    for seed in range(n_tests):
        found = bootstrap(
            mean_statistics(rng.normal(3, 2, size=n)), mean_from, confidence=0.8, n_resamples=199, seed=seed
        )
        held += found.low <= 3 <= found.high
    assert held / n_tests == pytest.approx(0.8, abs=0.06)  # three standard errors


def test_equal_systems_are_significantly_different_as_rarely_as_the_p_value_states():
    rng = np.random.default_rng(11)
    n_tests = 400
    p_values = [
        paired_bootstrap(*map(mean_statistics, rng.normal(size=(2, 53))), mean_from, n_resamples=199).p_value
        for _ in range(n_tests)
    ]
    assert np.mean(np.array(p_values) <= 0.2) == pytest.approx(0.2, abs=0.06)


def test_bleu_systems_are_compared_as_by_sacrebleu():
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.significance import PairedTest

    systems = corrupted(0.30, 1), corrupted(0.27, 2)
    named = [("first", systems[0]), ("second", systems[1])]
    # Approximate randomization, their two-sided test: their bootstrap takes |difference| before it centers.
    metrics = {"BLEU": BLEU(references=[REFERENCES], force=True)}
    test = PairedTest(named, metrics, None, test_type="ar", n_samples=1000, n_ar_confidence=1000)
    theirs = test()[1]["BLEU"]
    first, second = (bleu_statistics(system, REFERENCES) for system in systems)
    ours = paired_bootstrap(first, second, bleu_from)
    assert (ours.first, ours.second) == pytest.approx([each.score for each in theirs])
    assert 0.02 < ours.p_value < 0.98
    assert ours.p_value == pytest.approx(theirs[1].p_value, abs=0.05)
    interval = bootstrap(second, bleu_from)
    assert (interval.high - interval.low) / 2 == pytest.approx(theirs[1].ci, rel=0.15)


def test_a_resample_is_the_metric_of_the_drawn_examples():
    predicted, expected = RNG.choice(WORDS, (2, 31))
    (counts,) = significance.resample_counts(31, 3, seed=13)
    assert counts.sum(1).tolist() == [31] * 3
    sums = counts @ label_statistics(predicted.tolist(), expected.tolist())
    for row, value in zip(counts.astype(int), macro_f1_from(sums), strict=True):
        assert value == pytest.approx(macro_f1(*(np.repeat(side, row).tolist() for side in (predicted, expected))))


def test_a_system_compared_with_itself_has_p_value_1():
    statistics = bleu_statistics(corrupted(0.3, 1), REFERENCES)
    found = paired_bootstrap(statistics, statistics, bleu_from, n_resamples=97)
    assert (found.difference.value, found.difference.low, found.difference.high, found.p_value) == (0, 0, 0, 1)


def test_a_much_better_system_has_the_minimum_p_value_and_an_interval_above_0():
    worse, better = (bleu_statistics(corrupted(rate, 1), REFERENCES) for rate in (0.7, 0.1))
    found = paired_bootstrap(worse, better, bleu_from, n_resamples=97)
    assert found.p_value == pytest.approx(1 / 98)
    assert 0 < found.difference.low < found.difference.value < found.difference.high


def test_swapped_systems_differ_by_the_opposite():
    first, second = (mean_statistics(RNG.normal(size=17)) for _ in range(2))
    there, back = paired_bootstrap(first, second, mean_from), paired_bootstrap(second, first, mean_from)
    assert (there.difference.low, there.difference.high) == pytest.approx((-back.difference.high, -back.difference.low))
    assert there.p_value == back.p_value


def test_the_seed_decides_the_resamples():
    statistics = mean_statistics(RNG.normal(size=17))
    found = [bootstrap(statistics, mean_from, n_resamples=97, seed=seed) for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]


def test_resampling_in_chunks_gives_the_same_distribution(monkeypatch):
    monkeypatch.setattr(significance, "_CHUNK", 2)
    found = bootstrap(mean_statistics([0.0, 1.0, 3.0]), mean_from, n_resamples=997)
    monkeypatch.undo()
    assert (found.low, found.high) == pytest.approx((0, 3), abs=0.34)


def test_the_value_of_an_interval_is_the_metric_of_the_corpus():
    system = corrupted(0.3, 1)
    found = bootstrap(bleu_statistics(system, REFERENCES), bleu_from, n_resamples=97)
    assert found.value == pytest.approx(bleu(system, REFERENCES))
    assert found.low < found.value < found.high


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [(0, {}, "no examples"), (3, {"confidence": 95}, "confidence 95"), (3, {"n_resamples": 0}, "n_resamples 0")],
)
def test_invalid_arguments_raise_value_error(rows, options, message):
    statistics = np.ones((rows, 2))
    with pytest.raises(ValueError, match=message):
        bootstrap(statistics, mean_from, **options)
    with pytest.raises(ValueError, match=message):
        paired_bootstrap(statistics, statistics, mean_from, **options)


def test_systems_with_other_classes_or_examples_are_refused():
    with pytest.raises(ValueError, match="not of the same examples and classes"):
        paired_bootstrap(label_statistics("ab", "ab"), label_statistics("ac", "ab"), macro_f1_from)
