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
from glassformer.tasks.base import IGNORE
from glassformer.tasks.language import Document, LanguageModel
from glassformer.tokens.tokenizer import Tokenizer

WINDOW = 5
"""Words looked at on either side, at most; each time as many as a draw from 1 to WINDOW says."""
N_OTHERS = 5
"""Words that do not stand beside, drawn for each that does."""
FREQUENT = 1e-3
"""A word more frequent than this is left out now and then: with probability 1 - (sqrt(f/t) + 1) t/f, as word2vec."""
STRETCH = 200
"""Words of a row; no window reaches beyond."""


@dataclass(frozen=True, slots=True)
class SkipGramBatch(Batch):
    """Words, a word that stood beside each, and words drawn at random."""

    words: Int[Tensor, " pairs"]
    beside: Int[Tensor, " pairs"]
    others: Int[Tensor, "pairs negatives"]


class WordVectors(LanguageModel):
    """A vector for each word.

    Source: Mikolov et al. 2013 (1310.4546): negative sampling from unigram^0.75, sub-sampling of frequent words.
    """

    name = "vectors"
    families = ("skipgram",)
    fields = {"ids": IDS}
    usual_tokenizer = "word"

    def __init__(
        self, model: Any, tokenizer: Tokenizer, device: torch.device | str = "cpu", labels: Sequence[str] = ()
    ) -> None:
        super().__init__(model, tokenizer, device, labels)
        self.see_counts(np.ones(tokenizer.vocab_size))

    def see(self, data: Dataset) -> None:
        """How often each word occurs decides what is left out and what is drawn."""
        self.see_counts(np.bincount(data.fields["ids"].values, minlength=self.tokenizer.vocab_size))

    def see_counts(self, counts: NDArray[Any]) -> None:
        share = np.maximum(counts, 1) / max(1, counts.sum())
        self.kept = np.minimum(1.0, (np.sqrt(share / FREQUENT) + 1) * FREQUENT / share)
        self.drawn = np.cumsum(counts.astype(np.float64) ** 0.75)
        self.drawn /= self.drawn[-1]

    def encode(self, examples: Sequence[Document]) -> tuple[list[Row], list[Document]]:
        rows: list[Row] = []
        for ids in self.tokenizer.encode_batch([e.text for e in examples]):
            rows += [(ids[i : i + STRETCH],) for i in range(0, len(ids), STRETCH)]
        return [row for row in rows if len(row[0]) > 1], []

    def batch(self, rows: Sequence[Any]) -> SkipGramBatch:
        return self.pairs([row for (row,) in rows], int(torch.randint(1 << 62, ())))

    def pairs(self, rows: Sequence[Sequence[int]], seed: int) -> SkipGramBatch:
        """Pairs within the windows of some rows, drawn as the seed says."""
        rng = np.random.default_rng(seed)
        words, beside = [], []
        for row in rows:
            ids = np.asarray(row)
            ids = ids[rng.random(len(ids)) < self.kept[ids]]
            reach = rng.integers(1, WINDOW + 1, len(ids))
            for distance in range(1, WINDOW + 1):
                if distance < len(ids):
                    left, right = reach[:-distance] >= distance, reach[distance:] >= distance
                    words += [ids[:-distance][left], ids[distance:][right]]
                    beside += [ids[distance:][left], ids[:-distance][right]]
        if not words:  # everything was left out
            words, beside = [np.asarray(rows[0][:1])], [np.asarray(rows[0][1:2])]
        center = torch.from_numpy(np.concatenate(words).astype(np.int64))
        others = np.searchsorted(self.drawn, rng.random((len(center), N_OTHERS)), side="right")
        return SkipGramBatch(
            n_targets=len(center),
            words=center,
            beside=torch.from_numpy(np.concatenate(beside).astype(np.int64)),
            others=torch.from_numpy(others.clip(max=len(self.drawn) - 1)),
        )

    def loss(self, batch: Any, *, label_smoothing: float = 0.0) -> Tensor:
        return self.model(batch.words, batch.beside, batch.others)  # type: ignore[no-any-return]

    def validate(self, examples: Sequence[Document]) -> dict[str, float]:
        rows, _ = self.encode(examples)
        batch = self.pairs([row for (row,) in rows[:200]], seed=0).to(self.device)  # type: ignore[misc]
        with torch.inference_mode():
            return {"loss": float(self.loss(batch)) / batch.n_targets}

    def scores(self, examples: Sequence[Document], options: Any = None) -> tuple[list[str], list[Score]]:
        return [], [Score("loss", self.validate(examples)["loss"], "nats:pair")]

    def __call__(self, text: str) -> Float[Tensor, " d_model"]:  # type: ignore[override]
        """The vector of a word; of several words their mean."""
        ids = self.tokenizer.encode(text)
        if not ids:
            raise UserError(f"{text!r}: no word in it.")
        return self.model.embedding.weight[ids].mean(0).detach().cpu()

    def run(self, lines: Sequence[str], options: Any = None, *, warn: Callable[[int, str], None] = IGNORE) -> list[str]:
        """A JSON list of numbers a line: the mean of its words' vectors."""
        return [
            json.dumps([round(x, 6) for x in self(line).tolist()]) if self.tokenizer.encode(line) else ""
            for line in lines
        ]
