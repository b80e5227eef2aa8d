"""Vectors of tokens: what an encoder, or a decoder alone, makes of a text."""

from typing import Any

import torch
from pydantic import Field

from glassformer.config import Config
from glassformer.models.families import family_of
from glassformer.pipelines.base import Options, Pipeline, warn_cut
from glassformer.pipelines.source import Source
from glassformer.pipelines.tokenizer_adapter import encoded


class TokenizeOptions(Config):
    """How a text is read."""

    truncation: bool | str | None = None
    padding: bool | str | None = None
    max_length: int | None = Field(default=None, ge=3)
    """Tokens that are read, special tokens among them."""


class FeatureOptions(Options):
    """Arguments of feature-extraction."""

    max_length: int | None = Field(default=None, ge=3)
    tokenize_kwargs: TokenizeOptions = TokenizeOptions()
    return_tensors: bool | str | None = None
    """Give tensors, not lists."""


class FeatureExtraction(Pipeline):
    """[1, tokens, d_model] numbers of a text as nested lists: the last layer's output, special tokens among it."""

    options_type = FeatureOptions

    @classmethod
    def supports(cls, source: Source) -> bool:
        return family_of(source.task.model) in ("bert", "gpt2")

    def run(self, inputs: list[Any], options: FeatureOptions) -> list[Any]:
        more = options.tokenize_kwargs
        max_length, cuts = options.max_length or more.max_length, options.cuts or bool(more.truncation)
        limit = self.tokenizer.limit(cuts=cuts, max_length=max_length)
        rows = []
        for given in inputs:
            window, *cut = self.tokenizer.read(self.text(given), max_length=limit)
            if cut and not cuts and not max_length:
                warn_cut(limit, "end")
            rows.append((window.ids, window.token_type_ids))
        found: list[torch.Tensor] = [torch.empty(0)] * len(rows)
        for places, hidden, _ in encoded(self.model, rows):
            for place, vectors in zip(places, hidden.float().cpu(), strict=True):
                found[place] = vectors[None, : len(rows[place][0])].clone()
        return list(found) if options.return_tensors else [vectors.tolist() for vectors in found]
