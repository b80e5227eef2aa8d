"""The model families and their configurations, as stored in config.json of a model folder."""

from typing import Any, Literal, NamedTuple, Self

from pydantic import Field, field_validator, model_validator

from glassformer.config import Config
from glassformer.limits import MAX_TOKENS

Kind = Literal["encoder", "decoder", "encoder-decoder", "word-vectors"]
"""Type of a model family. Encoders read a text; decoders continue a text, with causal attention;
encoder-decoders generate a text from a source text; word vectors have no layers."""

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

    def weight_shapes(self) -> dict[str, tuple[int, ...]] | None:
        """Names and shapes of the weights of a model that is used without a graph and without PyTorch. None: the graph
        has them, or the module of PyTorch checks them."""
        return None


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


class TransformerConfig(AttentionModelConfig):
    """Encoder-decoder Transformer. Defaults: "base", Vaswani et al. 2017, table 3."""

    n_encoder_layers: int = Field(default=6, ge=1, le=128)
    n_decoder_layers: int = Field(default=6, ge=1, le=128)
    pre_norm: bool = False  # False = post-norm, as published
    attention: Literal["dot", "additive"] = "dot"
    activation: Activation = "relu"
    sinusoid_layout: Literal["interleaved", "concat"] = "interleaved"
    """Order of sines and cosines: alternating, as published, or all sines first (MarianMT)."""
    learned_positions: bool = False  # a table for each side instead of sinusoids (BART)
    rotary: bool = False  # rotate queries and keys of self-attention instead of adding positions to embeddings
    embedding_norm: bool = False  # normalize the sum of embedding and position (BART)
    scale_embedding: bool = True  # multiply embeddings by d_model^0.5
    output_bias: bool = False  # bias of the output logits (MarianMT)

    def layout_faults(self) -> list[str]:
        faults = super().layout_faults()
        if self.d_model % 2:
            faults.append(f"d_model = {self.d_model} must be even, for pairs of sine and cosine")
        if self.rotary and (d_head := self.d_model // self.n_heads) % 2:
            faults.append(f"d_head = {d_head} must be even, because rotary positions rotate pairs")
        if self.rotary and self.learned_positions:
            faults.append("rotary and learned_positions exclude each other (--no-rotary)")
        return faults


class T5Config(AttentionModelConfig):
    """T5 encoder-decoder. Defaults: "base", Raffel et al. 2019; v1.1 has gated_gelu and a separate output matrix."""

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
    scale_output: bool = True  # multiply the decoder output by d_model^-0.5 before the output matrix; False = v1.1
    norm_eps: float = 1e-6

    def layout_faults(self) -> list[str]:
        """Also: the decoder has a bucket for each distance up to n_buckets / 2; the others cover larger ones."""
        faults = super().layout_faults()
        if self.max_distance <= self.n_buckets // 2:
            faults.append(f"max_distance {self.max_distance} is not more than half of n_buckets = {self.n_buckets}")
        return faults


class RnnConfig(ModelConfig):
    """Recurrent baseline: bidirectional LSTM encoder, LSTM decoder, additive attention (Bahdanau et al. 2014)."""

    n_layers: int = Field(default=1, ge=1, le=16)

    @field_validator("d_model")
    @classmethod
    def check_directions(cls, d_model: int) -> int:
        if d_model % 2:
            raise ValueError("must be even, for the two directions of the encoder")
        return d_model


class BertConfig(AttentionModelConfig):
    """Transformer encoder. Defaults: "base", Devlin et al. 2018, section 3. Comments name values of other models."""

    d_model: int = Field(default=768, ge=2, le=1 << 14)
    n_heads: int = Field(default=12, ge=1)
    d_ff: int = Field(default=3072, ge=1, le=1 << 16)
    n_layers: int = Field(default=12, ge=1, le=128)
    max_len: int = Field(default=512, ge=8, le=MAX_TOKENS)
    n_token_types: int = Field(default=2, ge=0, le=16)  # 0 = no token type embedding (DistilBERT)
    position_offset: int = Field(default=0, ge=0, le=MAX_TOKENS)  # index of the first position; RoBERTa: 2
    pre_norm: bool = False
    activation: Activation = "gelu"
    norm_eps: float = 1e-12
    head: Literal["none", "mlm", "sequence", "tokens", "span"] = "mlm"
    """Output head: none (features), masked language model, labels per sequence or per token, or answer spans."""
    n_labels: int = Field(default=0, ge=0, le=1 << 20)
    pooling: Literal["first", "mean"] = "first"
    """Representation of a sequence: the output of its first token ([CLS]), or the mean over its tokens."""
    pooler: bool = True
    """Apply a dense layer between the pooled vector and the head."""
    pooler_activation: Literal["tanh", "relu"] = "tanh"  # DistilBERT: relu


class Gpt2Config(AttentionModelConfig):
    """Decoder-only Transformer. Defaults: the model of 124 M parameters, Radford et al. 2019."""

    d_model: int = Field(default=768, ge=2, le=1 << 14)
    n_heads: int = Field(default=12, ge=1)
    d_ff: int = Field(default=3072, ge=1, le=1 << 16)
    n_layers: int = Field(default=12, ge=1, le=128)
    max_len: int = Field(default=1024, ge=8, le=MAX_TOKENS)
    activation: Activation = "gelu_tanh"
    norm_eps: float = 1e-5


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


class SkipGramConfig(ModelConfig):
    """Skip-gram word vectors. Defaults: Mikolov et al. 2013."""

    d_model: int = Field(default=300, ge=2, le=1 << 14)

    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(("embedding.weight", "context_embedding.weight"), (self.vocab_size, self.d_model))


class Family(NamedTuple):
    """A model family."""

    kind: Kind
    config_class: type[ModelConfig]
    model_class: Any
    """The class of the model, or "module:class" in `glassformer.models`, which is imported when it is needed."""


FAMILIES: dict[str, Family] = {
    "transformer": Family("encoder-decoder", TransformerConfig, "transformer:Transformer"),
    "t5": Family("encoder-decoder", T5Config, "t5:T5"),
    "rnn": Family("encoder-decoder", RnnConfig, "rnn:Rnn"),
    "bert": Family("encoder", BertConfig, "bert:Bert"),
    "gpt2": Family("decoder", Gpt2Config, "gpt2:Gpt2"),
    "llama": Family("decoder", LlamaConfig, "llama:Llama"),
    "skipgram": Family("word-vectors", SkipGramConfig, "skipgram:SkipGram"),
}
"""Name in config.json -> family. A new family is a model file, and its configuration and row here."""


def families_of_kind(kind: Kind) -> tuple[str, ...]:
    """Names of the families of one kind. The first is the default of the tasks that use this kind."""
    return tuple(name for name, family in FAMILIES.items() if family.kind == kind)
