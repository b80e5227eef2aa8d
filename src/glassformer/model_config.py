"""Configurations of the model families, as stored in config.json of a model folder."""

from typing import Literal, Self

from pydantic import Field, model_validator

from glassformer.config import Config
from glassformer.limits import MAX_TOKENS

Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "gated_gelu", "gated_silu"]


class ModelConfig(Config):
    """Fields of all model families."""

    vocab_size: int = Field(ge=4, le=1 << 20)  # no default: the tokenizer decides
    d_model: int = Field(default=512, ge=2, le=1 << 14)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    max_len: int = Field(default=256, ge=8, le=MAX_TOKENS)
    pad_id: int = Field(default=0, ge=0)
    bos_id: int = Field(default=1, ge=0)
    eos_id: int = Field(default=2, ge=0)

    @model_validator(mode="after")
    def check_special_tokens(self) -> Self:
        if max(self.pad_id, self.bos_id, self.eos_id) >= self.vocab_size:
            raise ValueError(f"the id of a special token is not less than vocab_size = {self.vocab_size}")
        return self


class AttentionModelConfig(ModelConfig):
    """Fields of all Transformer families."""

    n_heads: int = Field(default=8, ge=1)
    d_ff: int = Field(default=2048, ge=1, le=1 << 16)
    pruned_heads: dict[str, int] = Field(default_factory=dict)
    """Attention modules from which heads were pruned -> number of heads that remain (not the list of removed heads that
    transformers stores under this name)."""

    def layout_faults(self) -> list[str]:
        """Descriptions of the sizes that do not fit together."""
        if getattr(self, "d_head", None) is None and self.d_model % self.n_heads:
            return [
                f"d_model = {self.d_model} is not divisible by n_heads = {self.n_heads}; "
                f"choose n_heads from the divisors of {self.d_model}"
            ]
        return []

    @model_validator(mode="after")
    def check_layout(self) -> Self:
        if faults := self.layout_faults():
            raise ValueError("; ".join(faults))
        return self
