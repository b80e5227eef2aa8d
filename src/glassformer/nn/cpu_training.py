"""Kernels in C for training on a CPU: matrix products, attention of short sequences, rotary positions,
residual connections, softmax of the logits.

The operations in `nn/ops` select them where the library of the kernels and its instruction set have them.
"""

from collections.abc import Sequence
from ctypes import c_int64, c_void_p
from functools import cache
from typing import Any

import torch
from torch import Tensor

from glassformer.kernels import training as t
from glassformer.kernels.library import Kernels, load

DTYPES = (torch.float32, torch.bfloat16)

COLUMN_MULTIPLE = 16
"""The kernels take vectors of a multiple of this number of features."""


@cache
def library() -> Kernels | None:
    """The library of the kernels, if its threads can be those of PyTorch."""
    kernels, _ = load()
    return kernels if kernels is not None and kernels.library.kernels_has_openmp() else None


def supports(x: Tensor) -> bool:
    """Whether a tensor can be processed by these kernels: on a CPU, in fp32 or bf16, not compiled."""
    return x.device.type == "cpu" and x.dtype in DTYPES and not torch.compiler.is_compiling() and library() is not None


def run(kernel: int, arguments: Any) -> None:
    """Run a kernel on PyTorch's threads."""
    kernels = library()
    assert kernels is not None
    t.run(kernels, kernel, arguments, torch.get_num_threads())


def heads(x: Tensor) -> t.Heads:
    """Address and strides of a tensor [batch, heads, length, d_head]."""
    batch, head, row, column = x.stride()
    assert column == 1 or x.size(3) == 1
    return t.Heads(x.data_ptr(), batch, head, row)


def like(x: Tensor, n: int = 1) -> list[Tensor]:
    """n empty tensors [batch, heads, length, d_head] in which the heads of a position, and of all tensors, are
    adjacent."""
    together = x.new_empty(x.size(0), x.size(2), n, x.size(1), x.size(3))
    return [part.transpose(1, 2) for part in together.unbind(2)]


class ShortAttention(torch.autograd.Function):
    """Attention output per head, as `ops.attention` computes it. Source: short_attention.h."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float) -> Tensor:
        q, k, v = (x if x.stride(3) == 1 else x.contiguous() for x in (q, k, v))
        mask = None if mask is None else mask.reshape(mask.size(0), mask.size(3)).contiguous()
        (out,) = like(q)
        run(t.ATTENTION, attention_arguments(q, k, v, out, mask, causal, scale))
        ctx.save_for_backward(q, k, v, mask)
        ctx.causal, ctx.scale = causal, scale
        return out

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, mask = ctx.saved_tensors
        d_out = d_out if d_out.stride(3) == 1 else d_out.contiguous()
        arguments = attention_arguments(q, k, v, d_out, mask, ctx.causal, ctx.scale)
        if q.shape == k.shape:  # one product may have computed them: side by side, their gradients are one matrix
            d_k, d_v, d_q = like(q, 3)
        else:
            (d_q,), (d_k, d_v) = like(q), like(k, 2)
        arguments.d_q, arguments.d_k, arguments.d_v = heads(d_q), heads(d_k), heads(d_v)
        run(t.ATTENTION_BACKWARD, arguments)
        return d_q, d_k, d_v, None, None, None


def attention_arguments(
    q: Tensor, k: Tensor, v: Tensor, out: Tensor, mask: Tensor | None, causal: bool, scale: float
) -> t.AttentionArguments:
    """Arguments of the attention kernels, without the gradients.

    Args:
        mask: True at the keys that may be attended to [batch or 1, n_keys].
    """
    return t.AttentionArguments(
        q=heads(q), k=heads(k), v=heads(v), out=heads(out),
        mask=None if mask is None else mask.data_ptr(),
        mask_stride=0 if mask is None or mask.size(0) == 1 else mask.stride(0),
        n_batch=q.size(0), n_heads=q.size(1), n_queries=q.size(2), n_keys=k.size(2), d_head=q.size(3),
        is_causal=causal, is_bf16=q.dtype == torch.bfloat16, scale=scale,
    )  # fmt: skip


def short_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float) -> Tensor:
    """Attention output per head [batch, heads, n_queries, d_head].

    Args:
        q: queries [batch, heads, n_queries, d_head]; k and v with n_keys.
        mask: True at the keys that may be attended to [batch or 1, 1, 1, n_keys].
        causal: the queries are at the last key positions and attend to no later ones.
    """
    return ShortAttention.apply(q, k, v, mask, causal, scale)


class Rotation(torch.autograd.Function):
    """Rotation of each head by the angles of its positions. Source: rotation.h."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return rotated(x, cos, sin, 1)

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor, None, None]:
        cos, sin = ctx.saved_tensors
        return rotated(d_out, cos, sin, -1), None, None


def rotated(x: Tensor, cos: Tensor, sin: Tensor, direction: int) -> Tensor:
    """Heads, rotated by the angles of their positions, or back for direction -1."""
    x = x if x.stride(3) == 1 else x.contiguous()
    (out,) = like(x)
    n_batch, n_heads, length, d_head = x.shape
    run(
        t.ROTATION,
        t.RotationArguments(
            x=heads(x), out=heads(out), cosines=cos.data_ptr(), sines=sin.data_ptr(),
            angles_stride=0 if cos.numel() == length * d_head // 2 else length * d_head // 2,
            n_batch=n_batch, n_heads=n_heads, length=length, half=d_head // 2, direction=direction,
            is_bf16=x.dtype == torch.bfloat16,
        ),
    )  # fmt: skip
    return out


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Heads [batch, heads, length, d_head], rotated by the angles of their positions.

    Args:
        cos: cosines in fp32 [length, half], after dimensions of 1 and, if positions differ, of the batch; sin: sines.
    """
    return Rotation.apply(x, cos.contiguous(), sin.contiguous())


class ResidualFunction(torch.autograd.Function):
    """x + dropout(z), and its LayerNorm if there is a gain. Source: residual.h."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, z: Tensor, gain: Tensor | None, bias: Tensor | None, eps: float, p: float
    ) -> Tensor:
        x, z = x.to(z.dtype).contiguous(), z.contiguous()
        total = torch.empty_like(z)
        statistics = x.new_empty(x.numel() // x.size(-1), 2, dtype=torch.float32)
        arguments = t.ResidualArguments(
            x=x.data_ptr(), z=z.data_ptr(), sum=total.data_ptr(), statistics=statistics.data_ptr(),
            n_rows=len(statistics), n=x.size(-1), threshold=round(p * 2**32), keep_scale=1 / (1 - p), eps=eps,
            is_bf16=z.dtype == torch.bfloat16,
        )  # fmt: skip
        if p:
            arguments.seed[:] = torch.randint(2**32, (2,)).tolist()
        result = total
        if gain is not None and bias is not None:
            result = torch.empty_like(z)
            arguments.gain, arguments.bias, arguments.out = gain.data_ptr(), bias.data_ptr(), result.data_ptr()
        run(t.RESIDUAL, arguments)
        ctx.save_for_backward(*((None,) * 3 if gain is None else (total, statistics, gain)))
        ctx.arguments = arguments
        return result

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, ...]:
        total, statistics, gain = ctx.saved_tensors
        d_out = d_out.contiguous()
        d_x, d_z = torch.empty_like(d_out), torch.empty_like(d_out)
        arguments = ctx.arguments
        arguments.d_out, arguments.d_x, arguments.d_z = d_out.data_ptr(), d_x.data_ptr(), d_z.data_ptr()
        d_gain = d_bias = None
        if gain is not None:
            sums = d_out.new_empty(2, torch.get_num_threads(), d_out.size(-1), dtype=torch.float32)
            arguments.sum, arguments.statistics = total.data_ptr(), statistics.data_ptr()
            arguments.gain, arguments.d_gain, arguments.d_bias = gain.data_ptr(), sums[0].data_ptr(), sums[1].data_ptr()
        run(t.RESIDUAL_BACKWARD, arguments)
        if gain is not None:
            d_gain, d_bias = sums.sum(1)
        return d_x, d_z, d_gain, d_bias, None, None


def residual(x: Tensor, z: Tensor, norm: Any, p: float) -> Tensor:
    """x + dropout(z), in the precision of z, and its LayerNorm.

    Args:
        x: input of a sub-layer.
        z: its output.
        norm: a LayerNorm. None: no normalization.
        p: dropout probability.
    """
    gain, bias, eps = (None, None, 0.0) if norm is None else (norm.weight, norm.bias, norm.eps)
    return ResidualFunction.apply(x, z, gain, bias, eps, p)


def softmax_(logits: Tensor) -> Tensor:
    """Replace the rows of a matrix by their softmax. Returns the log-sum-exp of each row in fp32."""
    assert logits.is_contiguous()
    log_sum_exp = logits.new_empty(len(logits), dtype=torch.float32)
    n_rows, n = logits.shape
    is_bf16 = logits.dtype == torch.bfloat16
    run(t.SOFTMAX, t.SoftmaxArguments(logits.data_ptr(), log_sum_exp.data_ptr(), n_rows, n, is_bf16))
    return log_sum_exp


MAX_K = 1 << 14
"""Largest inner dimension of a product whose result is in bf16."""


def has_product(dtype: torch.dtype) -> bool:
    """Whether the processor and the instruction set in use have the kernel of `product` for factors of this type."""
    kernels = library()
    return kernels is not None and dtype in DTYPES and t.has_product(kernels, bf16=dtype == torch.bfloat16)


def product(
    a: Tensor,
    b: Sequence[Tensor],
    out: Tensor,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    bias: Sequence[Tensor] = (),
    relu: bool = False,
    positive: Tensor | None = None,
    row_sums: Tensor | None = None,
    add: bool = False,
) -> Tensor:
    """A B, with both factors in the type of A and sums in fp32. Returns `out`. Source: training_product.h.

    Args:
        a: A in bf16 or fp32.
        b: B: the rows of these matrices together, in one type: that of A, or fp32.
        out: the result [m, n], in fp32; in bf16 as well if A is in bf16 and not transposed.
        transpose_a: `a`, and `positive`, hold the transpose of A.
        transpose_b: `b` holds the transpose of B.
        bias: added to the rows of the result, for a transposed B: a vector for each matrix of `b`, in fp32.
        relu: replace negative results by 0.
        positive: where this matrix, of the type of A, is not positive, A is taken as 0.
        row_sums: for a transposed A, is set to the sums of the rows of A, in fp32.
        add: add the product to `out`, in fp32. Without bias.
    """
    a = rows_contiguous(a)
    b = [x.contiguous() for x in b]
    b_rows = sum(len(x) for x in b)
    m, k = (a.size(1), a.size(0)) if transpose_a else (a.size(0), a.size(1))
    n = b_rows if transpose_b else b[0].size(1)
    assert has_product(a.dtype)
    assert a.dtype == torch.bfloat16 or out.dtype == b[0].dtype == torch.float32
    assert out.shape == (m, n)
    assert out.stride(1) == 1 or n == 1
    assert k == (b[0].size(1) if transpose_b else b_rows)
    if out.dtype == torch.bfloat16 and k > MAX_K:
        wide = torch.empty_like(out, dtype=torch.float32)
        product(a, b, wide, transpose_b=transpose_b, bias=bias, relu=relu, positive=positive)
        return out.copy_(wide)
    bias = [x.float() for x in bias]
    positive = None if positive is None else rows_contiguous(positive)
    addresses = c_void_p * t.MAX_PIECES
    run(
        t.PRODUCT,
        t.ProductArguments(
            a=a.data_ptr(), mask=None if positive is None else positive.data_ptr(),
            b=addresses(*(x.data_ptr() for x in b)), bias=addresses(*(x.data_ptr() for x in bias)),
            c=out.data_ptr(), sums=None if row_sums is None else row_sums.data_ptr(),
            a_stride=a.stride(0), mask_stride=0 if positive is None else positive.stride(0), b_stride=b[0].stride(0),
            c_stride=out.stride(0), b_rows=(c_int64 * t.MAX_PIECES)(*map(len, b)), m=m, n=n, k=k,
            a_is_transposed=transpose_a, b_is_transposed=transpose_b,
            a_is_bf16=a.dtype == torch.bfloat16, b_is_bf16=b[0].dtype == torch.bfloat16,
            c_is_bf16=out.dtype == torch.bfloat16, relu=relu, adds=add,
        ),
    )  # fmt: skip
    return out


def rows_contiguous(x: Tensor) -> Tensor:
    """A matrix whose rows are contiguous: x itself if they are."""
    return x if x.stride(1) == 1 else x.contiguous()


def adjacent_columns(parts: Sequence[Tensor]) -> Tensor:
    """Matrices side by side, as one matrix. They are not copied if they are adjacent in memory."""
    first, column = parts[0], parts[0].storage_offset()
    for part in parts:
        if (
            part.untyped_storage().data_ptr() != first.untyped_storage().data_ptr()
            or part.storage_offset() != column
            or part.stride() != (first.stride(0), 1)
        ):
            return torch.cat(tuple(parts), dim=1)
        column += part.size(1)
    return first.as_strided((len(first), sum(part.size(1) for part in parts)), first.stride())
