"""T5, versions 1.0 and 1.1: weight names and config fields."""

from glassformer.config import JsonObject
from glassformer.errors import CheckpointError
from glassformer.interop.architecture import (
    HF_ACTIVATIONS,
    Architecture,
    Head,
    Tensors,
    WeightNames,
    encoder_decoder_fields,
)
from glassformer.limits import MAX_TOKENS
from glassformer.model_config import T5Config


def _t5_side(our_name: str, hf_name: str, *, cross: bool) -> WeightNames:
    feedforward = 2 if cross else 1  # index of the feed-forward sub-layer, after the attention sub-layers
    rows = [
        (f"{our_name}.{{i}}.self_attention.{p}_proj", f"{hf_name}.block.{{i}}.layer.0.SelfAttention.{p}") for p in "qkv"
    ]
    rows += [
        (f"{our_name}.{{i}}.self_attention.out_proj", f"{hf_name}.block.{{i}}.layer.0.SelfAttention.o"),
        (f"{our_name}.{{i}}.self_attn_residual.norm", f"{hf_name}.block.{{i}}.layer.0.layer_norm"),
    ]
    if cross:
        rows += [
            (f"{our_name}.{{i}}.cross_attention.{p}_proj", f"{hf_name}.block.{{i}}.layer.1.EncDecAttention.{p}")
            for p in "qkv"
        ]
        rows += [
            (f"{our_name}.{{i}}.cross_attention.out_proj", f"{hf_name}.block.{{i}}.layer.1.EncDecAttention.o"),
            (f"{our_name}.{{i}}.cross_attn_residual.norm", f"{hf_name}.block.{{i}}.layer.1.layer_norm"),
        ]
    dense = f"{hf_name}.block.{{i}}.layer.{feedforward}.DenseReluDense"
    return (
        *rows,
        (f"{our_name}.{{i}}.feedforward.down", f"{dense}.wo"),
        (f"{our_name}.{{i}}.feedforward_residual.norm", f"{hf_name}.block.{{i}}.layer.{feedforward}.layer_norm"),
        (f"{our_name}_position_bias", f"{hf_name}.block.0.layer.0.SelfAttention.relative_attention_bias"),
        (f"{our_name}_norm", f"{hf_name}.final_layer_norm"),
    )


def t5_weight_names(*, gated: bool) -> WeightNames:
    """Weight names of T5. Gated: version 1.1."""
    up = [
        (f"{side}.{{i}}.feedforward.{our_name}", f"{side}.block.{{i}}.layer.{feedforward}.DenseReluDense.{hf_name}")
        for side, feedforward in (("encoder", 1), ("decoder", 2))
        for our_name, hf_name in ((("gate", "wi_0"), ("up", "wi_1")) if gated else (("up", "wi"),))
    ]
    return (
        ("embedding", "shared"),
        *_t5_side("encoder", "encoder", cross=False),
        *_t5_side("decoder", "decoder", cross=True),
        *up,
        ("output", "lm_head"),
    )


def t5_config_values(c: JsonObject, tensors: Tensors) -> JsonObject:
    """T5Config fields from config.json of a T5. Version 1.1 has a gated feed-forward and may have an untied lm_head."""
    supported = {"relu": "relu", "gated-gelu": "gated_gelu"}
    projection = c.get("feed_forward_proj", "relu")
    if projection not in supported:
        raise CheckpointError(
            f"feed_forward_proj = {projection!r} is not supported. Supported values: {', '.join(supported)}."
        )
    return {
        "vocab_size": c["vocab_size"],
        "d_model": c["d_model"],
        "n_heads": c["num_heads"],
        "d_head": c["d_kv"],
        "d_ff": c["d_ff"],
        "n_encoder_layers": c["num_layers"],
        "n_decoder_layers": c.get("num_decoder_layers") or c["num_layers"],
        "max_len": min(MAX_TOKENS, c.get("n_positions", 512)),
        "n_buckets": c.get("relative_attention_num_buckets", 32),
        "max_distance": c.get("relative_attention_max_distance", 128),
        "activation": supported[projection],
        "tie_embeddings": "lm_head.weight" not in tensors,
        "scale_output": c.get("scale_decoder_outputs", c.get("tie_word_embeddings") is not False),
        "norm_eps": c.get("layer_norm_epsilon", 1e-6),
        "dropout": c.get("dropout_rate", 0.1),
    }


def hf_t5_config(c: T5Config) -> JsonObject:
    """config.json of a T5."""
    return {
        "model_type": "t5",
        "vocab_size": c.vocab_size,
        "d_model": c.d_model,
        "num_heads": c.n_heads,
        "d_kv": c.d_head,
        "d_ff": c.d_ff,
        "num_layers": c.n_encoder_layers,
        "num_decoder_layers": c.n_decoder_layers,
        "n_positions": c.max_len,
        "relative_attention_num_buckets": c.n_buckets,
        "relative_attention_max_distance": c.max_distance,
        "feed_forward_proj": "gated-gelu" if c.activation == "gated_gelu" else HF_ACTIVATIONS[c.activation],
        # In transformers' T5 this flag also turns on the scaling of the decoder output.
        "tie_word_embeddings": c.scale_output and c.tie_embeddings,
        "scale_decoder_outputs": c.scale_output and c.tie_embeddings,
        "layer_norm_epsilon": c.norm_eps,
        "dropout_rate": c.dropout,
        **encoder_decoder_fields(c),
    }


def t5_to_hf_layout(c: T5Config, tensors: Tensors) -> Tensors:
    """Add `lm_head` to a model without output scaling, whose exported config says untied: a copy of the embedding if
    the model has none. In an `lm_head` of its own, the scale of the output is part of the weights.
    """
    if not c.tie_embeddings:
        return {**tensors, "lm_head.weight": tensors["lm_head.weight"] * (c.d_model**-0.5 if c.scale_output else 1)}
    return tensors if c.scale_output else {"lm_head.weight": tensors["shared.weight"].clone(), **tensors}


T5 = Architecture(
    "t5",
    {"T5ForConditionalGeneration": Head("translation")},
    lambda c: t5_weight_names(gated=c.activation == "gated_gelu"),
    t5_config_values,
    hf_t5_config,
    tied_copies=dict.fromkeys(
        ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"), "shared.weight"
    ),
    ignored_if_unused=r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight",
    may_be_untied=True,
    pipelines=("text2text-generation", "translation", "summarization"),
    to_hf_layout=t5_to_hf_layout,
)
