"""Objective of token classification."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch.nn.functional as F
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from glassformer.corpora.tagged import Tagged
from glassformer.data.batch import Batch, pad
from glassformer.data.dataset import IDS, INTS, Dataset
from glassformer.data.ragged import Row
from glassformer.learning.base import Objective
from glassformer.metrics.spans import are_span_tags, entity_f1, tag_accuracy
from glassformer.tasks.tagging import Tagger

IGNORED_TAG = -100
"""Target of positions without a tag: special tokens, padding, and all subwords of a word but the first."""


@dataclass(frozen=True, slots=True)
class TagBatch(Batch):
    """Padded sentences, with the tag of each word at its first subword and IGNORED_TAG elsewhere."""

    ids: Int[Tensor, "batch length"]
    tags: Int[Tensor, "batch length"]


class TaggingObjective(Objective[Tagged, TagBatch]):
    """Cross-entropy of the tag of each word.

    Source: Devlin et al. 2018, section 5.3.
    """

    task_type = Tagger
    task: Tagger
    targets_name = "words"
    fields = {"ids": IDS, "starts": INTS, "tags": INTS}
    metric = "score"
    encodes_words = True

    @classmethod
    def labels_in(cls, example: Tagged) -> Iterable[str]:
        return example.tags

    def encode(self, examples: Sequence[Tagged]) -> tuple[list[Row], list[Tagged]]:
        tag_ids = {tag: i for i, tag in enumerate(self.labels)}
        rows: list[Row] = []
        for example in examples:
            subwords = self.task.subword_ids(example.words)
            for start, end in self.task.word_windows(subwords):
                ids = [subword for word in subwords[start:end] for subword in word]
                starts = np.cumsum([0, *map(len, subwords[start:end])])[:-1].tolist()
                rows.append((ids, starts, [tag_ids[tag] for tag in example.tags[start:end]]))
        return rows, []

    def lengths(self, data: Dataset) -> NDArray[np.int64]:
        return data.fields["ids"].lengths + 2

    def batch(self, rows: Sequence[Row]) -> TagBatch:
        sentences, tags = [], []
        for ids, starts, tag_ids in rows:
            sentences.append(self.task.add_special_tokens(ids, [])[0])
            targets = [IGNORED_TAG] * len(sentences[-1])
            for start, tag_id in zip(starts, tag_ids, strict=True):
                targets[start + 1] = tag_id
            tags.append(targets)
        return TagBatch(
            n_targets=sum(len(tag_ids) for _, _, tag_ids in rows),
            ids=pad(sentences, self.tokenizer.pad_id),
            tags=pad(tags, IGNORED_TAG),
        )

    def loss(self, batch: TagBatch, *, label_smoothing: float = 0.0) -> Tensor:
        logits = self.model.label_logits(self.model(batch.ids), batch.ids).float()
        return F.cross_entropy(
            logits.flatten(0, 1), batch.tags.flatten(), reduction="sum", ignore_index=IGNORED_TAG,
            label_smoothing=label_smoothing,
        )  # fmt: skip

    def validate(self, examples: Sequence[Tagged]) -> dict[str, float]:
        """Metrics on dev examples. `score` is the entity F1 if the tags mark spans, else the accuracy."""
        tag_ids = {tag: i for i, tag in enumerate(self.labels)}

        def results(part: list[Tagged]) -> list[tuple[list[int], float]]:
            """Predicted labels and log-probability of the reference, of each sentence."""
            rows = self.task.log_probs([example.words for example in part])
            references = [[tag_ids[tag] for tag in example.tags] for example in part]
            return [
                (row.argmax(-1).tolist(), float(row[range(len(ids)), ids].sum()))
                for row, ids in zip(rows, references, strict=True)
            ]

        of_sentences = self.map_parts(results, examples)
        predicted = [[self.labels[i] for i in ids] for ids, _ in of_sentences]
        expected = [list(example.tags) for example in examples]
        n_words = sum(map(len, expected))
        loss = -sum(log_prob for _, log_prob in of_sentences)
        has_spans = are_span_tags([tag for tags in expected for tag in tags])
        accuracy = tag_accuracy(predicted, expected)
        return {
            "score": entity_f1(predicted, expected) if has_spans else accuracy,
            "accuracy": accuracy,
            "loss": loss / n_words,
        }
