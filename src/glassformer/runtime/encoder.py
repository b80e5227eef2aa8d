"""Encoders without torch: all texts of a batch as rows, without padding."""

import threading
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from glassformer.kernels.library import Kernels
from glassformer.kernels.program import Array
from glassformer.model_config import ModelConfig
from glassformer.runtime.graph import Floats, Graph, ProgramName, Weights, array_of
from glassformer.runtime.model import check_sizes
from glassformer.runtime.program import Program
from glassformer.runtime.slots import SlotCaches
from glassformer.runtime.state import text_batch
from glassformer.runtime.tables import Tables
from glassformer.runtime.verify import HEADS, n_entries, n_positions


class RuntimeEncoder:
    """An encoder as programs of kernels. Arguments: as of `RuntimeModel`. Its heads are in fp32."""

    def __init__(
        self,
        graph: Graph,
        config: ModelConfig,
        kernels: Kernels | None,
        weights: Weights,
        stored: dict[str, Array] | None = None,
        *,
        is_quantized: bool = True,
    ) -> None:
        check_sizes(graph, config)
        self.config, self.n_positions = config, n_positions(graph)
        self.max_type = max(n_entries(graph, "type") - 1, 0)
        self.tables = Tables(lambda table: array_of(table, weights, graph), stored)
        self.program = Program(graph.programs["encode"], [], kernels, self.tables, is_quantized=is_quantized)
        floats = Tables(self.tables.array)
        self.heads = {
            name: Program(graph.programs[name], [], kernels, floats, is_quantized=False)
            for name in HEADS
            if name in graph.programs
        }
        self.caches = SlotCaches(self.program.cache_widths, self.program.cache_dtype)
        self.lock = threading.Lock()
        """The caches are used by one call at a time."""

    def __call__(self, texts: Sequence[Sequence[int]], token_types: Sequence[Sequence[int]]) -> list[Floats]:
        """Output of the last layer for each token of each text: [length, d_model].

        Args:
            texts: token ids of each text, with special tokens and without padding.
            token_types: token type ids of each text.
        """
        arrays = [np.array(text, np.int32) for text in texts]
        longest, ids = max(map(len, arrays), default=0), np.concatenate(arrays)
        if len(ids) and (ids.min() < 0 or ids.max() >= self.config.vocab_size):
            raise ValueError(f"a token id that is not in the vocabulary of {self.config.vocab_size:,}")
        if self.n_positions is not None and longest > self.n_positions:
            raise ValueError(f"a text of more than {self.n_positions:,} positions")
        types = np.clip(np.concatenate([np.array(row, np.int32) for row in token_types]), 0, self.max_type)
        with self.lock:
            slots = [self.caches.take(len(text)) for text in arrays]
            try:
                batch = replace(text_batch(arrays, slots, is_causal=False), types=types.astype(np.int32))
                hidden = self.program.run(batch, self.caches.arrays)
            finally:
                self.caches.release(slots)
        return np.split(hidden, np.cumsum([len(text) for text in texts])[:-1])

    def outputs(self, features: Floats, head: ProgramName = "head") -> Floats:
        """Outputs of a head for rows of features: [rows, outputs].

        Args:
            features: outputs of the encoder for tokens; for a sequence, that of its first token or the mean.
        """
        return self.heads[head].run_head(features)
