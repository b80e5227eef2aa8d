"""feature-extraction: hidden states of tokens, from an encoder or a decoder-only model."""

import numpy as np
from pydantic import Field

from glassformer.config import Config
from glassformer.devices import require_torch
from glassformer.pipelines.base import Options, Output, Pipeline, warn_truncated
from glassformer.pipelines.source import Source
from glassformer.pipelines.tokenizer_adapter import encoder_batches
from glassformer.runtime.graph import Floats


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
        return source.task.kind in ("encoder", "decoder")

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
        results: list[Floats] = [np.empty(0, np.float32)] * len(encoded_texts)
        for indices, hidden in encoder_batches(self.model, encoded_texts):
            for i, states in zip(indices, hidden, strict=True):
                results[i] = states[None]
        if options.return_tensors:
            require_torch("return_tensors")
            import torch

            return [torch.from_numpy(states.copy()) for states in results]
        return [states.tolist() for states in results]
