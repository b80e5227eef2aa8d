"""Records of loss and speed during training."""

import math
import time
from collections.abc import Callable

import torch
from torch import Tensor

from glassformer.config import JsonObject
from glassformer.training.progress import Reporter
from glassformer.training.step import TrainingStep

LOG_EVERY = 10
"""Steps between records in metrics.jsonl."""


class Readback:
    """The value of a tensor, copied from the device without waiting until it is used."""

    def __init__(self, value: Tensor) -> None:
        self.value = value.to("cpu", non_blocking=True, copy=True)
        self.arrived = torch.cuda.Event() if value.is_cuda else None
        if self.arrived:
            self.arrived.record()

    def __float__(self) -> float:
        if self.arrived:
            self.arrived.synchronize()
        return self.value.item()


class StepLog:
    """Reports the mean loss, the gradient norm and the speed of every LOG_EVERY steps.

    The values of a record are on the device. They are read after the next step has been started, so that a GPU never
    waits for Python.
    """

    def __init__(
        self,
        step: TrainingStep,
        reporter: Reporter,
        elapsed_s: Callable[[], float],
        on_record: Callable[[float | None, int], None],
    ) -> None:
        """
        Args:
            elapsed_s: returns the time of training in seconds.
            on_record: called with the mean loss of each record and the number of its updates that were skipped.
        """
        self.step, self.reporter, self.elapsed_s, self.on_record = step, reporter, elapsed_s, on_record
        self.unreported: tuple[float, JsonObject, Readback] | None = None
        """Fraction of the budget, record of metrics, and number of skipped updates, to be reported."""
        self.restart(0.0, 0)

    def restart(self, loss_sum: float, n_skipped: int) -> None:
        """Begin with the sum of the losses and the number of skipped updates since the last record, and measure the
        speed from now on."""
        # Filled on the device: a copy from the CPU would wait for a GPU.
        self.loss_sum = torch.full((), loss_sum, device=self.step.device)
        self.n_skipped = torch.full((), float(n_skipped), device=self.step.device)
        self.n_targets, self.since_s = 0, time.monotonic()

    def leave_out(self, seconds: float) -> None:
        """Leave seconds out of the speed: those of a validation."""
        self.since_s += seconds

    def add(self, n_targets: int) -> None:
        """Add the step that has been started last, and report the record of earlier ones."""
        self.loss_sum += torch.where(self.step.skipped > 0, 0.0, self.step.loss)
        self.n_skipped += self.step.skipped > 0
        self.n_targets += n_targets
        self.report()

    def record(self, fraction: float, *, lr: float, epoch: float) -> None:
        """End a record of LOG_EVERY steps.

        Args:
            fraction: fraction of the budget used.
            lr: learning rate of the last step.
            epoch: number of epochs completed.
        """
        record = {
            "step": self.step.n_steps,
            "loss": Readback(self.loss_sum / (LOG_EVERY - self.n_skipped)),
            "lr": lr,
            "grad_norm": Readback(self.step.grad_norm),
            "tokens_per_s": self.n_targets / (time.monotonic() - self.since_s),
            "epoch": epoch,
            "elapsed_s": self.elapsed_s(),
        }
        self.unreported = fraction, record, Readback(self.n_skipped)
        self.restart(0.0, 0)
        if self.step.device.type == "cpu":
            self.report()

    def report(self) -> None:
        """Report the last record, if that has not been done. Values that are not finite are null."""
        if self.unreported is None:
            return
        fraction, record, skipped = self.unreported
        self.unreported = None
        values = {name: float(x) if isinstance(x, Readback) else x for name, x in record.items()}
        values |= {name: None for name in ("loss", "grad_norm") if not math.isfinite(values[name])}
        if n_skipped := int(float(skipped)):
            values["skipped"] = n_skipped
        self.on_record(values["loss"], n_skipped)
        self.reporter.step(fraction, values, self.elapsed_s() * (1 - fraction) / max(fraction, 1e-9))
