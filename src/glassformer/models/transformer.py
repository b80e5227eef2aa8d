"""The original encoder-decoder Transformer."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.generate.protocol import PAD_TO_MULTIPLE_OF
from glassformer.model_config import TransformerConfig
from glassformer.models.decoding import TransformerState
from glassformer.models.encoder_decoder import EncoderDecoder
from glassformer.models.initialization import scale_branches_
from glassformer.nn.attention import Rotary
from glassformer.nn.block import BlockConfig, TransformerBlock
from glassformer.nn.dropout import Dropout
from glassformer.nn.linear import batch_invariant_linear
from glassformer.nn.masks import padding_mask
from glassformer.nn.packing import HEAD_SIZES, Packing, Spans, packed_position_ids
from glassformer.nn.positions import position_ids, rotary_embedding, sinusoids


def n_positions(max_len: int) -> int:
    """Size of the position table: the maximum length, the end token and the padding."""
    return max_len + 1 + PAD_TO_MULTIPLE_OF


def positions_of(ids: Int[Tensor, "batch length"], spans: Spans | None) -> Int[Tensor, "... length"]:
    """Position of each token in its sequence, also of packed ones."""
    return position_ids(ids) if spans is None else packed_position_ids(spans, ids.size(1))


class Transformer(EncoderDecoder):
    """Encoder-decoder Transformer. One matrix is shared by both embeddings and the projection to the vocabulary.

    Source: Vaswani et al. 2017; Press & Wolf 2017 for the shared matrix; Su et al. 2021 for rotary positions.
    """

    config_class = TransformerConfig

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        self.config = c = config
        block_config = BlockConfig(
            c.d_model, c.n_heads, c.d_ff, c.dropout, c.pre_norm, activation=c.activation, score=c.attention
        )
        self.embedding = nn.Embedding(c.vocab_size, c.d_model, padding_idx=c.pad_id)
        self.dropout = Dropout(c.dropout)
        self.encoder: Any = nn.ModuleList(TransformerBlock(block_config) for _ in range(c.n_encoder_layers))
        self.decoder: Any = nn.ModuleList(
            TransformerBlock(block_config, causal=True, cross=True) for _ in range(c.n_decoder_layers)
        )
        for side in ("encoder", "decoder"):
            table = nn.Embedding(n_positions(c.max_len), c.d_model) if c.learned_positions else None
            setattr(self, f"{side}_positions", table)
            setattr(self, f"{side}_embedding_norm", nn.LayerNorm(c.d_model) if c.embedding_norm else nn.Identity())
        # Post-norm blocks already end with a normalization.
        self.encoder_norm = nn.LayerNorm(c.d_model) if c.pre_norm else nn.Identity()
        self.decoder_norm = nn.LayerNorm(c.d_model) if c.pre_norm else nn.Identity()
        self.output_bias = nn.Parameter(torch.zeros(c.vocab_size)) if c.output_bias else None
        """Added to the logits."""
        self.positions: Tensor
        self.encoder_positions: nn.Embedding | None
        self.decoder_positions: nn.Embedding | None
        self.prune_heads()
        self.reset_buffers()
        self.reset_parameters()

    def reset_buffers(self) -> None:
        """Compute the sinusoidal position encoding."""
        table = sinusoids(n_positions(self.config.max_len), self.config.d_model)
        if self.config.sinusoid_layout == "concat":
            table = torch.cat([table[:, 0::2], table[:, 1::2]], dim=1)
        self.register_buffer("positions", table, persistent=False)

    def reset_parameters(self) -> None:
        """Glorot-uniform matrices, with pre-norm smaller ones at the end of residual branches; embeddings with std
        d_model^-0.5, which is 1 after scaling by d_model^0.5.
        """
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)
        if self.config.pre_norm:
            scale_branches_(self.encoder)
            scale_branches_(self.decoder)
        for table in (self.embedding, self.encoder_positions, self.decoder_positions):
            if table is not None:
                nn.init.normal_(table.weight, std=self.config.d_model**-0.5)
        with torch.no_grad():
            self.embedding.weight[self.config.pad_id] = 0

    def embed(
        self, ids: Int[Tensor, "batch length"], positions: Int[Tensor, "... length"], side: str = "encoder"
    ) -> Float[Tensor, "batch length d_model"]:
        """Input of the first layer of a side, "encoder" or "decoder"."""
        x = self.embedding(ids)
        if self.config.scale_embedding:
            x = x * self.config.d_model**0.5
        if not self.config.rotary:
            x = x + F.embedding(positions, self.position_table(side))
        return self.dropout(getattr(self, f"{side}_embedding_norm")(x))

    def rotary(self, positions: Int[Tensor, "... length"]) -> Rotary | None:
        """Rotary position embedding of the tokens, if the model has one."""
        return rotary_embedding(positions, self.config.d_model // self.config.n_heads) if self.config.rotary else None

    def position_table(self, side: str) -> Float[Tensor, "positions d_model"]:
        """The vectors that are added to the embeddings of a side."""
        table = getattr(self, f"{side}_positions")
        return self.positions if table is None else table.weight

    @property
    def can_pack(self) -> bool:
        return self.config.attention == "dot" and self.config.d_model // self.config.n_heads in HEAD_SIZES

    @property
    def embedding_scale(self) -> float:
        return float(self.config.d_model**0.5) if self.config.scale_embedding else 1.0

    def position_vectors(self, n_positions: int, side: str = "source") -> Float[Tensor, "positions d_model"] | None:
        if self.config.rotary:
            return None
        return self.position_table("decoder" if side == "target" else "encoder")[:n_positions]

    def encode(self, src: Int[Tensor, "batch src"], spans: Spans | None = None) -> Float[Tensor, "batch src d_model"]:
        """Encoder output (memory).

        Args:
            spans: the sources in a batch of one row, if they are packed.
        """
        mask = padding_mask(src, self.config.pad_id) if spans is None else Packing(spans, spans)
        positions = positions_of(src, spans)
        x, rotary = self.embed(src, positions), self.rotary(positions)
        for layer in self.encoder:
            x = layer(x, mask, rotary=rotary)
        return self.encoder_norm(x)

    def forward(
        self,
        src: Int[Tensor, "batch src"],
        tgt_in: Int[Tensor, "batch tgt"],
        src_spans: Spans | None = None,
        tgt_spans: Spans | None = None,
    ) -> Float[Tensor, "batch tgt d_model"]:
        """Decoder output at every target position; `logits` projects it to the vocabulary.

        Target padding needs no mask: it follows all tokens, and causal attention excludes later positions.

        Args:
            src_spans, tgt_spans: sources and targets in a batch of one row, if they are packed.
        """
        memory = self.encode(src, src_spans)
        mask: Packing | None = None
        cross_mask: Packing | Tensor = padding_mask(src, self.config.pad_id)
        if src_spans is not None and tgt_spans is not None:
            mask, cross_mask = Packing(tgt_spans, tgt_spans), Packing(tgt_spans, src_spans)
        positions = positions_of(tgt_in, tgt_spans)
        x, rotary = self.embed(tgt_in, positions, "decoder"), self.rotary(positions)
        for layer in self.decoder:
            keys_values = layer.cross_attention.keys_values(memory)
            x = layer(x, mask, rotary=rotary, cross_keys_values=keys_values, cross_mask=cross_mask)
        return self.decoder_norm(x)

    @property
    def output_weight(self) -> Tensor:
        """Weight of the projection to the vocabulary."""
        return self.embedding.weight

    def logits(self, hidden: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab"]:
        return batch_invariant_linear(hidden, self.output_weight, self.output_bias)

    def step(self, ids: Int[Tensor, " rows"], state: TransformerState) -> Float[Tensor, "rows vocab"]:
        """Logits of the next token, given `ids`, the last token of each hypothesis. Updates the state."""
        positions = position_ids(ids[:, None], state.length)
        x, rotary = self.embed(ids[:, None], positions, "decoder"), self.rotary(positions)
        for layer, keys_values, cache in zip(self.decoder, state.cross_keys_values, state.caches, strict=True):
            x = layer(x, rotary=rotary, cross_keys_values=keys_values, cross_mask=state.cross_mask, cache=cache)
        return self.logits(self.decoder_norm(x)[:, 0])
