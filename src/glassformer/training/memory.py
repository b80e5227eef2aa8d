"""Memory of a training: what a model needs and uses, and errors where there is too little."""

from pathlib import Path

import torch

from glassformer.errors import ConfigError, UserError
from glassformer.memory import available_bytes, proc_bytes
from glassformer.model_config import ModelConfig
from glassformer.models.base import Model, WithoutWeights
from glassformer.train_config import TrainConfig
from glassformer.training.distributed import Processes
from glassformer.training.optimizer import OPTIMIZERS


def single_example_message(length: int, config: TrainConfig) -> str:
    """Error message for an example that does not fit in memory alone.

    Args:
        length: its number of tokens.
    """
    advice = ["shorter texts", "a smaller model"] if config.init_from else ["a shorter --max-len", "a smaller --preset"]
    if config.precision == "fp32":
        advice.insert(0, "--precision bf16")
    if not config.activation_checkpointing:
        advice.insert(0, "--activation-checkpointing")
    return (
        f"out of memory with a single example of {length:,} tokens.\n"
        f"  Train again, into another folder, with {', or '.join(advice)}."
    )


class MemoryMeter:
    """Measures the memory of this process, on a GPU that of its tensors."""

    def __init__(self, device: torch.device) -> None:
        """
        Raises:
            ConfigError: the system does not tell it.
        """
        self.device = device
        if device.type != "cuda":
            try:
                self.restart()
                self.peak_bytes()
            except (OSError, ValueError):
                raise ConfigError(
                    "--auto-batch: this system does not tell how much memory a program uses.\n"
                    "  Leave it out, or choose --batch-tokens."
                ) from None

    def restart(self) -> int:
        """Forget the peak. Returns the memory in use now."""
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
        else:
            Path("/proc/self/clear_refs").write_text("5")  # man 5 proc
        return self.peak_bytes()

    def peak_bytes(self) -> int:
        """Largest memory in use since `restart`."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device)
        return proc_bytes(Path("/proc/self/status"), "VmHWM")


def check_model_fits(
    config: TrainConfig,
    model_class: type[Model],
    model_config: ModelConfig,
    device: torch.device,
    processes: Processes,
) -> None:
    """Check that a device has memory for the weights, gradients and optimizer state of a model.

    Raises:
        UserError: it does not.
    """
    available = available_bytes(str(device))
    with WithoutWeights():
        parameters = list(model_class(model_config).parameters())
    needed = state_bytes(config, sum(p.numel() * p.element_size() for p in parameters), processes)
    if device.type == "cpu":
        needed *= processes.local_size
    if available is not None and needed > available:
        raise UserError(
            f"not enough memory: weights, gradients and optimizer state of the model"
            f" ({sum(p.numel() for p in parameters) / 1e6:,.0f} M parameters) need {needed / 2**30:,.1f} GiB;"
            f" {available / 2**30:,.1f} GiB of the memory of {'the GPU' if device.type == 'cuda' else 'this machine'}"
            " are available.\n"
            f"  Use {'a smaller model' if config.init_from else 'a smaller --preset or --vocab-size'},"
            " --optimizer adafactor, or several GPUs (--devices N --shard)."
        )


def state_bytes(config: TrainConfig, weight_bytes: int, processes: Processes) -> int:
    """Memory of a process for what a training keeps from step to step: weights, gradients, optimizer state, averages.

    Args:
        weight_bytes: size of the weights.
    """
    n_copies = 2 + n_kept(config)
    if processes.size == 1:
        return n_copies * weight_bytes
    if config.shard:
        return n_copies * weight_bytes // processes.size + weight_bytes  # and a whole copy of the weights
    return (n_copies + 1) * weight_bytes  # and the gradients of all processes


def n_kept(config: TrainConfig) -> int:
    """Number of tensors of the size of the weights that a training keeps, besides these: optimizer state, averages."""
    assert config.optimizer is not None
    return OPTIMIZERS[config.optimizer].n_states + (config.ema is not None) + (config.average_checkpoints > 1)
