"""Shapes, statistics and numerical problems of every tensor of a forward pass."""

from dataclasses import dataclass

import torch
from torch import Tensor

from glassformer.inspection.inputs import ModelInputs
from glassformer.inspection.record import ActivationCache, record_activations

SATURATION_THRESHOLD = 0.99
"""An attention row with a larger maximum weight is saturated: almost no gradient passes through its softmax."""


@dataclass(frozen=True, slots=True)
class TensorStatistics:
    """Shape, statistics and problems of one tensor."""

    name: str
    shape: tuple[int, ...]
    axes: tuple[str, ...]
    """Axis names, such as batch, position and feature."""
    mean: float | None
    std: float | None
    min: float | None
    max: float | None
    zeros: float
    """Fraction of elements equal to 0."""
    flags: tuple[str, ...]
    """Problems: nan, infinite, saturated (half or more of the attention rows with more than one key), dead (all 0)."""


def tensor_statistics(name: str, x: Tensor, axes: tuple[str, ...]) -> TensorStatistics:
    """Statistics of a tensor. Non-finite elements are excluded from mean, standard deviation, minimum and maximum."""
    values = x.detach().float()
    finite = values[values.isfinite()]
    mean, std, minimum, maximum = (
        (float(f(finite)) for f in (torch.mean, deviation, torch.min, torch.max)) if len(finite) else [None] * 4
    )
    flags = {
        "nan": values.isnan().any(),
        "infinite": values.isinf().any(),
        "saturated": name.endswith(".weights") and is_saturated(values),
        "dead": (values == 0).all(),
    }
    return TensorStatistics(
        name,
        tuple(values.shape),
        axes,
        mean,
        std,
        minimum,
        maximum,
        float((values == 0).float().mean()),
        tuple(flag for flag, is_set in flags.items() if is_set),
    )


def deviation(x: Tensor) -> Tensor:
    """Population standard deviation over all elements."""
    return x.std(correction=0)


def is_saturated(weights: Tensor) -> bool:
    """Whether at least half of the rows with more than one non-zero weight are saturated."""
    rows = weights[(weights > 0).sum(-1) > 1]
    return len(rows) > 0 and bool((rows.amax(-1) > SATURATION_THRESHOLD).float().mean() >= 0.5)


def cache_statistics(cache: ActivationCache) -> list[TensorStatistics]:
    """Statistics of all recorded tensors, call by call."""
    statistics = []
    for name, calls in cache.tensors.items():
        for i, x in enumerate(calls):
            statistics.append(tensor_statistics(name if len(calls) == 1 else f"{name}[{i}]", x, cache.axes(name, i)))
    return statistics


def trace(inputs: ModelInputs) -> list[TensorStatistics]:
    """Run a forward pass and return the statistics of every tensor."""
    with torch.inference_mode(), record_activations(inputs.task.model) as cache:
        hidden = inputs.forward()
        if hasattr(inputs.task.model, "logits"):
            inputs.task.model.logits(hidden)
        else:
            model = inputs.task.model
            if model.config.head == "mlm":
                model.mlm_logits(hidden)
            if model.classifier is not None:
                model.label_logits(hidden, inputs.inputs[0])
    return cache_statistics(cache)
