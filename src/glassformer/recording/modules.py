"""PyTorch models with the interface of the runtime, for devices and models that it does not compute."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from glassformer.data.batch import pad
from glassformer.generate.batches import batches_by_length
from glassformer.generate.protocol import PAD_TO_MULTIPLE_OF
from glassformer.models.decoding import TorchDecoder
from glassformer.runtime.graph import Floats, ProgramName

BATCH_TOKENS = 2048
"""Maximum number of tokens that are scored together, including padding, or one text."""


class TorchEncoder:
    """An encoder of PyTorch, on any device, with the methods of `runtime.encoder.RuntimeEncoder`."""

    def __init__(self, model: Any) -> None:
        self.model, self.config = model, model.config

    def __call__(self, texts: Sequence[Sequence[int]], token_types: Sequence[Sequence[int]]) -> list[Floats]:
        """As `RuntimeEncoder`."""
        weight = self.model.embedding.weight
        ids = pad(texts, self.config.pad_id, PAD_TO_MULTIPLE_OF).to(weight.device)
        with torch.inference_mode():
            hidden = self.model(ids, pad(token_types, 0, PAD_TO_MULTIPLE_OF).to(weight.device)).float().cpu().numpy()
        return [states[: len(text)] for states, text in zip(hidden, texts, strict=True)]

    def outputs(self, features: Floats, head: ProgramName = "head") -> Floats:
        """As `RuntimeEncoder`."""
        weight = self.model.embedding.weight
        x = torch.from_numpy(np.ascontiguousarray(features)).to(weight.device, weight.dtype)
        with torch.inference_mode():
            y = self.model.head(x) if head == "head" else self.model.next_head(x)
        return y.float().cpu().numpy()


def hidden_states(model: Any, texts: Sequence[Sequence[int]]) -> list[Floats]:
    """Output of the last layer of a decoder for texts of about equal length: [tokens, d_model] of each."""
    ids = pad(texts, model.config.pad_id).to(next(model.parameters()).device)
    with torch.inference_mode():
        hidden = model(ids).float().cpu().numpy()
    return [states[: len(text)] for states, text in zip(hidden, texts, strict=True)]


class TorchGenerator(TorchDecoder):
    """A model of PyTorch that generates text, on any device, with the methods of `runtime.model.RuntimeModel`."""

    def score(
        self,
        inputs: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        sources: Sequence[Sequence[int]] = (),
        source_of: Sequence[int] = (),
    ) -> list[list[float]]:
        """As `RuntimeModel`."""
        model: Any = self.model
        rows = [([*sources[i]] if sources else []) for i in source_of] or [[] for _ in inputs]
        results: list[list[float]] = [[] for _ in inputs]
        lengths = [max(len(row), len(ids)) for row, ids in zip(rows, inputs, strict=True)]
        for indices in batches_by_length(lengths, BATCH_TOKENS):
            src, ids, chosen = (
                pad([texts[i] for i in indices], self.config.pad_id).to(self.device)
                for texts in (rows, inputs, targets)
            )
            with torch.inference_mode():
                hidden = model(src, ids) if sources else model(ids)
                log_probs = model.logits(hidden).float().log_softmax(-1).gather(-1, chosen[..., None])[..., 0]
            for i, values in zip(indices, log_probs.tolist(), strict=True):
                results[i] = values[: len(targets[i])]
        return results


def with_interface(model: Any) -> Any:
    """A model with the interface of the runtime: modules of PyTorch in a class, others as they are."""
    if not isinstance(model, nn.Module):
        return model
    return TorchEncoder(model) if model.kind == "encoder" else TorchGenerator(model)  # type: ignore[arg-type]
