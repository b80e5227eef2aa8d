"""BART: weight names and config fields. It is a Marian with learned positions and normalized embeddings.

Texts begin with <s> on both sides, which is the first token that the decoder generates.
"""

import torch

from glassformer.config import JsonObject
from glassformer.interop.architecture import Architecture, Head, Tensors, WeightNames
from glassformer.interop.marian import (
    MARIAN_TIED_COPIES,
    hf_marian_config,
    marian_config_values,
    marian_to_our_layout,
    side_names,
)
from glassformer.model_config import TransformerConfig
from glassformer.models.transformer import n_positions

OFFSET = 2
"""Index of the first position in the tables of transformers."""

SIDES = ("encoder", "decoder")
TABLES = {side: f"model.{side}.embed_positions.weight" for side in SIDES}

NAMES: WeightNames = (
    ("embedding", "model.shared"),
    *side_names("encoder", cross=False),
    *side_names("decoder", cross=True),
    *((f"{side}_positions", f"model.{side}.embed_positions") for side in SIDES),
    *((f"{side}_embedding_norm", f"model.{side}.layernorm_embedding") for side in SIDES),
    ("output_bias", "final_logits_bias"),
)


def bart_config_values(c: JsonObject, tensors: Tensors) -> JsonObject:
    """TransformerConfig fields from config.json of a BART."""
    return {
        **marian_config_values(c, tensors),
        "max_len": c["max_position_embeddings"] - 1,  # the decoder's start token has a position, too
        "learned_positions": True,
        "embedding_norm": True,
    }


def hf_bart_config(c: TransformerConfig) -> JsonObject:
    """config.json of a BART."""
    return {**hf_marian_config(c), "model_type": "bart", "max_position_embeddings": c.max_len + 1}


def bart_to_our_layout(tensors: Tensors) -> Tensors:
    """Positions from 0, with rows for padding; a flat output bias, none if it is 0."""
    tensors = marian_to_our_layout(tensors)
    for name in TABLES.values():
        table = tensors[name][OFFSET:]
        n_more = n_positions(len(table) - 1) - len(table)
        tensors[name] = torch.cat([table, table.new_zeros(n_more, table.size(1))])
    return tensors


def bart_to_hf_layout(c: TransformerConfig, tensors: Tensors) -> Tensors:
    """Inverse of `bart_to_our_layout`."""
    tables = {
        name: torch.cat([tensors[name].new_zeros(OFFSET, c.d_model), tensors[name][: c.max_len + 1]])
        for name in TABLES.values()
    }
    bias = tensors.get("final_logits_bias", torch.zeros(c.vocab_size))
    return {**tensors, **tables, "final_logits_bias": bias[None]}


BART = Architecture(
    "transformer",
    {"BartForConditionalGeneration": Head("translation")},
    lambda c: NAMES,
    bart_config_values,
    hf_bart_config,
    can_export=lambda c: c.attention == "dot" and c.learned_positions and c.embedding_norm and not c.pre_norm,
    tied_copies=MARIAN_TIED_COPIES,
    pipelines=("summarization", "translation", "text2text-generation"),
    to_our_layout=bart_to_our_layout,
    to_hf_layout=bart_to_hf_layout,
)
