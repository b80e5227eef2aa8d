"""Whether a tensor can be processed by the Triton kernels of this package."""

from importlib.util import find_spec

import torch
from torch import Tensor

HAS_TRITON = find_spec("triton") is not None
"""Triton comes with PyTorch where PyTorch supports a GPU, except on Windows."""


def has_kernels(x: Tensor) -> bool:
    """Whether a tensor is on a GPU and in 16 bits. Triton supports all GPUs on which that is fast."""
    return x.is_cuda and HAS_TRITON and x.dtype in (torch.bfloat16, torch.float16)
