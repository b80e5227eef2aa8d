"""Training loop. An interrupted and resumed run has the same result as an uninterrupted one."""

import gc
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from glassformer import checkpoint
from glassformer.config import JsonObject
from glassformer.data.sampler import length_buckets
from glassformer.errors import UserError
from glassformer.learning.base import AnyObjective
from glassformer.manifest import read_json, verify
from glassformer.train_config import TrainConfig
from glassformer.training.auto_batch import find_batch_tokens
from glassformer.training.averages import Averages
from glassformer.training.checkpoints import Checkpoints
from glassformer.training.compiler import GAIN, compilation_s
from glassformer.training.distributed import Processes
from glassformer.training.divergence import EVIDENCE, MAX_RETURNS, DivergedError, largest
from glassformer.training.encoding import PreparedData
from glassformer.training.micro_batches import MicroBatches, growth, make_sampler
from glassformer.training.optimizer import forget_direction, load_optimizer_tensors, optimizer_tensors
from glassformer.training.options import store_options
from glassformer.training.parallel import whole
from glassformer.training.profile import Profile
from glassformer.training.progress import Reporter, duration
from glassformer.training.randomness import random_state, seed, set_own_state, set_random_state, states_of_all
from glassformer.training.regularization import KNOWN_AFTER, STEP, dropout_for, set_dropout
from glassformer.training.schedule import crossed, learning_rate
from glassformer.training.signals import Interrupted, Stopped, StopSignal
from glassformer.training.state import TrainerState
from glassformer.training.step import TrainingStep
from glassformer.training.step_log import LOG_EVERY, StepLog
from glassformer.training.updates import Updates
from glassformer.training.validation import Validator

MEASURED_S = 10.0
"""Training time in seconds after which --compile auto decides."""

IN_DOMAIN_FRACTION = 0.2
"""The last fraction of the training, which has the text of --in-domain only."""

RETRY_S, N_RETRIES = 10.0, 60
"""At the end of the training, a checkpoint that cannot be written is tried again every so many seconds, so often."""

AVERAGING_FRACTION = 0.1
"""The averaged checkpoints are evenly spaced over this last fraction of the training."""


class Trainer:
    """Trains a task on a prepared corpus within a run folder."""

    def __init__(
        self,
        objective: AnyObjective,
        data: PreparedData,
        config: TrainConfig,
        reporter: Reporter,
        processes: Processes | None = None,
    ) -> None:
        """
        Args:
            config: options with their defaults filled in; one of steps, epochs and minutes is set, the training budget.
            processes: the group that trains together. Default: this process alone.
        """
        self.processes = processes or Processes()
        self.objective, self.data, self.config, self.reporter = objective, data, config, reporter
        self.task, self.model = objective.task, objective.model
        self.step = TrainingStep(objective, config, reporter.log if reporter else print, self.processes)
        grown = growth(objective, data.train, config.seed)
        lengths = np.ceil(grown * objective.lengths(data.train)).astype(np.int64)
        if config.batch_tokens is None:
            config = self.config = self.with_found_batch(length_buckets(lengths) if self.step.graphs else lengths)
        assert config.batch_tokens is not None
        self.sampler = make_sampler(self.step, data.train, lengths, config.batch_tokens, config.seed, growth=grown)
        self.in_domain = None if data.in_domain is None else self.sampler.only(data.in_domain)
        self.micro_batches = MicroBatches(self.step, data.train, self.sampler, config.micro_batch_tokens)
        self.checkpoints = Checkpoints(config.out, self.processes, self.step.log)
        self.updates = Updates(self.step, self.micro_batches, self.checkpoints, config)
        self.averages = Averages(config.ema)
        self.progress = TrainerState()
        self.validator = Validator(objective, data.dev, config, reporter, self.progress, self.elapsed_s, self.processes)
        self.log = StepLog(self.step, reporter, self.elapsed_s, self.watch)
        self.started_s = time.monotonic()
        if self.processes.rank:  # rank 0 continues the random numbers that initialized the model
            seed(config.seed, self.processes.rank, 0)
        self.may_compile = config.compile == "auto"
        """Compilation is not decided yet."""

    def with_found_batch(self, lengths: NDArray[np.int64]) -> TrainConfig:
        """The options with the largest batch that fits in memory. They are stored for the resumed run."""
        state = random_state(self.objective.device)
        n_tokens = find_batch_tokens(self.step, self.data.train, lengths)
        set_random_state(state, self.objective.device)
        batch_tokens = n_tokens * self.processes.size
        limits = {"batch_tokens": batch_tokens, "micro_batch_tokens": self.config.micro_batch_tokens or n_tokens}
        config = self.config.model_copy(update=limits)
        if self.processes.rank == 0:
            store_options(config)
        self.step.log(
            f"Batches have at most {batch_tokens:,} tokens per side, as many as fit in memory (--auto-batch)."
        )
        return config

    # State

    def state_tensors(self) -> dict[str, Tensor]:
        """All tensors that resuming needs, except for the weights: random state, optimizer state, weight averages.

        All processes must call this.
        """
        states = states_of_all(self.objective.device, self.processes)
        return states | optimizer_tensors(self.step.optimizer, self.step.parameters) | self.averages.tensors()

    def save(self) -> None:
        """Write `checkpoints/step-N`, and `best/step-N` after a validation with the best score, then delete older ones.

        This returns when the state is copied; a thread of rank 0 writes it. All processes must call this.
        """
        with self.step.part("saving"):
            self.write_checkpoint()

    def write_checkpoint(self) -> None:
        """What `save` does, without the time of a profile."""
        started_s = time.monotonic()
        self.log.report()
        self.wait_for_saving()
        self.progress.sampler = self.sampler.state_dict()
        self.progress.in_domain = self.in_domain.state_dict() if self.in_domain else {}
        self.progress.loss_sum_since_log = self.log.loss_sum.item()
        self.progress.n_skipped_since_log = int(self.log.n_skipped.item())
        self.progress.elapsed_s, self.started_s = self.elapsed_s(), time.monotonic()
        self.progress.n_processes = self.processes.size
        self.step.gather()
        model: checkpoint.Contents = self.task.contents()
        training: checkpoint.Contents = {
            "training.safetensors": self.state_tensors(),
            "progress.json": checkpoint.to_json(asdict(self.progress)),
        }
        self.checkpoints.write(
            self.progress.step, model, training, is_best=self.validator.is_best, started_s=started_s,
            then=self.validator.delete_old_best,
        )  # fmt: skip

    def wait_for_saving(self) -> str:
        """`Checkpoints.wait`, whose time is one of a profile."""
        with self.step.part("saving"):
            return self.checkpoints.wait()

    def save_at_last(self, stop: StopSignal) -> None:
        """Wait for the last checkpoint of the training. If it cannot be written, try again, up to N_RETRIES times.

        All processes must call this.

        Raises:
            Stopped: a signal arrived; a checkpoint was saved.
            UserError: the checkpoint cannot be written.
        """
        for i in range(N_RETRIES):
            if not self.wait_for_saving():
                return
            if i == 0:
                self.step.log(
                    "The training is complete, but not saved. Free disk space: it is tried again every"
                    f" {RETRY_S:.0f} s, at most {N_RETRIES} times."
                )
            signum = self.processes.lead(lambda: {"signum": stop.wait(RETRY_S)})["signum"]
            if signum:
                self.checkpoint_and_stop(signum)
            self.save()
        if failure := self.wait_for_saving():
            raise UserError(failure)

    def load(self, folder: Path) -> None:
        """Resume from a verified checkpoint, of any number of processes."""
        self.progress = self.validator.state = TrainerState(**read_json(folder / "progress.json"))
        self.step.n_steps = self.progress.step
        self.sampler.load_state_dict(self.progress.sampler)
        if self.in_domain:
            self.in_domain.load_state_dict(self.progress.in_domain)
        self.checkpoints.saved_step = self.progress.step
        if self.progress.dropout is not None:
            self.set_dropout(self.progress.dropout)
        self.model.load_state_dict(checkpoint.read_tensors(folder / "model.safetensors"))
        self.step.scatter()
        tensors = checkpoint.read_tensors(folder / "training.safetensors")
        load_optimizer_tensors(self.step.optimizer, self.step.parameters, tensors)
        self.averages.load(tensors, self.step.parameters)
        if not set_own_state(tensors, self.objective.device, self.processes.rank):
            seed(self.config.seed, self.processes.rank, self.progress.step)

    # Time

    def elapsed_s(self) -> float:
        """Training time in seconds, over all resumed parts of the run."""
        return self.progress.elapsed_s + time.monotonic() - self.started_s

    @property
    def epochs_done(self) -> float:
        """Number of passes over the corpus; a batch of --in-domain counts as one of the corpus."""
        n_batches = self.in_domain.epochs_done * len(self.in_domain.batches) if self.in_domain else 0.0
        return self.sampler.epochs_done + n_batches / len(self.sampler.batches)

    def budget_used(self, step: int) -> float:
        """Fraction of the budget used after `step` updates, at the current position of the sampler."""
        c = self.config
        if c.steps:
            return min(1.0, step / c.steps)
        if c.epochs:
            return min(1.0, self.epochs_done / c.epochs)
        assert c.minutes
        elapsed_s = self.processes.gather([self.elapsed_s()])[0, 0]  # the clock of rank 0
        return min(1.0, float(elapsed_s) / (60 * c.minutes))

    # The loop

    def run(self, stop: StopSignal, on_first_step: Callable[[], None] | None = None) -> None:
        """Train until the budget is used up, with regular validations and checkpoints.

        Args:
            stop: checked after each update.
            on_first_step: called after the first update.

        Raises:
            Stopped: a signal arrived; a checkpoint was saved.
            UserError: the training diverged again and again, or its last checkpoint cannot be written.
        """
        if self.config.profile and self.processes.rank == 0:
            self.updates.profile = Profile(self.step)
            self.micro_batches.on_made = self.updates.profile.count
        freezes = not gc.get_freeze_count()  # else the program has done it
        if freezes:
            gc.freeze()  # the objects of the program so far need not be searched for garbage after every few batches
        try:
            self.run_steps(stop, on_first_step)
        except Stopped:
            self.write_profile()
            raise
        finally:
            if freezes:
                gc.unfreeze()
            self.checkpoints.job.close()
        self.write_profile()

    def write_profile(self) -> None:
        """Write the profile of the steps so far, if there is one."""
        if self.updates.profile:
            self.reporter.log(self.updates.profile.write(self.config.out))

    def run_steps(self, stop: StopSignal, on_first_step: Callable[[], None] | None) -> None:
        """Train until the budget is used up."""
        self.started_s = self.checkpoints.copied_s = time.monotonic()
        # Make at least one update, however small the budget: the first validation needs one.
        self.progress.fraction = self.budget_used(self.progress.step) if self.progress.step else 0.0
        if self.progress.fraction < 1 - AVERAGING_FRACTION and self.progress.n_averaged:
            self.averages.sums, self.progress.n_averaged = {}, 0  # resumed with a larger budget: averaging is due later
        self.log.restart(self.progress.loss_sum_since_log, self.progress.n_skipped_since_log)
        if self.progress.validation_due:
            self.validate_and_save(stop)
        start, start_s = self.progress.fraction, self.elapsed_s()
        while self.progress.fraction < 1:
            if self.progress.divergence and self.progress.step % LOG_EVERY:  # a record is known after the next update
                self.return_to_best()
            signum = self.make_update(stop)
            if on_first_step:
                self.step.loss.item()  # waits for a GPU
                on_first_step()
                on_first_step = None
            if self.may_compile and self.progress.step % LOG_EVERY == 0:
                self.decide_compilation(start, start_s)
            if self.progress.validation_due:
                self.validate_and_save(stop)
            elif self.updates.save_due or (self.config.save_every and self.progress.step % self.config.save_every == 0):
                self.save()
            if self.processes.size == 1:
                signum = stop.signum
            if signum:
                self.checkpoint_and_stop(signum)
        is_validated = self.progress.n_examples_validated == self.progress.n_examples
        if self.progress.last_score is None or not is_validated:  # resumed with a budget that was used up already
            self.validate_and_save(stop)
        if self.n_skipped == self.progress.step:
            self.end_diverged("the loss or its gradient was not finite in any update")
        if self.progress.divergence:
            self.step.log(f"warning: the training diverged at its end: {self.progress.divergence}.")
        self.save_at_last(stop)
        self.step.gather()
        self.averages.gather()

    def decide_compilation(self, start: float, start_s: float) -> None:
        """With --compile auto: compile the model if that saves more time than it takes, once the speed is known.

        Args:
            start: fraction of the budget used when this part of the run began.
            start_s: `elapsed_s` at that time.
        """
        done = self.progress.fraction - start
        elapsed_s = self.processes.gather([self.elapsed_s() - start_s])[0, 0]
        if elapsed_s < MEASURED_S or not done:
            return
        self.may_compile = False
        remaining_s = elapsed_s / done * (1 - self.progress.fraction)
        # Without graphs, the compiler makes the length a variable when it changes.
        cost_s = compilation_s(self.sampler.n_shapes if self.step.graphs else 2)
        if GAIN * remaining_s > cost_s:
            self.step.log(
                f"Compiling the model takes about {cost_s:.0f} s and saves about {GAIN:.0%} of the remaining"
                f" {duration(remaining_s)} (--compile)."
            )
            self.step.compile()

    def make_update(self, stop: StopSignal) -> int | None:
        """One update of the weights and of all that follows them: averages, records, whether a validation is due.

        Returns:
            The signal that one of the processes received before, if any.
        """
        indices = [self.next_batch() for _ in range(self.config.accumulate)]
        before, after = self.progress.fraction, self.budget_used(self.progress.step + 1)
        lr = self.learning_rate(before, after)
        if self.config.dropout == "auto":
            self.adapt_dropout(after)
        n, signum = self.updates(indices, lr, stop)
        self.progress.step += 1
        self.progress.fraction = after
        self.progress.n_tokens += n
        self.progress.n_examples += sum(map(len, indices))
        with self.step.part("optimizer"):
            self.averages.move(self.step.parameters, self.progress.step)
        self.log.add(n)
        if before >= 1 - AVERAGING_FRACTION and crossed(
            before, after, round(self.config.average_checkpoints / AVERAGING_FRACTION)
        ):
            self.averages.add(self.step.parameters)
            self.progress.n_averaged += 1
        if self.progress.step % LOG_EVERY == 0:
            self.log.record(after, lr=lr, epoch=self.epochs_done)
        self.progress.validation_due = self.validator.is_due(before, after)
        return signum

    def next_batch(self) -> NDArray[np.int64]:
        """The rows of the next batch of all processes."""
        if self.in_domain is None or self.progress.fraction < 1 - IN_DOMAIN_FRACTION:
            return next(self.sampler)
        if not self.in_domain.epochs_done:
            self.step.log(f"From step {self.progress.step + 1:,} on: only the text of --in-domain.")
        return next(self.in_domain)

    def adapt_dropout(self, fraction: float) -> None:
        """Set the dropout probability by the number of epochs that the training will have, as far as is known.

        Args:
            fraction: of the budget, used after the next update.
        """
        is_known = self.config.minutes is None or fraction >= KNOWN_AFTER
        n_epochs = self.epochs_done / fraction if is_known else 0.0
        p, before = dropout_for(n_epochs), self.progress.dropout
        if before is not None and abs(p - before) < STEP:
            return
        self.set_dropout(p)
        if is_known:
            self.step.log(f"Dropout: {p:.2f}, for about {n_epochs:,.0f} epochs (--dropout auto).")
        if self.step.graphs:
            self.step.release()

    def set_dropout(self, p: float) -> None:
        """Set the dropout probability that --dropout auto has chosen."""
        self.progress.dropout = p
        for model in {self.model, self.step.model}:
            set_dropout(model, p)

    def validate_and_save(self, stop: StopSignal) -> None:
        """Validate and save a checkpoint. A signal interrupts the validation, and the resumed run repeats it.

        Raises:
            Stopped: a signal arrived; a checkpoint was saved.
        """
        self.log.report()
        self.wait_for_saving()
        try:
            with self.step.part("validation"):
                self.step.gather()
                self.validator.validate(stop)
            self.log.leave_out(self.progress.last_validation_s)
        except Interrupted as interrupt:
            self.checkpoint_and_stop(interrupt.signum)
        except DivergedError as error:
            if self.progress.best_score is None:
                self.end_diverged(str(error))
            self.progress.divergence, self.progress.last_score = str(error), None
            if self.progress.fraction < 1:
                self.return_to_best()
        self.progress.validation_due = False
        self.save()

    def learning_rate(self, before: float, after: float) -> float:
        """Learning rate of an update that raises the used fraction of the budget from `before` to `after`."""
        c = self.config
        assert c.lr is not None
        assert c.warmup_ratio is not None
        assert c.schedule is not None
        return learning_rate(
            before,
            after,
            peak=c.lr / 2**self.progress.n_returns,
            warmup_ratio=c.warmup_ratio,
            decay_ratio=c.decay_ratio or 0.0,
            schedule=c.schedule,
        )

    # Divergence

    @property
    def n_skipped(self) -> int:
        """Updates so far that were skipped because their loss or gradient was not finite."""
        return self.progress.n_skipped + int(self.log.n_skipped.item())

    def watch(self, loss: float | None, n_skipped: int) -> None:
        """Recognize by the loss and the number of skipped updates of a record that the training diverges."""
        before = self.progress.n_skipped
        self.progress.add(loss, n_skipped, LOG_EVERY)
        after = self.progress.n_skipped
        if after > before and (not before or len(str(after)) > len(str(before))):
            self.step.log(
                f"warning: {after:,} {'update was' if after == 1 else 'updates were'} skipped so far: the loss or its"
                " gradient was not finite; the weights stayed as they were."
            )

    def return_to_best(self) -> None:
        """Continue from the weights with the best score on the dev set, if there are any, with half the learning rate.

        All processes must call this.

        Raises:
            UserError: the training has done so MAX_RETURNS times already, or the best weights cannot be written.
        """
        progress = self.progress
        if progress.n_returns == MAX_RETURNS:
            self.end_diverged(progress.divergence)
        if failure := self.wait_for_saving():
            raise UserError(failure)
        start = "the weights as they are"
        if progress.best_score is not None:
            folder = self.config.out / "best" / f"step-{progress.best_step}"
            start = f"the best weights, of step {progress.best_step:,},"
            verify(folder)
            self.model.load_state_dict(checkpoint.read_tensors(folder / "model.safetensors"))
            self.step.scatter()
            forget_direction(self.step.optimizer)
            self.averages.sums, self.averages.ema, progress.n_averaged = {}, {}, 0
            progress.last_score = progress.best_score
        progress.n_returns += 1
        self.step.log(
            f"warning: step {progress.step:,}: the training diverged: {progress.divergence}.\n"
            f"  It goes on from {start} with half the learning rate ({progress.n_returns} of at most {MAX_RETURNS}"
            " times)."
        )
        progress.divergence, progress.losses = "", []

    def end_diverged(self, reason: str) -> NoReturn:
        """Write what is known of the divergence to the run folder, and end the training. All processes must call this.

        Raises:
            UserError: always.
        """
        progress = self.progress
        weights = {name: whole(parameter.detach()) for name, parameter in self.step.parameters.items()}
        gradients = {name: whole(p.grad) for name, p in self.step.parameters.items() if p.grad is not None}
        evidence = {
            "step": progress.step,
            "reason": reason,
            "returns": progress.n_returns,
            "skipped": self.n_skipped,
            "losses": progress.losses,
            "largest_weights": largest(weights),
            "largest_gradients": largest(gradients),
        }
        best = self.config.out / "best" / f"step-{progress.best_step}"

        def end() -> JsonObject:
            checkpoint.write_text(self.config.out / EVIDENCE, checkpoint.to_json(evidence))
            raise UserError(
                f"step {progress.step}: the training diverged: {reason}.\n"
                f"  The largest weights and gradients are in {self.config.out / EVIDENCE}."
                + ("" if progress.best_score is None else f" The best weights are a model folder: {best}.")
                + f"\n  Train again, into another folder, with a lower --lr than {self.config.lr:g} or with"
                " --precision fp32."
            )

        self.processes.lead(end)
        raise AssertionError("lead has raised the error of `end`")

    def checkpoint_and_stop(self, signum: int) -> None:
        """Save a checkpoint, unless this step already has one, and stop.

        Raises:
            Stopped: always, unless
            UserError: the checkpoint cannot be written.
        """
        self.wait_for_saving()
        if self.checkpoints.saved_step != self.progress.step:
            self.save()
        if failure := self.wait_for_saving():
            raise UserError(failure)
        raise Stopped(
            signum,
            f"Stopped at step {self.progress.step:,}; checkpoint saved. Run the same command again to resume.",
        )
