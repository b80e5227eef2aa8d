"""Vectors of words, learned from the words around them; they can begin any model's embedding table."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from glassformer.data.batch import Batch
from glassformer.data.dataset import IDS, Dataset, Row
from glassformer.errors import UserError
from glassformer.metrics import Score
from glassformer.tasks.base import no_op
from glassformer.tasks.causal_lm import Document, LanguageModel
from glassformer.tokens.tokenizer import Tokenizer

WINDOW = 5
"""Words looked at on either side, at most; each time as many as a draw from 1 to WINDOW says."""
N_NEGATIVES = 5
"""Words that do not stand beside, drawn for each that does."""
SUBSAMPLING_THRESHOLD = 1e-3
"""A word more frequent than this is left out now and then: with probability 1 - (sqrt(f/t) + 1) t/f, as word2vec."""
MAX_WORDS_PER_EXAMPLE = 200
"""Words of a row; no window reaches beyond."""


@dataclass(frozen=True, slots=True)
class SkipGramBatch(Batch):
    """Words, a word that stood beside each, and words drawn at random."""

    center_ids: Int[Tensor, " pairs"]
    context_ids: Int[Tensor, " pairs"]
    negative_ids: Int[Tensor, "pairs negatives"]


class WordVectors(LanguageModel):
    """A vector for each word.

    Source: Mikolov et al. 2013 (1310.4546): negative sampling from unigram^0.75, sub-sampling of frequent words.
    """

    name = "skip-gram"
    families = ("skipgram",)
    fields = {"ids": IDS}
    default_tokenizer = "word"
    streams = False

    def __init__(
        self, model: Any, tokenizer: Tokenizer, device: torch.device | str = "cpu", labels: Sequence[str] = ()
    ) -> None:
        super().__init__(model, tokenizer, device, labels)
        self.set_counts(np.ones(tokenizer.vocab_size))

    def fit_statistics(self, data: Dataset) -> None:
        """How often each word occurs decides what is left out and what is drawn."""
        self.set_counts(np.bincount(data.fields["ids"].values, minlength=self.tokenizer.vocab_size))

    def set_counts(self, counts: NDArray[Any]) -> None:
        share = np.maximum(counts, 1) / max(1, counts.sum())
        self.keep_probs = np.minimum(1.0, (np.sqrt(share / SUBSAMPLING_THRESHOLD) + 1) * SUBSAMPLING_THRESHOLD / share)
        self.negative_cdf = np.cumsum(counts.astype(np.float64) ** 0.75)
        self.negative_cdf /= self.negative_cdf[-1]

    def encode(self, examples: Sequence[Document]) -> tuple[list[Row], list[Document]]:
        rows: list[Row] = []
        for ids in self.tokenizer.encode_batch([e.text for e in examples]):
            rows += [(ids[i : i + MAX_WORDS_PER_EXAMPLE],) for i in range(0, len(ids), MAX_WORDS_PER_EXAMPLE)]
        return [row for row in rows if len(row[0]) > 1], []

    def batch(self, rows: Sequence[Any]) -> SkipGramBatch:
        return self.pairs([row for (row,) in rows], int(torch.randint(1 << 62, ())))

    def pairs(self, rows: Sequence[Sequence[int]], seed: int) -> SkipGramBatch:
        """Pairs within the windows of some rows, drawn as the seed says."""
        rng = np.random.default_rng(seed)
        center_ids, context_ids = [], []
        for row in rows:
            ids = np.asarray(row)
            ids = ids[rng.random(len(ids)) < self.keep_probs[ids]]
            reach = rng.integers(1, WINDOW + 1, len(ids))
            for distance in range(1, WINDOW + 1):
                if distance < len(ids):
                    left, right = reach[:-distance] >= distance, reach[distance:] >= distance
                    center_ids += [ids[:-distance][left], ids[distance:][right]]
                    context_ids += [ids[distance:][left], ids[:-distance][right]]
        if not center_ids:  # everything was left out
            center_ids, context_ids = [np.asarray(rows[0][:1])], [np.asarray(rows[0][1:2])]
        center = torch.from_numpy(np.concatenate(center_ids).astype(np.int64))
        negative_ids = np.searchsorted(self.negative_cdf, rng.random((len(center), N_NEGATIVES)), side="right")
        return SkipGramBatch(
            n_targets=len(center),
            center_ids=center,
            context_ids=torch.from_numpy(np.concatenate(context_ids).astype(np.int64)),
            negative_ids=torch.from_numpy(negative_ids.clip(max=len(self.negative_cdf) - 1)),
        )

    def loss(self, batch: Any, *, label_smoothing: float = 0.0) -> Tensor:
        return self.model(batch.center_ids, batch.context_ids, batch.negative_ids)  # type: ignore[no-any-return]

    def validate(self, examples: Sequence[Document]) -> dict[str, float]:
        rows, _ = self.encode(examples)
        batch = self.pairs([row for (row,) in rows[:200]], seed=0).to(self.device)  # type: ignore[misc]
        with torch.inference_mode():
            return {"loss": float(self.loss(batch)) / batch.n_targets}

    def scores(self, examples: Sequence[Document], options: Any = None) -> tuple[list[str], list[Score]]:
        return [], [Score("loss", self.validate(examples)["loss"], "nats:pair")]

    def __call__(self, text: str) -> Float[Tensor, " d_model"]:  # type: ignore[override]
        """The vector of a word; of several words their mean."""
        if not isinstance(text, str):
            raise TypeError(f"WordVectors(…) takes a text (str); got {type(text).__name__}.")
        ids = self.tokenizer.encode(text)
        if not ids:
            raise UserError(f"{text!r}: no word in it.")
        return self.model.embedding.weight[ids].mean(0).detach().cpu()

    def run(self, lines: Sequence[str], options: Any = None, *, warn: Callable[[int, str], None] = no_op) -> list[str]:
        """A JSON list of numbers a line: the mean of its words' vectors."""
        return [
            json.dumps([round(x, 6) for x in self(line).tolist()]) if self.tokenizer.encode(line) else ""
            for line in lines
        ]
