"""Validation during training: when it is due, how many examples it decodes, its metrics, and which weights are best."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from glassformer import checkpoint
from glassformer.config import JsonObject
from glassformer.errors import NonFiniteError
from glassformer.kernels.library import implementation
from glassformer.learning.base import AnyObjective
from glassformer.metrics.registry import metric
from glassformer.train_config import TrainConfig
from glassformer.training.distributed import Processes
from glassformer.training.divergence import DivergedError
from glassformer.training.progress import Reporter
from glassformer.training.schedule import crossed
from glassformer.training.signals import Interrupted, StopSignal

N_VALIDATIONS = 12
"""Validations of a run, evenly spaced, unless --validate-every is given."""

MAX_VALIDATION_COST = 0.05
"""Largest cost of a validation, as a fraction of the cost of training since the previous validation; on a GPU also the
largest fraction of the time."""

LOSS_COST, DECODE_COST, EAGER_DECODE_COST = 1.0, 2.0, 10.0
"""Estimated cost of the loss of one dev example, and of decoding one with and without the kernels in C, relative to
training on one example. Estimates and not measured times, so that an interrupted run validates on the same examples as
an uninterrupted one. On two CPU cores, translation with the presets tiny, small and base has 0.8 to 1.1 for the loss
and, without the kernels, 3 to 5 for decoding; outputs are longer early in training."""

MIN_DECODED = 16
"""Fewest dev examples that are decoded in a validation."""

MIN_COMPARED = 100
"""Fewest decoded dev examples whose score selects weights. With fewer, differences are noise: the dev loss selects."""


@dataclass
class ValidationState:
    """What a resumed run must know of the validations so far."""

    step: int = 0
    """Updates so far."""
    best_score: float | None = None
    best_loss: float | None = None
    """Dev loss of the best weights, which decides between equal scores."""
    best_step: int = 0
    last_score: float | None = None
    n_examples: int = 0
    """Examples trained on so far."""
    n_examples_validated: int = 0
    """Examples trained on before the last validation."""
    n_decoded: int | None = None
    """Dev examples that each validation decodes. Chosen at the first validation and then kept, so that all scores are
    comparable."""
    validation_s: float = 0.0
    """Time of all validations."""
    last_validation_s: float = 0.0


class Validator:
    """Validates a task during training and determines its best weights, which are in `best/` of the run folder."""

    def __init__(
        self,
        objective: AnyObjective,
        dev: Sequence[Any],
        config: TrainConfig,
        reporter: Reporter,
        state: ValidationState,
        elapsed_s: Callable[[], float],
        processes: Processes | None = None,
    ) -> None:
        """
        Args:
            dev: the examples of the dev set.
            state: read and updated; the training loop counts `step` and `n_examples`.
            elapsed_s: returns the time of training in seconds.
            processes: the group whose processes validate together.
        """
        self.objective, self.dev, self.config, self.reporter = objective, dev, config, reporter
        self.state, self.elapsed_s, self.processes = state, elapsed_s, processes or Processes()
        self.stop = StopSignal()
        if self.processes.size > 1:
            self.objective.map_parts = self.map_parts

    def is_due(self, before: float, after: float) -> bool:
        """Whether to validate after this update: at the end, every `validate_every` steps if given, else at
        N_VALIDATIONS evenly spaced steps except where the validation would cost too much.

        Args:
            before: fraction of the budget used before this update.
            after: fraction of the budget used after this update.
        """
        if after >= 1:
            return True
        if self.config.validate_every:
            return self.state.step % self.config.validate_every == 0
        return crossed(before, after, N_VALIDATIONS) and self.n_affordable_decodings() >= 0 and self.has_time()

    def has_time(self) -> bool:
        """Whether another validation as long as the last leaves all at MAX_VALIDATION_COST of the time or less.

        Only trainings whose results may differ from run to run depend on it: those on a GPU, unless deterministic.
        """
        if self.objective.device.type == "cpu" or self.config.deterministic:
            return True
        times = [self.elapsed_s(), self.state.validation_s, self.state.last_validation_s]
        elapsed_s, past_s, next_s = self.processes.gather(times)[0]  # the clock of rank 0
        return bool(past_s + next_s <= MAX_VALIDATION_COST * elapsed_s)

    def n_affordable_decodings(self) -> float:
        """Number of dev examples that can be decoded within MAX_VALIDATION_COST.

        Negative if computing the loss and decoding MIN_DECODED examples would exceed it. For tasks whose validation
        does not decode, only the sign has a meaning.
        """
        n_dev = len(self.dev)
        if not self.objective.rows_are_examples:
            return n_dev  # rows are windows of a text; the task validates on a sample of limited size
        n_examples = self.state.n_examples - self.state.n_examples_validated
        budget = MAX_VALIDATION_COST * n_examples - LOSS_COST * n_dev
        if not self.objective.validation_decodes:
            return budget
        n_decoded = budget / self.decode_cost
        return n_decoded if n_decoded >= min(MIN_DECODED, n_dev) else -1.0

    @property
    def decode_cost(self) -> float:
        """Estimated cost of decoding one dev example, relative to training on one example."""
        has_kernels = self.config.family != "rnn" and implementation() != "none"
        return DECODE_COST if has_kernels else EAGER_DECODE_COST

    def decode_more(self, n_candidates: int) -> bool:
        """Set the number of dev examples that are decoded to compare the candidates for the final weights: as many as
        fit within MAX_VALIDATION_COST of the whole training. Returns whether they are more than before."""
        if not self.state.n_decoded:
            return False
        n_loss = LOSS_COST * len(self.dev) * n_candidates
        budget = MAX_VALIDATION_COST * self.state.n_examples - n_loss
        n_decoded = min(len(self.dev), int(budget / self.decode_cost / n_candidates))
        is_more = n_decoded > self.state.n_decoded
        self.state.n_decoded = max(self.state.n_decoded, n_decoded)
        return is_more

    def validate(self, stop: StopSignal) -> None:
        """Compute the metrics on the dev set. The next checkpoint also has the weights if they are the best so far.

        All processes must call this.

        Raises:
            Interrupted: a signal arrived before the metrics were computed.
            DivergedError: the model's outputs or its loss are not finite numbers.
        """
        state, started_s = self.state, time.monotonic()
        if self.objective.validation_decodes and state.n_decoded is None:
            state.n_decoded = min(len(self.dev), max(MIN_DECODED, int(self.n_affordable_decodings())))
        with stop.interrupting() if self.processes.size == 1 else nullcontext():
            metrics = self.metrics(stop)
        selection = self.selection(metrics)
        score, loss = metrics[selection], metrics.get("loss")
        note = f", {state.n_decoded:,} of {len(self.dev):,} examples decoded" if state.n_decoded else ""
        is_worse = state.best_score is not None and metric(selection).is_better(state.best_score, score)
        if score == state.best_score and loss is not None and state.best_loss is not None:
            is_worse = loss > state.best_loss
        if not is_worse:
            state.best_score, state.best_loss, state.best_step = score, loss, state.step
            note += ", best so far" if selection == self.objective.metric else ", best dev loss so far"
        state.last_score = score
        record = {f"dev_{name}": value for name, value in metrics.items()}
        self.reporter.validation(
            {"step": state.step, **record, "elapsed_s": self.elapsed_s()}, self.objective.metric, note
        )
        state.n_examples_validated = state.n_examples
        state.last_validation_s = time.monotonic() - started_s
        state.validation_s += state.last_validation_s

    def selection(self, metrics: Mapping[str, float]) -> str:
        """The metric that selects the best weights: the main metric, or the loss if few examples are decoded for it."""
        n_decoded = self.state.n_decoded
        is_noise = n_decoded is not None and n_decoded < min(MIN_COMPARED, len(self.dev))
        return "loss" if is_noise and "loss" in metrics else self.objective.metric

    @property
    def is_best(self) -> bool:
        """Whether the current weights are the best so far."""
        return self.state.best_score is not None and self.state.best_step == self.state.step

    def map_parts(self, function: Callable[[list[Any]], list[Any]], items: Sequence[Any]) -> list[Any]:
        """`Objective.map_parts` of several processes.

        Raises:
            Interrupted: a signal arrived in one of the processes.
            NonFiniteError: the model's outputs in one of them are not finite numbers.
        """
        rank, size = self.processes.rank, self.processes.size
        own = list(items[rank::size])

        def work() -> JsonObject:
            try:
                with self.stop.interrupting():
                    return {"results": function(own) if own else []}
            except Interrupted as interrupt:
                return {"signum": interrupt.signum}
            except NonFiniteError as error:
                return {"error": str(error)}

        parts = self.processes.share(work)
        if signums := [part["signum"] for part in parts if "signum" in part]:
            raise Interrupted(signums[0])
        if errors := [part["error"] for part in parts if "error" in part]:
            raise NonFiniteError(errors[0])
        return [parts[i % size]["results"][i // size] for i in range(len(items))]

    def metrics(self, stop: StopSignal | None = None) -> dict[str, float]:
        """Metrics of the task on the dev set with the current weights. All processes must call this.

        Args:
            stop: of several processes, a signal to one interrupts all.

        Raises:
            DivergedError: the model's outputs or its loss are not finite numbers.
        """
        self.stop = stop or StopSignal()
        self.objective.model.eval()
        try:
            decoding = {"n_decoded": self.state.n_decoded} if self.objective.validation_decodes else {}
            metrics = self.objective.validate(self.dev, **decoding)
        except NonFiniteError:
            raise DivergedError("the model's outputs on the dev set are not finite numbers") from None
        if not math.isfinite(metrics.get("loss", 0.0)):
            raise DivergedError(f"the dev loss is {metrics['loss']}")
        return metrics

    def delete_old_best(self) -> None:
        """Delete all weights in `best/` except for the best. Call it when `state` is saved in a checkpoint, and before
        the next validation."""
        for folder in checkpoint.step_folders(self.config.out / "best"):
            if folder.name != f"step-{self.state.best_step}":
                checkpoint.remove(folder)
