"""Llama, Mistral and Qwen2: weight names and config fields."""

from dataclasses import replace

from glassformer.config import JsonObject
from glassformer.errors import CheckpointError
from glassformer.interop.architecture import Architecture, Head, Tensors, WeightNames, check_supported, prefixed
from glassformer.limits import MAX_TOKENS
from glassformer.model_config import LlamaConfig

NAMES: WeightNames = (
    *prefixed(
        "model.",
        (
            ("embedding", "embed_tokens"),
            ("decoder.{i}.self_attention.q_proj", "layers.{i}.self_attn.q_proj"),
            ("decoder.{i}.self_attention.k_proj", "layers.{i}.self_attn.k_proj"),
            ("decoder.{i}.self_attention.v_proj", "layers.{i}.self_attn.v_proj"),
            ("decoder.{i}.self_attention.out_proj", "layers.{i}.self_attn.o_proj"),
            ("decoder.{i}.self_attn_residual.norm", "layers.{i}.input_layernorm"),
            ("decoder.{i}.feedforward.gate", "layers.{i}.mlp.gate_proj"),
            ("decoder.{i}.feedforward.up", "layers.{i}.mlp.up_proj"),
            ("decoder.{i}.feedforward.down", "layers.{i}.mlp.down_proj"),
            ("decoder.{i}.feedforward_residual.norm", "layers.{i}.post_attention_layernorm"),
            ("decoder_norm", "norm"),
        ),
    ),
    ("output", "lm_head"),
)


def llama_config_values(c: JsonObject, tensors: Tensors) -> JsonObject:
    """LlamaConfig fields from config.json of a Llama, Mistral or Qwen2."""
    check_supported(c, hidden_act="silu", attention_bias=False, mlp_bias=False, use_sliding_window=False)
    rope = c.get("rope_parameters") or c.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind != "default":
        raise CheckpointError(f"rope_type = {kind!r} is not supported. The only supported value is 'default'.")
    # Mistral attends to at most `sliding_window` positions. Within that length it is a Llama.
    is_mistral = c["model_type"] == "mistral"
    max_len = c.get("max_position_embeddings", 4096 * 32 if is_mistral else 2048)
    window = c.get("sliding_window") if is_mistral else None
    return {
        "vocab_size": c["vocab_size"],
        "d_model": c["hidden_size"],
        "n_heads": c["num_attention_heads"],
        "n_kv_heads": c.get("num_key_value_heads") or c["num_attention_heads"],
        "d_head": c.get("head_dim"),
        "d_ff": c["intermediate_size"],
        "n_layers": c["num_hidden_layers"],
        "max_len": min(MAX_TOKENS, max_len, window or max_len),
        "norm_eps": c.get("rms_norm_eps", 1e-6),
        "rope_theta": rope.get("rope_theta") or c.get("rope_theta", 10_000.0),
        "qkv_bias": c["model_type"] == "qwen2",
        "tie_embeddings": bool(c.get("tie_word_embeddings", False)),
        "dropout": 0.0,
    }


def hf_llama_config(c: LlamaConfig) -> JsonObject:
    """config.json of a Llama, or of a Qwen2 if queries, keys and values have bias terms."""
    if c.activation != "gated_silu":
        raise CheckpointError(f"activation {c.activation!r}: transformers' Llama has gated_silu only.")
    return {
        "model_type": "qwen2" if c.qkv_bias else "llama",
        "vocab_size": c.vocab_size,
        "hidden_size": c.d_model,
        "num_attention_heads": c.n_heads,
        "num_key_value_heads": c.n_kv_heads or c.n_heads,
        "head_dim": c.d_head or c.d_model // c.n_heads,
        "intermediate_size": c.d_ff,
        "num_hidden_layers": c.n_layers,
        "max_position_embeddings": c.max_len,
        "hidden_act": "silu",
        "rms_norm_eps": c.norm_eps,
        "rope_parameters": {"rope_type": "default", "rope_theta": c.rope_theta},
        "rope_theta": c.rope_theta,  # for transformers 4
        "tie_word_embeddings": c.tie_embeddings,
        "attention_dropout": 0.0,
        "bos_token_id": c.bos_id,
        "eos_token_id": c.eos_id,
        "pad_token_id": c.pad_id,
    }


LLAMA = Architecture(
    "llama",
    {"LlamaForCausalLM": Head("causal-lm")},
    lambda c: NAMES,
    llama_config_values,
    hf_llama_config,
    base_model_prefix="model.",
    # If embeddings are tied, some files still contain lm_head.weight.
    ignored_if_unused=r"lm_head\.weight|.*\.rotary_emb\.inv_freq",
    can_export=lambda c: not c.qkv_bias,
)

LLAMAS = {
    "llama": LLAMA,
    "mistral": replace(LLAMA, heads={"MistralForCausalLM": Head("causal-lm")}, can_export=lambda c: False),
    "qwen2": replace(LLAMA, heads={"Qwen2ForCausalLM": Head("causal-lm")}, can_export=lambda c: c.qkv_bias),
}
