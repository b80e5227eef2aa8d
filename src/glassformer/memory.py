"""Memory of a device: what is available, and whether an error says that there was too little."""

import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from glassformer import cgroups

OUT_OF_MEMORY = re.compile("out of memory|can't allocate memory|CUBLAS_STATUS_ALLOC_FAILED", re.IGNORECASE)
"""Words of the messages for it. On a CPU, PyTorch's error has no class of its own."""


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or one during whose handling it was raised, is for memory that could not be allocated."""
    torch: Any = sys.modules.get("torch")
    classes = (MemoryError, torch.OutOfMemoryError) if torch else MemoryError
    while error is not None:
        if isinstance(error, classes) or (isinstance(error, RuntimeError) and OUT_OF_MEMORY.search(str(error))):
            return True
        error = error.__context__
    return False


def available_bytes(device: str) -> int | None:
    """Memory that can still be allocated, on a CPU by all processes together. None: unknown.

    Args:
        device: name of a device of PyTorch, such as "cpu" or "cuda:0".
    """
    if device.startswith("cuda"):
        torch: Any = sys.modules["torch"]
        free, _ = torch.cuda.mem_get_info(device)
        return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))
    if device != "cpu":
        return None
    limits = [cgroups.free_bytes()]
    with suppress(OSError, ValueError):
        limits.append(proc_bytes(Path("/proc/meminfo"), "MemAvailable"))
    return min((limit for limit in limits if limit is not None), default=None)


def proc_bytes(path: Path, name: str) -> int:
    """A quantity in kB in a file of /proc, in bytes.

    Raises:
        OSError: the system has no such file.
        ValueError: the file does not have the quantity.
    """
    values = dict(line.split(":", 1) for line in path.read_text().splitlines())
    return int(values.get(name, "").removesuffix("kB")) * 1024
