"""PyTorch models with the interface of the runtime, for devices and models that it does not compute."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from glassformer.data.batch import pad
from glassformer.models.decoding import PAD_TO_MULTIPLE_OF
from glassformer.runtime.graph import ProgramName
from glassformer.runtime.tables import Floats


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
            y = self.model.head(x) if head == "head" else self.model.classifier(self.model.pooled(x))
        return y.float().cpu().numpy()
