"""GPT-2: a decoder-only Transformer."""

from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.model_config import Gpt2Config
from glassformer.models.decoder_only import DecoderOnly
from glassformer.models.initialization import init_sinusoidal_
from glassformer.nn.block import BlockConfig, TransformerBlock
from glassformer.nn.dropout import Dropout


class Gpt2(DecoderOnly):
    """Decoder-only Transformer: learned position embeddings, pre-norm blocks, causal attention, tied embeddings.

    Source: Radford et al. 2019.
    """

    config_class = Gpt2Config

    def __init__(self, config: Gpt2Config) -> None:
        super().__init__(config)
        self.config = c = config
        block_config = BlockConfig(
            c.d_model, c.n_heads, c.d_ff, c.dropout, pre_norm=True, activation=c.activation, norm_eps=c.norm_eps
        )
        self.embedding = nn.Embedding(c.vocab_size, c.d_model)
        self.position_embedding = nn.Embedding(c.max_len, c.d_model)
        self.dropout = Dropout(c.dropout)
        self.decoder: Any = nn.ModuleList(TransformerBlock(block_config, causal=True) for _ in range(c.n_layers))
        self.decoder_norm = nn.LayerNorm(c.d_model, eps=c.norm_eps)
        self.prune_heads()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        init_sinusoidal_(self.position_embedding)

    def position_vectors(self, n_positions: int, side: str = "source") -> Float[Tensor, "positions d_model"]:
        return self.position_embedding.weight[:n_positions]

    def embed(
        self, ids: Int[Tensor, "batch length"], positions: Int[Tensor, "... length"]
    ) -> Float[Tensor, "batch length d_model"]:
        return self.dropout(self.embedding(ids) + self.position_embedding(positions))
