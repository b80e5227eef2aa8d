"""MarianMT and Pegasus (a pre-norm Marian): weight names and config fields."""

import torch

from glassformer.config import JsonObject
from glassformer.interop.architecture import (
    HF_ACTIVATIONS,
    Architecture,
    Head,
    Tensors,
    WeightNames,
    activation,
    check_supported,
    encoder_decoder_fields,
)
from glassformer.limits import MAX_TOKENS
from glassformer.model_config import TransformerConfig
from glassformer.models.transformer import n_positions
from glassformer.nn.positions import sinusoids


def side_names(side: str, *, cross: bool) -> WeightNames:
    """Names of the weights in the layers of a side, "encoder" or "decoder"; with cross-attention or without."""
    attentions = [("self_attention", "self_attn"), *([("cross_attention", "encoder_attn")] if cross else [])]
    norms = [
        ("self_attn_residual", "self_attn_layer_norm"),
        *([("cross_attn_residual", "encoder_attn_layer_norm")] if cross else []),
    ]
    return (
        *(
            (f"{side}.{{i}}.{our_name}.{p}", f"model.{side}.layers.{{i}}.{hf_name}.{p}")
            for our_name, hf_name in attentions
            for p in ("q_proj", "k_proj", "v_proj", "out_proj")
        ),
        *((f"{side}.{{i}}.{our_name}.norm", f"model.{side}.layers.{{i}}.{hf_name}") for our_name, hf_name in norms),
        (f"{side}.{{i}}.feedforward.up", f"model.{side}.layers.{{i}}.fc1"),
        (f"{side}.{{i}}.feedforward.down", f"model.{side}.layers.{{i}}.fc2"),
        (f"{side}.{{i}}.feedforward_residual.norm", f"model.{side}.layers.{{i}}.final_layer_norm"),
    )


NAMES: WeightNames = (
    ("embedding", "model.shared"),
    *side_names("encoder", cross=False),
    *side_names("decoder", cross=True),
    ("encoder_norm", "model.encoder.layer_norm"),  # Pegasus only
    ("decoder_norm", "model.decoder.layer_norm"),
    ("output_bias", "final_logits_bias"),
)


def marian_config_values(c: JsonObject, tensors: Tensors) -> JsonObject:
    """TransformerConfig fields from config.json of a Marian or another model with its layers."""
    check_supported(
        c, share_encoder_decoder_embeddings=True, decoder_ffn_dim=c["encoder_ffn_dim"],
        decoder_attention_heads=c["encoder_attention_heads"], decoder_vocab_size=c["vocab_size"],
    )  # fmt: skip
    return {
        "vocab_size": c["vocab_size"],
        "d_model": c["d_model"],
        "n_heads": c["encoder_attention_heads"],
        "d_ff": c["encoder_ffn_dim"],
        "n_encoder_layers": c["encoder_layers"],
        "n_decoder_layers": c["decoder_layers"],
        "max_len": min(MAX_TOKENS, c["max_position_embeddings"]),
        "activation": activation(c["activation_function"]),
        "sinusoid_layout": "concat",
        "scale_embedding": c.get("scale_embedding", False),
        "output_bias": "final_logits_bias" in tensors,
        "dropout": c.get("dropout", 0.1),
    }


def pegasus_config_values(c: JsonObject, tensors: Tensors) -> JsonObject:
    """TransformerConfig fields from config.json of a Pegasus, a pre-norm Marian."""
    return {**marian_config_values(c, tensors), "pre_norm": True}


def hf_marian_config(c: TransformerConfig) -> JsonObject:
    """config.json of a Marian, or of a Pegasus for a pre-norm model."""
    return {
        "model_type": "pegasus" if c.pre_norm else "marian",
        "vocab_size": c.vocab_size,
        "decoder_vocab_size": c.vocab_size,
        "d_model": c.d_model,
        "encoder_attention_heads": c.n_heads,
        "decoder_attention_heads": c.n_heads,
        "encoder_ffn_dim": c.d_ff,
        "decoder_ffn_dim": c.d_ff,
        "encoder_layers": c.n_encoder_layers,
        "decoder_layers": c.n_decoder_layers,
        "max_position_embeddings": c.max_len,
        "activation_function": HF_ACTIVATIONS[c.activation],
        "scale_embedding": c.scale_embedding,
        "share_encoder_decoder_embeddings": True,
        "dropout": c.dropout,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        **encoder_decoder_fields(c),
    }


def marian_to_our_layout(tensors: Tensors) -> Tensors:
    """Flatten the output bias; remove it if it is 0."""
    bias = tensors.pop("final_logits_bias", None)
    return tensors if bias is None or not bias.any() else {**tensors, "final_logits_bias": bias.flatten()}


def marian_to_hf_layout(c: TransformerConfig, tensors: Tensors) -> Tensors:
    """Reorder channels for concatenated sinusoids, add a missing output bias, and for Pegasus the position table."""
    if c.sinusoid_layout == "interleaved":
        tensors = reorder_channels(tensors, c.d_model)
    bias = tensors.get("final_logits_bias", torch.zeros(c.vocab_size))
    tensors = {**tensors, "final_logits_bias": bias[None]}
    if c.pre_norm:
        table = sinusoids(n_positions(c.max_len), c.d_model)[: c.max_len]
        table = torch.cat([table[:, 0::2], table[:, 1::2]], dim=1)
        tensors |= {f"model.{side}.embed_positions.weight": table.clone() for side in ("encoder", "decoder")}
    return tensors


INPUT_WEIGHTS = ("q_proj.weight", "k_proj.weight", "v_proj.weight", "fc1.weight", "shared.weight")
"""Matrices whose columns are channels of d_model."""
OUTPUT_WEIGHTS = ("out_proj.weight", "out_proj.bias", "fc2.weight", "fc2.bias", "layer_norm.weight", "layer_norm.bias")
"""Tensors whose rows are channels of d_model."""


def reorder_channels(tensors: Tensors, d_model: int) -> Tensors:
    """Permute the channels of d_model, even channels first, to match Marian's layout: sines before cosines."""
    channels = torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])
    return {
        name: value[:, channels]
        if name.endswith(INPUT_WEIGHTS)
        else value[channels]
        if name.endswith(OUTPUT_WEIGHTS)
        else value
        for name, value in tensors.items()
    }


MARIAN_TIED_COPIES = dict.fromkeys(
    ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"), "model.shared.weight"
)
SINUSOIDS = r"model\.(en|de)coder\.embed_positions\.weight"


def is_marian(c: TransformerConfig) -> bool:
    """Whether the layers are those of a Marian, or of a Pegasus."""
    return c.attention == "dot" and not c.learned_positions and not c.rotary and not c.embedding_norm


MARIAN = Architecture(
    "transformer",
    {"MarianMTModel": Head("translation")},
    lambda c: NAMES,
    marian_config_values,
    hf_marian_config,
    can_export=lambda c: is_marian(c) and not c.pre_norm,
    tied_copies=MARIAN_TIED_COPIES,
    ignored_if_unused=SINUSOIDS,
    to_our_layout=marian_to_our_layout,
    to_hf_layout=marian_to_hf_layout,
)

PEGASUS = Architecture(
    "transformer",
    {"PegasusForConditionalGeneration": Head("translation")},
    lambda c: NAMES,
    pegasus_config_values,
    hf_marian_config,
    can_export=lambda c: is_marian(c) and c.pre_norm,
    tied_copies=MARIAN_TIED_COPIES,
    ignored_if_unused=SINUSOIDS,
    pipelines=("translation", "summarization", "text2text-generation"),
    to_our_layout=marian_to_our_layout,
    to_hf_layout=marian_to_hf_layout,
)
