"""Multi-head attention and the key-value cache of incremental decoding."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from glassformer.nn.linear import Linear, linear_layers
from glassformer.nn.ops.attention import attention, masked_softmax, whole_mask
from glassformer.nn.overridable import overridable
from glassformer.nn.packing import Packing
from glassformer.nn.positions import rotate

Heads = Float[Tensor, "batch kv_heads k d_head"]
Rotary = tuple[Float[Tensor, "*#batch 1 length half"], Float[Tensor, "*#batch 1 length half"]]
"""Cosines and sines of the rotation angles, from `rotary_embedding`."""


class KeyValueCache:
    """Keys and values of the decoded positions, one row per hypothesis."""

    def __init__(self) -> None:
        self.length = 0
        self.buffers: list[Tensor] = []  # keys and values, each [rows, heads, capacity, d_head]
        self.spare_buffers: list[Tensor] = []  # `select` copies to these and swaps, so it need not allocate memory

    @overridable
    def append(
        self, k: Float[Tensor, "rows heads new d_head"], v: Float[Tensor, "rows heads new d_head"]
    ) -> tuple[Heads, Heads]:
        """Append new positions and return the keys and values of all positions."""
        length = self.length + k.size(2)
        if not self.buffers or length > self.buffers[0].size(2):
            self.buffers = [self.grow(new, i, max(16, 2 * length)) for i, new in enumerate((k, v))]
            self.spare_buffers = [torch.empty_like(buffer) for buffer in self.buffers]
        for buffer, new in zip(self.buffers, (k, v), strict=True):
            buffer[:, :, self.length : length] = new
        self.length = length
        k_all, v_all = (buffer[:, :, :length] for buffer in self.buffers)
        return k_all, v_all

    def grow(self, like: Tensor, i: int, capacity: int) -> Tensor:
        """Copy buffer `i` into a new buffer of length `capacity`."""
        buffer = like.new_empty(*like.shape[:2], capacity, like.size(3))
        if self.buffers:
            buffer[:, :, : self.length] = self.buffers[i][:, :, : self.length]
        return buffer

    def select(self, rows: Int[Tensor, " rows"]) -> None:
        """Reorder the cache: row i becomes the former row `rows[i]`. Rows may repeat."""
        for i, buffer in enumerate(self.buffers):
            spare_buffer = self.spare_buffers[i]
            target = (
                spare_buffer[: len(rows)]
                if len(rows) <= len(spare_buffer)
                else spare_buffer.new_empty(len(rows), *spare_buffer.shape[1:])
            )
            torch.index_select(buffer[:, :, : self.length], 0, rows, out=target[:, :, : self.length])
            self.buffers[i], self.spare_buffers[i] = target, buffer


class Attention(nn.Module):
    """Concat(head_1 .. head_h) W^O with head_i = softmax(Q_i K_i^T / sqrt(d_head)) V_i.

    The scale uses d_head, not d_model, and each head has its own projections. Additive attention replaces the scaled
    dot product by e_ij = w^T tanh(q_i + k_j + b). With fewer key/value heads than query heads, groups of adjacent query
    heads share keys and values.

    Source: Vaswani et al. 2017, section 3.2; Bahdanau et al. 2014 for additive scores; Ainslie et al. 2023 for grouped
    heads.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        n_kv_heads: int | None = None,
        d_head: int | None = None,
        bias: bool = True,
        qkv_bias: bool | None = None,
        scaled: bool = True,
        score: str = "dot",
    ) -> None:
        """
        Args:
            n_kv_heads: number of key/value heads, a divisor of n_heads. Default: n_heads.
            d_head: dimension of each head. Default: d_model / n_heads.
            bias: the projections have bias terms.
            qkv_bias: the projections to queries, keys and values have bias terms. Default: as `bias`.
            scaled: divide the dot products by sqrt(d_head). T5 does not.
            score: "dot" or "additive".

        Raises:
            ValueError: d_model is not divisible by n_heads and d_head is not given, or n_heads not by n_kv_heads.
        """
        super().__init__()
        if d_head is None and d_model % n_heads:
            raise ValueError(f"d_model {d_model} is not divisible by n_heads {n_heads}")
        n_kv_heads = n_kv_heads or n_heads
        if n_heads % n_kv_heads:
            raise ValueError(f"n_heads {n_heads} is not divisible by n_kv_heads {n_kv_heads}")
        d_head = d_head or d_model // n_heads
        qkv_bias = bias if qkv_bias is None else qkv_bias
        self.n_heads, self.n_kv_heads, self.d_head = n_heads, n_kv_heads, d_head
        self.scale = d_head**-0.5 if scaled else 1.0
        self.q_proj = Linear(d_model, n_heads * d_head, bias=qkv_bias)
        self.k_proj = Linear(d_model, n_kv_heads * d_head, bias=qkv_bias)
        self.v_proj = Linear(d_model, n_kv_heads * d_head, bias=qkv_bias)
        self.out_proj = Linear(n_heads * d_head, d_model, bias=bias)
        self.additive = nn.Parameter(torch.empty(2, n_heads, 1, d_head)) if score == "additive" else None
        """Additive attention only: w and b of each head."""
        if self.additive is not None:
            nn.init.normal_(self.additive, std=d_head**-0.5)

    def with_n_heads(self, n_heads: int) -> "Attention":
        """A new, untrained attention module with a different number of heads and the same d_head."""
        assert self.n_kv_heads == self.n_heads
        return Attention(
            self.q_proj.in_features,
            n_heads,
            d_head=self.d_head,
            bias=self.out_proj.bias is not None,
            qkv_bias=self.q_proj.bias is not None,
            scaled=self.scale != 1.0,
            score="dot" if self.additive is None else "additive",
        )

    def forward(
        self,
        x: Float[Tensor, "batch q d_model"],
        memory: Float[Tensor, "batch k d_model"] | None = None,
        mask: Bool[Tensor, "#batch #heads #q #k"] | None = None,
        *,
        causal: bool = False,
    ) -> Float[Tensor, "batch q d_model"]:
        """Self-attention, or cross-attention if `memory` is given.

        Args:
            memory: the sequence that keys and values are computed from: the encoder output. None: x.
            mask: True where a query may attend. Each query needs at least one key.
            causal: each position attends to itself and earlier positions only.
        """
        k, v = self.keys_values(x if memory is None else memory)
        return self.attend(x, k, v, mask, causal=causal)

    def keys_values(
        self, memory: Float[Tensor, "batch k d_model"], rotary: Rotary | None = None
    ) -> tuple[Heads, Heads]:
        """Project `memory` to keys and values, for repeated use with `attend`.

        Args:
            rotary: rotary position embedding of the keys.
        """
        keys, values = map(self.split_heads, linear_layers(memory, self.k_proj, self.v_proj))
        return keys if rotary is None else rotate(keys, *rotary), values

    def queries_keys_values(
        self, x: Float[Tensor, "batch length d_model"], rotary: Rotary | None = None
    ) -> tuple[Float[Tensor, "batch heads k d_head"], Heads, Heads]:
        """Project the input of self-attention to queries, keys and values."""
        # The order of the layers determines how the gradient of x is rounded.
        k, v, q = map(self.split_heads, linear_layers(x, self.k_proj, self.v_proj, self.q_proj))
        return (q, k, v) if rotary is None else (rotate(q, *rotary), rotate(k, *rotary), v)

    def attend(
        self,
        x: Float[Tensor, "batch q d_model"],
        k: Float[Tensor, "batch kv_heads k d_head"],
        v: Float[Tensor, "batch kv_heads k d_head"],
        mask: Bool[Tensor, "#batch #heads #q #k"] | Packing | None = None,
        *,
        causal: bool = False,
        position_bias: Float[Tensor, "1 heads #q k"] | None = None,
        queries: Float[Tensor, "batch heads q d_head"] | None = None,
    ) -> Float[Tensor, "batch q d_model"]:
        """Attention with queries from x over keys and values returned by `keys_values`.

        Args:
            mask: True where a query may attend; or how the sequences of a batch of one row are packed.
            causal: each query attends to keys up to its own position. The n queries are at the last n key
                positions, as in decoding with a cache.
            position_bias: added to the attention scores (T5).
            queries: the queries, if they have been computed from x already.
        """
        q = self.split_heads(self.q_proj(x)) if queries is None else queries
        if self.n_kv_heads != self.n_heads:
            k, v = (t.repeat_interleave(self.n_heads // self.n_kv_heads, dim=1) for t in (k, v))
        heads = self.sdpa(q, k, v, mask, causal, position_bias)
        return self.out_proj(heads.transpose(1, 2).flatten(-2))

    @overridable
    def sdpa(
        self,
        q: Float[Tensor, "batch heads q d_head"],
        k: Float[Tensor, "batch heads k d_head"],
        v: Float[Tensor, "batch heads k d_head"],
        mask: Bool[Tensor, "#batch #heads #q #k"] | Packing | None,
        causal: bool,
        position_bias: Float[Tensor, "1 heads #q k"] | None,
    ) -> Float[Tensor, "batch heads q d_head"]:
        """Attention output per head. Additive attention is always computed by `eager_attention`."""
        if self.additive is not None:
            return self.eager_attention(q, k, v, mask, causal, position_bias)
        return attention(q, k, v, mask, causal, position_bias, self.scale, self.training)

    def eager_attention(
        self,
        q: Float[Tensor, "batch heads q d_head"],
        k: Float[Tensor, "batch heads k d_head"],
        v: Float[Tensor, "batch heads k d_head"],
        mask: Bool[Tensor, "#batch #heads #q #k"] | Packing | None,
        causal: bool,
        position_bias: Float[Tensor, "1 heads #q k"] | None,
    ) -> Float[Tensor, "batch heads q d_head"]:
        """Attention output per head, computed from explicit attention weights so that they can be recorded."""
        return self.attention_weights(q, k, whole_mask(mask, q, k, causal), position_bias) @ v

    def attention_weights(
        self,
        q: Float[Tensor, "batch heads q d_head"],
        k: Float[Tensor, "batch heads k d_head"],
        mask: Bool[Tensor, "#batch #heads #q #k"] | None = None,
        position_bias: Float[Tensor, "1 heads #q k"] | None = None,
    ) -> Float[Tensor, "batch heads q k"]:
        """Attention weights: softmax of the scores. Each row sums to 1; masked keys have weight 0."""
        return masked_softmax(self.attention_scores(q, k), mask, position_bias).type_as(k)

    def attention_scores(
        self, q: Float[Tensor, "batch heads q d_head"], k: Float[Tensor, "batch heads k d_head"]
    ) -> Float[Tensor, "batch heads q k"]:
        """Attention scores before position bias, mask and softmax."""
        if self.additive is None:
            return q * self.scale @ k.transpose(-1, -2)
        w, b = self.additive
        return ((q[:, :, :, None] + (k + b)[:, :, None]).tanh() * w[:, None]).sum(-1)

    def split_heads(self, x: Float[Tensor, "batch length features"]) -> Float[Tensor, "batch heads length d_head"]:
        heads = x.view(*x.shape[:-1], -1, self.d_head).transpose(1, 2)
        # The same memory layout for any batch size: rounding of the matrix products depends on it.
        return heads if torch.is_grad_enabled() else heads.contiguous()
