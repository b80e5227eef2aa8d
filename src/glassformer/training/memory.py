"""Memory of a training: errors of a device that has too little of it."""

import re

import torch

from glassformer.config import TrainConfig

OUT_OF_MEMORY = re.compile("out of memory|can't allocate memory|CUBLAS_STATUS_ALLOC_FAILED", re.IGNORECASE)
"""Words of the messages for it. On a CPU, PyTorch's error has no class of its own."""


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or one during whose handling it was raised, is for memory that could not be allocated."""
    while error is not None:
        if isinstance(error, torch.OutOfMemoryError) or (
            isinstance(error, RuntimeError) and OUT_OF_MEMORY.search(str(error))
        ):
            return True
        error = error.__context__
    return False


def memory_advice(config: TrainConfig) -> list[str]:
    """The changes of options with which an update needs less memory."""
    advice = ["a shorter --max-len", "a smaller --preset"]
    if config.precision == "fp32":
        advice.insert(0, "--precision bf16")
    if not config.activation_checkpointing:
        advice.insert(0, "--activation-checkpointing")
    return advice
