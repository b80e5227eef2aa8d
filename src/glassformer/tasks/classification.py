"""Classification and regression of texts and pairs of texts with an encoder."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, TypedDict, overload

import numpy as np
from numpy import ndarray

from glassformer.corpora.example import usable
from glassformer.corpora.labeled import Labeled, read_labeled
from glassformer.corpora.read_options import DETECT, ReadOptions
from glassformer.decode_config import DecodeConfig
from glassformer.generate.scores import softmax
from glassformer.metrics import Score
from glassformer.metrics.registry import scores
from glassformer.shapes import Float
from glassformer.tasks.base import Log, Record
from glassformer.tasks.encoder import EncoderTask, Texts, text_of_line
from glassformer.tasks.texts import Text, Warn, check_texts, map_nonblank, python_warning


class LabelProbability(TypedDict):
    """A label with its probability."""

    label: str
    probability: float


class ClassificationRecord(Record):
    """JSON record of a classified line: `output` is the label."""

    probabilities: dict[str, float]
    """Probability of each label; empty for a blank line."""


class LabelTask(EncoderTask[Labeled]):
    """Base class of tasks that predict one label per text or pair of texts."""

    example_type = Labeled
    head_config = {"head": "sequence", "pooler": True}
    read_options = ("format", "keys", "skip_bad")
    stored_attributes = ("inputs",)
    inputs: tuple[str, ...] = ()
    """Inputs of the training examples: "text", or "text" and "text_pair". Empty: not known."""

    @classmethod
    def read(
        cls, src: Sequence[Path], tgt: Sequence[Path], options: ReadOptions = DETECT, log: Log | None = None
    ) -> Iterator[Labeled]:
        examples = read_labeled(src, options.keys, format=options.format, skip_bad=options.skip_bad, log=log)
        return usable(examples, lambda example: any(text.strip() for text in cls.texts(example)), "without text", log)

    @classmethod
    def texts(cls, example: Labeled) -> Sequence[str]:
        return (example.text, example.text2) if example.text2 else (example.text,)

    def read_line(self, line: str) -> Text:
        """The text of a line; a pair with a tab between its texts, unless the model was trained on single ones."""
        return line if len(self.inputs) == 1 else text_of_line(line)

    def logits(self, texts: Sequence[Text], warn: Warn = python_warning) -> Float[ndarray, "texts labels"]:
        """Outputs of the head for each text, in fp32. `warn` is also called for a text without a second one, if the
        model was trained with pairs, and for a pair, if it was not."""
        for i, text in enumerate(texts):
            if self.inputs and isinstance(text, tuple) != (len(self.inputs) == 2):
                found, trained = ("a pair", "single texts") if isinstance(text, tuple) else ("a single text", "pairs")
                warn(i, f"{found}, and the model was trained with {trained}")
        rows = self.encode_truncated(texts, warn)
        logits = np.empty((len(rows), self.config.n_labels), np.float32)
        encoder = self.encoder
        for indices, hidden in self.hidden(rows):
            logits[indices] = encoder.outputs(self.pooled(hidden))
        return logits


def text_of(example: Labeled) -> Text:
    """The text or the pair of texts of an example."""
    return (example.text, example.text2) if example.text2 is not None else example.text


class Classifier(LabelTask):
    """Predicts a class for each text or pair of texts."""

    name = "classification"
    pipeline_tag = "text-classification"
    pipelines = ("text-classification", "zero-shot-classification")
    output_type = "classes"
    has_classes = True

    def probabilities(self, texts: Sequence[Text], warn: Warn = python_warning) -> Float[ndarray, "texts labels"]:
        """Probability of each label, in the order of `labels`."""
        return softmax(self.logits(texts, warn))

    @overload
    def __call__(self, texts: Text, *extra: object, return_all: Literal[False] = False) -> str: ...
    @overload
    def __call__(self, texts: Texts, *extra: object, return_all: Literal[False] = False) -> list[str]: ...
    @overload
    def __call__(self, texts: Text, *extra: object, return_all: Literal[True]) -> list[LabelProbability]: ...
    @overload
    def __call__(self, texts: Texts, *extra: object, return_all: Literal[True]) -> list[list[LabelProbability]]: ...
    def __call__(
        self, texts: Text | Texts, *extra: object, return_all: bool = False
    ) -> str | list[str] | list[LabelProbability] | list[list[LabelProbability]]:
        """The most probable label of a text, or of each text of a list; a pair is a tuple.

        Args:
            return_all: return for each text all labels, most probable first, as a list of
                {"label": …, "probability": …}.

        Raises:
            TypeError: not a text, a pair or a list of them.
        """
        probabilities = self.probabilities(check_texts(self, texts, *extra, pairs=True)).tolist()
        ranked: list[list[LabelProbability]] = [
            [{"label": self.labels[i], "probability": row[i]} for i in sorted(range(len(row)), key=lambda i: -row[i])]
            for row in probabilities
        ]
        if return_all:
            return ranked if isinstance(texts, list) else ranked[0]
        best = [labels[0]["label"] for labels in ranked]
        return best if isinstance(texts, list) else best[0]

    def run(
        self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = python_warning
    ) -> list[str]:
        return map_nonblank(lines, self.predict_labels, warn)

    def predict_labels(self, lines: Sequence[str], warn: Warn) -> list[str]:
        """The most probable class of each line."""
        return [self.labels[i] for i in self.logits([*map(self.read_line, lines)], warn).argmax(-1).tolist()]

    def records(
        self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = python_warning
    ) -> list[ClassificationRecord]:
        """For each line its label and the probabilities of all labels; for a blank line neither."""
        indices = [i for i, line in enumerate(lines) if line.strip()]
        texts = [self.read_line(lines[i]) for i in indices]
        records: list[ClassificationRecord] = [{"input": line, "output": "", "probabilities": {}} for line in lines]
        rows = self.probabilities(texts, lambda i, what: warn(indices[i], what)).tolist()
        for i, row in zip(indices, rows, strict=True):
            records[i]["output"] = self.labels[max(range(len(row)), key=row.__getitem__)]
            records[i]["probabilities"] = dict(zip(self.labels, row, strict=True))
        return records

    def evaluate(
        self, examples: Sequence[Labeled], options: DecodeConfig | None = None
    ) -> tuple[list[str], list[Score]]:
        predicted = self([text_of(example) for example in examples])
        return predicted, scores("classes", predicted, self.references(examples))

    @classmethod
    def references(cls, examples: Sequence[Labeled]) -> list[str]:
        return [example.label for example in examples]
