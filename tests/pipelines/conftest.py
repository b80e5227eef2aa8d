"""Folders of transformers, created once per session, and a recursive comparison of outputs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

transformers = pytest.importorskip("transformers")

from tests.pipelines import folders

GRADES, ENTITIES = ["good", "bad", "so so"], ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
NLI = ["contradiction", "neutral", "entailment"]
SUMMARY = {"prefix": "The cat: ", "num_beams": 3, "min_length": 6, "no_repeat_ngram_size": 2, "length_penalty": 2.0}
hf = transformers

MAKERS: dict[str, Callable[[Path], Path]] = {
    "bert": lambda p: folders.bert(p),
    "bert-fill": lambda p: folders.bert(p, hf.BertForMaskedLM),
    "bert-grades": lambda p: folders.bert(p, hf.BertForSequenceClassification, **folders.labels(GRADES)),
    "bert-one": lambda p: folders.bert(p, hf.BertForSequenceClassification, **folders.labels(["it"])),
    "bert-nli": lambda p: folders.bert(p, hf.BertForSequenceClassification, **folders.labels(NLI)),
    "bert-nli-first": lambda p: folders.bert(p, hf.BertForSequenceClassification, **folders.labels(NLI[::-1])),
    "bert-number": lambda p: folders.bert(
        p, hf.BertForSequenceClassification, problem_type="regression", **folders.labels(["it"])
    ),
    "bert-entities": lambda p: folders.bert(p, hf.BertForTokenClassification, **folders.labels(ENTITIES)),
    "bert-answers": lambda p: folders.bert(p, hf.BertForQuestionAnswering),
    "roberta-fill": lambda p: folders.roberta(p, hf.RobertaForMaskedLM),
    "roberta-grades": lambda p: folders.roberta(p, hf.RobertaForSequenceClassification, **folders.labels(GRADES)),
    "roberta-entities": lambda p: folders.roberta(p, hf.RobertaForTokenClassification, **folders.labels(ENTITIES)),
    "roberta-answers": lambda p: folders.roberta(p, hf.RobertaForQuestionAnswering),
    "distilbert-grades": lambda p: folders.distilbert(
        p, hf.DistilBertForSequenceClassification, **folders.labels(GRADES)
    ),
    "gpt2": lambda p: folders.gpt2(p),
    "t5": lambda p: folders.t5(p),
    "t5-asked": lambda p: folders.t5(
        p, task_specific_params={"summarization": SUMMARY, "translation_en_to_de": {"prefix": "A dog: "}}
    ),
    "marian": lambda p: folders.marian(p),
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The folder of a model by its name, created at the first request."""
    created: dict[str, str] = {}

    def named(name: str) -> str:
        if name not in created:
            created[name] = str(MAKERS[name](tmp_path_factory.mktemp("theirs") / name))
        return created[name]

    return named


def assert_same(ours: Any, theirs: Any) -> None:
    """The same values of the same types in the same order; numbers to 1e-4."""
    theirs = theirs.item() if hasattr(theirs, "item") else theirs
    assert type(ours) is type(theirs), (ours, theirs)
    if isinstance(ours, dict):
        assert list(ours) == list(theirs)
        assert_same(list(ours.values()), list(theirs.values()))
    elif isinstance(ours, list):
        assert len(ours) == len(theirs), (ours, theirs)
        for pair in zip(ours, theirs, strict=True):
            assert_same(*pair)
    elif isinstance(ours, float):
        assert ours == pytest.approx(theirs, abs=1e-4, rel=1e-4)
    else:
        assert ours == theirs
