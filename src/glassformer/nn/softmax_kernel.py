"""Softmax of long rows on a GPU, in place: each logit is read twice and written once."""

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 8192


@triton.jit
def softmax_rows(  # type: ignore[no-untyped-def]
    logits, targets, lse, at_target, stride, N_COLUMNS: tl.constexpr, BLOCK: tl.constexpr
):
    """One row: logits become probabilities, and 0 beyond N_COLUMNS."""
    row, columns = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    x = logits + row * stride
    tl.store(at_target + row, tl.load(x + tl.load(targets + row)).to(tl.float32))
    # Running maximum, and sum of exponentials relative to it.
    largest, total = -float("inf"), 0.0
    for start in range(0, N_COLUMNS, BLOCK):
        # A mask with an end that is no multiple of 16 would prevent vectorized loads.
        values = tl.load(x + start + columns, mask=start + columns < stride, other=0.0).to(tl.float32)
        values = tl.where(start + columns < N_COLUMNS, values, -float("inf"))
        new_largest = tl.maximum(largest, tl.max(values, 0))
        total = total * tl.exp(largest - new_largest) + tl.sum(tl.exp(values - new_largest), 0)
        largest = new_largest
    log_sum = largest + tl.log(total)
    tl.store(lse + row, log_sum)
    tl.debug_barrier()  # the logit of the target has been read
    for start in range(0, N_COLUMNS, BLOCK):
        at = start + columns
        values = tl.load(x + at, mask=at < stride, other=0.0)
        probs = tl.where(at < N_COLUMNS, tl.exp(values.to(tl.float32) - log_sum), 0.0)
        tl.store(x + at, probs.to(values.dtype), mask=at < stride)


def softmax_statistics_(logits: Tensor, targets: Tensor, n_columns: int) -> tuple[Tensor, Tensor, Tensor]:
    """As `ops.softmax`, in 32 bits; the probabilities overwrite the logits."""
    lse, at_target = (torch.empty(len(logits), dtype=torch.float32, device=logits.device) for _ in range(2))
    softmax_rows[len(logits),](logits, targets, lse, at_target, logits.size(1), n_columns, BLOCK=BLOCK, num_warps=8)
    return logits, lse, at_target
