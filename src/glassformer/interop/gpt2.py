"""GPT-2: weight names and config fields."""

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
    prefixed,
)
from glassformer.model_config import Gpt2Config

NAMES: WeightNames = prefixed(
    "transformer.",
    (
        ("embedding", "wte"),
        ("position_embedding", "wpe"),
        ("decoder.{i}.self_attention.q_proj", "h.{i}.attn.c_attn.q"),  # c_attn, split in three
        ("decoder.{i}.self_attention.k_proj", "h.{i}.attn.c_attn.k"),
        ("decoder.{i}.self_attention.v_proj", "h.{i}.attn.c_attn.v"),
        ("decoder.{i}.self_attention.out_proj", "h.{i}.attn.c_proj"),
        ("decoder.{i}.self_attn_residual.norm", "h.{i}.ln_1"),
        ("decoder.{i}.feedforward.up", "h.{i}.mlp.c_fc"),
        ("decoder.{i}.feedforward.down", "h.{i}.mlp.c_proj"),
        ("decoder.{i}.feedforward_residual.norm", "h.{i}.ln_2"),
        ("decoder_norm", "ln_f"),
    ),
)


def gpt2_config_values(c: JsonObject, tensors: Tensors) -> JsonObject:
    """Gpt2Config fields from config.json of a GPT-2."""
    check_supported(c, scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, add_cross_attention=False)
    return {
        "vocab_size": c["vocab_size"],
        "d_model": c["n_embd"],
        "n_heads": c["n_head"],
        "d_ff": c.get("n_inner") or 4 * c["n_embd"],
        "n_layers": c["n_layer"],
        "max_len": c["n_positions"],
        "activation": activation(c.get("activation_function", "gelu_new")),
        "norm_eps": c.get("layer_norm_epsilon", 1e-5),
        "dropout": c.get("resid_pdrop", 0.1),
    }


def hf_gpt2_config(c: Gpt2Config) -> JsonObject:
    """config.json of a GPT-2."""
    return {
        "model_type": "gpt2",
        "vocab_size": c.vocab_size,
        "n_embd": c.d_model,
        "n_head": c.n_heads,
        "n_inner": c.d_ff,
        "n_layer": c.n_layers,
        "n_positions": c.max_len,
        "activation_function": HF_ACTIVATIONS[c.activation],
        "layer_norm_epsilon": c.norm_eps,
        "resid_pdrop": c.dropout,
        "embd_pdrop": c.dropout,
        "attn_pdrop": 0.0,
        "bos_token_id": c.bos_id,
        "eos_token_id": c.eos_id,
        "pad_token_id": c.pad_id,
    }


TRANSPOSED = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
"""Matrices that transformers stores as [inputs, outputs]."""


def gpt2_to_our_layout(tensors: Tensors) -> Tensors:
    """Transpose the matrices and split c_attn into the projections of queries, keys and values."""
    ours = {}
    for name, value in tensors.items():
        matrix = value.t().contiguous() if name.endswith(TRANSPOSED) else value
        if ".c_attn." in name:
            for projection, third in zip("qkv", matrix.chunk(3), strict=True):
                ours[name.replace(".c_attn.", f".c_attn.{projection}.")] = third.clone()
        else:
            ours[name] = matrix
    return ours


def gpt2_to_hf_layout(c: Gpt2Config, tensors: Tensors) -> Tensors:
    """Transpose the matrices and concatenate the projections of queries, keys and values to c_attn."""
    exported = {}
    for name, value in tensors.items():
        if ".c_attn.q." in name:
            value = torch.cat([tensors[name.replace(".q.", f".{projection}.")] for projection in "qkv"])
            name = name.replace(".q.", ".")
        elif ".c_attn." in name:
            continue
        exported[name] = value.t().contiguous() if name.endswith(TRANSPOSED) else value
    return exported


GPT2 = Architecture(
    "gpt2",
    {"GPT2LMHeadModel": Head("causal-lm"), "GPT2Model": Head("causal-lm")},
    lambda c: NAMES,
    gpt2_config_values,
    hf_gpt2_config,
    base_model_prefix="transformer.",
    tied_copies={"lm_head.weight": "transformer.wte.weight"},
    ignored_if_unused=r".*\.attn\.(masked_)?bias",
    to_our_layout=gpt2_to_our_layout,
    to_hf_layout=gpt2_to_hf_layout,
)
