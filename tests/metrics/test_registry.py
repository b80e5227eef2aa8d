import numpy as np
import pytest

from glassformer.corpora.example import Example
from glassformer.metrics import registry
from glassformer.metrics.registry import METRICS, Metric, format_metric, metric, scores
from glassformer.metrics.score import mean_from
from glassformer.tasks.translation import Translator


def test_names_are_found_in_any_case_and_unknown_ones_have_the_defaults():
    assert metric("bleu").name == "BLEU"
    assert not metric("TER").larger_is_better
    assert metric("new") == Metric("new")
    assert format_metric("bleu", 12.345) == "BLEU 12.35"
    assert format_metric("score", 0.5) == "score 0.5000"


def test_no_type_of_outputs_has_two_metrics_of_one_name():
    names = [(metric.of, metric.name) for metric in METRICS]
    assert len(set(names)) == len(names)


def test_a_row_is_all_that_a_new_metric_needs(monkeypatch):
    def length_statistics(outputs, references):
        return np.array([[len(o), len(r)] for o, r in zip(outputs, references, strict=True)], dtype=np.float64)

    row = Metric("length ratio", "texts", length_statistics, mean_from, signature="of:characters", digits=2)
    monkeypatch.setattr(registry, "METRICS", [*METRICS, row])
    outputs, examples = ["ab", "cde"], [Example("", "ab", "a", 1), Example("", "cdef", "a", 2)]
    score = scores("texts", outputs, Translator.references(examples))[-1]
    assert (score.name, score.value, score.signature) == ("length ratio", pytest.approx(5 / 6), "of:characters")
    statistics, from_sums = Translator.bootstrap_statistics(outputs, examples)["length ratio"]
    assert from_sums(statistics.sum(0)) == score.value
    assert format_metric("length ratio", score.value) == "length ratio 0.83"


def test_two_metrics_of_one_function_share_its_statistics(monkeypatch):
    calls = []

    def counted(outputs, references):
        calls.append(outputs)
        return np.ones((len(outputs), 2))

    monkeypatch.setattr(registry, "METRICS", [Metric("a", "texts", counted), Metric("b", "texts", counted)])
    assert [score.value for score in scores("texts", ["x"], ["x"])] == [1.0, 1.0]
    assert len(calls) == 1
