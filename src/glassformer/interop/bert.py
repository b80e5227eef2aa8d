"""BERT, RoBERTa, XLM-R and DistilBERT: weight names, config fields and heads."""

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
from glassformer.model_config import BertConfig


def _encoder_names(self_attn_norm: str, feedforward_norm: str) -> WeightNames:
    """Weight names of a BERT without head, given the transformers names of the LayerNorms of a layer."""
    layer = "encoder.layer.{i}."
    return (
        ("embedding", "embeddings.word_embeddings"),
        ("position_embedding", "embeddings.position_embeddings"),
        ("token_type_embedding", "embeddings.token_type_embeddings"),
        ("embedding_norm", "embeddings.LayerNorm"),
        ("encoder.{i}.self_attention.q_proj", layer + "attention.self.query"),
        ("encoder.{i}.self_attention.k_proj", layer + "attention.self.key"),
        ("encoder.{i}.self_attention.v_proj", layer + "attention.self.value"),
        ("encoder.{i}.self_attention.out_proj", layer + "attention.output.dense"),
        ("encoder.{i}.self_attn_residual.norm", layer + self_attn_norm),
        ("encoder.{i}.feedforward.up", layer + "intermediate.dense"),
        ("encoder.{i}.feedforward.down", layer + "output.dense"),
        ("encoder.{i}.feedforward_residual.norm", layer + feedforward_norm),
        ("encoder_norm", "LayerNorm"),
        ("pooler", "pooler.dense"),
    )


_POST_NORM = _encoder_names("attention.output.LayerNorm", "output.LayerNorm")
_PRE_NORM = _encoder_names("attention.LayerNorm", "intermediate.LayerNorm")

BERT: WeightNames = (
    *prefixed("bert.", _POST_NORM),
    ("mlm_transform", "cls.predictions.transform.dense"),
    ("mlm_transform_norm", "cls.predictions.transform.LayerNorm"),
    ("mlm_bias", "cls.predictions.bias"),
)
_ROBERTA_MLM_HEAD: WeightNames = (
    ("mlm_transform", "lm_head.dense"),
    ("mlm_transform_norm", "lm_head.layer_norm"),
    ("mlm_bias", "lm_head.bias"),
)
ROBERTA: WeightNames = (*prefixed("roberta.", _POST_NORM), *_ROBERTA_MLM_HEAD)
ROBERTA_PRE_NORM: WeightNames = (*prefixed("roberta_prelayernorm.", _PRE_NORM), *_ROBERTA_MLM_HEAD)
DISTILBERT: WeightNames = (
    *prefixed(
        "distilbert.",
        (
            ("embedding", "embeddings.word_embeddings"),
            ("position_embedding", "embeddings.position_embeddings"),
            ("embedding_norm", "embeddings.LayerNorm"),
            ("encoder.{i}.self_attention.q_proj", "transformer.layer.{i}.attention.q_lin"),
            ("encoder.{i}.self_attention.k_proj", "transformer.layer.{i}.attention.k_lin"),
            ("encoder.{i}.self_attention.v_proj", "transformer.layer.{i}.attention.v_lin"),
            ("encoder.{i}.self_attention.out_proj", "transformer.layer.{i}.attention.out_lin"),
            ("encoder.{i}.self_attn_residual.norm", "transformer.layer.{i}.sa_layer_norm"),
            ("encoder.{i}.feedforward.up", "transformer.layer.{i}.ffn.lin1"),
            ("encoder.{i}.feedforward.down", "transformer.layer.{i}.ffn.lin2"),
            ("encoder.{i}.feedforward_residual.norm", "transformer.layer.{i}.output_layer_norm"),
        ),
    ),
    ("mlm_transform", "vocab_transform"),
    ("mlm_transform_norm", "vocab_layer_norm"),
    ("mlm_bias", "vocab_projector.bias"),
)


def bert_config_values(c: JsonObject, tensors: Tensors) -> JsonObject:
    """BertConfig fields from config.json of a BERT."""
    check_supported(c, position_embedding_type="absolute", is_decoder=False, add_cross_attention=False)
    return {
        "vocab_size": c["vocab_size"],
        "d_model": c["hidden_size"],
        "n_heads": c["num_attention_heads"],
        "d_ff": c["intermediate_size"],
        "n_layers": c["num_hidden_layers"],
        "max_len": c["max_position_embeddings"],
        "n_token_types": c["type_vocab_size"],
        "activation": activation(c["hidden_act"]),
        "norm_eps": c["layer_norm_eps"],
        "dropout": c.get("hidden_dropout_prob", 0.1),
    }


def roberta_config_values(c: JsonObject, tensors: Tensors) -> JsonObject:
    """BertConfig fields from config.json of a RoBERTa, whose positions start at pad_token_id + 1."""
    check_supported(c, hidden_act="gelu")
    offset = c["pad_token_id"] + 1
    return {
        **bert_config_values(c, tensors),
        "position_offset": offset,
        "max_len": c["max_position_embeddings"] - offset,
    }


def roberta_pre_norm_config_values(c: JsonObject, tensors: Tensors) -> JsonObject:
    """BertConfig fields from config.json of a pre-norm RoBERTa."""
    return {**roberta_config_values(c, tensors), "pre_norm": True}


def distilbert_config_values(c: JsonObject, tensors: Tensors) -> JsonObject:
    """BertConfig fields from config.json of a DistilBERT."""
    return {
        "vocab_size": c["vocab_size"],
        "d_model": c["dim"],
        "n_heads": c["n_heads"],
        "d_ff": c["hidden_dim"],
        "n_layers": c["n_layers"],
        "max_len": c["max_position_embeddings"],
        "n_token_types": 0,
        "activation": activation(c["activation"]),
        "dropout": c.get("dropout", 0.1),
        "pooler_activation": "relu",
    }


def hf_bert_config(c: BertConfig) -> JsonObject:
    """config.json of a BERT."""
    return {
        "model_type": "bert",
        "vocab_size": c.vocab_size,
        "hidden_size": c.d_model,
        "num_attention_heads": c.n_heads,
        "intermediate_size": c.d_ff,
        "num_hidden_layers": c.n_layers,
        "max_position_embeddings": c.max_len,
        "type_vocab_size": c.n_token_types,
        "hidden_act": HF_ACTIVATIONS[c.activation],
        "layer_norm_eps": c.norm_eps,
        "hidden_dropout_prob": c.dropout,
        "attention_probs_dropout_prob": 0.0,
        "pad_token_id": c.pad_id,
    }


def hf_roberta_config(c: BertConfig) -> JsonObject:
    """config.json of a RoBERTa."""
    return {
        **hf_bert_config(c),
        "model_type": "roberta-prelayernorm" if c.pre_norm else "roberta",
        "max_position_embeddings": c.pad_id + 1 + c.max_len,
        "bos_token_id": c.bos_id,
        "eos_token_id": c.eos_id,
    }


def hf_distilbert_config(c: BertConfig) -> JsonObject:
    """config.json of a DistilBERT."""
    return {
        "model_type": "distilbert",
        "vocab_size": c.vocab_size,
        "dim": c.d_model,
        "n_heads": c.n_heads,
        "hidden_dim": c.d_ff,
        "n_layers": c.n_layers,
        "max_position_embeddings": c.max_len,
        "activation": HF_ACTIVATIONS[c.activation],
        "dropout": c.dropout,
        "attention_dropout": 0.0,
        "pad_token_id": c.pad_id,
    }


def roberta_to_hf_layout(c: BertConfig, tensors: Tensors) -> Tensors:
    """Shift the position embeddings so that positions start at pad_id + 1."""
    name = f"roberta{'_prelayernorm' if c.pre_norm else ''}.embeddings.position_embeddings.weight"
    table = tensors[name][c.position_offset :]
    return {**tensors, name: torch.cat([table.new_zeros(c.pad_id + 1, c.d_model), table])}


def has_pooler_of(c: BertConfig, activation: str) -> bool:
    """Whether a model has no pooler, or one with an activation function, which the classes of transformers fix."""
    return not c.pooler or c.pooler_activation == activation


def has_gelu_head(c: BertConfig) -> bool:
    """Whether a model predicts no tokens, or as RoBERTa does: with GELU in the head, whatever the layers have."""
    return c.head != "mlm" or c.activation == "gelu"


NO_POOLER = {"pooler": False}


def bert_heads(name: str, sequence_head: WeightNames, **more: Head) -> dict[str, Head]:
    """Heads shared by BERT, RoBERTa and DistilBERT.

    Args:
        name: beginning of the names of the transformers classes.
        sequence_head: weight names of the sequence classification head.
        more: further heads.
    """
    labels: WeightNames = (("classifier", "classifier"),)
    spans: WeightNames = (("classifier", "qa_outputs"),)
    return {
        f"{name}Model": Head("feature-extraction", {"head": "none"}),
        f"{name}ForMaskedLM": Head("masked-lm", {"head": "mlm", **NO_POOLER}),
        f"{name}ForSequenceClassification": Head("classification", {"head": "sequence"}, sequence_head),
        f"{name}ForTokenClassification": Head("tagging", {"head": "tokens", **NO_POOLER}, labels),
        f"{name}ForQuestionAnswering": Head("question-answering", {"head": "span", "n_labels": 2, **NO_POOLER}, spans),
        **more,
    }


ROBERTA_SEQUENCE_HEAD: WeightNames = (("pooler", "classifier.dense"), ("classifier", "classifier.out_proj"))
IGNORED_IF_UNUSED = r".*\.position_ids|.*\.pooler\.dense\..*|cls\.seq_relationship\..*"

ROBERTA_TIED_COPIES = {
    "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
    "lm_head.decoder.bias": "lm_head.bias",
}

BERTS = {
    "bert": Architecture(
        "bert",
        bert_heads(
            "Bert",
            (("classifier", "classifier"),),
            BertForPreTraining=Head(
                "bert-pretraining", {"head": "mlm", "n_labels": 2}, (("classifier", "cls.seq_relationship"),)
            ),
        ),
        lambda c: BERT,
        bert_config_values,
        hf_bert_config,
        can_export=lambda c: not c.pre_norm and c.n_token_types and not c.position_offset and has_pooler_of(c, "tanh"),
        base_model_prefix="bert.",
        tied_copies={
            "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
            "cls.predictions.decoder.bias": "cls.predictions.bias",
        },
        ignored_if_unused=IGNORED_IF_UNUSED,
    ),
    "roberta": Architecture(
        "bert",
        bert_heads("Roberta", ROBERTA_SEQUENCE_HEAD),
        lambda c: ROBERTA,
        roberta_config_values,
        hf_roberta_config,
        can_export=lambda c: (
            not c.pre_norm and c.n_token_types and c.position_offset and has_pooler_of(c, "tanh") and has_gelu_head(c)
        ),
        base_model_prefix="roberta.",
        tied_copies=ROBERTA_TIED_COPIES,
        ignored_if_unused=IGNORED_IF_UNUSED,
        to_hf_layout=roberta_to_hf_layout,
    ),
    "xlm-roberta": Architecture(
        "bert",
        bert_heads("XLMRoberta", ROBERTA_SEQUENCE_HEAD),
        lambda c: ROBERTA,
        roberta_config_values,
        hf_roberta_config,
        can_export=lambda c: False,  # exported as a RoBERTa, which is the same model
        base_model_prefix="roberta.",
        tied_copies=ROBERTA_TIED_COPIES,
        ignored_if_unused=IGNORED_IF_UNUSED,
    ),
    "roberta-prelayernorm": Architecture(
        "bert",
        bert_heads("RobertaPreLayerNorm", ROBERTA_SEQUENCE_HEAD),
        lambda c: ROBERTA_PRE_NORM,
        roberta_pre_norm_config_values,
        hf_roberta_config,
        can_export=lambda c: c.pre_norm and c.n_token_types and has_pooler_of(c, "tanh") and has_gelu_head(c),
        base_model_prefix="roberta_prelayernorm.",
        tied_copies={
            "lm_head.decoder.weight": "roberta_prelayernorm.embeddings.word_embeddings.weight",
            "lm_head.decoder.bias": "lm_head.bias",
        },
        ignored_if_unused=IGNORED_IF_UNUSED,
        to_hf_layout=roberta_to_hf_layout,
    ),
    "distilbert": Architecture(
        "bert",
        bert_heads("DistilBert", (("pooler", "pre_classifier"), ("classifier", "classifier"))),
        lambda c: DISTILBERT,
        distilbert_config_values,
        hf_distilbert_config,
        # A DistilBERT has 1e-12 in all layer normalizations.
        can_export=lambda c: (
            not (c.pre_norm or c.n_token_types or c.position_offset)
            and c.norm_eps == 1e-12
            and has_pooler_of(c, "relu")
        ),
        base_model_prefix="distilbert.",
        tied_copies={"vocab_projector.weight": "distilbert.embeddings.word_embeddings.weight"},
    ),
}
