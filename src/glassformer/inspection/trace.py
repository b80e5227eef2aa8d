"""Shapes and figures of every step of a forward pass."""

from dataclasses import dataclass

import torch
from torch import Tensor

from glassformer.inspection.inputs import ModelInputs
from glassformer.inspection.record import ActivationCache, record

SURE = 0.99
"""A row of attention whose largest weight is above this is saturated: hardly any gradient comes through its softmax."""


@dataclass(frozen=True, slots=True)
class Step:
    """Figures of one tensor."""

    name: str
    shape: tuple[int, ...]
    axes: tuple[str, ...]
    mean: float | None
    std: float | None
    min: float | None
    max: float | None
    zeros: float
    """Share of numbers that are 0."""
    flags: tuple[str, ...]
    """What is wrong: nan, infinite, saturated (half of the rows of attention with a choice, or more), dead (all 0)."""


def step_of(name: str, x: Tensor, axes: tuple[str, ...]) -> Step:
    """The figures of a tensor; what is not finite is left out of mean, deviation and bounds."""
    values = x.detach().float()
    finite = values[values.isfinite()]
    mean, std, least, most = (
        (float(f(finite)) for f in (torch.mean, deviation, torch.min, torch.max)) if len(finite) else [None] * 4
    )
    flags = {
        "nan": values.isnan().any(),
        "infinite": values.isinf().any(),
        "saturated": name.endswith(".weights") and is_saturated(values),
        "dead": (values == 0).all(),
    }
    return Step(
        name,
        tuple(values.shape),
        axes,
        mean,
        std,
        least,
        most,
        float((values == 0).float().mean()),
        tuple(flag for flag, is_so in flags.items() if is_so),
    )


def deviation(x: Tensor) -> Tensor:
    """Standard deviation of all there is."""
    return x.std(correction=0)


def is_saturated(weights: Tensor) -> bool:
    """Whether half of the rows that have a choice, or more, have made it."""
    rows = weights[(weights > 0).sum(-1) > 1]
    return len(rows) > 0 and bool((rows.amax(-1) > SURE).float().mean() >= 0.5)


def steps_of(cache: ActivationCache) -> list[Step]:
    """The figures of all that was recorded, call by call."""
    found = []
    for name, calls in cache.found.items():
        for i, x in enumerate(calls):
            found.append(step_of(name if len(calls) == 1 else f"{name}[{i}]", x, cache.axes(name, i)))
    return found


def trace(inputs: ModelInputs) -> list[Step]:
    """The figures of every step of a passage through its model."""
    with torch.inference_mode(), record(inputs.task.model) as cache:
        hidden = inputs.forward()
        if hasattr(inputs.task.model, "logits"):
            inputs.task.model.logits(hidden)
        else:
            model = inputs.task.model
            if model.config.head == "mlm":
                model.mlm_logits(hidden)
            if model.classifier is not None:
                model.label_logits(hidden, inputs.inputs[0])
    return steps_of(cache)
