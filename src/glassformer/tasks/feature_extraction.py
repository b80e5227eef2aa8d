"""Feature extraction: sentence embeddings by an encoder without a head."""

import json
from collections.abc import Sequence

import numpy as np
from numpy import ndarray

from glassformer.decode_config import DecodeConfig
from glassformer.shapes import Float
from glassformer.tasks.base import CorpusExample
from glassformer.tasks.encoder import EncoderTask, Texts, text_of_line
from glassformer.tasks.texts import Warn, check_texts, python_warning


class SentenceEmbedder(EncoderTask[CorpusExample]):
    """Computes an embedding of each text: the mean of the encoder outputs of its tokens, normalized to length 1."""

    name = "feature-extraction"
    pipelines = ("feature-extraction", "sentence-similarity")
    head_config = {"head": "none"}

    def __call__(self, texts: Texts, warn: Warn = python_warning) -> Float[ndarray, "texts d_model"]:
        """Embeddings of length 1, so that their dot products are cosine similarities."""
        rows = self.encode_truncated(check_texts(self, texts, pairs=True), warn)
        vectors = np.empty((len(rows), self.config.d_model), np.float32)
        for indices, hidden in self.hidden(rows):
            means = np.stack([states.mean(0) for states in hidden])
            vectors[indices] = means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
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
        vectors = self([text_of_line(line) for line in lines], warn).tolist()
        return [
            json.dumps([round(x, 6) for x in vector]) if line.strip() else ""
            for line, vector in zip(lines, vectors, strict=True)
        ]
