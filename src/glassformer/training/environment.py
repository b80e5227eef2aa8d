"""What a training run is computed with: threads, seeds, versions and machine."""

import os
import platform
from pathlib import Path

import torch

from glassformer.config import JsonObject
from glassformer.devices import pick_device
from glassformer.kernels.library import implementation
from glassformer.manifest import MANIFEST, read_json
from glassformer.measurement import processor
from glassformer.tasks.base import Log
from glassformer.train_config import TrainConfig
from glassformer.training.distributed import Processes
from glassformer.version import __version__


def set_threads(n: int, processes: Processes) -> None:
    """Set the number of threads. The processes on a machine share its cores, also if the run began with fewer
    processes."""
    n_cores = os.cpu_count() or 1
    torch.set_num_threads(n if processes.size == 1 else max(1, min(n, n_cores // processes.local_size)))


def configure_torch(config: TrainConfig) -> torch.device:
    """Set deterministic algorithms and the random seed. Returns the device."""
    device = torch.device(pick_device(config.device))
    if device.type == "cuda" and config.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what cuBLAS needs for it
    if config.deterministic or (device.type == "cpu" and config.compile == "on"):
        torch.use_deterministic_algorithms(True)
    elif device.type == "cpu":
        # Equal for what is not compiled, and without the import of the compiler, which takes as long as that of torch.
        torch.set_deterministic_debug_mode("error")
    if device.type == "cpu" or config.deterministic:
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.manual_seed(config.seed)
    return device


def environment(config: TrainConfig, processes: Processes) -> JsonObject:
    """Versions, machine and device of a run."""
    return {
        "glassformer": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "processes": processes.size,
        "threads": torch.get_num_threads(),
        "kernels": implementation(),
        "device": torch.cuda.get_device_name() if config.device == "cuda" else config.device,
    }


def warn_about_environment(step_folder: Path, n_processes_before: int, n_processes: int, log: Log) -> None:
    """Log a warning if a run that is resumed from a checkpoint may not be bit-identical to an uninterrupted one.

    Args:
        n_processes_before: number of processes that wrote the checkpoint.
    """
    manifest = read_json(step_folder / MANIFEST)
    if n_processes_before != n_processes:
        log(
            f"warning: the checkpoint was written by a training with {n_processes_before} processes; this one has"
            f" {n_processes}. Results will differ in the last digits, and random numbers are others."
        )
    now = {"torch": torch.__version__, "threads": torch.get_num_threads(), "kernels": implementation()}
    written = {name: manifest.get(name) for name in now}
    changed = [f"{name} {written[name]} (now {now[name]})" for name in now if written[name] != now[name]]
    if changed:
        log(
            f"warning: the checkpoint was written with {', '.join(changed)}; results will differ in the last digits"
            " from those of an uninterrupted run."
        )
