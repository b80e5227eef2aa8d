"""What is lost when a part of a model is switched off, and models without the parts that are missed least."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.errors import ConfigError
from glassformer.inspection.record import replaced
from glassformer.models.base import Model
from glassformer.models.families import FAMILIES, family_of
from glassformer.nn.attention import Attention, KeyValueCache
from glassformer.nn.block import TransformerBlock
from glassformer.nn.feedforward import FeedForward
from glassformer.nn.linear import invalidate_packed_weight

KINDS = ("heads", "sublayers", "layers")


@dataclass(frozen=True, slots=True)
class Part:
    """Something that can be switched off."""

    name: str
    """Of the module."""
    head: int | None = None
    """Of attention, one head of it."""

    def __str__(self) -> str:
        return self.name if self.head is None else f"{self.name} head {self.head + 1}"


@dataclass(frozen=True, slots=True)
class AblationResult:
    """What switching a part off changes."""

    part: Part
    metrics: dict[str, float]
    """Without the part."""
    change: dict[str, float]


def parts(model: Model, kind: str) -> list[Part]:
    """The heads, sub-layers or layers of a model.

    Raises:
        ConfigError: it has none.
    """
    found = []
    for name, module in model.named_modules():
        match kind:
            case "heads" if isinstance(module, Attention):
                found += [Part(name, head) for head in range(module.n_heads)]
            case "sublayers" if isinstance(module, (Attention, FeedForward)):
                found.append(Part(name))
            case "layers" if isinstance(module, TransformerBlock):
                found.append(Part(name))
    if not found:
        raise ConfigError(f"a {family_of(model)} has no {kind} to switch off.")
    return found


def part(model: Model, name: str) -> Part:
    """The part of a name: a module's, or `MODULE head N`, counted from 1.

    Raises:
        ConfigError: there is none, with those there are.
    """
    known = {str(one): one for kind in KINDS for one in parts(model, kind)}
    if name not in known:
        raise ConfigError(f"no part {name!r}; there are: {', '.join(known)}.")
    return known[name]


@contextmanager
def switched_off(model: Model, off: Sequence[Part]) -> Iterator[None]:
    """The model without some of its parts: a head says nothing, a sub-layer adds nothing, a layer is passed by."""
    with ExitStack() as undo:
        for one in off:
            module = model.get_submodule(one.name)
            if one.head is not None:
                handle = module.out_proj.register_forward_pre_hook(zero_head_hook(one.head, module.n_heads))  # type: ignore[union-attr, operator, arg-type]
                undo.callback(handle.remove)
            elif isinstance(module, Attention):
                undo.enter_context(replaced(module, "attend", lambda x, *_, **__: torch.zeros_like(x)))
            elif isinstance(module, FeedForward):
                undo.enter_context(replaced(module, "forward", torch.zeros_like))
            else:
                undo.enter_context(replaced(module, "forward", skip_block))
        yield


def zero_head_hook(head: int, n_heads: int) -> Callable[..., Tensor]:
    """A hook before the output projection that leaves one head out."""

    def hook(module: nn.Module, given: tuple[Tensor]) -> Tensor:
        (heads,) = given
        width = heads.size(-1) // n_heads
        heads = heads.clone()
        heads[..., head * width : (head + 1) * width] = 0
        return heads

    return hook


def skip_block(x: Tensor, *_: Any, cache: KeyValueCache | None = None, **__: Any) -> Tensor:
    """A layer that gives what it is given; its cache counts the places all the same."""
    if cache is not None:
        nothing = x.new_zeros(x.size(0), 1, x.size(1), 1)
        cache.append(nothing, nothing)
    return x


def ablate(
    task: Any, examples: Sequence[Any], kind: str = "heads", *, progress: Callable[[int], None] = lambda n: None
) -> tuple[dict[str, float], list[AblationResult]]:
    """The task's figures of validation as it is, and what each part's absence changes: what is missed most first.

    Args:
        kind: heads, sublayers or layers.
    """
    whole = task.validate(examples)
    found = []
    for one in parts(task.model, kind):
        with switched_off(task.model, [one]):
            metrics = task.validate(examples)
        found.append(AblationResult(one, metrics, {name: metrics[name] - whole[name] for name in whole}))
        progress(1)
    return whole, sorted(found, key=lambda loss: importance(task, loss), reverse=True)


def importance(task: Any, loss: AblationResult) -> float:
    """How much a part is missed: the rise of the loss, or the fall of the task's figure where it has no loss."""
    if "loss" in loss.change:
        return loss.change["loss"]
    return -loss.change[task.metric] if task.larger_is_better else loss.change[task.metric]


def prune(task: Any, losses: Sequence[AblationResult], n: int) -> list[Part]:
    """Take the n heads that are missed least out of a task's model; each attention keeps one.

    Source: Michel et al. 2019, section 4.

    Raises:
        ConfigError: there are fewer heads to spare, or heads that cannot be told apart from outside.
    """
    model = task.model
    check_prunable(model)
    left = {name: module.n_heads for name, module in model.named_modules() if isinstance(module, Attention)}
    chosen: list[Part] = []
    for one in (loss.part for loss in sorted(losses, key=lambda loss: importance(task, loss))):
        if len(chosen) == n:
            break
        if one.head is not None and left[one.name] > 1:
            chosen.append(one)
            left[one.name] -= 1
    if len(chosen) < n:
        raise ConfigError(f"--prune {n}: {len(chosen)} heads can be spared, for each attention keeps one.")
    kept = {
        name: [h for h in range(module.n_heads) if Part(name, h) not in chosen]
        for name, module in model.named_modules()
        if isinstance(module, Attention)
    }
    tensors = model.state_dict()
    for name, heads in kept.items():
        n_heads = model.get_submodule(name).n_heads
        for proj, axis in (("q_proj", 0), ("k_proj", 0), ("v_proj", 0), ("out_proj", 1)):
            for kind in ("weight", "bias"):
                key = f"{name}.{proj}.{kind}"
                if key in tensors and (kind == "weight" or axis == 0):
                    split = tensors[key].unflatten(axis, (n_heads, -1))
                    tensors[key] = split.index_select(axis, torch.tensor(heads)).flatten(axis, axis + 1).contiguous()
        if f"{name}.additive" in tensors:
            tensors[f"{name}.additive"] = tensors[f"{name}.additive"][:, heads].contiguous()
    sizes = model.config.model_copy(
        update={"pruned_heads": {name: len(heads) for name, heads in kept.items() if len(heads) < model.config.n_heads}}
    )
    for parameter in model.parameters():
        invalidate_packed_weight(parameter)
    task.model = FAMILIES[family_of(model)][1].from_state_dict(sizes, tensors).to(task.device).eval()
    return chosen


def check_prunable(model: Model) -> None:
    """Raise ConfigError if heads cannot be taken out of this family."""
    why = {"t5": "all layers share one table of biases, a column a head.", "rnn": "it has one."}.get(family_of(model))
    if why:
        raise ConfigError(f"heads of a {family_of(model)} cannot be taken out: {why}")


def timed(task: Any, examples: Sequence[Any], rounds: int = 3) -> float:
    """Seconds of validation, the least of some rounds."""
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        task.validate(examples)
        seconds.append(time.perf_counter() - start)
    return min(seconds)
