"""Dropout with fast random number generation."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class ByteDropout(torch.autograd.Function):
    """Dropout that draws one random byte per element, several times faster on a CPU than one random float."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, n_dropped: int) -> Tensor:
        n_words = -(-x.numel() // 8)
        words = torch.empty(n_words, dtype=torch.int64).random_(-(2**63), None)
        keep = words.view(torch.uint8)[: x.numel()].view(x.shape) >= n_dropped
        mask = keep.to(x.dtype).mul_(256 / (256 - n_dropped))
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (mask,) = ctx.saved_tensors
        return grad * mask, None


def hash_dropout(x: Float[Tensor, "*shape"], p: float) -> Float[Tensor, "*shape"]:
    """Dropout whose random bits are a hash of the index of an element and of one random number.

    For the compiler, which makes one kernel of the hash and of what is before and after it: other random numbers take
    longer, and their mask has to be kept for the backward pass.

    Source of the mixing function: lowbias32, Wellons 2018.
    """
    seed = torch.randint(-(2**31), 2**31 - 1, (), dtype=torch.int32, device=x.device)
    # The seed comes first: the compiler would take a product of indices for an address, and overflow.
    bits = torch.arange(x.numel(), dtype=torch.int32, device=x.device).view(x.shape) ^ seed
    bits = bits * -0x61C88647
    bits = (bits ^ (bits >> 16 & 0xFFFF)) * 0x7FEB352D
    bits = (bits ^ (bits >> 15 & 0x1FFFF)) * -0x7B935975
    bits = (bits ^ (bits >> 16 & 0xFFFF)) & 0x7FFFFFFF
    return torch.where(bits >= round(p * 2**31), x / (1 - p), 0)


class Dropout(nn.Module):
    """In training, zero each element with probability p and scale the others by 1 / (1 - p).

    On a CPU, p is rounded to a multiple of 1/256. The scale uses the rounded p, so the expected value is exact.

    Source: Srivastava et al. 2014.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        if not self.training or self.p == 0:
            return x
        if torch.compiler.is_compiling():
            return hash_dropout(x, self.p)
        if x.device.type == "cpu":
            return ByteDropout.apply(x, min(255, round(self.p * 256)))
        return F.dropout(x, self.p)

    def extra_repr(self) -> str:
        return f"p={self.p}"
