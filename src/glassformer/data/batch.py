"""Base class of training batches, and padding."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from glassformer.data.ragged import Ragged

BatchT = TypeVar("BatchT", bound="Batch")

POSITION_STEPS = 8
"""`Batch.pad_to` rounds the number of targets up to a multiple of 1 / POSITION_STEPS of all positions."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Base class of training batches: padded tensors."""

    n_targets: int | float
    """Divisor of the summed loss: number of target tokens, sum of their weights, or number of labels."""

    def to(self: BatchT, device: torch.device) -> BatchT:
        # A copy to a GPU is asynchronous only from pinned memory; else the CPU waits for all earlier work of the GPU.
        pinned = device.type == "cuda"
        moved: dict[str, Any] = {
            name: (value.pin_memory() if pinned else value).to(device, non_blocking=pinned)
            for name, value in self.tensors().items()
        }
        return replace(self, **moved)

    def tensors(self) -> dict[str, Tensor]:
        """All tensors of the batch by field name."""
        return {f.name: value for f in fields(self) if isinstance(value := getattr(self, f.name), Tensor)}

    def pad_to(self: BatchT, n_rows: int, length: int, pad_id: int) -> BatchT:
        """The batch with padding up to a fixed shape and the same loss, for objectives with `static_shapes`.

        Args:
            length: length of the longest row as in `Objective.lengths`.
        """
        raise NotImplementedError


def pad(sequences: Sequence[Sequence[int]], pad_id: int, pad_to_multiple_of: int = 1) -> Int[Tensor, "rows length"]:
    """Pad sequences at the end to the maximum length, rounded up to a multiple of `pad_to_multiple_of`."""
    ids = Ragged.of(sequences)
    length = -(-int(ids.lengths.max()) // pad_to_multiple_of) * pad_to_multiple_of
    padded = np.full((len(sequences), length), pad_id, dtype=np.int64)
    padded[np.arange(length) < ids.lengths[:, None]] = ids.values
    return torch.from_numpy(padded)


def extend(x: Shaped[Tensor, "rows length"], n_rows: int, length: int, value: int) -> Shaped[Tensor, "rows2 length2"]:
    """Add columns of `value`, then copies of the first row: a row of padding only has no token to attend to."""
    x = F.pad(x, (0, length - x.size(1)), value=value)
    return torch.cat([x, x[:1].expand(n_rows - len(x), -1)])


def extend_positions(
    positions: Int[Tensor, " targets"], old_length: int, extended: Shaped[Tensor, "rows length"], filler: int = 0
) -> Int[Tensor, " targets2"]:
    """Indices of targets after `extend`, with `filler` appended to round up their number."""
    n, length = len(positions), extended.size(1)
    multiple = max(1, extended.numel() // POSITION_STEPS)
    positions = positions // old_length * length + positions % old_length
    return F.pad(positions, (0, min(-n % multiple, extended.numel() - n)), value=filler)


def flat_positions(mask: Bool[Tensor, "rows length"]) -> Int[Tensor, " positions"]:
    """Indices where a mask is True, in the flattened mask."""
    return mask.flatten().nonzero()[:, 0]
