"""Registry of supported architectures: `model_type` in config.json -> architecture."""

from typing import Any

from glassformer.errors import UserError
from glassformer.interop.architecture import HF_ACTIVATIONS, Architecture
from glassformer.interop.bart import BART
from glassformer.interop.bert import BERTS
from glassformer.interop.gpt2 import GPT2
from glassformer.interop.llama import LLAMAS
from glassformer.interop.marian import MARIAN, PEGASUS
from glassformer.interop.t5 import T5
from glassformer.models.base import Model
from glassformer.models.families import family_of

ARCHITECTURES: dict[str, Architecture] = {
    **BERTS,
    "gpt2": GPT2,
    **LLAMAS,
    "t5": T5,
    "marian": MARIAN,
    "pegasus": PEGASUS,
    "bart": BART,
}


def hf_model_type(model: Model) -> str:
    """`model_type` in the transformers config of a model of ours.

    Raises:
        UserError: transformers has no corresponding model.
    """
    c: Any = model.config
    if getattr(c, "pruned_heads", None):
        raise UserError(
            "a model with pruned attention heads: transformers has no such model, so it cannot be exported."
        )
    family = family_of(model)
    known = {"llama": ("gated_silu",), "t5": (*HF_ACTIVATIONS, "gated_gelu")}.get(family, tuple(HF_ACTIVATIONS))
    activation = getattr(c, "activation", None)
    for model_type, architecture in ARCHITECTURES.items():
        if architecture.family == family and activation in known and architecture.can_export(c):
            return model_type
    description = f"a {family} with additive attention" if getattr(c, "attention", "dot") != "dot" else f"a {family}"
    if activation and activation not in known:
        description = f"a {family} with the activation function {activation}"
    elif family == "bert":
        description = (
            f"a bert with n_token_types = {c.n_token_types}, pre_norm = {c.pre_norm}, position_offset ="
            f" {c.position_offset}, norm_eps = {c.norm_eps:g}, activation = {c.activation} and pooler_activation ="
            f" {c.pooler_activation}"
        )
    if getattr(c, "rotary", False):
        raise UserError(
            f"a {family} with rotary positions: transformers has no such model, so it cannot be exported.\n"
            "  Export it for another program (--to ctranslate2, onnx or html), or train it with --no-rotary."
        )
    if getattr(c, "learned_positions", False) != getattr(c, "embedding_norm", False):
        description = f"a {family} that has only one of learned_positions and embedding_norm"
    raise UserError(f"{description}: transformers has no such model, so it cannot be exported.")
