"""metrics.summary against rouge-score."""

import sys

import numpy as np
import pytest

from glassformer.errors import ConfigError
from glassformer.metrics.registry import scores
from glassformer.metrics.summary import rouge

PREDICTED = ["The cats sat on a mat.", "Nothing was found", ""]
EXPECTED = [["Cats were sitting", "The cat sat on the mat"], ["We found nothing; nothing was there."], ["Something"]]


@pytest.mark.parametrize("stem", [False, True])
def test_each_score_is_that_of_the_best_reference(stem):
    rouge_scorer = pytest.importorskip("rouge_score.rouge_scorer")
    scorer = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=stem)
    for row, predicted, references in zip(rouge(PREDICTED, EXPECTED, stem=stem), PREDICTED, EXPECTED, strict=True):
        each = [[score.fmeasure for score in scorer.score(expected, predicted).values()] for expected in references]
        np.testing.assert_allclose(row, np.max(each, axis=0))


def test_scores_are_means_with_their_options():
    pytest.importorskip("rouge_score")
    found = scores("summaries", PREDICTED, EXPECTED)
    assert [score.name for score in found] == ["ROUGE-1", "ROUGE-2", "ROUGE-L"]
    assert [score.value for score in found] == rouge(PREDICTED, EXPECTED).mean(0).tolist()
    assert all("stem:no|words:ascii" in score.signature for score in found)


@pytest.mark.parametrize(
    ("predicted", "expected", "f1"),
    [
        ("Größe", "große", 0),
        ("das große Haus", "Das große Boot", 2 / 3),
        ("猫在这里", "猫在家", 4 / 7),
        ("x_y", "x y", 1),
        ("हिन्दी में", "हिन्दी", 2 / 3),
    ],
)
def test_unicode_words_keep_their_letters_and_split_chinese(predicted, expected, f1):
    pytest.importorskip("rouge_score")
    assert rouge([predicted], [[expected]], words="unicode")[0, 0] == pytest.approx(f1)


@pytest.mark.parametrize(
    ("text", "other", "words"),
    [
        ("кошка спит", "собака спит", "unicode"), ("le garçon dort", "le garcon dort", "unicode"),
        ("猫睡", "猫跑", "unicode"), ("The cat sleeps in a café. " + "It is there. " * 99, "The", "ascii"),
        ("The cat sleeps", "The cat", "ascii"), ("", "", "ascii"),
    ],
)  # fmt: skip
def test_words_are_those_of_the_language_of_the_references(text, other, words):
    pytest.importorskip("rouge_score")
    found = scores("summaries", [text, other], [[text], [text]])
    assert {score.signature.split("|")[3] for score in found} == {f"words:{words}"}
    expected = rouge([text, other], [[text], [text]], words=words).mean(0)
    assert [score.value for score in found] == expected.tolist()
    if words == "unicode":
        assert rouge([text], [[text]])[0, 0] == 1
        assert 0 < rouge([other], [[text]])[0, 0] < 1


def test_a_summary_without_reference_is_refused():
    pytest.importorskip("rouge_score")
    with pytest.raises(ValueError, match="summary 1 has no reference"):
        rouge(["a", "b"], [["a"], []])


def test_stemming_of_unicode_words_is_refused():
    pytest.importorskip("rouge_score")
    with pytest.raises(ValueError, match="stem"):
        rouge(["a"], [["a"]], stem=True, words="unicode")


def test_the_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "rouge_score", None)
    with pytest.raises(ConfigError, match=r"pip install 'glassformer\[eval\]'"):
        rouge(["a"], [["a"]])
