"""Reads arrays from safetensors files, mapped into memory."""

import json
import mmap
from pathlib import Path

import numpy as np

from glassformer.errors import CheckpointError
from glassformer.kernels.program import Array

DTYPES: dict[str, type[np.generic]] = {
    "I8": np.int8, "I32": np.int32, "I64": np.int64, "F16": np.float16, "F32": np.float32, "F64": np.float64,
}  # fmt: skip
"""Name of a type in the file -> type."""

MAX_HEADER_BYTES = 100_000_000  # that of the library safetensors


def read_arrays(path: Path) -> dict[str, Array]:
    """The arrays of a safetensors file. They cannot be written to; the file must not change while they are used.

    Raises:
        CheckpointError: the file is missing, or not in this format.
    """
    try:
        with open(path, "rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return arrays_of(data)
    except OSError as error:
        raise CheckpointError(f"{path}: not readable as safetensors: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{path}: not readable as safetensors: {error}.") from None


def arrays_of(data: mmap.mmap) -> dict[str, Array]:
    """The arrays of the contents of a file: a header in JSON, and then the numbers, without gaps.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: the contents are damaged.
    """
    n_header = int.from_bytes(data[:8], "little")
    start = 8 + n_header
    if not 2 <= n_header <= min(len(data) - 8, MAX_HEADER_BYTES):
        raise ValueError("its header is damaged")
    entries = {name: entry for name, entry in json.loads(data[8:start]).items() if name != "__metadata__"}
    arrays: dict[str, Array] = {}
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: tuple(item[1]["data_offsets"])):
        (first, last), shape, is_bf16 = entry["data_offsets"], entry["shape"], entry["dtype"] == "BF16"
        dtype = np.uint16 if is_bf16 else DTYPES.get(entry["dtype"])
        if dtype is None:
            raise ValueError(f"the type {entry['dtype']} of {name}")
        if not all(type(n) is int and n >= 0 for n in (first, last, *shape)):
            raise ValueError(f"the entry of {name}")
        size = int(np.prod(shape, dtype=object))  # of Python's integers: it cannot overflow
        if first != end or last - first != size * np.dtype(dtype).itemsize or start + last > len(data):
            raise ValueError(f"the entry of {name}")
        array: Array = np.frombuffer(data, dtype, size, start + first).reshape(shape)
        # BF16, which numpy does not have, is the upper half of a float.
        arrays[name] = (array.astype(np.uint32) << 16).view(np.float32) if is_bf16 else array
        end = last
    if start + end != len(data):
        raise ValueError("it has bytes that belong to no array")
    return arrays
