"""Description of a transformers architecture: weight names, config fields and heads, and how they map to ours."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from glassformer.errors import CheckpointError

Record = dict[str, Any]
Tensors = dict[str, Tensor]
Names = tuple[tuple[str, str], ...]
"""Pairs of weight names, ours and transformers'; {i} is the layer index."""


def prefixed(prefix: str, names: Names) -> Names:
    """Add a prefix to the transformers names."""
    return tuple((our_name, prefix + hf_name) for our_name, hf_name in names)


@dataclass(frozen=True, slots=True)
class Head:
    """Head of a transformers class: its glassformer task, the config fields that it determines, its weight names."""

    task: str
    sizes: Mapping[str, Any] = field(default_factory=dict)
    names: Names = ()


@dataclass(frozen=True, slots=True)
class Architecture:
    """How the models of a `model_type` are imported and exported."""

    family: str
    heads: Mapping[str, Head]
    """Class name -> head. The first one is used if config.json has no `architectures`."""
    names: Callable[[Any], Names]
    """Our config -> table of weight names."""
    sizes: Callable[[Record, Tensors], Record]
    """transformers config and tensors -> fields of our config."""
    config: Callable[[Any], Record]
    """Our config -> transformers config."""
    body: str = ""
    """Prefix of the weight names of the body; absent if the body was saved without a head."""
    copies: Mapping[str, str] = field(default_factory=dict)
    """Tied tensors that some files contain twice: name of the copy -> name used here."""
    ignored: str = r"$^"
    """Regular expression of tensor names to ignore: buffers, and weights that the head does not use."""
    unpack: Callable[[Tensors], Tensors] = lambda tensors: tensors
    """Convert transformers tensors to our layout, under transformers names."""
    pack: Callable[[Any, Tensors], Tensors] = lambda sizes, tensors: tensors
    """Inverse of `unpack`, given our config."""


def refuse_unless(config: Record, **supported: Any) -> None:
    """Raise CheckpointError if an option is set to another value than the supported one."""
    for name, value in supported.items():
        if config.get(name) not in (None, value):
            raise CheckpointError(f"{name} = {config[name]!r} is not supported. The only supported value is {value!r}.")


ACTIVATIONS = {
    **{"relu": "relu", "gelu": "gelu", "swish": "silu", "silu": "silu"},
    **{"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"},
}
HF_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "silu": "silu", "gelu_tanh": "gelu_new"}


def activation(name: str) -> str:
    """Our name of a transformers activation function."""
    if name not in ACTIVATIONS:
        raise CheckpointError(f"activation {name!r} is not supported. Supported activations: {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[name]


def encoder_decoder_fields(c: Any) -> Record:
    """Config fields shared by all encoder-decoders."""
    return {
        "is_encoder_decoder": True,
        "pad_token_id": c.pad_id,
        "bos_token_id": c.bos_id,
        "eos_token_id": c.eos_id,
        "decoder_start_token_id": c.bos_id,
        "forced_eos_token_id": None,
    }
