"""Span corruption: the pretraining objective of T5, on plain text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from glassformer.data.ragged import Row
from glassformer.decode_config import DecodeConfig
from glassformer.devices import require_torch
from glassformer.metrics import Score
from glassformer.tasks.documents import Document, DocumentTask
from glassformer.tasks.text_to_text import TextToTextTask

if TYPE_CHECKING:
    from glassformer.data.pairs import PairBatch

SENTINELS = tuple(f"<extra_id_{i}>" for i in range(100))
"""Special tokens, one for each removed span."""
MAX_ROW = 2_009
"""Tokens of a text from which no more spans are removed than there are sentinels."""
N_VALIDATION_ROWS = 200
"""Approximate number of rows of the dev set used in validation: every k-th row, this number to twice as many."""


class SpanCorruption(DocumentTask, TextToTextTask[Document]):
    """Predicts the removed spans of a text: `Thank <extra_id_0> the <extra_id_1>` -> `<extra_id_0> you for <extra_id_1>
    party`. No sentinel follows the last span.

    For pretraining: other tasks start from the model with --init-from.

    Source: Raffel et al. 2019, section 3.1.4.
    """

    name = "span-corruption"

    @classmethod
    def families(cls) -> tuple[str, ...]:
        return "t5", "transformer"

    def rows(self, examples: Sequence[Document]) -> list[Row]:
        size = min(self.config.max_len - 1, MAX_ROW)
        rows: list[Row] = []
        for ids in self.tokenizer.encode_batch([e.text for e in examples]):
            rows += [(ids[i : i + size],) for i in range(0, len(ids), size)]
        return [row for row in rows if len(row[0]) > 1]

    def corrupted_batch(self, rows: Sequence[Row]) -> "PairBatch":
        """Remove random spans of rows, with torch's random state."""
        import torch

        from glassformer.data.pairs import make_batch
        from glassformer.objectives.denoise import CorruptedBatch, corrupt_spans, span_mask

        t = self.tokenizer
        sentinels = torch.tensor([t.special_id(token) for token in SENTINELS])
        corrupted = []
        for (ids,) in rows:
            src, tgt = corrupt_spans(torch.tensor(ids), span_mask(len(ids)), sentinels)
            corrupted.append((src.tolist(), tgt.tolist()))
        batch = make_batch(corrupted, pad_id=t.pad_id, bos_id=t.bos_id, eos_id=t.eos_id)
        return CorruptedBatch(batch.n_targets, **batch.tensors())

    def fixed_batches(self, examples: Sequence[Document]) -> "list[PairBatch]":
        """Batches of a sample of the rows of examples, with the same spans in every call."""
        require_torch(f"The evaluation of {self.name}")
        import torch

        rows = self.rows(examples)
        rows = rows[:: max(1, len(rows) // N_VALIDATION_ROWS)]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            return [self.corrupted_batch(rows[start : start + 16]) for start in range(0, len(rows), 16)]

    def losses(self, batches: "Sequence[PairBatch]") -> list[float]:
        """Summed loss of each batch, in nats."""
        import torch

        from glassformer.objectives.loss import pair_cross_entropy

        with torch.inference_mode():
            return [float(pair_cross_entropy(self.model, batch.to(torch.device(self.device)))) for batch in batches]

    def evaluate(
        self, examples: Sequence[Document], options: DecodeConfig | None = None
    ) -> tuple[list[str], list[Score]]:
        batches = self.fixed_batches(examples)
        loss = sum(self.losses(batches)) / sum(batch.n_targets for batch in batches)
        return [], [Score("loss", loss, "nats:token")]
