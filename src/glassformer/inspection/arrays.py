"""JSON encoding of arrays: base64 of 16-bit integers scaled linearly between the minimum and the maximum."""

import base64

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from glassformer.config import JsonObject

Array = NDArray[np.float32]


def pack(x: Array | NDArray[np.float64]) -> JsonObject:
    """Encode an array as a JSON object."""
    low, high = (float(x.min()), float(x.max())) if x.size else (0.0, 0.0)
    steps = np.round((x - low) / ((high - low) or 1.0) * 65535).astype("<u2")
    return {"shape": x.shape, "low": low, "high": high, "data": base64.b64encode(steps.tobytes()).decode()}


def unpack(record: JsonObject) -> Array:
    """Decode an array encoded by `pack`. The error is at most 1/65535 of the value range."""
    steps = np.frombuffer(base64.b64decode(record["data"]), "<u2").reshape(record["shape"])
    return (record["low"] + steps * (record["high"] - record["low"]) / 65535).astype(np.float32)


def pack_all(arrays: dict[str, Array]) -> JsonObject:
    """Encode each array of a dictionary."""
    return {name: pack(x) for name, x in arrays.items()}


def array(x: Tensor) -> Array:
    """Convert a tensor to a float32 NumPy array."""
    return x.detach().float().cpu().numpy()
