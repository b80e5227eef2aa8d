"""What each family's weights are called by Hugging Face's transformers: our name, theirs; {i} is the layer."""

Names = tuple[tuple[str, str], ...]

BERT_LAYER: Names = (
    ("encoder.{i}.self_attention.q_proj", "encoder.layer.{i}.attention.self.query"),
    ("encoder.{i}.self_attention.k_proj", "encoder.layer.{i}.attention.self.key"),
    ("encoder.{i}.self_attention.v_proj", "encoder.layer.{i}.attention.self.value"),
    ("encoder.{i}.self_attention.out_proj", "encoder.layer.{i}.attention.output.dense"),
    ("encoder.{i}.around_self.norm", "encoder.layer.{i}.attention.output.LayerNorm"),
    ("encoder.{i}.feedforward.up", "encoder.layer.{i}.intermediate.dense"),
    ("encoder.{i}.feedforward.down", "encoder.layer.{i}.output.dense"),
    ("encoder.{i}.around_feedforward.norm", "encoder.layer.{i}.output.LayerNorm"),
)
BERT_BODY: Names = (
    ("embedding", "embeddings.word_embeddings"),
    ("positions", "embeddings.position_embeddings"),
    ("types", "embeddings.token_type_embeddings"),
    ("embedding_norm", "embeddings.LayerNorm"),
    *BERT_LAYER,
    ("pooler", "pooler.dense"),
)


def prefixed(prefix: str, names: Names) -> Names:
    """The names with a prefix on their side."""
    return tuple((ours, prefix + theirs) for ours, theirs in names)


BERT: Names = (
    *prefixed("bert.", BERT_BODY),
    ("transform", "cls.predictions.transform.dense"),
    ("transform_norm", "cls.predictions.transform.LayerNorm"),
    ("word_bias", "cls.predictions.bias"),
)
ROBERTA: Names = (
    *prefixed("roberta.", BERT_BODY),
    ("transform", "lm_head.dense"),
    ("transform_norm", "lm_head.layer_norm"),
    ("word_bias", "lm_head.bias"),
)
DISTILBERT: Names = (
    *prefixed(
        "distilbert.",
        (
            ("embedding", "embeddings.word_embeddings"),
            ("positions", "embeddings.position_embeddings"),
            ("embedding_norm", "embeddings.LayerNorm"),
            ("encoder.{i}.self_attention.q_proj", "transformer.layer.{i}.attention.q_lin"),
            ("encoder.{i}.self_attention.k_proj", "transformer.layer.{i}.attention.k_lin"),
            ("encoder.{i}.self_attention.v_proj", "transformer.layer.{i}.attention.v_lin"),
            ("encoder.{i}.self_attention.out_proj", "transformer.layer.{i}.attention.out_lin"),
            ("encoder.{i}.around_self.norm", "transformer.layer.{i}.sa_layer_norm"),
            ("encoder.{i}.feedforward.up", "transformer.layer.{i}.ffn.lin1"),
            ("encoder.{i}.feedforward.down", "transformer.layer.{i}.ffn.lin2"),
            ("encoder.{i}.around_feedforward.norm", "transformer.layer.{i}.output_layer_norm"),
        ),
    ),
    ("transform", "vocab_transform"),
    ("transform_norm", "vocab_layer_norm"),
    ("word_bias", "vocab_projector.bias"),
)
GPT2: Names = prefixed(
    "transformer.",
    (
        ("embedding", "wte"),
        ("positions", "wpe"),
        ("decoder.{i}.self_attention.q_proj", "h.{i}.attn.q"),  # c_attn, cut in three
        ("decoder.{i}.self_attention.k_proj", "h.{i}.attn.k"),
        ("decoder.{i}.self_attention.v_proj", "h.{i}.attn.v"),
        ("decoder.{i}.self_attention.out_proj", "h.{i}.attn.c_proj"),
        ("decoder.{i}.around_self.norm", "h.{i}.ln_1"),
        ("decoder.{i}.feedforward.up", "h.{i}.mlp.c_fc"),
        ("decoder.{i}.feedforward.down", "h.{i}.mlp.c_proj"),
        ("decoder.{i}.around_feedforward.norm", "h.{i}.ln_2"),
        ("decoder_norm", "ln_f"),
    ),
)


def _t5_side(ours: str, theirs: str, *, cross: bool) -> Names:
    last = 2 if cross else 1
    rows = [(f"{ours}.{{i}}.self_attention.{p}_proj", f"{theirs}.block.{{i}}.layer.0.SelfAttention.{p}") for p in "qkv"]
    rows += [
        (f"{ours}.{{i}}.self_attention.out_proj", f"{theirs}.block.{{i}}.layer.0.SelfAttention.o"),
        (f"{ours}.{{i}}.around_self.norm", f"{theirs}.block.{{i}}.layer.0.layer_norm"),
    ]
    if cross:
        rows += [
            (f"{ours}.{{i}}.cross_attention.{p}_proj", f"{theirs}.block.{{i}}.layer.1.EncDecAttention.{p}")
            for p in "qkv"
        ]
        rows += [
            (f"{ours}.{{i}}.cross_attention.out_proj", f"{theirs}.block.{{i}}.layer.1.EncDecAttention.o"),
            (f"{ours}.{{i}}.around_cross.norm", f"{theirs}.block.{{i}}.layer.1.layer_norm"),
        ]
    dense = f"{theirs}.block.{{i}}.layer.{last}.DenseReluDense"
    return (
        *rows,
        (f"{ours}.{{i}}.feedforward.down", f"{dense}.wo"),
        (f"{ours}.{{i}}.around_feedforward.norm", f"{theirs}.block.{{i}}.layer.{last}.layer_norm"),
        (f"{ours}_bias", f"{theirs}.block.0.layer.0.SelfAttention.relative_attention_bias"),
        (f"{ours}_norm", f"{theirs}.final_layer_norm"),
    )


def t5(*, gated: bool) -> Names:
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


def _marian_side(side: str, *, cross: bool) -> Names:
    attentions = [("self_attention", "self_attn"), *([("cross_attention", "encoder_attn")] if cross else [])]
    norms = [("around_self", "self_attn_layer_norm"), *([("around_cross", "encoder_attn_layer_norm")] if cross else [])]
    return (
        *(
            (f"{side}.{{i}}.{ours}.{p}", f"model.{side}.layers.{{i}}.{theirs}.{p}")
            for ours, theirs in attentions
            for p in ("q_proj", "k_proj", "v_proj", "out_proj")
        ),
        *((f"{side}.{{i}}.{ours}.norm", f"model.{side}.layers.{{i}}.{theirs}") for ours, theirs in norms),
        (f"{side}.{{i}}.feedforward.up", f"model.{side}.layers.{{i}}.fc1"),
        (f"{side}.{{i}}.feedforward.down", f"model.{side}.layers.{{i}}.fc2"),
        (f"{side}.{{i}}.around_feedforward.norm", f"model.{side}.layers.{{i}}.final_layer_norm"),
    )


MARIAN: Names = (
    ("embedding", "model.shared"),
    *_marian_side("encoder", cross=False),
    *_marian_side("decoder", cross=True),
    ("word_bias", "final_logits_bias"),
)
