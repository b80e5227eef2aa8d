"""Optimizers by name. A new optimizer is one function here and one row of OPTIMIZERS."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.train_config import TrainConfig
from glassformer.training.parallel import sharded_like, whole

Groups = list[dict[str, Any]]
"""Parameters with their weight decay, as torch.optim takes them."""


def adam_options(config: TrainConfig) -> dict[str, Any]:
    """Options of Adam and AdamW."""
    return {"betas": (config.beta1, config.beta2), "eps": config.eps}


def adam(groups: Groups, config: TrainConfig, fused: bool) -> torch.optim.Optimizer:
    """Adam; weight decay adds to the gradient. Source: Kingma & Ba 2015."""
    return torch.optim.Adam(groups, **adam_options(config), fused=fused)


def adamw(groups: Groups, config: TrainConfig, fused: bool) -> torch.optim.Optimizer:
    """Adam with decoupled weight decay. Source: Loshchilov & Hutter 2019."""
    return torch.optim.AdamW(groups, **adam_options(config), fused=fused)


def adafactor(groups: Groups, config: TrainConfig, fused: bool) -> torch.optim.Optimizer:
    """Adafactor without momentum: second moments factored into rows and columns, updates relative to the size of the
    weights and clipped at RMS 1. Source: Shazeer & Stern 2018, algorithm 4.

    PyTorch's default lower bound of the second moments, 1e-7, is above the squared gradients of a large batch.
    """
    return torch.optim.Adafactor(groups, eps=(1e-18, 1e-3))


@dataclass(frozen=True, slots=True)
class OptimizerType:
    """A row of OPTIMIZERS."""

    make: Callable[[Groups, TrainConfig, bool], torch.optim.Optimizer]
    """Create the optimizer of parameter groups; the last argument says whether fused updates are available."""
    options: tuple[str, ...] = ()
    """Options of `TrainConfig` that not every optimizer has, and this one has."""
    n_states: int = 0
    """Number of tensors of the size of the weights that the optimizer keeps."""


OPTIMIZERS = {
    "adam": OptimizerType(adam, ("beta1", "beta2", "eps", "shard"), n_states=2),
    "adamw": OptimizerType(adamw, ("beta1", "beta2", "eps", "shard"), n_states=2),
    "adafactor": OptimizerType(adafactor),
}


def make_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """The optimizer that the options name. Weight decay applies to weight matrices only.

    Norms, biases and embeddings do not decay. A tied output matrix is an embedding.
    """
    assert config.optimizer is not None
    embeddings = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    matrices: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for parameter in model.parameters():
        (matrices if parameter.dim() > 1 and id(parameter) not in embeddings else others).append(parameter)
    groups: Groups = [
        {"params": matrices, "weight_decay": config.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    fused = next(model.parameters()).device.type in ("cpu", "cuda")
    return OPTIMIZERS[config.optimizer].make([group for group in groups if group["params"]], config, fused)


def optimizer_tensors(optimizer: torch.optim.Optimizer, parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state of an optimizer as tensors named `optimizer.<key>.<parameter>`.

    Args:
        parameters: the parameters by name.
    """
    return {
        f"optimizer.{key}.{name}": whole(value)
        for name, parameter in parameters.items()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def load_optimizer_tensors(
    optimizer: torch.optim.Optimizer, parameters: Mapping[str, Tensor], tensors: Mapping[str, Tensor]
) -> None:
    """Restore the state that `optimizer_tensors` returned, on the devices of the parameters."""
    states: dict[str, dict[str, Tensor]] = {name: {} for name in parameters}
    for full_name, value in tensors.items():
        if full_name.startswith("optimizer."):
            _, key, name = full_name.split(".", 2)
            states[name][key] = sharded_like(parameters[name], value)
    names = {id(parameter): name for name, parameter in parameters.items()}
    ordered = [names[id(parameter)] for group in optimizer.param_groups for parameter in group["params"]]
    state = {i: states[name] for i, name in enumerate(ordered) if states[name]}
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
