"""Models whose folder contains the tables of their int8 programs instead of their weights."""

from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from glassformer.errors import CheckpointError, UserError
from glassformer.kernels.library import load_or_warn
from glassformer.model_config import ModelConfig
from glassformer.models.base import Model, WithoutWeights
from glassformer.runtime.decoder import CompiledDecoder
from glassformer.runtime.encoder import CompiledEncoder
from glassformer.runtime.recorder import UnsupportedError
from glassformer.runtime.tables import PREFIX, Tables

KEPT = ("pooler.", "classifier.")
"""Prefixes of the weights that are used in fp32: those of the heads of encoders."""

ALLOWED = {
    Tensor.size, Tensor.dim, Tensor.numel, Tensor.is_floating_point, Tensor.is_complex, Tensor.requires_grad_,
    Tensor.element_size, Tensor.is_contiguous, torch._has_compatible_shallow_copy_type,
}  # fmt: skip
"""Functions that do not use the values of a tensor. Attributes are allowed as well."""

STORED: WeakKeyDictionary[Any, CompiledDecoder | CompiledEncoder] = WeakKeyDictionary()
"""Model without weights -> its programs."""

RECORDED: WeakKeyDictionary[Any, Model] = WeakKeyDictionary()
"""Model without weights -> the model whose computation the programs were recorded from."""

WITH_WEIGHTS: WeakKeyDictionary[Any, Model] = WeakKeyDictionary()
"""Model without weights -> the same with those of its tables, if they were needed."""


NO_WEIGHTS = (
    "this model folder was exported in int8: it is used by translate, run and evaluate, on a CPU, and has no"
    " weights for anything else.\n  Use the folder that it was exported from."
)


class AbsentWeight(nn.Parameter):
    """A weight of which only the shape is known. To use its values is an error."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            if func in ALLOWED or func.__name__ in ("__get__", "__set__"):
                return func(*args, **(kwargs or {}))
            if func is Tensor.to:
                moved = func(*args, **(kwargs or {}))
                if (moved.device, moved.dtype) == (args[0].device, args[0].dtype):
                    return args[0]
        raise UserError(NO_WEIGHTS)


def has_weights(model: Any) -> bool:
    """Whether a model has weights, and not only its programs."""
    return model not in STORED


def int8_tensors(model: Model, compiled: CompiledDecoder | CompiledEncoder) -> dict[str, Tensor]:
    """The tensors of a folder in int8: the tables, and the weights that are used in fp32.

    Raises:
        UserError: the output layer of the model is not in the programs.
    """
    if getattr(model.config, "head", None) == "mlm":
        raise UserError(
            "a masked language model cannot be exported in int8: its output layer is computed in fp32.\n"
            "  Use --precision int8 with the model folder itself."
        )
    kept = {name: weight.detach() for name, weight in model.named_parameters() if name.startswith(KEPT)}
    return kept | compiled.tables.to_store()


def model_of_int8(model_class: type[Model], config: ModelConfig, tensors: dict[str, Tensor]) -> Model:
    """The model of a folder in int8.

    Raises:
        CheckpointError: the tensors do not match the config.
    """
    names = {name for name in tensors if name.startswith(PREFIX)}
    recorded = with_placeholders(model_class, config, tensors, nn.Parameter)
    compiled_class = CompiledEncoder if model_class.kind == "encoder" else CompiledDecoder
    tables = Tables({name: tensors[name] for name in names})
    try:
        compiled = compiled_class(recorded, load_or_warn(), tables)  # type: ignore[arg-type]
    except UnsupportedError as error:
        raise CheckpointError(f"the model has no int8 programs: {error}.") from None
    if len(compiled.tables.arrays) != len(names):
        raise CheckpointError(f"{len(names)} tables, expected {len(compiled.tables.arrays)} for the config.")
    model = with_placeholders(model_class, config, tensors, AbsentWeight)
    STORED[model], RECORDED[model] = compiled, recorded
    return model


def can_have_weights(model: Any) -> bool:
    """Whether a model has weights, or its tables contain them. Those of T5 do not: they have the position biases by
    distance."""
    if has_weights(model):
        return True
    stored = {id(tensor) for tensor in STORED[model].tables.tensors()}
    return all(name.startswith(KEPT) or id(p) in stored for name, p in RECORDED[model].named_parameters())


def with_weights(model: Any) -> Any:
    """The model itself, or if it has no weights, the same model with the weights that its tables contain: rounded to
    int8, in fp32. It is kept.

    Raises:
        UserError: the tables do not contain all weights.
    """
    if has_weights(model):
        return model
    if model not in WITH_WEIGHTS:
        if not can_have_weights(model):
            raise UserError(NO_WEIGHTS)
        values = {id(tensor): value for tensor, value in STORED[model].tables.weights()}
        names = {name: id(parameter) for name, parameter in RECORDED[model].named_parameters(remove_duplicate=False)}
        with WithoutWeights():
            copy = type(model)(model.config)
        kept = dict(model.named_parameters())
        weights: dict[int, nn.Parameter] = {}
        for name, key in names.items():
            module_name, _, attribute = name.rpartition(".")
            value = values[key] if key in values else kept[name].detach()
            setattr(copy.get_submodule(module_name), attribute, weights.setdefault(key, nn.Parameter(value)))
        copy.reset_buffers()
        WITH_WEIGHTS[model] = copy.eval()
    return WITH_WEIGHTS[model]


def with_placeholders(
    model_class: type[Model], config: ModelConfig, tensors: dict[str, Tensor], placeholder: type[nn.Parameter]
) -> Model:
    """A model with the weights in `tensors`. All others are zeros that have no memory."""
    with WithoutWeights():
        model = model_class(config)
    for name, parameter in list(model.named_parameters()):
        module_name, _, attribute = name.rpartition(".")
        if name.startswith(KEPT):
            value = tensors.get(name, torch.empty(0))
            if value.shape != parameter.shape:
                raise CheckpointError(f"the weight {name} does not match the sizes in config.json.")
            weight = nn.Parameter(value.float())
        else:
            weight = placeholder(torch.zeros(1).expand(parameter.shape))
        setattr(model.get_submodule(module_name), attribute, weight)
    model.reset_buffers()
    return model.eval()
