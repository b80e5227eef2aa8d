"""Span corruption: the pretraining objective of T5, on plain text."""

from collections.abc import Sequence

import torch

from glassformer.config import DecodeConfig
from glassformer.data.pairs import PairBatch, make_batch
from glassformer.data.ragged import Row
from glassformer.metrics import Score
from glassformer.objectives.denoise import corrupt_spans, noise_counts, span_mask
from glassformer.tasks.documents import Document, DocumentTask
from glassformer.tasks.translation import TextToTextTask

N_SENTINELS = 100
N_VALIDATION_ROWS = 200
"""Approximate number of rows of the dev set used in validation: every k-th row, this number to twice as many."""


class CorruptedBatch(PairBatch):
    """Sources without their spans, and the spans as targets."""

    __slots__ = ()

    def pad_to(self, n_rows: int, length: int, pad_id: int) -> "CorruptedBatch":
        n = max(2, length - 1)  # without the end token
        n_noise, n_spans = noise_counts(n)
        return self.pad_sides(n_rows, n - n_noise + n_spans + 1, n_noise + n_spans + 1, pad_id)


class SpanCorruption(DocumentTask[PairBatch], TextToTextTask[Document]):
    """Predicts the removed spans of a text: `Thank <extra_id_0> the <extra_id_1>` -> `<extra_id_0> you for <extra_id_1>
    party`. No sentinel follows the last span.

    For pretraining: other tasks start from the model with --init-from.

    Source: Raffel et al. 2019, section 3.1.4.
    """

    name = "span-corruption"
    metric = "loss"
    can_pack = False
    extra_special_tokens = tuple(f"<extra_id_{i}>" for i in range(N_SENTINELS))

    @classmethod
    def families(cls) -> tuple[str, ...]:
        return "t5", "transformer"

    def encode(self, examples: Sequence[Document]) -> tuple[list[Row], list[Document]]:
        size = self.model.config.max_len - 1
        rows: list[Row] = []
        for ids in self.tokenizer.encode_batch([e.text for e in examples]):
            rows += [(ids[i : i + size],) for i in range(0, len(ids), size)]
        return [row for row in rows if len(row[0]) > 1], []

    def batch(self, rows: Sequence[Row]) -> PairBatch:
        t = self.tokenizer
        sentinels = torch.tensor([t.special_id(token) for token in self.extra_special_tokens])
        corrupted = []
        for (ids,) in rows:
            src, tgt = corrupt_spans(torch.tensor(ids), span_mask(len(ids)), sentinels)
            corrupted.append((src.tolist(), tgt.tolist()))
        batch = make_batch(corrupted, pad_id=t.pad_id, bos_id=t.bos_id, eos_id=t.eos_id)
        return CorruptedBatch(batch.n_targets, **batch.tensors())

    def validate(self, examples: Sequence[Document]) -> dict[str, float]:
        """Loss per target token in nats. All validations mask the same spans."""
        rows, _ = self.encode(examples)
        rows = rows[:: max(1, len(rows) // N_VALIDATION_ROWS)]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            batches = [self.batch(rows[start : start + 16]) for start in range(0, len(rows), 16)]

        @torch.inference_mode()
        def losses(part: list[PairBatch]) -> list[float]:
            return [float(self.loss(batch.to(self.device))) for batch in part]

        return {"loss": sum(self.map_parts(losses, batches)) / sum(batch.n_targets for batch in batches)}

    def evaluate(
        self, examples: Sequence[Document], options: DecodeConfig | None = None
    ) -> tuple[list[str], list[Score]]:
        return [], [Score("loss", self.validate(examples)["loss"], "nats:token")]
