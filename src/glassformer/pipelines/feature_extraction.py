"""feature-extraction: hidden states of tokens, from an encoder or a decoder-only model."""

import torch
from pydantic import Field

from glassformer.config import Config
from glassformer.pipelines.base import Options, Output, Pipeline, warn_truncated
from glassformer.pipelines.source import Source
from glassformer.pipelines.tokenizer_adapter import encode_batches


class TokenizeOptions(Config):
    """Arguments of tokenization."""

    truncation: bool | str | None = None
    padding: bool | str | None = None
    max_length: int | None = Field(default=None, ge=3)
    """Maximum number of tokens, including special tokens."""


class FeatureExtractionOptions(Options):
    """Arguments of feature-extraction."""

    max_length: int | None = Field(default=None, ge=3)
    tokenize_kwargs: TokenizeOptions = TokenizeOptions()
    return_tensors: bool | str | None = None
    """Return tensors instead of lists."""


class FeatureExtraction(Pipeline[FeatureExtractionOptions]):
    """Output of the last layer for each token, including special tokens: nested lists of shape [1, tokens, d_model]."""

    options_type = FeatureExtractionOptions

    @classmethod
    def supports(cls, source: Source, name: str) -> bool:
        return source.task.model.kind in ("encoder", "decoder")

    def run(self, inputs: list[object], options: FeatureExtractionOptions) -> list[Output]:
        tokenize = options.tokenize_kwargs
        max_length = options.max_length or tokenize.max_length
        truncates = options.truncates or bool(tokenize.truncation)
        limit = self.tokenizer.limit(truncates=truncates, max_length=max_length)
        encoded_texts = []
        for text in inputs:
            window, *overflow = self.tokenizer.encode_windows(self.text(text), max_length=limit)
            if overflow and not truncates and not max_length:
                warn_truncated(limit, "end")
            encoded_texts.append((window.ids, window.token_type_ids))
        results: list[torch.Tensor] = [torch.empty(0)] * len(encoded_texts)
        for indices, hidden, _ in encode_batches(self.model, encoded_texts):
            for i, vectors in zip(indices, hidden.float().cpu(), strict=True):
                results[i] = vectors[None, : len(encoded_texts[i][0])].clone()
        return list(results) if options.return_tensors else [vectors.tolist() for vectors in results]
