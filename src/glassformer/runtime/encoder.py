"""BERT as a program of int8 kernels: all texts of a batch as rows, without padding."""

import threading
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.kernels.library import Kernels
from glassformer.kernels.program import IDS, TYPES
from glassformer.models.bert import Bert
from glassformer.runtime.decoder import text_batch
from glassformer.runtime.program import Program
from glassformer.runtime.recorder import Index, Node, Recorder
from glassformer.runtime.slots import SlotCaches
from glassformer.runtime.tables import Tables


class CompiledEncoder:
    """The encoder of a BERT model, without its head, in int8.

    Args:
        kernels: the C library. None: PyTorch, with the same quantization.
        tables: the tables of the program. Default: computed from the weights.
        is_quantized: False: fp32, with the model's own weights.

    Raises:
        UnsupportedError: the model uses a function that has no kernel.
    """

    def __init__(
        self, model: Bert, kernels: Kernels | None, tables: Tables | None = None, *, is_quantized: bool = True
    ) -> None:
        self.max_type = max(model.config.n_token_types - 1, 0)
        self.tables = tables or Tables()
        self.program = Program(record_encoder(model), kernels, self.tables, is_quantized=is_quantized)
        self.caches = SlotCaches(self.program.cache_widths, self.program.cache_dtype)
        self.lock = threading.Lock()
        """The caches are used by one call at a time."""

    def __call__(
        self, texts: Sequence[Sequence[int]], token_types: Sequence[Sequence[int]]
    ) -> list[Float[Tensor, "length d_model"]]:
        """Output of the last layer for each token of each text.

        Args:
            texts: token ids of each text, with special tokens and without padding.
            token_types: token type ids of each text.
        """
        arrays = [np.array(text, np.int32) for text in texts]
        types = np.minimum(np.concatenate([np.array(row, np.int32) for row in token_types]), self.max_type)
        with self.lock:
            slots = [self.caches.take(len(text)) for text in arrays]
            batch = replace(text_batch(arrays, slots, is_causal=False), types=types.astype(np.int32))
            hidden = self.program.run(batch, self.caches.arrays)
            self.caches.release(slots)
        return list(hidden.split([len(text) for text in texts]))  # type: ignore[no-untyped-call]


def record_encoder(model: Bert) -> list[Node]:
    """Record the encoder of a BERT model, without its head. All layers use cache 0.

    Raises:
        UnsupportedError: the model uses a function that has no kernel.
    """
    recorder = Recorder(model.config.max_len)
    ids = torch.full((1, 5), next(i for i in range(model.config.vocab_size) if i != model.config.pad_id))
    types = torch.zeros_like(ids)
    recorder.track(ids, Index(IDS))
    recorder.track(types, Index(TYPES))
    with torch.inference_mode(), recorder:
        model(ids, types)
    return recorder.nodes
