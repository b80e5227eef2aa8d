"""What there is to know of an architecture of Hugging Face's transformers that is one of our families."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from glassformer.errors import CheckpointError

Record = dict[str, Any]
Tensors = dict[str, Tensor]
Names = tuple[tuple[str, str], ...]
"""What weights are called: our name, theirs; {i} is the layer."""


def prefixed(prefix: str, names: Names) -> Names:
    """The names with a prefix on their side."""
    return tuple((ours, prefix + theirs) for ours, theirs in names)


@dataclass(frozen=True, slots=True)
class Head:
    """What a class of transformers adds to a body: our task, the sizes that it decides, names of its own."""

    task: str
    sizes: Mapping[str, Any] = field(default_factory=dict)
    names: Names = ()


@dataclass(frozen=True, slots=True)
class Architecture:
    """How a `model_type` is read and written."""

    family: str
    heads: Mapping[str, Head]
    """By the name of the class; the first is meant where config.json names none."""
    names: Callable[[Any], Names]
    """Of our sizes, the table of names."""
    sizes: Callable[[Record, Tensors], Record]
    """Of their config and tensors, our sizes."""
    config: Callable[[Any], Record]
    """Of our sizes, their config."""
    body: str = ""
    """What the names of the body begin with; a body saved alone leaves it out."""
    copies: Mapping[str, str] = field(default_factory=dict)
    """Tensors that some files hold twice, and the names that we know them by."""
    ignored: str = r"$^"
    """Names in their folders that carry nothing of their own, or what the head does not use."""
    unpack: Callable[[Tensors], Tensors] = lambda tensors: tensors
    """Their tensors as they would be if they had our layout."""
    pack: Callable[[Any, Tensors], Tensors] = lambda sizes, tensors: tensors


def refuse_unless(config: Record, **known: Any) -> None:
    """Raise CheckpointError if an option has another value than the one that this version knows."""
    for name, value in known.items():
        if config.get(name) not in (None, value):
            raise CheckpointError(f"{name} = {config[name]!r}: this version knows {value!r} alone.")


ACTIVATIONS = {
    **{"relu": "relu", "gelu": "gelu", "swish": "silu", "silu": "silu"},
    **{"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"},
}
THEIRS = {"relu": "relu", "gelu": "gelu", "silu": "silu", "gelu_tanh": "gelu_new"}


def activation(name: str) -> str:
    """Our name of an activation."""
    if name not in ACTIVATIONS:
        raise CheckpointError(f"activation {name!r}: this version knows {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[name]


def encoder_decoder(c: Any) -> Record:
    """What all configs of encoder-decoders say."""
    return {
        "is_encoder_decoder": True,
        "pad_token_id": c.pad_id,
        "bos_token_id": c.bos_id,
        "eos_token_id": c.eos_id,
        "decoder_start_token_id": c.bos_id,
        "forced_eos_token_id": None,
    }
