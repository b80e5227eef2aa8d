"""Objective of regression."""

from collections.abc import Iterable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from glassformer.corpora.labeled import Labeled
from glassformer.data.dataset import FLOATS, IDS
from glassformer.errors import UserError
from glassformer.learning.classification import LabelBatch, LabelObjective
from glassformer.metrics.correlation import pearson
from glassformer.tasks.regression import Regressor


class RegressionObjective(LabelObjective):
    """Squared error of numbers, scaled to [-0.5, 0.5] by the range of the training labels."""

    task_type = Regressor
    task: Regressor
    fields = {"ids": IDS, "ids2": IDS, "label": FLOATS}
    metric = "pearson"
    options = ()

    @classmethod
    def label_set(cls, labels: Iterable[str]) -> tuple[str, ...]:
        numbers = [float(label) for label in labels]
        if min(numbers) == max(numbers):
            raise UserError(
                f"every label is {numbers[0]:g}: regression needs at least two different labels.\n"
                "  Add examples with other labels."
            )
        return repr(min(numbers)), repr(max(numbers))

    def target(self, example: Labeled) -> float:
        low, high = self.task.range
        return (example.number() - low) / (high - low) - 0.5

    def loss(self, batch: LabelBatch, *, label_smoothing: float = 0.0) -> Tensor:
        predicted = self.model.label_logits(self.model(batch.ids, batch.token_type_ids), batch.ids).float()
        return F.mse_loss(predicted[:, 0], batch.labels, reduction="sum")

    def validate(self, examples: Sequence[Labeled]) -> dict[str, float]:
        predicted = self.shared_logits(examples)[:, 0]
        targets = torch.tensor([self.target(example) for example in examples])
        return {
            "pearson": pearson(predicted.tolist(), [example.number() for example in examples]),
            "loss": float(F.mse_loss(predicted, targets)),
        }
