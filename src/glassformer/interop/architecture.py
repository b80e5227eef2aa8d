"""Description of a transformers architecture: weight names, config fields and heads, and how they map to ours."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from glassformer.config import JsonObject
from glassformer.errors import CheckpointError

Tensors = dict[str, Tensor]
WeightNames = tuple[tuple[str, str], ...]
"""Pairs of weight names, ours and transformers'; {i} is the layer index."""


def prefixed(prefix: str, names: WeightNames) -> WeightNames:
    """Add a prefix to the transformers names."""
    return tuple((our_name, prefix + hf_name) for our_name, hf_name in names)


@dataclass(frozen=True, slots=True)
class Head:
    """Head of a transformers class: its glassformer task, the config values that it determines, its weight names."""

    task: str
    config_values: Mapping[str, Any] = field(default_factory=dict)
    """Fields of our config."""
    weight_names: WeightNames = ()


@dataclass(frozen=True, slots=True)
class Architecture:
    """How the models of a `model_type` are imported and exported."""

    family: str
    """Our model family; see `FAMILIES`."""
    heads: Mapping[str, Head]
    """Name of the transformers class -> head. The first one is used if config.json has no `architectures`."""
    weight_names: Callable[[Any], WeightNames]
    """Our config -> table of weight names."""
    config_values: Callable[[JsonObject, Tensors], JsonObject]
    """transformers config and tensors -> fields of our config."""
    hf_config: Callable[[Any], JsonObject]
    """Our config -> transformers config."""
    base_model_prefix: str = ""
    """Prefix of the weight names of the model without its head. Files of a model without a head do not have it."""
    can_export: Callable[[Any], bool] = lambda config: True
    """Our config -> whether models with this config are exported as this architecture."""
    tied_copies: Mapping[str, str] = field(default_factory=dict)
    """Tied tensors that some files contain twice: name of the copy -> name used here."""
    may_be_untied: bool = False
    """Copies in `tied_copies` may differ: then the model has a separate output matrix."""
    ignored_if_unused: str = r"$^"
    """Regular expression of tensor names to ignore if the model does not use them: buffers, weights of other heads."""
    pipelines: tuple[str, ...] = ()
    """Pipelines of its models, the default first. Default: those of the task."""
    to_our_layout: Callable[[Tensors], Tensors] = lambda tensors: tensors
    """Convert transformers tensors to our layout, under transformers names."""
    to_hf_layout: Callable[[Any, Tensors], Tensors] = lambda config, tensors: tensors
    """Inverse of `to_our_layout`, given our config."""


def check_supported(config: JsonObject, **supported: Any) -> None:
    """Raise CheckpointError if an option is set to another value than the supported one."""
    for name, value in supported.items():
        if config.get(name) not in (None, value):
            raise CheckpointError(f"{name} = {config[name]!r} is not supported. The only supported value is {value!r}.")


ACTIVATIONS = {
    **{"relu": "relu", "gelu": "gelu", "swish": "silu", "silu": "silu"},
    **{"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"},
}
"""transformers name of an activation function -> our name."""
HF_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "silu": "silu", "gelu_tanh": "gelu_new"}
"""Our name -> transformers name."""


def activation(name: str) -> str:
    """Our name of a transformers activation function."""
    if name not in ACTIVATIONS:
        raise CheckpointError(f"activation {name!r} is not supported. Supported activations: {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[name]


def encoder_decoder_fields(c: Any) -> JsonObject:
    """transformers config fields that all encoder-decoders have, from our config."""
    return {
        "is_encoder_decoder": True,
        "pad_token_id": c.pad_id,
        "bos_token_id": c.bos_id,
        "eos_token_id": c.eos_id,
        "decoder_start_token_id": c.bos_id,
        "forced_eos_token_id": None,
    }
