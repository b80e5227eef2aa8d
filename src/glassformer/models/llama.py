"""Llama and its relatives Qwen2 and Mistral: decoder-only Transformers with rotary positions."""

from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.model_config import LlamaConfig
from glassformer.models.decoder_only import DecoderOnly
from glassformer.nn.attention import Rotary
from glassformer.nn.block import BlockConfig, TransformerBlock
from glassformer.nn.dropout import Dropout
from glassformer.nn.norm import RMSNorm
from glassformer.nn.positions import rotary_embedding


class Llama(DecoderOnly):
    """Decoder-only Transformer: rotary positions, RMSNorm before sub-layers, SwiGLU, no bias terms, optionally grouped
    key/value heads.

    Source: Touvron et al. 2023, section 2.2.
    """

    config_class = LlamaConfig

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__(config)
        self.config = c = config
        self.d_head = c.d_head or c.d_model // c.n_heads
        block_config = BlockConfig(
            c.d_model, c.n_heads, c.d_ff, c.dropout, pre_norm=True, activation=c.activation, norm="rms",
            norm_eps=c.norm_eps, n_kv_heads=c.n_kv_heads, d_head=self.d_head, bias=False, qkv_bias=c.qkv_bias,
        )  # fmt: skip
        self.embedding = nn.Embedding(c.vocab_size, c.d_model)
        self.dropout = Dropout(c.dropout)
        self.decoder: Any = nn.ModuleList(TransformerBlock(block_config, causal=True) for _ in range(c.n_layers))
        self.decoder_norm = RMSNorm(c.d_model, eps=c.norm_eps)
        self.output = None if c.tie_embeddings else nn.Linear(c.d_model, c.vocab_size, bias=False)
        self.prune_heads()
        self.reset_parameters()

    def embed(
        self, ids: Int[Tensor, "batch length"], positions: Int[Tensor, "... length"]
    ) -> Float[Tensor, "batch length d_model"]:
        return self.dropout(self.embedding(ids))

    def rotary(self, positions: Int[Tensor, "... length"]) -> Rotary:
        return rotary_embedding(positions, self.d_head, self.config.rope_theta)

    @property
    def pruning_obstacle(self) -> str | None:
        is_grouped = (self.config.n_kv_heads or self.config.n_heads) < self.config.n_heads
        return "groups of its query heads share keys and values." if is_grouped else None

    @property
    def output_weight(self) -> Tensor:
        return self.embedding.weight if self.output is None else self.output.weight
