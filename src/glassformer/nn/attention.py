"""Multi-head attention, and the keys and values it remembers while decoding."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from glassformer.nn.linear import N_ROWS, Linear

Heads = Float[Tensor, "batch heads k d_head"]

FEW = 64
"""Up to this many queries, as in decoding, plain matrix products are faster than the blocked kernel."""


class KeyValueCache:
    """Keys and values of the positions decoded so far, one row a hypothesis."""

    def __init__(self) -> None:
        self.length = 0
        self.buffers: list[Tensor] = []  # keys and values, [rows, heads, room, d_head]
        self.spares: list[Tensor] = []

    def append(
        self, k: Float[Tensor, "rows heads new d_head"], v: Float[Tensor, "rows heads new d_head"]
    ) -> tuple[Heads, Heads]:
        """Remember more positions; gives the keys and values of all of them."""
        length = self.length + k.size(2)
        if not self.buffers or length > self.buffers[0].size(2):
            self.buffers = [self.with_room(new, i, max(16, 2 * length)) for i, new in enumerate((k, v))]
            self.spares = [torch.empty_like(buffer) for buffer in self.buffers]
        for buffer, new in zip(self.buffers, (k, v), strict=True):
            buffer[:, :, self.length : length] = new
        self.length = length
        k_all, v_all = (buffer[:, :, :length] for buffer in self.buffers)
        return k_all, v_all

    def with_room(self, like: Tensor, i: int, room: int) -> Tensor:
        """A larger buffer with what is remembered."""
        buffer = like.new_empty(*like.shape[:2], room, like.size(3))
        if self.buffers:
            buffer[:, :, : self.length] = self.buffers[i][:, :, : self.length]
        return buffer

    def select(self, rows: Int[Tensor, " rows"]) -> None:
        """Keep these rows, in this order; a row may be kept several times."""
        for i, buffer in enumerate(self.buffers):
            spare = self.spares[i]
            target = spare[: len(rows)] if len(rows) <= len(spare) else spare.new_empty(len(rows), *spare.shape[1:])
            torch.index_select(buffer[:, :, : self.length], 0, rows, out=target[:, :, : self.length])
            self.buffers[i], self.spares[i] = target, buffer


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

    def keys_values(self, memory: Float[Tensor, "batch k d_model"]) -> tuple[Heads, Heads]:
        """What `attend` looks at, computed once where it is used many times."""
        return self.split_heads(self.k_proj(memory)), self.split_heads(self.v_proj(memory))

    def attend(
        self,
        x: Float[Tensor, "batch q d_model"],
        k: Float[Tensor, "batch heads k d_head"],
        v: Float[Tensor, "batch heads k d_head"],
        mask: Bool[Tensor, "#batch #heads #q k"] | None = None,
        *,
        causal: bool = False,
    ) -> Float[Tensor, "batch q d_model"]:
        """Attention from x over keys and values made by `keys_values`."""
        q = self.split_heads(self.q_proj(x))
        if causal or torch.is_grad_enabled() or q.size(2) > FEW:
            # As in `project`: few queries take another kernel, whose bits depend on their neighbors.
            n_more = 0 if causal or (mask is not None and mask.size(-2) > 1) else -q.size(2) % N_ROWS
            heads = F.scaled_dot_product_attention(
                F.pad(q, (0, 0, 0, n_more)) if n_more else q, k, v, attn_mask=mask, is_causal=causal
            )[:, :, : q.size(2)]
        else:
            heads = self.weights(q, k, mask) @ v
        return self.out_proj(heads.transpose(1, 2).flatten(-2))

    def weights(
        self,
        q: Float[Tensor, "batch heads q d_head"],
        k: Float[Tensor, "batch heads k d_head"],
        mask: Bool[Tensor, "#batch #heads #q k"] | None = None,
    ) -> Float[Tensor, "batch heads q k"]:
        """How much each query takes of each key: rows that sum to 1, 0 where masked."""
        scores = (q * q.size(-1) ** -0.5 @ k.transpose(-1, -2)).float()
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return scores.softmax(-1).type_as(k)

    def split_heads(self, x: Float[Tensor, "batch length d_model"]) -> Float[Tensor, "batch heads length d_head"]:
        heads = x.view(*x.shape[:-1], self.n_heads, -1).transpose(1, 2)
        # One layout for one row and for many: the products' bits depend on it.
        return heads if torch.is_grad_enabled() else heads.contiguous()
