"""T5, versions 1.0 and 1.1: names and sizes."""

from glassformer.errors import CheckpointError
from glassformer.interop.architecture import THEIRS, Architecture, Head, Names, Record, Tensors, encoder_decoder
from glassformer.limits import MAX_TOKENS
from glassformer.model_config import T5Config


def _t5_side(ours: str, theirs: str, *, cross: bool) -> Names:
    last = 2 if cross else 1
    rows = [(f"{ours}.{{i}}.self_attention.{p}_proj", f"{theirs}.block.{{i}}.layer.0.SelfAttention.{p}") for p in "qkv"]
    rows += [
        (f"{ours}.{{i}}.self_attention.out_proj", f"{theirs}.block.{{i}}.layer.0.SelfAttention.o"),
        (f"{ours}.{{i}}.self_attn_residual.norm", f"{theirs}.block.{{i}}.layer.0.layer_norm"),
    ]
    if cross:
        rows += [
            (f"{ours}.{{i}}.cross_attention.{p}_proj", f"{theirs}.block.{{i}}.layer.1.EncDecAttention.{p}")
            for p in "qkv"
        ]
        rows += [
            (f"{ours}.{{i}}.cross_attention.out_proj", f"{theirs}.block.{{i}}.layer.1.EncDecAttention.o"),
            (f"{ours}.{{i}}.cross_attn_residual.norm", f"{theirs}.block.{{i}}.layer.1.layer_norm"),
        ]
    dense = f"{theirs}.block.{{i}}.layer.{last}.DenseReluDense"
    return (
        *rows,
        (f"{ours}.{{i}}.feedforward.down", f"{dense}.wo"),
        (f"{ours}.{{i}}.feedforward_residual.norm", f"{theirs}.block.{{i}}.layer.{last}.layer_norm"),
        (f"{ours}_bias", f"{theirs}.block.0.layer.0.SelfAttention.relative_attention_bias"),
        (f"{ours}_norm", f"{theirs}.final_layer_norm"),
    )


def names(*, gated: bool) -> Names:
    """T5's names; gated is v1.1."""
    up = [
        (f"{side}.{{i}}.feedforward.{ours}", f"{side}.block.{{i}}.layer.{last}.DenseReluDense.{theirs}")
        for side, last in (("encoder", 1), ("decoder", 2))
        for ours, theirs in ((("gate", "wi_0"), ("up", "wi_1")) if gated else (("up", "wi"),))
    ]
    return (
        ("embedding", "shared"),
        *_t5_side("encoder", "encoder", cross=False),
        *_t5_side("decoder", "decoder", cross=True),
        *up,
        ("output", "lm_head"),
    )


def t5_sizes(c: Record, tensors: Tensors) -> Record:
    """T5Config of a T5's config.json. Version 1.1 is known by its gate, and by an output matrix of its own."""
    known = {"relu": "relu", "gated-gelu": "gated_gelu"}
    kind = c.get("feed_forward_proj", "relu")
    if kind not in known:
        raise CheckpointError(f"feed_forward_proj = {kind!r}: this version knows {', '.join(known)}.")
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
        "activation": known[kind],
        "tie_embeddings": "lm_head.weight" not in tensors,
        "scale_output": c.get("scale_decoder_outputs", c.get("tie_word_embeddings") is not False),
        "norm_eps": c.get("layer_norm_epsilon", 1e-6),
        "dropout": c.get("dropout_rate", 0.1),
    }


def t5_config(c: T5Config) -> Record:
    """config.json of a T5 with our sizes."""
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
        "feed_forward_proj": "gated-gelu" if c.activation == "gated_gelu" else THEIRS[c.activation],
        "tie_word_embeddings": c.scale_output,
        "scale_decoder_outputs": c.scale_output,
        "layer_norm_epsilon": c.norm_eps,
        "dropout_rate": c.dropout,
        **encoder_decoder(c),
    }


def t5_pack(c: T5Config, tensors: Tensors) -> Tensors:
    """With an output matrix wherever their config says that there is one."""
    return tensors if c.scale_output else {"lm_head.weight": tensors["shared.weight"].clone(), **tensors}


T5 = Architecture(
    "t5",
    {"T5ForConditionalGeneration": Head("translation")},
    lambda c: names(gated=c.activation == "gated_gelu"),
    t5_sizes,
    t5_config,
    copies=dict.fromkeys(
        ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"), "shared.weight"
    ),
    ignored=r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight",
    pack=t5_pack,
)
