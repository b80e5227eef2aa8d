"""zero-shot-classification: classes named at call time, scored by a natural language inference model."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from glassformer.config import JsonObject
from glassformer.errors import ConfigError
from glassformer.pipelines.base import Output
from glassformer.pipelines.source import Source
from glassformer.pipelines.text_classification import TextClassification, TextClassificationOptions


class ZeroShotClassificationOptions(TextClassificationOptions):
    """Arguments of zero-shot-classification."""

    candidate_labels: str | tuple[str, ...] | None = None
    """Names of the classes: a list, or one string separated by commas."""
    hypothesis_template: str = "This example is {}."
    """Sentence that becomes the hypothesis when a label is inserted at {}."""
    multi_label: bool = False
    """Score each label independently; otherwise the scores of the labels sum to 1."""


class ZeroShotClassification(TextClassification):
    """{"sequence", "labels", "scores"} of a text, the labels sorted by score.

    The model is a classifier of pairs (premise, hypothesis) one of whose labels begins with "entail".

    Source: Yin et al. 2019.
    """

    options_type = ZeroShotClassificationOptions
    input_names = ("sequences",)

    @classmethod
    def supports(cls, source: Source, name: str) -> bool:
        return super().supports(source, name) and entailment_index(source.task.labels) is not None

    def __call__(self, inputs: object = None, candidate_labels: object = None, **options: object) -> Output:
        """Classify a text, or each text of a list, into the candidate labels.

        Raises:
            ConfigError: no candidate labels, or a template without {}.
        """
        inputs = self.named_input(inputs, options)
        return self.each(
            inputs, {**options, **({} if candidate_labels is None else {"candidate_labels": candidate_labels})}
        )

    def each(self, inputs: object, options: Mapping[str, object]) -> Output:
        return super(TextClassification, self).each(inputs, options)

    def run(self, inputs: list[object], options: TextClassificationOptions) -> list[Output]:
        assert isinstance(options, ZeroShotClassificationOptions)
        labels = self.candidate_labels(options)
        texts = [self.text(text) for text in inputs]
        pairs = [
            {"text": text, "text_pair": options.hypothesis_template.replace("{}", label)}
            for text in texts
            for label in labels
        ]
        logits = self.logits([self.read(pair, options) for pair in pairs]).reshape(len(texts), len(labels), -1)
        return [self.ranked(text, labels, x, options) for text, x in zip(texts, logits, strict=True)]

    def candidate_labels(self, options: ZeroShotClassificationOptions) -> list[str]:
        """The candidate labels as a list.

        Raises:
            ConfigError: no labels, or a template without {}.
        """
        given = options.candidate_labels or ()
        labels = [x.strip() for x in given.split(",") if x.strip()] if isinstance(given, str) else list(given)
        if not any(labels):
            raise ConfigError(f'{self.task}: candidate_labels: required, for instance ["sports", "politics"].')
        if "{}" not in options.hypothesis_template:
            raise ConfigError(f"hypothesis_template = {options.hypothesis_template!r}: has no {{}} for the label.")
        return labels

    def ranked(
        self, text: str, labels: list[str], logits: NDArray[np.float32], options: ZeroShotClassificationOptions
    ) -> JsonObject:
        """Result for one text, from the logits [labels, classes] of its hypotheses."""
        entailment = entailment_index(self.model.labels)
        assert entailment is not None
        if options.multi_label or len(labels) == 1:
            contradiction = -1 if entailment == 0 else 0
            two = logits[:, [contradiction, entailment]]
            scores = softmax(two)[:, 1]
        else:
            scores = softmax(logits[:, entailment])
        order = list(reversed(scores.argsort()))
        return {"sequence": text, "labels": [labels[i] for i in order], "scores": [float(scores[i]) for i in order]}


def entailment_index(labels: tuple[str, ...]) -> int | None:
    """Index of the label of entailment, or None."""
    return next((i for i, label in enumerate(labels) if label.lower().startswith("entail")), None)


def softmax(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Softmax over the last axis."""
    exp = np.exp(x - x.max(-1, keepdims=True))
    return exp / exp.sum(-1, keepdims=True)
