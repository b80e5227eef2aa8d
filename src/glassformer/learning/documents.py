"""Base class of objectives on text without labels."""

from collections.abc import Sequence

from glassformer.data.batch import BatchT
from glassformer.data.dataset import IDS
from glassformer.data.ragged import Row
from glassformer.learning.base import Objective
from glassformer.learning.held_out import LastExamples
from glassformer.tasks.documents import Document, DocumentTask

MAX_VALIDATED = 20_000
"""Approximate number of dev tokens used in a validation during training; `evaluate` uses all."""


class DocumentObjective(Objective[Document, BatchT]):
    """Base class of objectives of tasks on text without labels."""

    task: DocumentTask
    metric = "loss"
    fields = {"ids": IDS}
    rows_are_examples = False
    vocabulary_by_bytes = True
    held_out = LastExamples

    def encode(self, examples: Sequence[Document]) -> tuple[list[Row], list[Document]]:
        return self.task.rows(examples), []
