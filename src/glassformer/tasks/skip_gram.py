"""Word vectors: skip-gram with negative sampling. `--embeddings` initializes other models with them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from glassformer.config import DecodeConfig
from glassformer.data.batch import Batch
from glassformer.data.dataset import Dataset
from glassformer.data.ragged import Row
from glassformer.errors import UserError
from glassformer.metrics import Score
from glassformer.models.base import Model
from glassformer.models.skipgram import SkipGram
from glassformer.tasks.documents import Document, DocumentTask
from glassformer.tasks.texts import Warn, no_op
from glassformer.tokens.tokenizer import Tokenizer

WINDOW = 5
"""Maximum window size in words on each side; the size at each position is sampled uniformly from 1 to WINDOW."""
N_NEGATIVES = 5
"""Negative samples per pair."""
SUBSAMPLING_THRESHOLD = 1e-3
"""Threshold t of subsampling: a word of frequency f > t is dropped with probability 1 - (sqrt(f/t) + 1) t/f, as in
word2vec."""
MAX_WORDS_PER_ROW = 200
"""Texts are split into rows of at most this many words; windows do not cross rows."""


@dataclass(frozen=True, slots=True)
class SkipGramBatch(Batch):
    """Center words, a context word of each, and negative samples."""

    center_ids: Int[Tensor, " pairs"]
    context_ids: Int[Tensor, " pairs"]
    negative_ids: Int[Tensor, "pairs negatives"]


class WordVectors(DocumentTask[SkipGramBatch]):
    """Skip-gram word vectors.

    Source: Mikolov et al. 2013 (1310.4546): negative sampling from unigram^0.75, subsampling of frequent words.
    """

    name = "skip-gram"
    kind = "word-vectors"
    metric = "loss"
    add_prefix_space = False
    default_tokenizer = "word"
    model: SkipGram

    def __init__(
        self, model: Model, tokenizer: Tokenizer, device: torch.device | str = "cpu", labels: Sequence[str] = ()
    ) -> None:
        super().__init__(model, tokenizer, device, labels)
        self.set_counts(np.ones(tokenizer.vocab_size))

    def fit_statistics(self, data: Dataset) -> None:
        """Set the distributions of subsampling and negative sampling from the word counts of the training set."""
        self.set_counts(np.bincount(data.fields["ids"].values, minlength=self.tokenizer.vocab_size))

    def set_counts(self, counts: NDArray[np.int64] | NDArray[np.float64]) -> None:
        """Compute `keep_probs` (subsampling) and `negative_cdf` (negative sampling) from word counts."""
        frequency = np.maximum(counts, 1) / max(1, counts.sum())
        self.keep_probs = np.minimum(
            1.0, (np.sqrt(frequency / SUBSAMPLING_THRESHOLD) + 1) * SUBSAMPLING_THRESHOLD / frequency
        )
        self.negative_cdf = np.cumsum(counts.astype(np.float64) ** 0.75)
        self.negative_cdf /= self.negative_cdf[-1]

    def encode(self, examples: Sequence[Document]) -> tuple[list[Row], list[Document]]:
        rows: list[Row] = []
        for ids in self.tokenizer.encode_batch([e.text for e in examples]):
            rows += [(ids[i : i + MAX_WORDS_PER_ROW],) for i in range(0, len(ids), MAX_WORDS_PER_ROW)]
        return [row for row in rows if len(row[0]) > 1], []

    def lengths(self, data: Dataset) -> NDArray[np.int64]:
        return data.fields["ids"].lengths.clip(max=self.model.config.max_len + 1)

    def n_tokens(self, data: Dataset) -> list[int]:
        return [int(self.lengths(data).sum())]

    def batch(self, rows: Sequence[Row]) -> SkipGramBatch:
        return self.sample_pairs([row for (row,) in rows], int(torch.randint(1 << 62, ())))

    def sample_pairs(self, rows: Sequence[Sequence[int]], seed: int) -> SkipGramBatch:
        """Sample (center, context) pairs and negative samples from rows of token ids."""
        rng = np.random.default_rng(seed)
        center_ids, context_ids = [], []
        for row in rows:
            ids = np.asarray(row)
            ids = ids[rng.random(len(ids)) < self.keep_probs[ids]]
            window_sizes = rng.integers(1, WINDOW + 1, len(ids))
            for distance in range(1, WINDOW + 1):
                if distance < len(ids):
                    # Pairs of words at this distance. A word is a center if its own window reaches the other.
                    left, right = ids[:-distance], ids[distance:]
                    left_is_center = window_sizes[:-distance] >= distance
                    right_is_center = window_sizes[distance:] >= distance
                    center_ids += [left[left_is_center], right[right_is_center]]
                    context_ids += [right[left_is_center], left[right_is_center]]
        if not center_ids:  # subsampling dropped all words
            center_ids, context_ids = [np.asarray(rows[0][:1])], [np.asarray(rows[0][1:2])]
        center = torch.from_numpy(np.concatenate(center_ids).astype(np.int64))
        negative_ids = np.searchsorted(self.negative_cdf, rng.random((len(center), N_NEGATIVES)), side="right")
        return SkipGramBatch(
            n_targets=len(center),
            center_ids=center,
            context_ids=torch.from_numpy(np.concatenate(context_ids).astype(np.int64)),
            negative_ids=torch.from_numpy(negative_ids.clip(max=len(self.negative_cdf) - 1)),
        )

    def loss(self, batch: SkipGramBatch, *, label_smoothing: float = 0.0) -> Tensor:
        return self.model(batch.center_ids, batch.context_ids, batch.negative_ids)

    def validate(self, examples: Sequence[Document]) -> dict[str, float]:
        rows, _ = self.encode(examples)
        batch = self.sample_pairs([row for (row,) in rows[:200]], seed=0).to(self.device)
        with torch.inference_mode():
            return {"loss": float(self.loss(batch)) / batch.n_targets}

    def evaluate(
        self, examples: Sequence[Document], options: DecodeConfig | None = None
    ) -> tuple[list[str], list[Score]]:
        return [], [Score("loss", self.validate(examples)["loss"], "nats:pair")]

    def __call__(self, text: str) -> Float[Tensor, " d_model"]:
        """Vector of a word; mean of the vectors if the text has several words.

        Raises:
            TypeError: not a text.
            UserError: the text has no words.
        """
        if not isinstance(text, str):
            raise TypeError(f"WordVectors(…) takes a text (str); got {type(text).__name__}.")
        ids = self.tokenizer.encode(text)
        if not ids:
            raise UserError(f"{text!r}: contains no word.")
        return self.model.embedding.weight[ids].mean(0).detach().cpu()

    def run(self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = no_op) -> list[str]:
        """A JSON list of numbers for each line: the mean of the vectors of its words."""
        return [
            json.dumps([round(x, 6) for x in self(line).tolist()]) if self.tokenizer.encode(line) else ""
            for line in lines
        ]
