"""Attention over at most 128 positions on a GPU: each head of each sequence is computed within registers.

PyTorch's kernels are made for long sequences and process blocks of at least 64 to 128 positions. Sequences are rows of
a batch, or packed into one row (`packing`).
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from glassformer.nn.packing import HEAD_SIZES, MAX_LENGTH, Packing

BLOCKS = (32, 64, MAX_LENGTH)
"""Packed sequences are computed in blocks of these numbers of positions: one size for all would need the registers of
the longest."""


@triton.jit
def attend(  # type: ignore[no-untyped-def]
    q, k, v, o, mask, dq, dk, dv, n_queries, n_keys, q_starts, k_starts,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, o_batch, o_head, o_row, mask_batch, scale,
    HEAD_SIZE: tl.constexpr, BLOCK: tl.constexpr, SHORTER: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr,
    PACKED: tl.constexpr, BACKWARD: tl.constexpr,
):  # fmt: skip
    """One head of one sequence.

    In the backward pass `o` is the gradient of the output, and dq, dk and dv are laid out as [batch, length, heads,
    d_head]; in the forward pass these three are not used.

    PACKED: n_queries and n_keys are arrays of the lengths of the sequences, and nothing is computed for sequences of at
    most SHORTER or more than BLOCK positions.
    """
    sequence, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    batch, q_start, k_start = sequence, 0, 0
    if PACKED:
        batch = sequence * 0
        q_start, k_start = tl.load(q_starts + sequence), tl.load(k_starts + sequence)
        n_queries, n_keys = tl.load(n_queries + sequence), tl.load(n_keys + sequence)
        longest = tl.maximum(n_queries, n_keys)
        if (longest <= SHORTER) | (longest > BLOCK):
            return
    rows, j, d = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :], tl.arange(0, HEAD_SIZE)[None, :]
    q_rows, k_rows = (q_start + rows).to(tl.int64), (k_start + rows).to(tl.int64)
    at_q = batch * q_batch + head * q_head + q_rows * q_row + d
    at_k = batch * k_batch + head * k_head + k_rows * k_row + d
    at_v = batch * v_batch + head * v_head + k_rows * v_row + d
    at_o = batch * o_batch + head * o_head + q_rows * o_row + d
    queries = tl.load(q + at_q, mask=rows < n_queries, other=0.0)
    keys = tl.load(k + at_k, mask=rows < n_keys, other=0.0)
    values = tl.load(v + at_v, mask=rows < n_keys, other=0.0)
    allowed = (rows < n_queries) & (j < n_keys)
    if MASKED:
        allowed = allowed & tl.load(mask + batch * mask_batch + j, mask=j < n_keys, other=0).to(tl.int1)
    if CAUSAL:
        allowed = allowed & (j <= rows + n_keys - n_queries)
    scores = tl.where(allowed, tl.dot(queries, tl.trans(keys), input_precision="ieee") * scale, -1e30)
    weights = tl.where(allowed, tl.exp(scores - tl.max(scores, 1)[:, None]), 0.0)
    weights = weights / tl.maximum(tl.sum(weights, 1), 1e-30)[:, None]
    if BACKWARD:
        heads = tl.num_programs(1)
        at_dq = ((batch * n_queries + q_rows) * heads + head) * HEAD_SIZE + d
        at_dk = ((batch * n_keys + k_rows) * heads + head) * HEAD_SIZE + d
        d_output = tl.load(o + at_o, mask=rows < n_queries, other=0.0)
        d_weights = tl.dot(d_output, tl.trans(values), input_precision="ieee")
        d_scores = (weights * (d_weights - tl.sum(weights * d_weights, 1)[:, None]) * scale).to(values.dtype)
        d_values = tl.dot(tl.trans(weights.to(values.dtype)), d_output, input_precision="ieee")
        tl.store(dv + at_dk, d_values.to(values.dtype), mask=rows < n_keys)
        tl.store(dq + at_dq, tl.dot(d_scores, keys, input_precision="ieee").to(values.dtype), mask=rows < n_queries)
        d_keys = tl.dot(tl.trans(d_scores), queries, input_precision="ieee")
        tl.store(dk + at_dk, d_keys.to(values.dtype), mask=rows < n_keys)
    else:
        output = tl.dot(weights.to(values.dtype), values, input_precision="ieee")
        tl.store(o + at_o, output.to(values.dtype), mask=rows < n_queries)


def launch(
    q: Tensor, k: Tensor, v: Tensor, o: Tensor, mask: Tensor | None, q_spans: Tensor | None, k_spans: Tensor | None,
    grads: list[Tensor], causal: bool, scale: float,
) -> None:  # fmt: skip
    """Run the kernel for all heads of all sequences. Without `grads`, o is the output."""
    strides = [stride for tensor in (q, k, v, o) for stride in tensor.stride()[:3]]

    def run(
        n_sequences: int, lengths: Sequence[int | Tensor], starts: Sequence[Tensor], shorter: int, block: int
    ) -> None:
        attend[n_sequences, q.size(1)](
            q, k, v, o, q if mask is None else mask, *(grads or (q, k, v)), *lengths, *starts, *strides,
            0 if mask is None else mask.stride(0), scale, HEAD_SIZE=q.size(3), BLOCK=block, SHORTER=shorter,
            CAUSAL=causal, MASKED=mask is not None, PACKED=q_spans is not None, BACKWARD=bool(grads),
            num_warps=min(8, max(1, block // 16)),
        )  # fmt: skip

    if q_spans is None or k_spans is None:
        block = max(16, triton.next_power_of_2(max(q.size(2), k.size(2))))
        run(q.size(0), (q.size(2), k.size(2)), (q, k), 0, block)
        return
    q_spans, k_spans = q_spans.contiguous(), k_spans.contiguous()
    for shorter, block in pairwise((0, *BLOCKS)):
        # So many sequences at most are longer, and they come first.
        n_longer = (q.size(2) + k.size(2)) // (shorter + 1) if shorter else q_spans.size(1)
        run(min(n_longer, q_spans.size(1)), (q_spans[1], k_spans[1]), (q_spans[0], k_spans[0]), shorter, block)


def like(x: Tensor) -> Tensor:
    """An empty tensor of the shape of x, [batch, heads, length, d_head], laid out as [batch, length, heads, d_head]."""
    return x.new_empty(x.size(0), x.size(2), x.size(1), x.size(3)).transpose(1, 2)


@torch.library.custom_op("glassformer::short_attention", mutates_args=())
def short_attention_op(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, q_spans: Tensor | None, k_spans: Tensor | None,
    causal: bool, scale: float,
) -> Tensor:  # fmt: skip
    """`short_attention`, with a mask or with the spans of packed sequences."""
    output = like(q)
    launch(q, k, v, output, mask, q_spans, k_spans, [], causal, scale)
    return output


@short_attention_op.register_fake
def _(q: Tensor, *arguments: Any) -> Tensor:
    return like(q)


@torch.library.custom_op("glassformer::short_attention_backward", mutates_args=())
def short_attention_backward(
    d_output: Tensor, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, q_spans: Tensor | None,
    k_spans: Tensor | None, causal: bool, scale: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients of q, k and v."""
    grads = [like(x) for x in (q, k, v)]
    d_output = d_output if d_output.stride(3) == 1 else d_output.contiguous()
    launch(q, k, v, d_output, mask, q_spans, k_spans, grads, causal, scale)
    return grads[0], grads[1], grads[2]


@short_attention_backward.register_fake
def _(d_output: Tensor, q: Tensor, k: Tensor, v: Tensor, *arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
    return like(q), like(k), like(v)


def save_inputs(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Keep what the backward pass needs."""
    *tensors, ctx.causal, ctx.scale = inputs
    ctx.save_for_backward(*tensors)


def backward(ctx: Any, d_output: Tensor) -> tuple[Tensor | None, ...]:
    """Gradients of all arguments."""
    return *short_attention_backward(d_output, *ctx.saved_tensors, ctx.causal, ctx.scale), *(None,) * 5


short_attention_op.register_autograd(backward, setup_context=save_inputs)


def short_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | Packing | None, causal: bool, scale: float
) -> Tensor:
    """Attention output per head, as `ops.attention` computes it.

    Args:
        q: queries [batch, heads, n_queries, d_head]; k and v with n_keys. Sequences have at most MAX_LENGTH positions;
            d_head is one of HEAD_SIZES and has stride 1.
        mask: True at the keys that may be attended to [batch, 1, 1, n_keys]; or how sequences are packed, in a batch
            of 1.
        causal: the queries are at the last key positions and attend to no later ones.
    """
    if isinstance(mask, Packing):
        return short_attention_op(q, k, v, None, mask.queries, mask.keys, causal, scale)
    return short_attention_op(q, k, v, mask, None, None, causal, scale)


def supports(q: Tensor, k: Tensor, mask: Tensor | Packing | None) -> bool:
    """Whether `short_attention` computes attention of these shapes: lengths, head size, a mask of keys only.

    Packed sequences have at most MAX_LENGTH positions: who packs them takes care of that.
    """
    if q.size(3) not in HEAD_SIZES:
        return False
    if isinstance(mask, Packing):
        return True
    return max(q.size(2), k.size(2)) <= MAX_LENGTH and (mask is None or mask.shape[1:3] == (1, 1))
