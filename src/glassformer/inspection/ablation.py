"""Ablation: change of the metrics when a head, sub-layer or layer is disabled; pruning of unimportant heads."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.errors import ConfigError
from glassformer.inspection.record import replaced
from glassformer.learning.base import AnyObjective
from glassformer.learning.registry import objective_of
from glassformer.metrics.registry import metric
from glassformer.models.base import Model
from glassformer.models.families import family_of
from glassformer.nn.attention import Attention, KeyValueCache
from glassformer.nn.block import TransformerBlock
from glassformer.nn.feedforward import FeedForward
from glassformer.nn.ops.linear import invalidate_packed_weights
from glassformer.tasks.base import AnyTask, CorpusExample

COMPONENT_KINDS = ("heads", "sublayers", "layers")
"""Kinds of components."""


@dataclass(frozen=True, slots=True)
class Component:
    """A component of a model that can be disabled: an attention head, a sub-layer or a layer."""

    name: str
    """Module name."""
    head: int | None = None
    """Index of the attention head, counted from 0. None: the whole module."""

    def __str__(self) -> str:
        """Module name, or `MODULE head N` with N counted from 1."""
        return self.name if self.head is None else f"{self.name} head {self.head + 1}"


@dataclass(frozen=True, slots=True)
class AblationResult:
    """Metrics of a model with one component disabled."""

    component: Component
    metrics: dict[str, float]
    """Validation metrics with the component disabled."""
    change: dict[str, float]
    """`metrics` minus the metrics of the full model."""


def components(model: Model, kind: str) -> list[Component]:
    """All heads, sub-layers or layers of a model.

    Raises:
        ConfigError: the model has no components of this kind.
    """
    found: list[Component] = []
    for name, module in model.named_modules():
        match kind:
            case "heads" if isinstance(module, Attention):
                found += [Component(name, head) for head in range(module.n_heads)]
            case "sublayers" if isinstance(module, (Attention, FeedForward)):
                found.append(Component(name))
            case "layers" if isinstance(module, TransformerBlock):
                found.append(Component(name))
    if not found:
        raise ConfigError(f"a {family_of(model)} has no {kind} that can be disabled.")
    return found


def find_component(model: Model, name: str) -> Component:
    """Find a component by the name that it is printed with: a module name, or `MODULE head N` with N counted from 1.

    Raises:
        ConfigError: no component has this name; the message lists all names.
    """
    known = {str(candidate): candidate for kind in COMPONENT_KINDS for candidate in components(model, kind)}
    if name not in known:
        raise ConfigError(f"no component {name!r}; available: {', '.join(known)}.")
    return known[name]


@contextmanager
def disabled_components(model: Model, disabled: Sequence[Component]) -> Iterator[None]:
    """Disable components of a model inside the `with` block.

    The output of a head is multiplied by 0, a sub-layer adds 0 to the residual stream: their weights are replaced, so
    that programs can compute the model. A layer returns its input.
    """
    with ExitStack() as undo:
        for component in disabled:
            module = model.get_submodule(component.name)
            last: Any = module.down if isinstance(module, FeedForward) else getattr(module, "out_proj", None)
            if isinstance(module, TransformerBlock):
                undo.enter_context(replaced(module, "forward", skip_block))
            elif component.head is None:
                for name, weight in list(last.named_parameters()):
                    undo.enter_context(replaced_weight(last, name, torch.zeros_like(weight)))
            else:
                weight = last.weight.detach().clone()
                weight.unflatten(1, (module.n_heads, -1))[:, component.head] = 0
                undo.enter_context(replaced_weight(last, "weight", weight))
        yield


@contextmanager
def replaced_weight(module: nn.Module, name: str, value: Tensor) -> Iterator[None]:
    """Replace a weight of a module inside the `with` block."""
    original = getattr(module, name)
    setattr(module, name, nn.Parameter(value, requires_grad=False))
    try:
        yield
    finally:
        setattr(module, name, original)


def skip_block(x: Tensor, *_: object, cache: KeyValueCache | None = None, **__: object) -> Tensor:
    """Forward pass of a disabled layer: returns its input. The length of the cache still grows by the new positions."""
    if cache is not None:
        empty = x.new_zeros(x.size(0), 1, x.size(1), 1)
        cache.append(empty, empty)
    return x


def objective_in_fp32(task: AnyTask) -> AnyObjective:
    """The objective of a task, which decodes in fp32: less precise arithmetic would be part of the differences."""
    objective = objective_of(task)
    objective.decoding_precision = "fp32"
    return objective


def ablate(
    task: AnyTask,
    examples: Sequence[CorpusExample],
    kind: str = "heads",
    *,
    progress: Callable[[int], None] = lambda n: None,
) -> tuple[dict[str, float], list[AblationResult]]:
    """Validation metrics of the full model, and with each component disabled, most important component first.

    Args:
        kind: "heads", "sublayers" or "layers".
        progress: called with 1 after each component.

    Returns: the metrics of the full model, and one result per component.
    """
    objective = objective_in_fp32(task)
    baseline = objective.validate(examples)
    results = []
    for component in components(task.model, kind):
        with disabled_components(task.model, [component]):
            metrics = objective.validate(examples)
        results.append(AblationResult(component, metrics, {name: metrics[name] - baseline[name] for name in baseline}))
        progress(1)
    return baseline, sorted(results, key=lambda result: importance(result, objective.metric), reverse=True)


def importance(result: AblationResult, main_metric: str) -> float:
    """Importance of a component: increase of the loss, or without a loss the degradation of the main metric."""
    if "loss" in result.change:
        return result.change["loss"]
    return -result.change[main_metric] if metric(main_metric).larger_is_better else result.change[main_metric]


def prune(task: AnyTask, results: Sequence[AblationResult], n: int) -> list[Component]:
    """Remove the n least important heads from a task's model. Each attention module keeps at least one head.

    Returns: the removed heads.

    Source: Michel et al. 2019, section 3. Importance is measured by ablation, not by the gradient score of section 4.

    Raises:
        ConfigError: fewer than n heads can be removed, or heads of this model family cannot be removed.
    """
    model = task.model
    check_prunable(model, n)
    n_left = {name: module.n_heads for name, module in model.named_modules() if isinstance(module, Attention)}
    removed: list[Component] = []
    main_metric = objective_of(task).metric
    for component in (result.component for result in sorted(results, key=lambda r: importance(r, main_metric))):
        if len(removed) == n:
            break
        if component.head is not None and n_left[component.name] > 1:
            removed.append(component)
            n_left[component.name] -= 1
    kept = {
        name: [h for h in range(module.n_heads) if Component(name, h) not in removed]
        for name, module in model.named_modules()
        if isinstance(module, Attention)
    }
    tensors = model.state_dict()
    for name, heads in kept.items():
        n_heads = model.get_submodule(name).n_heads
        for proj, axis in (("q_proj", 0), ("k_proj", 0), ("v_proj", 0), ("out_proj", 1)):
            for parameter_name in ("weight", "bias"):
                key = f"{name}.{proj}.{parameter_name}"
                if key in tensors and (parameter_name == "weight" or axis == 0):
                    split = tensors[key].unflatten(axis, (n_heads, -1))
                    tensors[key] = split.index_select(axis, torch.tensor(heads)).flatten(axis, axis + 1).contiguous()
        if f"{name}.additive" in tensors:
            tensors[f"{name}.additive"] = tensors[f"{name}.additive"][:, heads].contiguous()
    config = model.config.model_copy(
        update={"pruned_heads": {name: len(heads) for name, heads in kept.items() if len(heads) < model.config.n_heads}}
    )
    for parameter in model.parameters():
        invalidate_packed_weights(parameter)
    task.model = type(model).from_state_dict(config, tensors).to(task.device).eval()
    return removed


def check_prunable(model: Model, n: int = 0) -> None:
    """Raise ConfigError if heads of this model family cannot be removed, or fewer than n."""
    if model.pruning_obstacle:
        raise ConfigError(f"heads of a {family_of(model)} cannot be removed: {model.pruning_obstacle}")
    n_removable = sum(module.n_heads - 1 for module in model.modules() if isinstance(module, Attention))
    if n > n_removable:
        raise ConfigError(f"--prune {n}: only {n_removable} heads can be removed; each attention module keeps one.")


def validation_seconds(task: AnyTask, examples: Sequence[CorpusExample], rounds: int = 3) -> float:
    """Time of one validation in seconds: the minimum of `rounds` runs."""
    objective = objective_of(task)
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        objective.validate(examples)
        seconds.append(time.perf_counter() - start)
    return min(seconds)
