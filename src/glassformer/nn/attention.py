"""Multi-head attention, and the keys and values it remembers while decoding."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from glassformer.nn.linear import N_ROWS, Linear


class KeyValueCache:
    """Keys and values of the positions decoded so far, one row a hypothesis.

    Kept as [position, row, k and v]: a step appends one contiguous slice, and following a beam copies each
    remembered position once, into the other of two buffers.
    """

    def __init__(self, n_rows: int, d_model: int, like: Tensor) -> None:
        self.length = 0
        self.buffer = like.new_empty(16, n_rows, 2 * d_model)
        self.spare = like.new_empty(0)

    def append(
        self, k: Float[Tensor, "rows 1 d_model"], v: Float[Tensor, "rows 1 d_model"]
    ) -> tuple[Float[Tensor, "rows length d_model"], Float[Tensor, "rows length d_model"]]:
        """Remember one more position; gives the keys and values of all of them."""
        if self.length == len(self.buffer):
            self.buffer = torch.cat([self.buffer, torch.empty_like(self.buffer)])
        torch.cat([k, v], dim=-1, out=self.buffer[self.length].unsqueeze(1))
        self.length += 1
        k_all, v_all = self.buffer[: self.length].transpose(0, 1).chunk(2, dim=-1)
        return k_all, v_all

    def select(self, rows: Int[Tensor, " rows"]) -> None:
        """Keep these rows, in this order; a row may be kept several times."""
        shape = (len(self.buffer), len(rows), self.buffer.size(2))
        if self.spare.numel() < math.prod(shape):
            self.spare = self.buffer.new_empty(shape)
        target = self.spare.flatten()[: math.prod(shape)].view(shape)
        torch.index_select(self.buffer[: self.length], 1, rows, out=target[: self.length])
        self.buffer, self.spare = target, self.buffer


class Attention(nn.Module):
    """Concat(head_1 .. head_h) W^O with head_i = softmax(Q_i K_i^T / sqrt(d_head)) V_i.

    Source: Vaswani et al. 2017, section 3.2. The scale is d_head, not d_model, and each head has projections
    of its own.
    """

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"d_model {d_model} does not split into {n_heads} equal heads")
        self.n_heads = n_heads
        self.q_proj = Linear(d_model, d_model)
        self.k_proj = Linear(d_model, d_model)
        self.v_proj = Linear(d_model, d_model)
        self.out_proj = Linear(d_model, d_model)

    def forward(
        self,
        x: Float[Tensor, "batch q d_model"],
        memory: Float[Tensor, "batch k d_model"] | None = None,
        mask: Bool[Tensor, "#batch #heads #q k"] | None = None,
        *,
        causal: bool = False,
    ) -> Float[Tensor, "batch q d_model"]:
        """Self-attention when `memory` is None, else attention over `memory`.

        Args:
            mask: True where a query may look; every query must be left something to look at.
            causal: each position sees itself and the past.
        """
        k, v = self.keys_values(x if memory is None else memory)
        return self.attend(x, k, v, mask, causal=causal)

    def keys_values(
        self, memory: Float[Tensor, "batch k d_model"]
    ) -> tuple[Float[Tensor, "batch k d_model"], Float[Tensor, "batch k d_model"]]:
        """What `attend` looks at, computed once where it is used many times."""
        return self.k_proj(memory), self.v_proj(memory)

    def attend(
        self,
        x: Float[Tensor, "batch q d_model"],
        k: Float[Tensor, "batch k d_model"],
        v: Float[Tensor, "batch k d_model"],
        mask: Bool[Tensor, "#batch #heads #q k"] | None = None,
        *,
        causal: bool = False,
    ) -> Float[Tensor, "batch q d_model"]:
        """Attention from x over keys and values made by `keys_values`."""
        q = self.q_proj(x)
        if not (causal or torch.is_grad_enabled()) and (mask is None or mask.size(-2) == 1):
            # As in `project`: few queries take another kernel, whose bits depend on their neighbors.
            q = F.pad(q, (0, 0, 0, -q.size(1) % N_ROWS))
        heads = F.scaled_dot_product_attention(
            self.split_heads(q), self.split_heads(k), self.split_heads(v), attn_mask=mask, is_causal=causal
        )
        return self.out_proj(heads[:, :, : x.size(1)].transpose(1, 2).flatten(-2))

    def split_heads(self, x: Float[Tensor, "batch length d_model"]) -> Float[Tensor, "batch heads length d_head"]:
        return x.view(*x.shape[:-1], self.n_heads, -1).transpose(1, 2)
