"""Softmax of long rows on a GPU, in place: each logit is read twice and written once."""

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 8192


@triton.jit
def softmax_rows(logits, targets, lse, at_target, N_COLUMNS: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """One row: logits become probabilities."""
    row, columns = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    x = logits + row * N_COLUMNS
    tl.store(at_target + row, tl.load(x + tl.load(targets + row)).to(tl.float32))
    # Running maximum, and sum of exponentials relative to it.
    largest, total = -float("inf"), 0.0
    for start in range(0, N_COLUMNS, BLOCK):
        values = tl.load(x + start + columns, mask=start + columns < N_COLUMNS, other=-float("inf")).to(tl.float32)
        new_largest = tl.maximum(largest, tl.max(values, 0))
        total = total * tl.exp(largest - new_largest) + tl.sum(tl.exp(values - new_largest), 0)
        largest = new_largest
    log_sum = largest + tl.log(total)
    tl.store(lse + row, log_sum)
    tl.debug_barrier()  # the logit of the target has been read
    for start in range(0, N_COLUMNS, BLOCK):
        inside = start + columns < N_COLUMNS
        values = tl.load(x + start + columns, mask=inside, other=0.0)
        tl.store(x + start + columns, tl.exp(values.to(tl.float32) - log_sum).to(values.dtype), mask=inside)


def softmax_statistics_(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """As `loss.softmax_statistics`, in 32 bits; the probabilities overwrite the logits."""
    lse, at_target = (torch.empty(len(logits), dtype=torch.float32, device=logits.device) for _ in range(2))
    softmax_rows[len(logits),](logits, targets, lse, at_target, logits.size(1), BLOCK=BLOCK, num_warps=8)
    return logits, lse, at_target
