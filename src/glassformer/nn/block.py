"""Transformer block: attention and feed-forward sub-layers with residual connections and normalization."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from glassformer.nn.attention import Attention, Heads, KeyValueCache, Rotary
from glassformer.nn.dropout import Dropout
from glassformer.nn.feedforward import FeedForward
from glassformer.nn.norm import RMSNorm
from glassformer.nn.ops.residual import residual
from glassformer.nn.packing import Packing

KeysValues = tuple[Heads, Heads]
"""Keys and values of an attention module."""


@dataclass(frozen=True, slots=True)
class BlockConfig:
    """Hyperparameters of a Transformer block. Defaults: the original Transformer."""

    d_model: int
    n_heads: int
    d_ff: int
    dropout: float
    pre_norm: bool = False
    activation: str = "relu"
    norm: str = "layer"
    """"layer": LayerNorm; "rms": RMSNorm, without mean and bias (Zhang & Sennrich 2019)."""
    norm_eps: float = 1e-5
    n_kv_heads: int | None = None
    d_head: int | None = None
    bias: bool = True
    qkv_bias: bool | None = None
    """Queries, keys and values have bias terms. None: as `bias`."""
    scaled: bool = True
    """Whether dot products are divided by sqrt(d_head)."""
    score: str = "dot"
    """"dot" or "additive" attention scores."""


def make_norm(c: BlockConfig) -> nn.Module:
    """The normalization module of a block, over the last axis."""
    if c.norm == "rms":
        return RMSNorm(c.d_model, eps=c.norm_eps)
    return nn.LayerNorm(c.d_model, eps=c.norm_eps)


def make_attention(c: BlockConfig) -> Attention:
    """An attention module of a block."""
    return Attention(
        c.d_model, c.n_heads, n_kv_heads=c.n_kv_heads, d_head=c.d_head, bias=c.bias, qkv_bias=c.qkv_bias,
        scaled=c.scaled, score=c.score,
    )  # fmt: skip


class Residual(nn.Module):
    """Residual connection, dropout and normalization around a sub-layer.

    Post-norm, as published: LayerNorm(x + Dropout(Sublayer(x))). Pre-norm: x + Dropout(Sublayer(LayerNorm(x))).

    Source: Vaswani et al. 2017, sections 3.1 and 5.4; Xiong et al. 2020 for pre-norm.
    """

    def __init__(self, c: BlockConfig) -> None:
        super().__init__()
        self.norm = make_norm(c)
        self.dropout = Dropout(c.dropout)
        self.pre_norm = c.pre_norm

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        sublayer: Callable[[Float[Tensor, "batch length d_model"]], Float[Tensor, "batch length d_model"]],
    ) -> Float[Tensor, "batch length d_model"]:
        output = sublayer(self.norm(x) if self.pre_norm else x)
        return residual(x, output, None if self.pre_norm else self.norm, self.dropout, self.training)


class TransformerBlock(nn.Module):
    """Transformer block: self-attention, optional cross-attention, feed-forward. Used by encoders and decoders."""

    activation_checkpointing = False
    """In training, keep only the inputs for the backward pass, which computes the activations a second time."""

    def __init__(self, c: BlockConfig, *, causal: bool = False, cross: bool = False) -> None:
        """
        Args:
            causal: each position attends to itself and earlier positions only.
            cross: add cross-attention over an encoder's output.
        """
        super().__init__()
        self.causal = causal
        self.self_attention = make_attention(c)
        self.feedforward = FeedForward(c.d_model, c.d_ff, c.activation, bias=c.bias)
        self.self_attn_residual = Residual(c)
        self.feedforward_residual = Residual(c)
        if cross:
            self.cross_attention = make_attention(c)
            self.cross_attn_residual = Residual(c)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.activation_checkpointing and self.training:
            return checkpoint(super().__call__, *args, use_reentrant=False, **kwargs)
        return super().__call__(*args, **kwargs)

    def forward(
        self,
        x: Float[Tensor, "rows length d_model"],
        mask: Bool[Tensor, "#rows #heads #length #keys"] | Packing | None = None,
        *,
        cross_keys_values: KeysValues | None = None,
        cross_mask: Bool[Tensor, "batch 1 1 m"] | Packing | None = None,
        position_bias: Float[Tensor, "1 heads #length keys"] | None = None,
        rotary: Rotary | None = None,
        cache: KeyValueCache | None = None,
    ) -> Float[Tensor, "rows length d_model"]:
        """Process all positions at once, or with a cache the positions that follow the cached ones.

        Args:
            mask: True where self-attention may attend; or how the sequences of a single row are packed.
            cross_keys_values: keys and values that `cross_attention.keys_values` computed from the encoder output, one
                row per sentence. x may have several adjacent rows (hypotheses) per sentence, which share its keys and
                values. None: no cross-attention.
            cross_mask: as `mask`, for cross-attention: True at the source tokens, not at padding.
            position_bias: added to the scores of self-attention.
            rotary: rotary position embedding of the queries and keys of self-attention.
        """
        x = self.self_attn_residual(x, lambda x: self.self_attend(x, mask, position_bias, rotary, cache))
        if cross_keys_values is not None:
            x = self.cross_attn_residual(x, lambda x: self.cross_attend(x, cross_keys_values, cross_mask))
        return self.feedforward_residual(x, self.feedforward)

    def self_attend(
        self,
        x: Float[Tensor, "rows length d_model"],
        mask: Bool[Tensor, "#rows #heads #length #keys"] | Packing | None,
        position_bias: Float[Tensor, "1 heads #length keys"] | None,
        rotary: Rotary | None,
        cache: KeyValueCache | None,
    ) -> Float[Tensor, "rows length d_model"]:
        q, k, v = self.self_attention.queries_keys_values(x, rotary)
        if cache is not None:
            k, v = cache.append(k, v)
        causal = self.causal and x.size(1) > 1  # a single new position attends to all cached positions
        return self.self_attention.attend(x, k, v, mask, causal=causal, position_bias=position_bias, queries=q)

    def cross_attend(
        self,
        x: Float[Tensor, "rows length d_model"],
        keys_values: KeysValues,
        mask: Bool[Tensor, "batch 1 1 m"] | Packing | None,
    ) -> Float[Tensor, "rows length d_model"]:
        queries = x.reshape(keys_values[0].size(0), -1, x.size(-1))
        return self.cross_attention.attend(queries, *keys_values, mask).reshape(x.shape)
