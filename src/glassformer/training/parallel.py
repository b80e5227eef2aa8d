"""Data parallelism: a replica of the model in each process, or parts of its weights in each process.

Each process computes the loss of its part of a batch; gradients are averaged over the processes. Sharded tensors are
`DTensor`s. What they need is imported where it is used: it takes half a second.
"""

from contextlib import AbstractContextManager, nullcontext
from copy import copy, deepcopy
from warnings import filterwarnings

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from glassformer.data.batch import Batch
from glassformer.learning.base import AnyObjective
from glassformer.nn.block import TransformerBlock
from glassformer.training.distributed import Processes


class LossModule(nn.Module):
    """The loss of an objective as a forward pass, so that data parallelism contains all uses of the weights."""

    def __init__(self, objective: AnyObjective, label_smoothing: float) -> None:
        super().__init__()
        self.objective, self.model, self.label_smoothing = objective, objective.model, label_smoothing

    def forward(self, batch: Batch) -> Tensor:
        return self.objective.loss(batch, label_smoothing=self.label_smoothing)


def replicated(module: LossModule) -> DistributedDataParallel:
    """The module with gradients that are averaged over all processes."""
    # Weights that the task does not use are possible, so DDP must look for them. A side effect is needed too: the
    # communication buckets do not change after the first update, so that a resumed run has the same last digits. DDP
    # warns if it finds none; `never_used` is one.
    module.register_parameter("never_used", nn.Parameter(torch.zeros((), device=module.objective.device)))
    filterwarnings("ignore", "`broadcast_buffers` is deprecated")  # older versions have no other name
    return DistributedDataParallel(module, broadcast_buffers=False, find_unused_parameters=True)


def with_copied_model(objective: AnyObjective) -> AnyObjective:
    """The objective with a copy of its task, which has a copy of the model."""
    copied = copy(objective)
    copied.task = copy(objective.task)
    copied.task.model = deepcopy(objective.model)
    return copied


def shard_(module: LossModule, processes: Processes) -> None:
    """Split all weights over the processes, in place: those of each Transformer block, and all others together."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

    filterwarnings("ignore", "FSDP2-wrapped module .* returned a view tensor")  # nothing is changed in place
    device = next(module.parameters()).device.type
    mesh = init_device_mesh(device, (processes.size,))
    for block in list(module.modules()):
        if isinstance(block, TransformerBlock):
            if hasattr(block, "cross_attention"):  # its keys and values are computed before the block
                fully_shard(block.cross_attention, mesh=mesh)
                register_fsdp_forward_method(block.cross_attention, "keys_values")
                register_fsdp_forward_method(block.cross_attention, "attend")
            fully_shard(block, mesh=mesh)
    fully_shard(module, mesh=mesh)


def without_synchronization(module: nn.Module) -> AbstractContextManager[None]:
    """Inside this context, replicas add up gradients without averaging them.

    Sharded weights are averaged in each backward pass all the same: no process has memory for all gradients.
    """
    return module.no_sync() if isinstance(module, DistributedDataParallel) else nullcontext()


def whole(tensor: Tensor) -> Tensor:
    """A tensor from its shards. All processes must call this."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def local(tensor: Tensor) -> Tensor:
    """The part of a sharded tensor that is in this process."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def n_bytes(tensor: Tensor) -> int:
    """Size in bytes in this process."""
    return local(tensor).numel() * tensor.element_size()


def sharded_like(parameter: Tensor, tensor: Tensor) -> Tensor:
    """A whole tensor, split as the parameter is."""
    if not hasattr(parameter, "full_tensor") or tensor.shape != parameter.shape:
        return tensor
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(parameter, DTensor)
    tensor = tensor.to(parameter.device)
    return distribute_tensor(tensor, parameter.device_mesh, parameter.placements, src_data_rank=None)


@torch.no_grad()
def gather_weights(sharded: nn.Module, target: nn.Module) -> None:
    """Copy the weights of a sharded model to a whole one. All processes must call this."""
    weights = dict(target.named_parameters())
    for name, parameter in sharded.named_parameters():
        weights[name].copy_(whole(parameter))


@torch.no_grad()
def scatter_weights(source: nn.Module, sharded: nn.Module) -> None:
    """Copy the weights of a whole model to a sharded one."""
    weights = dict(source.named_parameters())
    for name, parameter in sharded.named_parameters():
        parameter.copy_(sharded_like(parameter, weights[name]))
