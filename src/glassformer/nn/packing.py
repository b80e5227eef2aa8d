"""Packed sequences: laid end to end in one row, without padding."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

MAX_LENGTH = 128
"""Number of positions of the longest sequence that the kernels for packed sequences take."""

HEAD_SIZES = (16, 32, 64, 128)
"""Head sizes (d_head) that these kernels take."""

Spans = Int[Tensor, "2 sequences"]
"""Start and length of each sequence in a row. In the order of their positions; together they cover the row."""


class Packing(NamedTuple):
    """Which packed sequences attend to which. Attention takes it in place of a mask.

    Sequence i of the queries attends to sequence i of the keys. Sequences are sorted by the largest of their lengths on
    all sides of a batch, the longest first, and all sides have the same number of positions.
    """

    queries: Spans
    keys: Spans

    def mask(self, n_queries: int, n_keys: int) -> Bool[Tensor, "1 1 queries keys"]:
        """The same as a mask, True where a query may attend. Queries without keys attend to all: they are padding."""
        same = sequence_ids(self.queries, n_queries)[:, None] == sequence_ids(self.keys, n_keys)
        return (same | ~same.any(-1, keepdim=True))[None, None]


def sequence_ids(spans: Spans, n_positions: int) -> Int[Tensor, " positions"]:
    """Index of the sequence at each position."""
    positions = torch.arange(n_positions, dtype=spans.dtype, device=spans.device)
    return torch.searchsorted(spans[0], positions, right=True) - 1


def packed_position_ids(spans: Spans, n_positions: int) -> Int[Tensor, " positions"]:
    """Position of each token within its sequence, counted from 0."""
    return torch.arange(n_positions, device=spans.device) - spans[0][sequence_ids(spans, n_positions)]
