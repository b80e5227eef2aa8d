"""Models in the precisions of decoding."""

import copy
from typing import Any
from weakref import WeakKeyDictionary

from glassformer.errors import ConfigError
from glassformer.kernels.library import load
from glassformer.runtime.decoder import CompiledDecoder
from glassformer.runtime.recorder import UnsupportedError

CONVERTED: WeakKeyDictionary[Any, dict[str, tuple[object, object]]] = WeakKeyDictionary()
"""Model -> precision -> versions of its weights, and the model in this precision."""


def in_precision(model: Any, precision: str) -> Any:
    """A `Decodable` model in a precision of decoding. Conversions are kept until the weights change.

    Args:
        precision: "fp32", "bf16" or "int8": 8-bit weights and activations in linear layers, on a CPU only.

    Raises:
        ConfigError: the model cannot be decoded in this precision.
    """
    if precision == "fp32":
        return model
    versions = [(weight.data_ptr(), weight._version) for weight in model.parameters()]
    kept = CONVERTED.setdefault(model, {})
    if precision not in kept or kept[precision][0] != versions:
        kept[precision] = versions, quantized(model) if precision == "int8" else copy.deepcopy(model).bfloat16()
    return kept[precision][1]


def quantized(model: Any) -> CompiledDecoder:
    """The model in int8."""
    device = next(model.parameters()).device
    if device.type != "cpu":
        raise ConfigError(f"precision int8 is for a CPU, and the model is on {device}.\n  Use --precision bf16.")
    try:
        return CompiledDecoder(model, load()[0])
    except UnsupportedError as error:
        raise ConfigError(f"precision int8: {error}.\n  Use --precision fp32 or bf16 for this model.") from None
