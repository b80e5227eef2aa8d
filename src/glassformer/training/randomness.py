"""State of the random numbers of a process, such as those of dropout."""

import numpy as np
import torch
from torch import Tensor


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
