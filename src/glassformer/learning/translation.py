"""Objectives of translation and of other text-to-text tasks with encoder-decoder models."""

from collections.abc import Sequence
from itertools import compress

import numpy as np
from torch import Tensor

from glassformer.corpora.example import Example
from glassformer.corpora.language_id import MAX_SENTENCES
from glassformer.corpora.languages import languages_of
from glassformer.corpora.words import source_scripts
from glassformer.data.dataset import Dataset
from glassformer.data.pairs import PairBatch, make_batch, pack_pairs
from glassformer.data.ragged import Row
from glassformer.decode_config import DecodeConfig
from glassformer.learning.base import Objective
from glassformer.metrics import bleu
from glassformer.objectives.loss import pair_cross_entropy
from glassformer.tasks.base import ExampleT
from glassformer.tasks.translation import TextToTextTask, Translator, evenly_spaced
from glassformer.train_config import TrainConfig


class TextToTextObjective(Objective[ExampleT, PairBatch]):
    """Base class of objectives of text-to-text tasks: cross-entropy of the target tokens."""

    task: TextToTextTask[ExampleT]
    static_shapes = True
    can_pack = True

    def encode(self, examples: Sequence[ExampleT]) -> tuple[list[Row], list[ExampleT]]:
        src, tgt = (self.tokenizer.encode_batch([self.task.texts(e)[side] for e in examples]) for side in (0, 1))
        limit = self.model.config.max_len
        rows: list[Row] = list(zip(src, tgt, strict=True))
        fits = [max(map(len, row)) < limit for row in rows]
        return list(compress(rows, fits)), [e for e, fit in zip(examples, fits, strict=True) if not fit]

    def batch(self, rows: Sequence[Row]) -> PairBatch:
        t = self.tokenizer
        return make_batch(rows, pad_id=t.pad_id, bos_id=t.bos_id, eos_id=t.eos_id)

    def packed_batch(self, rows: Sequence[Row], n_tokens: int, n_sequences: int, longest: int) -> PairBatch:
        t = self.tokenizer
        return pack_pairs(rows, n_tokens, n_sequences, longest, pad_id=t.pad_id, bos_id=t.bos_id, eos_id=t.eos_id)

    def loss(self, batch: PairBatch, *, label_smoothing: float = 0.0) -> Tensor:
        """Label-smoothed cross-entropy, summed over the target tokens of a batch, in nats."""
        return pair_cross_entropy(self.model, batch, label_smoothing=label_smoothing)

    def reference_loss(self, examples: Sequence[ExampleT]) -> float:
        """Mean negative log-probability of the tokens of the references, in nats. See `map_parts`."""

        def sums(pairs: list[Sequence[str]]) -> list[tuple[float, int]]:
            rows = self.task.score([src for src, _ in pairs], [tgt for _, tgt in pairs])
            return [(sum(log_probs), len(log_probs)) for log_probs in rows]

        results = self.map_parts(sums, [self.task.texts(example) for example in examples])
        return -sum(total for total, _ in results) / sum(n for _, n in results)


class TranslationObjective(TextToTextObjective[Example]):
    """Objective of translation."""

    task_type = Translator
    task: Translator
    too_long_advice = "--task summarization truncates long texts, if the targets are summaries"
    metric = "bleu"
    validation_decodes = True

    def configure(self, config: TrainConfig) -> None:
        self.task.languages = languages_of(config.src, config.tgt, config.keys, config.languages)

    def fit_statistics(self, data: Dataset) -> None:
        """Find the scripts of the sources, in addition to those of the model that the training starts from."""
        found = source_scripts(zip(*self.sample(data), strict=True))
        self.task.scripts = tuple(sorted({*self.task.scripts, *found}))

    def sample(self, data: Dataset) -> tuple[list[str], list[str]]:
        """Sources and targets of a training set: `MAX_SENTENCES` evenly spaced ones."""
        rows = data.rows(np.array(evenly_spaced(range(len(data)), MAX_SENTENCES)))
        src, tgt = ([self.tokenizer.decode(list(row[side])) for row in rows] for side in (0, 1))
        return src, tgt

    def validate(self, examples: Sequence[Example], n_decoded: int | None = None) -> dict[str, float]:
        """BLEU of greedy translations, and the mean negative log-probability of the reference tokens in nats.

        Args:
            n_decoded: decode this many of the examples, evenly spaced; the loss is that of all. Default: all.
        """
        decoded = evenly_spaced(examples, n_decoded)
        options = DecodeConfig(beam=1, batch_tokens=4096, precision=self.task.validation_precision)

        def best_translations(sources: list[str]) -> list[str]:
            # Early in training, models often do not generate the end token: limit the time of a validation.
            translations = self.task.translate(sources, options, max_new_tokens=lambda n_tokens: 2 * n_tokens + 10)
            return [nbest[0].text for nbest in translations]

        hypotheses = self.map_parts(best_translations, [example.src for example in decoded])
        return {"bleu": bleu(hypotheses, [example.tgt for example in decoded]), "loss": self.reference_loss(examples)}
