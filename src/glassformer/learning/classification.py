"""Objectives of classification and of other tasks that predict one label per text."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from glassformer.corpora.labeled import Labeled
from glassformer.data.batch import Batch, pad
from glassformer.data.dataset import IDS, INTS, Dataset
from glassformer.data.ragged import Row
from glassformer.learning.base import Objective
from glassformer.metrics.labels import accuracy, matthews
from glassformer.tasks.classification import Classifier, LabelTask, text_of
from glassformer.tasks.texts import no_op


@dataclass(frozen=True, slots=True)
class LabelBatch(Batch):
    """Padded texts with the label of each: a class index, or a number."""

    ids: Int[Tensor, "batch length"]
    token_type_ids: Int[Tensor, "batch length"]
    labels: Int[Tensor, " batch"] | Float[Tensor, " batch"]


class LabelObjective(Objective[Labeled, LabelBatch]):
    """Base class of objectives of tasks that predict one label per text or pair of texts."""

    task: LabelTask
    targets_name = "examples"

    def fit_statistics(self, data: Dataset) -> None:
        """Find out whether the training examples are pairs of texts."""
        self.task.inputs = ("text", "text_pair") if data.fields["ids2"].lengths.any() else ("text",)

    @classmethod
    def key(cls, example: Labeled) -> str:
        return "\t".join(cls.task_type.texts(example))

    @classmethod
    def labels_in(cls, example: Labeled) -> Iterable[str]:
        return (example.label,)

    def encode(self, examples: Sequence[Labeled]) -> tuple[list[Row], list[Labeled]]:
        rows: list[Row] = []
        too_long = []
        for example, (first, second) in zip(
            examples, self.task.encode_texts(list(map(text_of, examples))), strict=True
        ):
            if len(first) + len(second) <= self.task.capacity(is_pair=bool(second)):
                rows.append((first, second, [self.target(example)]))
            else:
                too_long.append(example)
        return rows, too_long

    @property
    def too_long(self) -> str:
        single, pair = (self.task.capacity(is_pair=is_pair) for is_pair in (False, True))
        return f"longer than {single} tokens, or pairs longer than {pair},"

    def needed_max_len(self, example: Labeled) -> int:
        return sum(map(len, self.tokenizer.encode_batch(self.task.texts(example)))) + self.task.n_specials

    @abstractmethod
    def target(self, example: Labeled) -> float:
        """Training target of an example."""

    def lengths(self, data: Dataset) -> NDArray[np.int64]:
        first, second = list(data.fields.values())[:2]
        return first.lengths + second.lengths + self.task.n_specials

    def batch(self, rows: Sequence[Row]) -> LabelBatch:
        sequences = [self.task.add_special_tokens(first, second) for first, second, _ in rows]
        return LabelBatch(
            n_targets=len(rows),
            ids=pad([ids for ids, _ in sequences], self.tokenizer.pad_id),
            token_type_ids=pad([token_type_ids for _, token_type_ids in sequences], 0),
            labels=torch.tensor([label for _, _, (label,) in rows]),
        )

    def shared_logits(self, examples: Sequence[Labeled]) -> Float[Tensor, "texts labels"]:
        """`LabelTask.logits` of examples. See `map_parts`."""
        texts = [text_of(example) for example in examples]
        return torch.tensor(self.map_parts(lambda part: self.task.logits(part, no_op).tolist(), texts))


class ClassificationObjective(LabelObjective):
    """Cross-entropy of the classes."""

    task_type = Classifier
    task: Classifier
    fields = {"ids": IDS, "ids2": IDS, "label": INTS}
    metric = "accuracy"

    def target(self, example: Labeled) -> int:
        return self.labels.index(example.label)

    def loss(self, batch: LabelBatch, *, label_smoothing: float = 0.0) -> Tensor:
        logits = self.model.label_logits(self.model(batch.ids, batch.token_type_ids), batch.ids).float()
        return F.cross_entropy(logits, batch.labels, reduction="sum", label_smoothing=label_smoothing)

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
