"""The training loop: a pure function of its options, however often it is broken off."""

import math
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from glassformer import checkpoint
from glassformer.config import TrainConfig
from glassformer.data.batch import Batch, BatchSampler
from glassformer.errors import NonFiniteError, UserError
from glassformer.tasks.base import Task
from glassformer.training.prepare import Prepared
from glassformer.training.progress import Reporter
from glassformer.training.schedule import inverse_sqrt_schedule
from glassformer.training.signals import Interrupted, Stop, Stopped

MICRO_TOKENS = 8192
"""Padded tokens a side that go through the model at once; larger batches are cut and their gradients added."""

AVERAGING_FRACTION = 0.1
"""The last part of the training, over which the averaged checkpoints are spread evenly."""

N_VALIDATIONS = 12
"""Validations of a run, evenly spaced, unless --validate-every is given."""

MAX_VALIDATION_COST = 0.08
"""Largest cost of a validation, as a fraction of the training since the one before."""

LOSS_COST, DECODE_COST = 0.4, 30.0
"""Estimated cost of the loss of one dev example, and of decoding one, relative to training on one example. Estimates
and not measured times, so that an interrupted run validates on the same examples as an uninterrupted one."""

MIN_DECODED = 16
"""Fewest dev examples that are decoded in a validation."""

LOG_EVERY = 10
MAX_CHECKPOINTS = 2


@dataclass
class Progress:
    """Where a run stands: all of it that is not a tensor."""

    step: int = 0
    fraction: float = 0.0
    """Of the budget, 0 to 1."""
    elapsed_s: float = 0.0
    sampler: dict[str, int] = field(default_factory=dict)
    best_score: float | None = None
    best_step: int = 0
    last_score: float | None = None
    n_averaged: int = 0
    n_tokens: int = 0
    loss_since_log: float = 0.0
    n_examples: int = 0
    """Examples trained on since the last validation."""
    n_decoded: int | None = None
    """Dev examples that each validation decodes; chosen at the first, so that scores of validations compare."""
    validation_due: bool = False
    """A validation of this step was interrupted, or not begun, when a signal stopped the run."""


class Trainer:
    """Trains a task on a prepared corpus within a run folder."""

    def __init__(self, task: Task, data: Prepared, config: TrainConfig, reporter: Reporter) -> None:
        """config: resolved, so that nothing in it is None but the budgets not used."""
        self.task, self.data, self.config, self.reporter = task, data, config, reporter
        self.model = task.model
        assert config.batch_tokens is not None
        self.sampler = BatchSampler(task.lengths(data.train), config.batch_tokens, config.seed)
        self.parameters = dict(self.model.named_parameters())
        self.optimizer = torch.optim.Adam(
            self.parameters.values(), betas=(0.9, 0.98), eps=1e-9, fused=task.device.type in ("cpu", "cuda")
        )
        self.average: dict[str, Tensor] = {}
        self.progress = Progress()
        self.losses = torch.zeros(())
        self.started_s = time.monotonic()

    # State

    def state(self) -> dict[str, Tensor]:
        """Every tensor that going on needs, besides the weights."""
        tensors = {"rng.cpu": torch.get_rng_state()}
        if self.task.device.type == "cuda":
            tensors["rng.cuda"] = torch.cuda.get_rng_state(self.task.device)
        for name, parameter in self.parameters.items():
            for key, value in self.optimizer.state[parameter].items():
                if key != "step":
                    tensors[f"adam.{key}.{name}"] = value
        return tensors | {f"average.{name}": value for name, value in self.average.items()}

    def save(self) -> None:
        """Write `checkpoints/step-N`, then delete older ones."""
        self.progress.sampler = self.sampler.state_dict()
        self.progress.loss_since_log = self.losses.item()
        self.progress.elapsed_s, self.started_s = self.elapsed_s(), time.monotonic()
        folder = self.config.out / "checkpoints"
        contents = {
            **self.task.contents(),
            "training.safetensors": self.state(),
            "progress.json": checkpoint.to_json(asdict(self.progress)),
        }
        checkpoint.save_folder(folder / f"step-{self.progress.step}", contents)
        checkpoint.prune(folder, keep=MAX_CHECKPOINTS)

    def load(self, folder: Path) -> None:
        """Go on from a verified checkpoint."""
        self.progress = Progress(**checkpoint.read_json(folder / "progress.json"))
        self.sampler.load_state_dict(self.progress.sampler)
        self.model.load_state_dict(checkpoint.read_tensors(folder / "model.safetensors"))
        tensors = checkpoint.read_tensors(folder / "training.safetensors")
        for name, parameter in self.parameters.items():
            self.optimizer.state[parameter] = {
                "step": torch.tensor(float(self.progress.step)),
                **{
                    key: tensors[f"adam.{key}.{name}"].to(parameter.device)
                    for key in ("exp_avg", "exp_avg_sq")
                    if f"adam.{key}.{name}" in tensors
                },
            }
        self.average = {
            name.removeprefix("average."): value.to(self.task.device)
            for name, value in tensors.items()
            if name.startswith("average.")
        }
        torch.set_rng_state(tensors["rng.cpu"])
        if "rng.cuda" in tensors:
            torch.cuda.set_rng_state(tensors["rng.cuda"], self.task.device)

    # Time

    def elapsed_s(self) -> float:
        return self.progress.elapsed_s + time.monotonic() - self.started_s

    def budget_used(self, step: int) -> float:
        """Share of the budget used once `step` updates are made and the sampler stands where it does."""
        c = self.config
        if c.steps:
            return min(1.0, step / c.steps)
        if c.epochs:
            return min(1.0, self.sampler.epochs_done / c.epochs)
        assert c.minutes
        return min(1.0, self.elapsed_s() / (60 * c.minutes))

    # The loop

    def run(self, stop: Stop) -> None:
        """Train until the budget is used up, saving and validating on the way.

        Args:
            stop: read between updates.

        Raises:
            Stopped: a signal asked for it; a checkpoint was saved.
            UserError: the loss is no longer a number, or a checkpoint could not be written.
        """
        self.started_s = time.monotonic()
        # At least one update is made, however small the budget: the first validation needs one.
        self.progress.fraction = self.budget_used(self.progress.step) if self.progress.step else 0.0
        if self.progress.fraction < 1 - AVERAGING_FRACTION and self.progress.n_averaged:
            self.average, self.progress.n_averaged = {}, 0  # a longer budget than before: its end is not near yet
        self.losses = torch.tensor(self.progress.loss_since_log, device=self.task.device)
        n_tokens, since_s = 0, time.monotonic()
        if self.progress.validation_due:
            self.validate_and_save(stop)
        while self.progress.fraction < 1:
            indices = next(self.sampler)
            before, after = self.progress.fraction, self.budget_used(self.progress.step + 1)
            loss, grad_norm, n = self.update(self.batch(indices), self.learning_rate(before, after))
            self.progress.step += 1
            self.progress.fraction = after
            self.progress.n_tokens += n
            self.progress.n_examples += len(indices)
            self.losses += loss
            n_tokens += n
            if before >= 1 - AVERAGING_FRACTION and crossed(
                before, after, round(self.config.average_checkpoints / AVERAGING_FRACTION)
            ):
                self.update_average()
            if self.progress.step % LOG_EVERY == 0:
                seconds = time.monotonic() - since_s
                self.reporter.step(
                    after,
                    {
                        "step": self.progress.step,
                        "loss": self.losses.item() / LOG_EVERY,
                        "lr": self.learning_rate(before, after),
                        "grad_norm": grad_norm,
                        "tokens_per_s": n_tokens / seconds,
                        "epoch": self.sampler.epochs_done,
                        "elapsed_s": self.elapsed_s(),
                    },
                    self.elapsed_s() * (1 - after) / max(after, 1e-9),
                )
                self.losses.zero_()
                n_tokens, since_s = 0, time.monotonic()
            self.progress.validation_due = self.is_validation_due(before, after)
            if self.progress.validation_due:
                self.validate_and_save(stop)
            elif self.config.save_every and self.progress.step % self.config.save_every == 0:
                self.save()
            if stop.signum is not None:
                self.checkpoint_and_stop(stop.signum)
        if self.progress.last_score is None:  # continued with a smaller budget than was used before any validation
            self.validate_and_save(stop)

    def is_validation_due(self, before: float, after: float) -> bool:
        """Whether to validate after this update: at the end, at every step that the user asked for, else at
        N_VALIDATIONS evenly spaced steps, but for those where the validation would cost too much.
        """
        if after >= 1:
            return True
        if self.config.validate_every:
            return self.progress.step % self.config.validate_every == 0
        return crossed(before, after, N_VALIDATIONS) and self.affordable_decodings() >= 0

    def affordable_decodings(self) -> float:
        """Dev examples that can be decoded within MAX_VALIDATION_COST; negative if not even the loss can be computed
        and MIN_DECODED examples decoded.
        """
        n_dev = len(self.data.dev)
        if not self.task.rows_are_examples:
            return n_dev  # the task itself limits what it validates on
        budget = MAX_VALIDATION_COST * self.progress.n_examples - LOSS_COST * n_dev
        if not self.task.validation_decodes:
            return budget
        n_decoded = budget / DECODE_COST
        return n_decoded if n_decoded >= min(MIN_DECODED, n_dev) else -1.0

    def validate_and_save(self, stop: Stop) -> None:
        """Validate and save a checkpoint. A signal interrupts the validation, which the continued run then repeats.

        Raises:
            Stopped: a signal asked for it; a checkpoint was saved.
        """
        try:
            if stop.signum is not None:
                raise Interrupted
            self.validate(stop)
        except Interrupted:
            assert stop.signum is not None
            self.checkpoint_and_stop(stop.signum)
        self.progress.validation_due = False
        self.progress.n_examples = 0
        self.save()
        for folder in checkpoint.steps(self.config.out / "best"):
            if folder.name != f"step-{self.progress.best_step}":
                checkpoint.remove(folder)

    def update(self, batches: list[Batch], lr: float) -> tuple[Tensor, float, int]:
        """One optimizer update from one batch, given in parts that fit in memory.

        The loss is the mean over all targets, so how the batch was cut changes nothing.

        Returns:
            The loss a target, the gradient's norm, and the number of targets.
        """
        self.model.train()
        n_targets = sum(batch.n_targets for batch in batches)
        total = torch.zeros((), device=self.task.device)
        self.optimizer.zero_grad()
        for batch in batches:
            with torch.autocast(self.task.device.type, torch.bfloat16, enabled=self.config.precision == "bf16"):
                loss = self.task.loss(batch, label_smoothing=self.config.label_smoothing or 0.0) / n_targets
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.detach()
        learning = [p for p in self.parameters.values() if p.grad is not None]
        norm = torch.nn.utils.get_total_norm([p.grad for p in learning if p.grad is not None])
        grad_norm = float(norm)
        if not (math.isfinite(grad_norm) and total.isfinite()):
            raise UserError(
                f"step {self.progress.step + 1}: the loss or its gradient is no longer a number; the update was not made.\n"
                f"  The last checkpoint stands. Train anew with a lower --lr than {self.config.lr:g}"
                " or with --precision fp32."
            )
        if self.config.max_grad_norm is not None:
            torch.nn.utils.clip_grads_with_norm_(learning, self.config.max_grad_norm, norm)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.step()
        return total, grad_norm, round(n_targets)

    def batch(self, indices: NDArray[np.int64]) -> list[Batch]:
        """The batch of these rows, in parts of at most MICRO_TOKENS."""
        rows = [self.data.train[i] for i in indices.tolist()]
        n_rows = max(1, MICRO_TOKENS // int(self.sampler.lengths[indices].max()))
        return [
            self.task.batch(rows[start : start + n_rows]).to(self.task.device) for start in range(0, len(rows), n_rows)
        ]

    def learning_rate(self, before: float, after: float) -> float:
        c = self.config
        assert c.lr is not None
        assert c.warmup_ratio is not None
        assert c.decay_ratio is not None
        return inverse_sqrt_schedule(before, after, peak=c.lr, warmup_ratio=c.warmup_ratio, decay_ratio=c.decay_ratio)

    def update_average(self) -> None:
        """Add the weights as they are now to those that will be averaged."""
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                if name in self.average:
                    self.average[name] += parameter
                else:
                    self.average[name] = parameter.detach().clone()
        self.progress.n_averaged += 1

    # Looking at the model

    def validate(self, stop: Stop) -> None:
        """Compute the metrics on the dev set and save the weights to `best/` if they are the best so far.

        Raises:
            Interrupted: a signal arrived while the metrics were computed.
        """
        if self.task.validation_decodes and self.progress.n_decoded is None:
            n_dev = len(self.data.dev)
            self.progress.n_decoded = min(n_dev, max(MIN_DECODED, int(self.affordable_decodings())))
        with stop.interrupting():
            metrics = self.validate_dev()
        n_decoded = self.progress.n_decoded
        score = metrics[self.task.metric]
        note = f", {n_decoded:,} of {len(self.data.dev):,} decoded" if n_decoded else ""
        if self.progress.best_score is None or not self.is_better(self.progress.best_score, score):
            self.progress.best_score, self.progress.best_step = score, self.progress.step
            checkpoint.save_folder(self.config.out / "best" / f"step-{self.progress.step}", self.task.contents())
            note += ", the best so far"
        self.progress.last_score = score
        record = {f"dev_{name}": value for name, value in metrics.items()}
        self.reporter.validation(
            {"step": self.progress.step, **record, "elapsed_s": self.elapsed_s()}, self.task.metric, note
        )

    def is_better(self, a: float, b: float) -> bool:
        """Whether score a is better than score b."""
        return a > b if self.task.larger_is_better else a < b

    def validate_dev(self) -> dict[str, float]:
        """The task's figures on the dev set, with the weights as they are.

        Raises:
            UserError: the model has diverged: its outputs or its loss are not finite numbers.
        """
        self.model.eval()
        advice = (
            f"  Train again, into another folder, with a lower --lr than {self.config.lr:g} or with --precision fp32."
        )
        try:
            decoding = {"n_decoded": self.progress.n_decoded} if self.task.validation_decodes else {}
            metrics = self.task.validate(self.data.dev, **decoding)
        except NonFiniteError:
            raise UserError(
                f"step {self.progress.step}: the training diverged: the model's outputs on the dev set are not finite"
                f" numbers.\n{advice}"
            ) from None
        if not math.isfinite(metrics.get("loss", 0.0)):
            raise UserError(
                f"step {self.progress.step}: the training diverged: the loss on the dev set is {metrics['loss']}.\n{advice}"
            )
        return metrics

    def checkpoint_and_stop(self, signum: int) -> None:
        """Save and stop."""
        if not (self.config.out / "checkpoints" / f"step-{self.progress.step}").exists():
            self.save()
        raise Stopped(
            signum,
            f"Stopped at step {self.progress.step:,}; checkpoint saved. The same command goes on from here.",
        )


def crossed(before: float, after: float, n: int) -> bool:
    """Whether one of n even marks lies in (before, after]."""
    return math.floor(after * n + 1e-9) > math.floor(before * n + 1e-9)
