"""Feature extraction: sentence embeddings by an encoder without a head."""

import json
from collections.abc import Sequence

import numpy as np
from numpy import ndarray

from glassformer.decode_config import DecodeConfig
from glassformer.errors import ConfigError
from glassformer.shapes import Float
from glassformer.tasks.base import CorpusExample, stored_number
from glassformer.tasks.encoder import EncoderTask, Texts
from glassformer.tasks.texts import Warn, check_texts, python_warning


class SentenceEmbedder(EncoderTask[CorpusExample]):
    """Computes an embedding of each text: the mean of the encoder outputs of its tokens, or that of the first token,
    normalized to length 1."""

    name = "feature-extraction"
    pipelines = ("feature-extraction", "sentence-similarity")
    head_config = {"head": "none"}
    stored_attributes = ("sentence_pooling", "sentence_max_len")
    sentence_pooling: tuple[str, ...] = ()
    """What follows the encoder according to the files of sentence-transformers: "mean", "cls" (the first token), or
    others, which are not supported. Empty: "mean"."""
    sentence_max_len: tuple[str, ...] = ()
    """Maximum number of tokens of a text according to these files. Empty: that of the model."""

    @property
    def max_len(self) -> int:
        return min(super().max_len, stored_number(self.sentence_max_len) or super().max_len)

    @property
    def takes_first(self) -> bool:
        """Whether the encoder output of the first token is the embedding, and not the mean.

        Raises:
            ConfigError: the model needs a computation that is not supported.
        """
        if others := sorted({*self.sentence_pooling} - {"mean", "cls"}):
            raise ConfigError(
                f"the embeddings of this model need {', '.join(others)} (modules.json), which is not supported.\n"
                "  Use a model with pooling by the mean or by the first token, without dense layers after it."
            )
        return "cls" in self.sentence_pooling

    def __call__(self, texts: Texts, warn: Warn = python_warning) -> Float[ndarray, "texts d_model"]:
        """Embeddings of length 1, so that their dot products are cosine similarities."""
        rows = self.encode_truncated(check_texts(self, texts, pairs=True), warn)
        vectors = np.empty((len(rows), self.config.d_model), np.float32)
        for indices, hidden in self.hidden(rows):
            pooled = self.pooled(hidden)
            vectors[indices] = pooled / np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), 1e-12)
        return vectors

    def embed(self, texts: Texts) -> Float[ndarray, "texts d_model"]:
        """The same as calling the task: a vector of length 1 for each text."""
        return self(texts)

    def similarities(self, pairs: Sequence[tuple[str, str]], warn: Warn = python_warning) -> list[float]:
        """Cosine similarity of the embeddings of both texts of each pair, between -1 and 1."""
        both = self([text for pair in pairs for text in pair], lambda i, what: warn(i // 2, what))
        return (both[0::2] * both[1::2]).sum(-1).tolist()

    def run(
        self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = python_warning
    ) -> list[str]:
        """A JSON list of numbers for each line."""
        vectors = self(list(lines), warn).tolist()
        return [
            json.dumps([round(x, 6) for x in vector]) if line.strip() else ""
            for line, vector in zip(lines, vectors, strict=True)
        ]
