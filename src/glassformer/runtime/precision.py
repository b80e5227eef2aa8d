"""Models in the precisions of decoding."""

import copy
from typing import Any
from weakref import WeakKeyDictionary

import torch

from glassformer.errors import ConfigError
from glassformer.kernels.library import load, load_or_warn
from glassformer.runtime.decoder import CompiledDecoder
from glassformer.runtime.encoder import CompiledEncoder
from glassformer.runtime.recorder import UnsupportedError
from glassformer.runtime.storage import STORED

CONVERTED: WeakKeyDictionary[Any, dict[str, tuple[object, object]]] = WeakKeyDictionary()
"""Model -> precision -> `weight_versions`, and the model in this precision."""


def in_precision(model: Any, precision: str) -> Any:
    """A model in a precision of inference. Conversions are kept until the weights change.

    Args:
        precision: "fp32", "bf16" or "int8": 8-bit weights and activations in linear layers, on a CPU only. "auto": the
            fastest of them that the device and the model have.

    A model whose folder was exported in int8 is always computed in int8.

    Raises:
        ConfigError: the model does not have this precision.
    """
    if model in STORED:
        if precision == "bf16":
            raise ConfigError("precision bf16: the weights of this folder are in int8.\n  Leave out --precision.")
        return STORED[model]
    if precision == "auto":
        try:
            return in_precision(model, fastest(next(model.parameters()).device))
        except ConfigError:
            return model
    if precision == "fp32":
        return model
    versions = weight_versions(model)
    kept = CONVERTED.setdefault(model, {})
    if precision not in kept or kept[precision][0] != versions:
        kept[precision] = versions, quantized(model) if precision == "int8" else copy.deepcopy(model).bfloat16()
    return kept[precision][1]


def weight_versions(model: Any) -> list[tuple[float, ...]]:
    """What changes when the weights change: address, version, and one element, because torch's fused optimizers change
    the weights without a new version."""
    weights = [weight.detach() for weight in model.parameters()]
    elements = torch.stack([weight.flatten()[weight.numel() // 2].float() for weight in weights]).tolist()
    return [(w.data_ptr(), w._version, element) for w, element in zip(weights, elements, strict=True)]


def fastest(device: torch.device) -> str:
    """The precision that "auto" means for models that have it."""
    if device.type == "cpu":
        kernels, _ = load()
        return "int8" if kernels and kernels.variant != "plain" else "fp32"
    return "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "fp32"


def quantized(model: Any) -> CompiledDecoder | CompiledEncoder:
    """The model in int8: of BERT the encoder, which takes texts without padding."""
    device = next(model.parameters()).device
    if device.type != "cpu":
        raise ConfigError(f"precision int8 is for a CPU, and the model is on {device}.\n  Use --precision bf16.")
    if model.kind == "word-vectors":
        raise ConfigError("precision int8: word vectors have no layers.\n  Use --precision fp32.")
    kernels = load_or_warn()
    try:
        return CompiledEncoder(model, kernels) if model.kind == "encoder" else CompiledDecoder(model, kernels)
    except UnsupportedError as error:
        raise ConfigError(f"precision int8: {error}.\n  Use --precision fp32 or bf16 for this model.") from None
