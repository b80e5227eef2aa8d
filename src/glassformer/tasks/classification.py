"""Classification and regression of texts and pairs of texts with an encoder."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict, overload

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from glassformer.config import DecodeConfig
from glassformer.corpora.labeled import Labeled, read_labeled
from glassformer.corpora.read_options import DETECT, ReadOptions
from glassformer.data.batch import Batch, pad
from glassformer.data.dataset import IDS, INTS, Dataset
from glassformer.data.ragged import Row
from glassformer.metrics import Score
from glassformer.metrics.labels import accuracy, matthews
from glassformer.metrics.registry import scores
from glassformer.tasks.base import Log, Record
from glassformer.tasks.encoder import EncoderTask, Texts, text_of_line
from glassformer.tasks.texts import Text, Warn, check_texts, map_nonblank, no_op


@dataclass(frozen=True, slots=True)
class LabelBatch(Batch):
    """Padded texts with the label of each: a class index, or a number."""

    ids: Int[Tensor, "batch length"]
    token_type_ids: Int[Tensor, "batch length"]
    labels: Int[Tensor, " batch"] | Float[Tensor, " batch"]


class LabelProbability(TypedDict):
    """A label with its probability."""

    label: str
    probability: float


class ClassificationRecord(Record):
    """JSON record of a classified line: `output` is the label."""

    probabilities: dict[str, float]
    """Probability of each label; empty for a blank line."""


class LabelTask(EncoderTask[Labeled, LabelBatch]):
    """Base class of tasks that predict one label per text or pair of texts."""

    example_type = Labeled
    targets_name = "examples"
    head_config = {"head": "sequence", "pooler": True}
    read_options = ("format", "keys", "skip_bad")
    stored_attributes = ("inputs",)
    inputs: tuple[str, ...] = ()
    """Inputs of the training examples: "text", or "text" and "text_pair". Empty: not known."""

    def fit_statistics(self, data: Dataset) -> None:
        """Find out whether the training examples are pairs of texts."""
        self.inputs = ("text", "text_pair") if data.fields["ids2"].lengths.any() else ("text",)

    @classmethod
    def read(
        cls, src: Sequence[Path], tgt: Sequence[Path], options: ReadOptions = DETECT, log: Log | None = None
    ) -> Iterator[Labeled]:
        n_blank, first_blank = 0, ""
        for example in read_labeled(src, options.keys, format=options.format, skip_bad=options.skip_bad, log=log):
            if example.text.strip() or (example.text2 or "").strip():
                yield example
            else:
                n_blank, first_blank = n_blank + 1, first_blank or f"{example.path}:{example.line}"
        if log and n_blank:
            log(f"warning: {n_blank:,} lines without text were left out (first: {first_blank})")

    @classmethod
    def texts(cls, example: Labeled) -> Sequence[str]:
        return (example.text, example.text2) if example.text2 else (example.text,)

    @classmethod
    def key(cls, example: Labeled) -> str:
        return "\t".join(cls.texts(example))

    @classmethod
    def labels_in(cls, example: Labeled) -> Iterable[str]:
        return (example.label,)

    def encode(self, examples: Sequence[Labeled]) -> tuple[list[Row], list[Labeled]]:
        limit = self.model.config.max_len - self.n_specials
        rows: list[Row] = []
        too_long = []
        for example, (first, second) in zip(examples, self.encode_texts(list(map(text_of, examples))), strict=True):
            if len(first) + len(second) <= limit:
                rows.append((first, second, [self.target(example)]))
            else:
                too_long.append(example)
        return rows, too_long

    def needed_max_len(self, example: Labeled) -> int:
        return sum(map(len, self.tokenizer.encode_batch(self.texts(example)))) + self.n_specials

    def target(self, example: Labeled) -> float:
        """Training target of an example."""
        raise NotImplementedError

    def lengths(self, data: Dataset) -> NDArray[np.int64]:
        first, second = list(data.fields.values())[:2]
        return first.lengths + second.lengths + self.n_specials

    def batch(self, rows: Sequence[Row]) -> LabelBatch:
        sequences = [self.add_special_tokens(first, second) for first, second, _ in rows]
        return LabelBatch(
            n_targets=len(rows),
            ids=pad([ids for ids, _ in sequences], self.tokenizer.pad_id),
            token_type_ids=pad([token_type_ids for _, token_type_ids in sequences], 0),
            labels=torch.tensor([label for _, _, (label,) in rows]),
        )

    def logits(self, texts: Sequence[Text], warn: Warn = no_op) -> Float[Tensor, "texts labels"]:
        """Outputs of the head for each text, in fp32 on the CPU."""
        rows = self.encode_truncated(texts, warn)
        logits = torch.empty(len(rows), self.model.config.n_labels)
        for indices, hidden, ids in self.hidden(rows):
            with torch.inference_mode():
                logits[indices] = self.model.label_logits(hidden, ids).float().cpu()
        return logits

    def shared_logits(self, examples: Sequence[Labeled]) -> Float[Tensor, "texts labels"]:
        """`logits` of examples. See `map_parts`."""
        texts = [text_of(example) for example in examples]
        return torch.tensor(self.map_parts(lambda part: self.logits(part).tolist(), texts))


def text_of(example: Labeled) -> Text:
    """The text or the pair of texts of an example."""
    return (example.text, example.text2) if example.text2 is not None else example.text


class Classifier(LabelTask):
    """Predicts a class for each text or pair of texts."""

    name = "classification"
    pipeline_tag = "text-classification"
    pipelines = ("text-classification", "zero-shot-classification")
    fields = {"ids": IDS, "ids2": IDS, "label": INTS}
    metric = "accuracy"
    output_type = "classes"
    has_classes = True

    def target(self, example: Labeled) -> int:
        return self.labels.index(example.label)

    def loss(self, batch: LabelBatch, *, label_smoothing: float = 0.0) -> Tensor:
        logits = self.model.label_logits(self.model(batch.ids, batch.token_type_ids), batch.ids).float()
        return F.cross_entropy(logits, batch.labels, reduction="sum", label_smoothing=label_smoothing)

    def probabilities(self, texts: Sequence[Text], warn: Warn = no_op) -> Float[Tensor, "texts labels"]:
        """Probability of each label, in the order of `labels`."""
        return self.logits(texts, warn).softmax(-1)

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

    def run(self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = no_op) -> list[str]:
        return map_nonblank(lines, self.predict_labels, warn)

    def predict_labels(self, lines: Sequence[str], warn: Warn) -> list[str]:
        """The most probable class of each line."""
        return [self.labels[i] for i in self.logits([*map(text_of_line, lines)], warn).argmax(-1).tolist()]

    def records(
        self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = no_op
    ) -> list[ClassificationRecord]:
        """For each line its label and the probabilities of all labels; for a blank line neither."""
        indices = [i for i, line in enumerate(lines) if line.strip()]
        texts = [text_of_line(lines[i]) for i in indices]
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

    def validate(self, examples: Sequence[Labeled]) -> dict[str, float]:
        log_probs = self.shared_logits(examples).log_softmax(-1)
        expected = [example.label for example in examples]
        predicted = [self.labels[i] for i in log_probs.argmax(-1).tolist()]
        targets = torch.tensor([self.target(example) for example in examples])
        return {
            "accuracy": accuracy(predicted, expected),
            "mcc": matthews(predicted, expected),
            "loss": float(F.nll_loss(log_probs, targets)),
        }
