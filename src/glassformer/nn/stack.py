"""Layers of sub-layers, and stacks of layers."""

from collections.abc import Callable

from jaxtyping import Bool, Float
from torch import Tensor, nn

from glassformer.nn.attention import Attention, Heads, KeyValueCache
from glassformer.nn.dropout import Dropout
from glassformer.nn.feedforward import FeedForward

KeysValues = tuple[Heads, Heads]


class Residual(nn.Module):
    """What stands around every sub-layer.

    Post-norm, as published: LayerNorm(x + Dropout(Sublayer(x))). Pre-norm: x + Dropout(Sublayer(LayerNorm(x))).

    Source: Vaswani et al. 2017, sections 3.1 and 5.4; Xiong et al. 2020 for pre-norm.
    """

    def __init__(self, d_model: int, dropout: float, *, pre_norm: bool) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.dropout = Dropout(dropout)
        self.pre_norm = pre_norm

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        sublayer: Callable[[Float[Tensor, "batch length d_model"]], Float[Tensor, "batch length d_model"]],
    ) -> Float[Tensor, "batch length d_model"]:
        if self.pre_norm:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward."""

    def __init__(self, d_model: int, n_heads: int, d_ff: int, dropout: float, *, pre_norm: bool) -> None:
        super().__init__()
        self.self_attention = Attention(d_model, n_heads)
        self.feedforward = FeedForward(d_model, d_ff)
        self.around_self = Residual(d_model, dropout, pre_norm=pre_norm)
        self.around_feedforward = Residual(d_model, dropout, pre_norm=pre_norm)

    def forward(
        self, x: Float[Tensor, "batch length d_model"], mask: Bool[Tensor, "#batch #heads #length length"] | None = None
    ) -> Float[Tensor, "batch length d_model"]:
        x = self.around_self(x, lambda x: self.self_attention(x, mask=mask))
        return self.around_feedforward(x, self.feedforward)


class DecoderLayer(nn.Module):
    """Masked self-attention, attention over the encoder's output, then feed-forward."""

    def __init__(self, d_model: int, n_heads: int, d_ff: int, dropout: float, *, pre_norm: bool) -> None:
        super().__init__()
        self.self_attention = Attention(d_model, n_heads)
        self.cross_attention = Attention(d_model, n_heads)
        self.feedforward = FeedForward(d_model, d_ff)
        self.around_self = Residual(d_model, dropout, pre_norm=pre_norm)
        self.around_cross = Residual(d_model, dropout, pre_norm=pre_norm)
        self.around_feedforward = Residual(d_model, dropout, pre_norm=pre_norm)

    def forward(
        self,
        x: Float[Tensor, "rows length d_model"],
        memory: KeysValues,
        mask: Bool[Tensor, "batch 1 1 k"] | None = None,
        cache: KeyValueCache | None = None,
    ) -> Float[Tensor, "rows length d_model"]:
        """All positions of a target at once, or with a cache the next position of each row.

        Args:
            memory: what `cross_attention.keys_values` made of the encoder's output, one row a sentence. x may have
                several rows (hypotheses) a sentence, side by side: they share the sentence's keys and values.
        """

        def look_back(x: Tensor) -> Tensor:
            if cache is None:
                return self.self_attention(x, causal=True)  # type: ignore[no-any-return]
            k, v = cache.append(*self.self_attention.keys_values(x))
            return self.self_attention.attend(x, k, v)

        def look_across(x: Tensor) -> Tensor:
            queries = x.reshape(memory[0].size(0), -1, x.size(-1))
            return self.cross_attention.attend(queries, *memory, mask).reshape(x.shape)

        x = self.around_self(x, look_back)
        x = self.around_cross(x, look_across)
        return self.around_feedforward(x, self.feedforward)
