"""Labels of a corpus at the start of a training."""

from collections import Counter

import pytest

from glassformer.corpora.labeled import Labeled
from glassformer.errors import CorpusError
from glassformer.learning.classification import ClassificationObjective
from glassformer.tasks.classification import Classifier
from glassformer.tasks.regression import Regressor
from glassformer.train_config import TrainConfig
from glassformer.training.labels import check_are_classes, describe_labels, drop_unknown_labels
from glassformer.training.run import train


def test_labels_are_listed_with_their_counts_and_similar_ones_are_named():
    message = describe_labels(Counter({"spam": 3, "ham": 1200, "Spam ": 2, "not spam": 1, "Not  spam": 1}), Classifier)
    assert message.split("\n") == [
        "Labels (5): ham 1,200, spam 3, Spam  2, not spam 1, Not  spam 1.",
        "warning: labels that differ only by case or spaces: 'spam' (3), 'Spam ' (2)",
        "warning: labels that differ only by case or spaces: 'not spam' (1), 'Not  spam' (1)",
    ]


def test_the_numbers_of_a_regression_are_summarized():
    message = describe_labels(Counter({"0.5": 1, "2": 3}), Regressor)
    assert message == "Labels: numbers from 0.5 to 2, mean 1.625 (regression)."


def test_numbers_with_fractions_after_the_beginning_are_no_classes():
    counts = Counter({"1": 300, "0.25": 1})
    with pytest.raises(CorpusError, match=r"2 different numbers, such as 0\.25, 1\.\n  .*--task regression"):
        check_are_classes(counts, Classifier, is_inferred=True)
    check_are_classes(counts, Classifier, is_inferred=False)
    check_are_classes(Counter({"1": 300, "2": 1}), Classifier, is_inferred=True)


def test_a_single_class_is_refused():
    with pytest.raises(CorpusError, match="every label is 'spam': nothing to learn"):
        check_are_classes(Counter({"spam": 9}), Classifier, is_inferred=False)
    check_are_classes(Counter({"2.5": 9}), Regressor, is_inferred=True)


def test_a_label_whose_examples_were_all_held_out_is_named():
    messages = []
    dev = [Labeled("a", None, "rare", "a.csv", 1), Labeled("b", None, "spam", "a.csv", 2)]
    counts = Counter({"spam": 9, "ham": 9})
    kept = drop_unknown_labels(dev, counts, ClassificationObjective, is_explicit=False, log=messages.append)
    assert kept == dev[1:]
    assert "all examples of 1 labels were held out, so that the model does not have them: 'rare'\n" in messages[0]


def test_a_training_stores_the_counts_of_the_labels(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("tweet;sentiment\n" + "".join(f"number {i} is;{'ab'[i % 3 == 0]}\n" for i in range(40)))
    out = tmp_path / "out"
    train(TrainConfig(src=(path,), out=out, steps=1, preset="tiny", threads=1, d_model=8), quiet=True)
    log = (out / "train.log").read_text()
    assert f"{path}: semicolon-separated, header row; text = column 'tweet', label = column 'sentiment'." in log
    assert "Labels (2): a 2" in log
    assert '"labels":{"a":2' in (out / "training.json").read_text().replace(" ", "").replace("\n", "")
