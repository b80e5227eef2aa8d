"""Optimizers by name. A new optimizer is one function here and one row of OPTIMIZERS."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.train_config import TrainConfig
from glassformer.training.parallel import sharded_like, whole

Groups = list[dict[str, Any]]
"""Parameters with their weight decay, as torch.optim takes them."""


class Eager(torch.optim.Optimizer):
    """Optimizers without the decorators of their methods, which matter to compiled ones only, and import PyTorch's
    compiler: that takes as long as the import of PyTorch."""

    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    load_state_dict = inspect.unwrap(torch.optim.Optimizer.load_state_dict)
    state_dict = inspect.unwrap(torch.optim.Optimizer.state_dict)
    zero_grad = inspect.unwrap(torch.optim.Optimizer.zero_grad)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update the weights."""
        inspect.unwrap(super().step)(self, closure)


class Adam(Eager, torch.optim.Adam):
    """`torch.optim.Adam`."""


class AdamW(Eager, torch.optim.AdamW):
    """`torch.optim.AdamW`."""


class Adafactor(Eager, torch.optim.Adafactor):
    """`torch.optim.Adafactor`."""


def adam_options(config: TrainConfig) -> dict[str, Any]:
    """Options of Adam and AdamW."""
    return {"betas": (config.beta1, config.beta2), "eps": config.eps}


def adam(groups: Groups, config: TrainConfig, fused: bool) -> torch.optim.Optimizer:
    """Adam; weight decay adds to the gradient. Source: Kingma & Ba 2015."""
    return Adam(groups, **adam_options(config), fused=fused)


def adamw(groups: Groups, config: TrainConfig, fused: bool) -> torch.optim.Optimizer:
    """Adam with decoupled weight decay. Source: Loshchilov & Hutter 2019."""
    return AdamW(groups, **adam_options(config), fused=fused)


def adafactor(groups: Groups, config: TrainConfig, fused: bool) -> torch.optim.Optimizer:
    """Adafactor without momentum: second moments factored into rows and columns, updates relative to the size of the
    weights and clipped at RMS 1. Source: Shazeer & Stern 2018, algorithm 4.

    PyTorch's default lower bound of the second moments, 1e-7, is above the squared gradients of a large batch.
    """
    return Adafactor(groups, eps=(1e-18, 1e-3))


NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
"""Coefficients of an iteration. Source: Jordan et al. 2024."""
N_ITERATIONS = 3
"""Jordan et al. have 5, which take 5 / 3 of the time."""
MOMENTUM = 0.95


def orthogonalized(matrices: Float[Tensor, "n rows columns"]) -> Float[Tensor, "n rows columns"]:
    """Matrices whose rows or columns are more nearly orthogonal, by Newton-Schulz iterations: the singular values
    approach 1, the largest first.

    Source: Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/.
    """
    x = matrices.mT if matrices.size(1) > matrices.size(2) else matrices
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    a, b, c = NEWTON_SCHULZ
    for _ in range(N_ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if matrices.size(1) > matrices.size(2) else x


class Muon(AdamW):
    """Muon for the weight matrices of layers, AdamW for all other weights.

    The update of a matrix is its momentum, made orthogonal, with about the root mean square of an update of Adam (0.2):
    both have the same learning rate.

    Source: Jordan et al. 2024; the scale: Liu et al. 2025 (2502.16982), section 2.2.
    """

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update the weights. With `found_inf`, a tensor that is not 0 when a gradient is not finite, they stay."""
        groups = self.param_groups
        self.param_groups = [group for group in groups if not group["orthogonal"]]
        super().step()
        self.param_groups = groups
        by_shape: dict[tuple[float, torch.Size], list[nn.Parameter]] = {}
        for group in groups:
            for parameter in group["params"] if group["orthogonal"] else ():
                if parameter.grad is not None:
                    by_shape.setdefault((group["weight_decay"], parameter.shape), []).append(parameter)
        for (weight_decay, _), parameters in by_shape.items():
            self.update(parameters, groups[0]["lr"], weight_decay)

    def update(self, parameters: list[nn.Parameter], lr: float | Tensor, weight_decay: float) -> None:
        """Update matrices of equal shape. If they are sharded, each process computes the whole update."""
        gradients = [p.grad for p in parameters if p.grad is not None]
        weights: list[Tensor] = [*parameters]
        for parameter in parameters:
            if not self.state[parameter]:
                # AdamW expects that each state has a step.
                self.state[parameter] = {"step": torch.zeros(()), "momentum": torch.zeros_like(parameter)}
        momenta = [self.state[parameter]["momentum"] for parameter in parameters]
        bad = getattr(self, "found_inf", None)
        if bad is not None:
            gradients = [torch.where(bad > 0, (1 - MOMENTUM) * m, g) for m, g in zip(momenta, gradients, strict=True)]
            lr = lr * (1 - bad)
        torch._foreach_mul_(momenta, MOMENTUM)
        torch._foreach_add_(momenta, gradients)
        ahead = torch._foreach_add(gradients, momenta, alpha=MOMENTUM)  # Nesterov
        rows, columns = parameters[0].shape
        scale = 0.2 * max(rows, columns) ** 0.5 * lr
        updates = (orthogonalized(torch.stack([*map(whole, ahead)])) * scale).unbind()
        if weight_decay:
            torch._foreach_mul_(weights, torch.as_tensor(1 - lr * weight_decay, device=weights[0].device))
        torch._foreach_sub_(weights, [sharded_like(p, own) for p, own in zip(parameters, updates, strict=True)])


def muon(groups: Groups, config: TrainConfig, fused: bool) -> torch.optim.Optimizer:
    """Muon for matrices, AdamW for the rest; both with decoupled weight decay."""
    split: Groups = []
    for group in groups:
        for is_orthogonal in (True, False):
            chosen = [p for p in group["params"] if (group["is_matrix"] and p.dim() == 2) == is_orthogonal]
            split.append(group | {"params": chosen, "orthogonal": is_orthogonal})
    return Muon([group for group in split if group["params"]], **adam_options(config), fused=fused)


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
    "muon": OptimizerType(muon, ("beta1", "beta2", "eps", "shard"), n_states=2),
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
        {"params": matrices, "weight_decay": config.weight_decay, "is_matrix": True},
        {"params": others, "weight_decay": 0.0, "is_matrix": False},
    ]
    fused = next(model.parameters()).device.type in ("cpu", "cuda")
    return OPTIMIZERS[config.optimizer].make([group for group in groups if group["params"]], config, fused)


def forget_direction(optimizer: torch.optim.Optimizer) -> None:
    """Set the averages of the gradients to zero, so that the next updates do not go on in their direction. The averages
    of their squares, which bound the size of updates, stay."""
    for state in optimizer.state.values():
        for key in ("exp_avg", "momentum"):
            if key in state:
                state[key].zero_()


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
