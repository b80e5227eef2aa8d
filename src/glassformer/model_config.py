"""Sizes of each family of models, as frozen records: what a model folder's config.json says."""

from typing import Literal, Self

from pydantic import Field, model_validator

from glassformer.config import Config
from glassformer.limits import MAX_TOKENS

Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "gated_gelu"]


class ModelConfig(Config):
    """What all families have."""

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
            raise ValueError(f"a special token's id is not among the {self.vocab_size} of the vocabulary")
        return self


class AttentionModelConfig(ModelConfig):
    """What all Transformers have."""

    n_heads: int = Field(default=8, ge=1)
    d_ff: int = Field(default=2048, ge=1, le=1 << 16)
    pruned_heads: dict[str, int] = Field(default_factory=dict)
    """Of attentions that lost heads by `glassformer ablate --prune`, by their names, how many are left."""

    @model_validator(mode="after")
    def check_heads(self) -> Self:
        if getattr(self, "d_head", None) is None and self.d_model % self.n_heads:
            raise ValueError(
                f"d_model = {self.d_model} does not split into n_heads = {self.n_heads} equal heads; "
                f"choose n_heads from the divisors of {self.d_model}"
            )
        return self


class TransformerConfig(AttentionModelConfig):
    """The encoder-decoder. Defaults: "base", Vaswani et al. 2017, table 3."""

    n_encoder_layers: int = Field(default=6, ge=1, le=128)
    n_decoder_layers: int = Field(default=6, ge=1, le=128)
    pre_norm: bool = False  # False = post-norm, as published
    attention: Literal["dot", "additive"] = "dot"
    activation: Activation = "relu"
    sinusoid_layout: Literal["interleaved", "concat"] = "interleaved"
    """Where sines and cosines stand: by turns, as published, or all sines first (MarianMT)."""
    scale_embedding: bool = True  # by d_model^0.5
    output_bias: bool = False  # of each word's logit (MarianMT)

    @model_validator(mode="after")
    def check_pairs(self) -> Self:
        if self.d_model % 2:
            raise ValueError(f"d_model = {self.d_model} must be even: sines and cosines come in pairs")
        return self


class BertConfig(AttentionModelConfig):
    """The encoder. Defaults: "base", Devlin et al. 2018, section 3; RoBERTa and DistilBERT differ in what is named."""

    d_model: int = Field(default=768, ge=2, le=1 << 14)
    n_heads: int = Field(default=12, ge=1)
    d_ff: int = Field(default=3072, ge=1, le=1 << 16)
    n_layers: int = Field(default=12, ge=1, le=128)
    max_len: int = Field(default=512, ge=8, le=MAX_TOKENS)
    n_token_types: int = Field(default=2, ge=0, le=16)  # token types; 0 = none (DistilBERT)
    position_offset: int = Field(default=0, ge=0, le=MAX_TOKENS)  # of the position table; RoBERTa: 2
    pre_norm: bool = False
    activation: Activation = "gelu"
    norm_eps: float = 1e-12
    head: Literal["none", "mlm", "sequence", "tokens", "span"] = "mlm"
    """What is asked of it: nothing but vectors, the masked words, an answer a sequence or a token, or a stretch."""
    n_labels: int = Field(default=0, ge=0, le=1 << 20)
    pooling: Literal["first", "mean"] = "first"
    """What stands for a sequence: its first token ([CLS]) or the mean of all."""
    pooler: bool = True
    """A dense layer between the pooled vector and what is asked of it."""
    pooler_activation: Literal["tanh", "relu"] = "tanh"  # DistilBERT: relu


class Gpt2Config(AttentionModelConfig):
    """The decoder. Defaults: the 124 M model, Radford et al. 2019."""

    d_model: int = Field(default=768, ge=2, le=1 << 14)
    n_heads: int = Field(default=12, ge=1)
    d_ff: int = Field(default=3072, ge=1, le=1 << 16)
    n_layers: int = Field(default=12, ge=1, le=128)
    max_len: int = Field(default=1024, ge=8, le=MAX_TOKENS)
    activation: Activation = "gelu_tanh"
    norm_eps: float = 1e-5


class T5Config(AttentionModelConfig):
    """Text to text. Defaults: "base", Raffel et al. 2019; v1.1 has gated_gelu and an output matrix of its own."""

    d_model: int = Field(default=768, ge=2, le=1 << 14)
    n_heads: int = Field(default=12, ge=1)
    d_head: int = Field(default=64, ge=1)
    d_ff: int = Field(default=3072, ge=1, le=1 << 16)
    n_encoder_layers: int = Field(default=12, ge=1, le=128)
    n_decoder_layers: int = Field(default=12, ge=1, le=128)
    max_len: int = Field(default=512, ge=8, le=MAX_TOKENS)
    n_buckets: int = Field(default=32, ge=4)
    max_distance: int = Field(default=128, ge=8)
    activation: Activation = "relu"
    tie_embeddings: bool = True  # one matrix for embedding and output; False = v1.1
    scale_output: bool = True  # by d_model^-0.5 before that matrix; False = v1.1
    norm_eps: float = 1e-6


class RnnConfig(ModelConfig):
    """The recurrent baseline: bidirectional LSTM encoder, LSTM decoder, additive attention (Bahdanau et al. 2014)."""

    n_layers: int = Field(default=1, ge=1, le=16)


class SkipGramConfig(ModelConfig):
    """Vectors of words. Defaults: Mikolov et al. 2013."""

    d_model: int = Field(default=300, ge=2, le=1 << 14)
