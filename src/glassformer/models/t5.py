"""T5: text-to-text encoder-decoder with relative position biases."""

import math
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.model_config import T5Config
from glassformer.models.decoding import TransformerState
from glassformer.models.encoder_decoder import EncoderDecoder
from glassformer.nn.block import BlockConfig, TransformerBlock
from glassformer.nn.dropout import Dropout
from glassformer.nn.linear import batch_invariant_linear
from glassformer.nn.masks import padding_mask
from glassformer.nn.norm import RMSNorm
from glassformer.nn.overridable import overridable
from glassformer.nn.positions import position_ids


def relative_position_bucket(
    relative_position: Int[Tensor, "q k"], *, n_buckets: int, max_distance: int, bidirectional: bool
) -> Int[Tensor, "q k"]:
    """Bucket index of each relative position (key position - query position).

    If bidirectional, each direction has n_buckets / 2 buckets; else there is one direction, which has all. Half of the
    buckets of a direction hold one small distance each. The others cover ranges that grow logarithmically up to
    max_distance; the last one also holds all larger distances.

    Source: Raffel et al. 2019, section 2.1, and its published code.
    """
    buckets = torch.zeros_like(relative_position)
    if bidirectional:
        n_buckets //= 2
        buckets = (relative_position > 0) * n_buckets
        relative_position = relative_position.abs()
    else:
        relative_position = (-relative_position).clamp(min=0)
    max_exact = n_buckets // 2
    growth = (relative_position.clamp(min=1).float() / max_exact).log() / math.log(max_distance / max_exact)
    if_large = (max_exact + (growth * (n_buckets - max_exact)).long()).clamp(max=n_buckets - 1)
    return buckets + torch.where(relative_position < max_exact, relative_position, if_large)


class T5(EncoderDecoder):
    """Encoder-decoder with RMSNorm before sub-layers, relative position biases, and no bias terms in linear layers.

    Source: Raffel et al. 2019; Shazeer 2020 for the gated feed-forward of v1.1.
    """

    config_class = T5Config
    has_position_limit = False
    output_bias: ClassVar[None] = None

    def __init__(self, config: T5Config) -> None:
        super().__init__(config)
        self.config = c = config
        block_config = BlockConfig(
            c.d_model, c.n_heads, c.d_ff, c.dropout, pre_norm=True, activation=c.activation, norm="rms",
            norm_eps=c.norm_eps, d_head=c.d_head, bias=False, scaled=False,
        )  # fmt: skip
        self.embedding = nn.Embedding(c.vocab_size, c.d_model)
        self.dropout = Dropout(c.dropout)
        self.encoder: Any = nn.ModuleList(TransformerBlock(block_config) for _ in range(c.n_encoder_layers))
        self.decoder: Any = nn.ModuleList(
            TransformerBlock(block_config, causal=True, cross=True) for _ in range(c.n_decoder_layers)
        )
        self.encoder_position_bias = nn.Embedding(c.n_buckets, c.n_heads)
        self.decoder_position_bias = nn.Embedding(c.n_buckets, c.n_heads)
        self.encoder_norm = RMSNorm(c.d_model, eps=c.norm_eps)
        self.decoder_norm = RMSNorm(c.d_model, eps=c.norm_eps)
        self.output = None if c.tie_embeddings else nn.Linear(c.d_model, c.vocab_size, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Normal initialization: token embedding with std 1, position biases and output with std d_model^-0.5, other
        matrices with std (fan in)^-0.5; queries with a further factor d_head^-0.5, because attention is not scaled.
        """
        c = self.config
        for name, p in self.named_parameters():
            if p.dim() > 1:
                std = p.size(1) ** -0.5
                if name.startswith("embedding"):
                    std = 1.0
                elif "bias" in name or name.startswith("output"):
                    std = c.d_model**-0.5
                elif "q_proj" in name:
                    std = (c.d_model * c.d_head) ** -0.5
                nn.init.normal_(p, std=std)

    @overridable
    def compute_bias(
        self, table: nn.Embedding, query_positions: Int[Tensor, " q"], n_keys: int
    ) -> Float[Tensor, "1 heads q k"]:
        """Relative position bias of the attention scores of queries at some positions and keys at all up to n_keys."""
        c = self.config
        buckets = relative_position_bucket(
            torch.arange(n_keys, device=query_positions.device)[None] - query_positions[:, None],
            n_buckets=c.n_buckets,
            max_distance=c.max_distance,
            bidirectional=table is self.encoder_position_bias,
        )
        return table(buckets).permute(2, 0, 1)[None]

    def encode(self, src: Int[Tensor, "batch src"]) -> Float[Tensor, "batch src d_model"]:
        """Encoder output (memory)."""
        mask, x = padding_mask(src, self.config.pad_id), self.dropout(self.embedding(src))
        bias = self.compute_bias(self.encoder_position_bias, position_ids(src), src.size(1))
        for layer in self.encoder:
            x = layer(x, mask, position_bias=bias)
        return self.dropout(self.encoder_norm(x))

    def forward(
        self, src: Int[Tensor, "batch src"], tgt_in: Int[Tensor, "batch tgt"]
    ) -> Float[Tensor, "batch tgt d_model"]:
        """Decoder output at every target position; `logits` projects it to the vocabulary."""
        memory, mask = self.encode(src), padding_mask(src, self.config.pad_id)
        x = self.dropout(self.embedding(tgt_in))
        bias = self.compute_bias(self.decoder_position_bias, position_ids(tgt_in), tgt_in.size(1))
        for layer in self.decoder:
            x = layer(
                x, cross_keys_values=layer.cross_attention.keys_values(memory), cross_mask=mask, position_bias=bias
            )
        return self.logits_input(self.decoder_norm(x))

    def logits_input(self, hidden: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """The input of `logits`: decoder output after dropout and, if config.scale_output, times d_model^-0.5."""
        hidden = self.dropout(hidden)
        return hidden * self.config.d_model**-0.5 if self.config.scale_output else hidden

    def final_norm(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        return self.logits_input(self.decoder_norm(x))

    @property
    def pruning_obstacle(self) -> str:
        return "all layers share one relative position bias table with one column per head."

    @property
    def output_weight(self) -> Tensor:
        """Weight of the projection to the vocabulary."""
        return self.embedding.weight if self.output is None else self.output.weight

    def logits(self, hidden: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab"]:
        return batch_invariant_linear(hidden, self.output_weight)

    def step(self, ids: Int[Tensor, " rows"], state: TransformerState) -> Float[Tensor, "rows vocab"]:
        """Logits of the next token, given `ids`, the last token of each hypothesis. Updates the state."""
        ids = ids[:, None]
        x = self.embedding(ids)
        bias = self.compute_bias(self.decoder_position_bias, position_ids(ids, state.length), state.length + 1)
        for layer, keys_values, cache in zip(self.decoder, state.cross_keys_values, state.caches, strict=True):
            x = layer(x, cross_keys_values=keys_values, cross_mask=state.cross_mask, position_bias=bias, cache=cache)
        return self.logits(self.logits_input(self.decoder_norm(x))[:, 0])
