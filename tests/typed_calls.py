"""Calls of the public functions with the types that a type checker infers. mypy checks this file; it is not run."""

from typing import assert_type

import glassformer as gf
from glassformer.tasks.base import AnyTask
from glassformer.tasks.classification import Classifier, LabelProbability
from glassformer.tasks.translated import TranslationRecord
from glassformer.tasks.translation import Translator


def loading() -> None:
    translator = gf.load("en-fr", task=Translator)
    assert_type(translator("a text", beam=1), str)
    assert_type(translator(["a text"]), list[str])
    assert_type(translator("a text", nbest=2), str | TranslationRecord)
    translator("a text", baem=1)  # type: ignore[call-overload]
    classifier = gf.load("sentiment", task=Classifier)
    assert_type(classifier("a text", return_all=True), list[LabelProbability])
    assert_type(gf.load("en-fr"), AnyTask)
    gf.load("en-fr")("a text")


def training() -> None:
    assert_type(gf.train("a", "b", out="c", task=Translator, steps=2), Translator)
    assert_type(gf.train("a", out="c", task="classification"), AnyTask)
    gf.train("a", out="c", stepz=2)  # type: ignore[call-overload]
