"""The checkpoints of a training: written in a thread, at the latest every minute; older ones are deleted."""

import time
from collections.abc import Callable
from pathlib import Path

import torch

from glassformer import checkpoint
from glassformer.config import JsonObject
from glassformer.errors import UserError
from glassformer.training.background import BackgroundJob
from glassformer.training.distributed import Processes
from glassformer.training.step import first_line

SAVE_EVERY_S = 60.0
"""Time in seconds after a checkpoint at which the next one is written."""

MAX_SAVING_FRACTION = 0.01
"""Fraction of the training time that these checkpoints may cost: where one takes longer to write, they are rarer."""

MAX_CHECKPOINTS = 2
"""Number of checkpoints that are kept."""


def copied(contents: checkpoint.Contents) -> checkpoint.Contents:
    """Contents of a folder with copies of the tensors in CPU memory, which the training does not change."""
    return {
        name: content
        if isinstance(content, str)
        else {key: torch.as_tensor(tensor).detach().to("cpu", copy=True) for key, tensor in content.items()}
        for name, content in contents.items()
    }


class Checkpoints:
    """Writes the checkpoints of a run folder, one at a time, in a thread of rank 0."""

    def __init__(self, out: Path, processes: Processes, log: Callable[[str], None]) -> None:
        self.out, self.processes, self.log = out, processes, log
        self.job = BackgroundJob()
        self.copied_s = time.monotonic()
        """When the last checkpoint was copied, by `time.monotonic`."""
        self.cost_s = 0.0
        """Training time in seconds that the last checkpoint cost."""
        self.failure: UserError | None = None
        """Why the last checkpoint could not be written."""
        self.reported_failure: UserError | None = None
        """The last failure that was logged."""
        self.saved_step: int | None = None
        """Step of the last checkpoint, unless that could not be written."""
        self.best: tuple[str, checkpoint.Contents] | None = None
        """Name and contents of best weights that are not written yet."""

    def is_due(self) -> bool:
        """Whether to write a checkpoint after the next update, by the time since the last one."""
        return time.monotonic() - self.copied_s >= max(SAVE_EVERY_S, self.cost_s / MAX_SAVING_FRACTION)

    def write(
        self,
        step: int,
        model: checkpoint.Contents,
        training: checkpoint.Contents,
        *,
        is_best: bool,
        started_s: float,
        then: Callable[[], None],
    ) -> None:
        """Write `checkpoints/step-N`, if it is the best also `best/step-N`, and delete older ones. Returns when the
        contents are copied. One that cannot be written is a `failure`; best weights are written with a later one.

        All processes must call this.

        Args:
            model: contents of the model folder.
            training: what resuming needs besides.
            started_s: when the training began to collect them, by `time.monotonic`.
            then: called in the thread at the end.
        """
        self.saved_step = step
        if self.processes.rank:
            return
        name = f"step-{step}"
        model, training = copied(model), copied(training)
        self.copied_s = time.monotonic()
        self.cost_s = copy_s = self.copied_s - started_s

        def write() -> None:
            started_s = time.monotonic()
            if is_best:
                self.best = name, model
            try:
                if self.best:
                    checkpoint.save_folder(self.out / "best" / self.best[0], self.best[1])
                checkpoint.save_folder(self.out / "checkpoints" / name, {**model, **training})
            except UserError as error:
                self.failure = error
                return
            self.best = self.failure = None
            checkpoint.delete_old(self.out / "checkpoints", keep=MAX_CHECKPOINTS)
            then()
            # The thread takes one of the cores.
            self.cost_s = copy_s + (time.monotonic() - started_s) / torch.get_num_threads()

        self.job.start(write)

    def wait(self) -> str:
        """Wait until the last checkpoint is complete. All processes must call this.

        Returns:
            Why it could not be written; empty if it could.
        """

        def wait() -> JsonObject:
            self.job.wait()
            return {"failure": str(self.failure or "")}

        failure = str(self.processes.lead(wait)["failure"])
        if failure:
            self.saved_step = None
        self.report_failure()
        return failure

    def report_failure(self) -> None:
        """Say that a checkpoint could not be written and that the training goes on, or that this has ended."""
        failure = self.failure
        if failure and failure is not self.reported_failure:
            more = (
                "" if self.reported_failure else "\n  The training goes on, and tries again at each later checkpoint."
            )
            self.log(f"warning: {first_line(failure)}{more}")
        elif self.reported_failure and not failure:
            self.log(f"Checkpoints can be written again: the newest is of step {self.saved_step:,}.")
        self.reported_failure = failure
