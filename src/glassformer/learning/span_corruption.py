"""Objective of span corruption: the pretraining objective of T5."""

from collections.abc import Sequence

from glassformer.data.pairs import PairBatch
from glassformer.data.ragged import Row
from glassformer.learning.documents import DocumentObjective
from glassformer.learning.translation import TextToTextObjective
from glassformer.tasks.documents import Document
from glassformer.tasks.span_corruption import SENTINELS, SpanCorruption


class SpanCorruptionObjective(DocumentObjective[PairBatch], TextToTextObjective[Document]):
    """Cross-entropy of the removed spans of a text. Each batch removes other spans."""

    task_type = SpanCorruption
    task: SpanCorruption
    can_pack = False
    extra_special_tokens = SENTINELS

    def batch(self, rows: Sequence[Row]) -> PairBatch:
        return self.task.corrupted_batch(rows)

    def validate(self, examples: Sequence[Document]) -> dict[str, float]:
        """Loss per target token in nats. All validations mask the same spans."""
        batches = self.task.fixed_batches(examples)
        return {"loss": sum(self.map_parts(self.task.losses, batches)) / sum(batch.n_targets for batch in batches)}
