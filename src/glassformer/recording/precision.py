"""Models of PyTorch in the precisions of inference."""

import copy
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch

from glassformer.errors import ConfigError
from glassformer.kernels.library import Kernels, load_or_warn
from glassformer.models.families import family_of
from glassformer.recording.graphs import graph_of
from glassformer.recording.recorder import UnsupportedError
from glassformer.runtime.encoder import RuntimeEncoder
from glassformer.runtime.graph import Weights
from glassformer.runtime.model import RuntimeModel
from glassformer.runtime.precision import fast_kernels, measured_choice

CONVERTED: WeakKeyDictionary[Any, dict[str, tuple[object, object]]] = WeakKeyDictionary()
"""Model -> precision -> `weight_versions`, and the model in this precision; None: the model itself."""


def in_precision(model: Any, precision: str) -> Any:
    """A model in a precision of inference. Conversions are kept until the weights change.

    Args:
        precision: "fp32", "bf16" or "int8": 8-bit weights and activations in linear layers, on a CPU only. "auto": the
            fastest of them that the device and the model have.

    A model that hooks or replaced methods record or change is computed by its modules, since programs contain neither.

    Raises:
        ConfigError: the model does not have this precision.
    """
    if is_modified(model):
        if precision == "int8":
            raise ConfigError(
                "a model in int8 cannot be recorded or changed.\n  Use --precision fp32 and a folder in fp32."
            )
        return copy.deepcopy(model).bfloat16() if precision == "bf16" else model
    if precision == "auto":
        try:
            return in_precision(model, fastest(next(model.parameters()).device, model.config))
        except ConfigError:
            return model
    if precision == "fp32" and not has_kernels(model):
        return model
    versions = weight_versions(model)
    kept = CONVERTED.setdefault(model, {})
    if precision not in kept or kept[precision][0] != versions:
        kept[precision] = versions, CONVERSIONS[precision](model)
    return kept[precision][1] or model


def has_kernels(model: Any) -> bool:
    """Whether the kernels compute the model in fp32, with the results of the model."""
    weight = next(model.parameters())
    return (
        fast_kernels() is not None
        and model.kind in ("encoder-decoder", "decoder", "encoder")
        and (weight.device.type, weight.dtype) == ("cpu", torch.float32)
    )


def is_modified(model: Any) -> bool:
    """Whether hooks or replaced methods of modules record or change what the model computes."""
    return any(
        module._forward_hooks
        or module._forward_pre_hooks
        or any(callable(value) and hasattr(type(module), name) for name, value in vars(module).items())
        for module in model.modules()
    )


def runtime_of(model: Any, kernels: Kernels | None, *, is_quantized: bool = True) -> RuntimeModel | RuntimeEncoder:
    """A model as programs. In fp32 they use its weights, without a copy.

    Raises:
        UnsupportedError: it uses a function that has no kernel.
    """
    graph = graph_of(family_of(model), model.config)
    runtime_class = RuntimeEncoder if model.kind == "encoder" else RuntimeModel
    return runtime_class(graph, model.config, kernels, weights_of(model), is_quantized=is_quantized)


def weights_of(model: Any) -> Weights:
    """The weights of a model by name, as arrays that share its memory."""
    return {name: weight.detach().float().contiguous().numpy() for name, weight in model.state_dict().items()}


def compiled_in_fp32(model: Any) -> Any:
    """The model as programs of kernels in fp32; None if it uses a function that has no kernel."""
    try:
        return runtime_of(model, fast_kernels(), is_quantized=False)
    except UnsupportedError:
        return None


def weight_versions(model: Any) -> list[tuple[float, ...]]:
    """What changes when the weights change: address, version, and one element, because torch's fused optimizers change
    the weights without a new version."""
    weights = [weight.detach() for weight in model.parameters()]
    elements = torch.stack([weight.flatten()[weight.numel() // 2].float() for weight in weights]).tolist()
    return [(w.data_ptr(), w._version, element) for w, element in zip(weights, elements, strict=True)]


def fastest(device: torch.device, config: object) -> str:
    """The precision that "auto" means for models that have it. On a CPU it is measured for the sizes of the model.

    Args:
        config: configuration of the model.
    """
    if device.type == "cpu":
        choice = measured_choice(config)
        return choice.name if choice else "fp32"
    return "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "fp32"


def quantized(model: Any) -> RuntimeModel | RuntimeEncoder:
    """The model in int8: of BERT the encoder, which takes texts without padding."""
    device = next(model.parameters()).device
    if device.type != "cpu":
        raise ConfigError(f"precision int8 is for a CPU, and the model is on {device}.\n  Use --precision bf16.")
    if model.kind == "word-vectors":
        raise ConfigError("precision int8: word vectors have no layers.\n  Use --precision fp32.")
    kernels = load_or_warn()
    try:
        return runtime_of(model, kernels)
    except UnsupportedError as error:
        raise ConfigError(f"precision int8: {error}.\n  Use --precision fp32 or bf16 for this model.") from None


CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "fp32": compiled_in_fp32,
    "bf16": lambda model: copy.deepcopy(model).bfloat16(),
    "int8": quantized,
}
"""Precision -> function that converts a model."""
