"""Updates of the weights: their micro-batches, what the processes tell each other before, and what follows if memory
does not suffice."""

from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np
from numpy.typing import NDArray

from glassformer.data.batch import Batch
from glassformer.errors import UserError
from glassformer.memory import is_out_of_memory
from glassformer.train_config import TrainConfig
from glassformer.training.checkpoints import Checkpoints
from glassformer.training.memory import single_example_message
from glassformer.training.micro_batches import MicroBatches
from glassformer.training.options import store_options
from glassformer.training.profile import Profile
from glassformer.training.randomness import random_state, set_random_state
from glassformer.training.signals import StopSignal
from glassformer.training.step import TrainingStep


class Updates:
    """Updates the weights with rows of the training set."""

    def __init__(
        self, step: TrainingStep, micro_batches: MicroBatches, checkpoints: Checkpoints, config: TrainConfig
    ) -> None:
        self.step, self.micro_batches, self.checkpoints, self.config = step, micro_batches, checkpoints, config
        self.processes = step.processes
        self.save_due = False
        """A checkpoint is to follow the last update."""
        self.profile: Profile | None = None

    def __call__(self, indices: Sequence[NDArray[np.int64]], lr: float, stop: StopSignal) -> tuple[int, int | None]:
        """One update of the weights. If it runs out of memory, it is repeated with smaller micro-batches.

        Args:
            indices: the rows of each batch of the update, of all processes.

        Returns:
            The number of targets, and the signal that one of the processes received before, if any.
        """
        state = random_state(self.step.device)
        while True:
            with self.step.part("data"):
                batches = [
                    batch
                    for rows in indices
                    for batch in self.micro_batches(self.processes.part(rows), self.step.n_steps)
                ]
            with self.step.part("waiting"):
                fillers, n_targets, signum = self.agree(batches, indices[0], stop)
            try:
                with self.profile.of_step() if self.profile else nullcontext():
                    _, _, n = self.step(batches, lr, fillers, n_targets)
                return n, signum
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
            self.halve(indices)
            set_random_state(state, self.step.device)

    def halve(self, indices: Sequence[NDArray[np.int64]]) -> None:
        """After an update that ran out of memory: halve the micro-batches for the rest of the run, and free memory.

        Raises:
            UserError: they have one row each; or there are other processes, which wait for this one in the middle of
                the update.
        """
        parts = [own for rows in indices if len(own := self.processes.part(rows))]
        n_tokens = max(map(self.micro_batches.divisible_tokens, parts), default=0)
        if not n_tokens:
            length = max((int(self.micro_batches.sampler.lengths[own].max()) for own in parts), default=1)
            raise UserError(f"step {self.step.n_steps + 1}: {single_example_message(length, self.config)}")
        max_tokens = self.micro_batches.max_tokens = n_tokens // 2
        if self.processes.size > 1:
            raise UserError(
                f"step {self.step.n_steps + 1}: out of memory with micro-batches of {n_tokens:,} tokens.\n"
                f"  Run the same command with --micro-batch-tokens {max_tokens}: it continues from the"
                " last checkpoint."
            )
        self.config = self.config.model_copy(update={"micro_batch_tokens": max_tokens})
        store_options(self.config)
        self.step.log(
            f"Out of memory with micro-batches of {n_tokens:,} tokens: from step {self.step.n_steps + 1:,} on they"
            f" have at most {max_tokens:,}. The batches stay as they are."
        )
        self.step.release()

    def agree(
        self, batches: Sequence[Batch], indices: NDArray[np.int64], stop: StopSignal
    ) -> tuple[list[Batch], float, int | None]:
        """Exchange what all processes must know of each other before an update, also whether a checkpoint follows it.

        Args:
            batches: the micro-batches of this process; none if the update has fewer rows than there are processes.
            indices: rows of the update of all processes.

        Returns:
            Batches without effect, with which all processes have as many; the number of targets of all; the signal
            that one of them received, if any.
        """
        n_own = sum(batch.n_targets for batch in batches)
        n_targets, n_batches, signums, saves = self.processes.gather(
            [n_own, len(batches), stop.signum or 0, self.checkpoints.is_due()]
        ).T
        self.save_due = bool(saves[0])  # by the clock of rank 0, which writes
        self.checkpoints.report_failure()
        n_missing = int(n_batches.max()) - len(batches)
        fillers = self.micro_batches(indices[:1]) * n_missing if n_missing else []
        return fillers, float(n_targets.sum()), int(signums.max()) or None
