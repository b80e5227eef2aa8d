"""Calls of the kernels of training (training.h)."""

import ctypes
from ctypes import c_float, c_int32, c_int64, c_uint32, c_void_p

from glassformer.kernels.library import Kernels

ATTENTION, ATTENTION_BACKWARD, RESIDUAL, RESIDUAL_BACKWARD, SOFTMAX, PRODUCT, ROTATION = range(7)
"""The kernels, in the order of `enum TrainingKernel`."""

MAX_PIECES = 3
"""Largest number of matrices whose rows are the second factor of `PRODUCT`."""

MAX_LENGTH = MAX_D_HEAD = 128
"""Largest number of positions and of features per head of `ATTENTION`."""


class Heads(ctypes.Structure):
    """A tensor [batch, heads, length, d_head]: address, and strides in elements."""

    _fields_ = [("data", c_void_p), ("batch", c_int64), ("head", c_int64), ("row", c_int64)]


class AttentionArguments(ctypes.Structure):
    """`AttentionArguments` of training.h."""

    _fields_ = [
        *((name, Heads) for name in ("q", "k", "v", "out", "d_q", "d_k", "d_v")),
        ("mask", c_void_p),
        *((name, c_int64) for name in ("mask_stride", "n_batch", "n_heads", "n_queries", "n_keys", "d_head")),
        ("is_causal", c_int32),
        ("is_bf16", c_int32),
        ("scale", c_float),
    ]


class ResidualArguments(ctypes.Structure):
    """`ResidualArguments` of training.h."""

    _fields_ = [
        *(
            (name, c_void_p)
            for name in (
                "x", "z", "gain", "bias", "sum", "out", "statistics", "d_out", "d_x", "d_z", "d_gain", "d_bias"
            )
        ),
        ("n_rows", c_int64),
        ("n", c_int64),
        ("seed", c_uint32 * 2),
        ("threshold", c_uint32),
        ("keep_scale", c_float),
        ("eps", c_float),
        ("is_bf16", c_int32),
    ]  # fmt: skip


class SoftmaxArguments(ctypes.Structure):
    """`SoftmaxArguments` of training.h."""

    _fields_ = [
        ("logits", c_void_p),
        ("log_sum_exp", c_void_p),
        ("n_rows", c_int64),
        ("n", c_int64),
        ("is_bf16", c_int32),
    ]


class RotationArguments(ctypes.Structure):
    """`RotationArguments` of training.h."""

    _fields_ = [
        ("x", Heads),
        ("out", Heads),
        ("cosines", c_void_p),
        ("sines", c_void_p),
        *((name, c_int64) for name in ("angles_stride", "n_batch", "n_heads", "length", "half")),
        ("direction", c_float),
        ("is_bf16", c_int32),
    ]


class ProductArguments(ctypes.Structure):
    """`ProductArguments` of training.h."""

    _fields_ = [
        ("a", c_void_p),
        ("mask", c_void_p),
        ("b", c_void_p * MAX_PIECES),
        ("bias", c_void_p * MAX_PIECES),
        ("c", c_void_p),
        ("sums", c_void_p),
        *((name, c_int64) for name in ("a_stride", "mask_stride", "b_stride", "c_stride")),
        ("b_rows", c_int64 * MAX_PIECES),
        *((name, c_int64) for name in ("m", "n", "k")),
        *((name, c_int32) for name in ("a_is_transposed", "b_is_transposed", "a_is_bf16", "b_is_bf16", "c_is_bf16")),
        ("relu", c_int32),
        ("adds", c_int32),
    ]


def has_product(kernels: Kernels, *, bf16: bool) -> bool:
    """Whether the instruction set in use has the kernel `PRODUCT` for factors in bf16, or in fp32."""
    types = int(kernels.library.kernels_product_types(kernels.supported[kernels.variant]))
    return bool(types & (2 if bf16 else 1))


def run(kernels: Kernels, kernel: int, arguments: ctypes.Structure, n_parts: int) -> None:
    """Run a kernel, divided among `n_parts` threads."""
    kernels.library.kernels_train(kernels.supported[kernels.variant], kernel, ctypes.addressof(arguments), n_parts)
