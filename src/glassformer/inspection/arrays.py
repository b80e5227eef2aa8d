"""Arrays as JSON holds them: 16-bit steps between their least and largest value, in base 64."""

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[np.float32]


def pack(x: Array) -> dict[str, Any]:
    """An array as JSON holds it."""
    low, high = (float(x.min()), float(x.max())) if x.size else (0.0, 0.0)
    steps = np.round((x - low) / ((high - low) or 1.0) * 65535).astype("<u2")
    return {"shape": x.shape, "low": low, "high": high, "data": base64.b64encode(steps.tobytes()).decode()}


def unpack(record: dict[str, Any]) -> Array:
    """The array that `pack` packed, to a 65,535th of its range."""
    steps = np.frombuffer(base64.b64decode(record["data"]), "<u2").reshape(record["shape"])
    return (record["low"] + steps * (record["high"] - record["low"]) / 65535).astype(np.float32)


def packed(arrays: dict[str, Array]) -> dict[str, Any]:
    """Several arrays as JSON holds them."""
    return {name: pack(x) for name, x in arrays.items()}


def array(x: Tensor) -> Array:
    """A tensor's numbers."""
    return x.detach().float().cpu().numpy()
