"""Quantization of weight matrices to int8, with one scale per output feature."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from glassformer.kernels.program import PANEL, Array, aligned, padded

EXCLUDED = -1e30
"""Bias of output features that are never selected."""


def quantize_weight(weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Round each row of a matrix to multiples of max|row| / 127. Returns the multiples and the scale of each row."""
    scale = np.maximum(np.abs(weight).max(1), 1e-30) / np.float32(127)
    with np.errstate(invalid="ignore"):  # weights that are not finite have a scale that is not finite
        return np.rint(weight / scale[:, None]).astype(np.int8), scale.astype(np.float32)


def pack(
    quantized: NDArray[np.int8], scale: NDArray[np.float32], bias: NDArray[np.float32] | None, *, fill: float = 0.0
) -> tuple[Array, Array, Array, Array]:
    """The tables of a `PRODUCT`: bytes in panels, scale, bias, and 128 * the sum of each output feature's bytes.

    Args:
        quantized: [outputs, inputs].
        fill: bias of the outputs that are added to fill the last panel.
    """
    n, k = quantized.shape
    rows = padded(n) - n
    bytes_ = np.pad(quantized, ((0, rows), (0, padded(k) - k)))
    panels = bytes_.reshape(-1, PANEL, padded(k) // 4, 4).transpose(0, 2, 1, 3)
    offset = bytes_.sum(1, dtype=np.int32) * 128
    bias = np.zeros(n, np.float32) if bias is None else bias.astype(np.float32)
    return (
        aligned_copy(panels),
        np.pad(scale, (0, rows)),
        np.pad(bias, (0, rows), constant_values=fill),
        offset,
    )


def unpack(panels: Array, n: int, k: int) -> NDArray[np.int8]:
    """The quantized matrix with `n` outputs and `k` inputs from its panels."""
    return panels.transpose(0, 2, 1, 3).reshape(-1, padded(k))[:n, :k].copy()  # type: ignore[return-value]


def select(tables: Sequence[Array | None], ids: NDArray[np.int32]) -> tuple[Array, ...]:
    """The tables of a `PRODUCT` that has only some of the outputs.

    Args:
        ids: the outputs.
    """
    panels, scale, bias, offset = (np.asarray(table) for table in tables)
    index = np.pad(ids, (0, padded(len(ids)) - len(ids)))
    fours = panels.view(np.int32)[index // PANEL, :, index % PANEL]  # [outputs, k / 4, 1]
    bias = bias[index]
    bias[len(ids) :] = EXCLUDED
    fours = fours.reshape(-1, PANEL, fours.shape[1]).transpose(0, 2, 1)
    return aligned_copy(fours).view(np.int8), scale[index], bias, offset[index]


def half_table(table: NDArray[np.floating]) -> Array:
    """The table of a `GATHER`: half precision, with zeros up to a multiple of 16 columns."""
    with np.errstate(over="ignore"):  # too large numbers become infinite
        return aligned_copy(np.pad(table.astype(np.float16), ((0, 0), (0, -table.shape[1] % 16))))


def aligned_copy(array: Array) -> Array:
    """A C-contiguous copy whose memory begins at a multiple of 64 bytes."""
    copy = aligned(array.shape, array.dtype.type)
    copy[:] = array
    return copy
