"""Llama and its relatives Qwen2 and Mistral: decoder-only Transformers with rotary positions."""

from typing import Any

from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from glassformer.limits import MAX_TOKENS
from glassformer.model_config import Activation, AttentionModelConfig
from glassformer.models.decoder_only import DecoderOnly
from glassformer.nn.attention import Rotary
from glassformer.nn.block import BlockConfig, TransformerBlock
from glassformer.nn.dropout import Dropout
from glassformer.nn.norm import RMSNorm
from glassformer.nn.positions import rotary_embedding


class LlamaConfig(AttentionModelConfig):
    """Decoder-only Transformer. Defaults: the model of 7 B parameters, Touvron et al. 2023, table 2. Comments name
    values of other models.
    """

    d_model: int = Field(default=4096, ge=2, le=1 << 14)
    n_heads: int = Field(default=32, ge=1)
    n_kv_heads: int | None = Field(default=None, ge=1)
    """Number of key/value heads, a divisor of n_heads. None: n_heads."""
    d_head: int | None = Field(default=None, ge=2)
    """Dimension of each head. None: d_model / n_heads."""
    d_ff: int = Field(default=11_008, ge=1, le=1 << 16)
    n_layers: int = Field(default=32, ge=1, le=128)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    max_len: int = Field(default=2048, ge=8, le=MAX_TOKENS)
    activation: Activation = "gated_silu"
    norm_eps: float = 1e-6  # Llama 2: 1e-5
    rope_theta: float = Field(default=10_000.0, gt=0)  # Llama 3: 500,000; Qwen2: 1,000,000
    qkv_bias: bool = False  # Qwen2: True
    tie_embeddings: bool = False  # small Qwen2 and Llama 3.2 models: True

    def layout_faults(self) -> list[str]:
        faults = super().layout_faults()
        if self.n_heads % (self.n_kv_heads or self.n_heads):
            faults.append(f"n_heads = {self.n_heads} is not divisible by n_kv_heads = {self.n_kv_heads}")
        if (d_head := self.d_head or self.d_model // self.n_heads) % 2:
            faults.append(f"d_head = {d_head} must be even, because rotary positions rotate pairs")
        return faults


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
