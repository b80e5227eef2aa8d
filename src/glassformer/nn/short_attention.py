"""Attention over at most 128 positions on a GPU: each head of each sentence is computed within registers.

PyTorch's kernels are made for long sequences and process blocks of at least 64 to 128 positions.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

MAX_LENGTH = 128
HEAD_SIZES = (16, 32, 64, 128)


@triton.jit
def attend(  # type: ignore[no-untyped-def]
    q, k, v, o, mask, dq, dk, dv, n_queries, n_keys,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, o_batch, o_head, o_row, mask_batch, scale,
    HEAD_SIZE: tl.constexpr, BLOCK: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr, BACKWARD: tl.constexpr,
):  # fmt: skip
    """One head of one sentence.

    In the backward pass `o` is the gradient of the output, and dq, dk and dv are laid out as [batch, length, heads,
    d_head]; in the forward pass these three are not used.
    """
    batch, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    i, j, d = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :], tl.arange(0, HEAD_SIZE)[None, :]
    at_q = batch * q_batch + head * q_head + i * q_row + d
    at_k = batch * k_batch + head * k_head + i * k_row + d
    at_v = batch * v_batch + head * v_head + i * v_row + d
    at_o = batch * o_batch + head * o_head + i * o_row + d
    queries = tl.load(q + at_q, mask=i < n_queries, other=0.0)
    keys = tl.load(k + at_k, mask=i < n_keys, other=0.0)
    values = tl.load(v + at_v, mask=i < n_keys, other=0.0)
    allowed = (i < n_queries) & (j < n_keys)
    if MASKED:
        allowed = allowed & tl.load(mask + batch * mask_batch + j, mask=j < n_keys, other=0).to(tl.int1)
    if CAUSAL:
        allowed = allowed & (j <= i + n_keys - n_queries)
    scores = tl.where(allowed, tl.dot(queries, tl.trans(keys), input_precision="ieee") * scale, -1e30)
    weights = tl.where(allowed, tl.exp(scores - tl.max(scores, 1)[:, None]), 0.0)
    weights = weights / tl.maximum(tl.sum(weights, 1), 1e-30)[:, None]
    if BACKWARD:
        heads = tl.num_programs(1)
        at_dq = ((batch * n_queries + i) * heads + head) * HEAD_SIZE + d
        at_dk = ((batch * n_keys + i) * heads + head) * HEAD_SIZE + d
        d_output = tl.load(o + at_o, mask=i < n_queries, other=0.0)
        d_weights = tl.dot(d_output, tl.trans(values), input_precision="ieee")
        d_scores = (weights * (d_weights - tl.sum(weights * d_weights, 1)[:, None]) * scale).to(values.dtype)
        d_values = tl.dot(tl.trans(weights.to(values.dtype)), d_output, input_precision="ieee")
        tl.store(dv + at_dk, d_values.to(values.dtype), mask=i < n_keys)
        tl.store(dq + at_dq, tl.dot(d_scores, keys, input_precision="ieee").to(values.dtype), mask=i < n_queries)
        d_keys = tl.dot(tl.trans(d_scores), queries, input_precision="ieee")
        tl.store(dk + at_dk, d_keys.to(values.dtype), mask=i < n_keys)
    else:
        output = tl.dot(weights.to(values.dtype), values, input_precision="ieee")
        tl.store(o + at_o, output.to(values.dtype), mask=i < n_queries)


def launch(
    q: Tensor, k: Tensor, v: Tensor, o: Tensor, mask: Tensor | None, grads: list[Tensor], causal: bool, scale: float
) -> None:
    """Run the kernel for all heads of all sentences. Without `grads`, o is the output."""
    block = max(16, triton.next_power_of_2(max(q.size(2), k.size(2))))
    strides = [stride for tensor in (q, k, v, o) for stride in tensor.stride()[:3]]
    attend[q.size(0), q.size(1)](
        q, k, v, o, q if mask is None else mask, *(grads or (q, k, v)), q.size(2), k.size(2), *strides,
        0 if mask is None else mask.stride(0), scale, HEAD_SIZE=q.size(3), BLOCK=block, CAUSAL=causal,
        MASKED=mask is not None, BACKWARD=bool(grads), num_warps=min(8, max(1, block // 16)),
    )  # fmt: skip


def like(x: Tensor) -> Tensor:
    """An empty tensor of the shape of x, [batch, heads, length, d_head], laid out as [batch, length, heads, d_head]."""
    return x.new_empty(x.size(0), x.size(2), x.size(1), x.size(3)).transpose(1, 2)


@torch.library.custom_op("glassformer::short_attention", mutates_args=())
def short_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float) -> Tensor:
    """Attention output per head, as `Attention.eager_attention` computes it.

    Args:
        q: queries [batch, heads, n_queries, d_head]; k and v with n_keys. At most MAX_LENGTH positions; d_head is one
            of HEAD_SIZES and has stride 1.
        mask: True at the keys that may be attended to [batch, 1, 1, n_keys].
        causal: the queries are at the last key positions and attend to no later ones.
    """
    output = like(q)
    launch(q, k, v, output, mask, [], causal, scale)
    return output


@short_attention.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float) -> Tensor:
    return like(q)


@torch.library.custom_op("glassformer::short_attention_backward", mutates_args=())
def short_attention_backward(
    d_output: Tensor, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of q, k and v."""
    grads = [like(x) for x in (q, k, v)]
    d_output = d_output if d_output.stride(3) == 1 else d_output.contiguous()
    launch(q, k, v, d_output, mask, grads, causal, scale)
    return grads[0], grads[1], grads[2]


@short_attention_backward.register_fake
def _(
    d_output: Tensor, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    return like(q), like(k), like(v)


def save_inputs(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Keep what the backward pass needs."""
    q, k, v, mask, ctx.causal, ctx.scale = inputs
    ctx.save_for_backward(q, k, v, mask)


def backward(ctx: Any, d_output: Tensor) -> tuple[Tensor | None, ...]:
    """Gradients of all arguments."""
    return *short_attention_backward(d_output, *ctx.saved_tensors, ctx.causal, ctx.scale), None, None, None


short_attention.register_autograd(backward, setup_context=save_inputs)


def supports(q: Tensor, k: Tensor, mask: Tensor | None) -> bool:
    """Whether `short_attention` computes attention of these shapes: lengths, head size, a mask of keys only."""
    return (
        max(q.size(2), k.size(2)) <= MAX_LENGTH
        and q.size(3) in HEAD_SIZES
        and (mask is None or mask.shape[1:3] == (1, 1))
    )
