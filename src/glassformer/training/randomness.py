"""State of the random numbers of a process, such as those of dropout."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from glassformer.training.distributed import Processes


def seed(base: int, rank: int, step: int) -> None:
    """Seed the random numbers of this process: different in each process and step.

    Args:
        base: the seed of the run.
    """
    sequence = np.random.SeedSequence([base, rank, step])
    torch.manual_seed(int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1)))


def random_state(device: torch.device) -> dict[str, Tensor]:
    """State of the random numbers on the CPU and, if it is a GPU, on a device."""
    states = {"rng.cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["rng.cuda"] = torch.cuda.get_rng_state(device)
    return states


def set_random_state(states: dict[str, Tensor], device: torch.device) -> None:
    """Restore what `random_state` returned."""
    torch.set_rng_state(states["rng.cpu"])
    if "rng.cuda" in states:
        torch.cuda.set_rng_state(states["rng.cuda"], device)


def state_name(name: str, rank: int) -> str:
    """Name of a state of a process in a checkpoint."""
    return f"{name}.{rank}" if rank else name


def states_of_all(device: torch.device, processes: Processes) -> dict[str, Tensor]:
    """What `random_state` returns, of all processes, for a checkpoint. All processes must call this."""
    return {
        state_name(name, rank): state
        for name, own in random_state(device).items()
        for rank, state in enumerate(processes.gather_tensor(own))
    }


def set_own_state(tensors: Mapping[str, Tensor], device: torch.device, rank: int) -> bool:
    """Restore the state of this process from a checkpoint. Returns whether it has one: it may be of fewer processes."""
    names = {name: state_name(name, rank) for name in ("rng.cpu", "rng.cuda")}
    if names["rng.cpu"] not in tensors:
        return False
    set_random_state({name: tensors[own] for name, own in names.items() if own in tensors}, device)
    return True
