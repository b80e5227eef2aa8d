"""Whether a tensor can be processed by the Triton kernels of this package."""

from importlib.util import find_spec

import torch
from torch import Tensor

HAS_TRITON = find_spec("triton") is not None
"""Triton comes with PyTorch where PyTorch supports a GPU, except on Windows."""

HALF_PRECISION = (torch.bfloat16, torch.float16)


def has_kernels(x: Tensor, dtypes: tuple[torch.dtype, ...] = HALF_PRECISION) -> bool:
    """Whether a tensor is on a GPU that Triton supports and has one of these data types."""
    return x.is_cuda and HAS_TRITON and x.dtype in dtypes
