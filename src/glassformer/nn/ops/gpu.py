"""Where the Triton kernels of this package run, and where they are fast."""

import os
from importlib.util import find_spec

import torch

HAS_TRITON = find_spec("triton") is not None
"""Triton comes with PyTorch where PyTorch supports a GPU, except on Windows."""


def runs_triton(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether the kernels run: on a GPU, or on a CPU by Triton's interpreter, which computes no products in bf16."""
    is_interpreted = os.environ.get("TRITON_INTERPRET") == "1" and dtype == torch.float32
    return HAS_TRITON and (device.type == "cuda" or is_interpreted)


def prefers_triton(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether the kernels are fast: on a GPU, in 16 bits. Triton supports all GPUs on which that is fast."""
    return HAS_TRITON and device.type == "cuda" and dtype in (torch.bfloat16, torch.float16)
