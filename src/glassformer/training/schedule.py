"""Learning rate schedules as functions of the fraction of the training budget used. A new schedule is one function
here and one row of SCHEDULES."""

import math
from collections.abc import Callable
from dataclasses import dataclass


def inverse_sqrt(start: float, end: float, warmup_ratio: float) -> float:
    """The decay of the original Transformer, proportional to step^-0.5; constant if there is no warm-up.

    With peak = (d_model * n_warmup)^-0.5 and warmup_ratio = n_warmup / n_steps this is equation 3 of the paper.

    Source: Vaswani et al. 2017, equation 3.
    """
    return float((warmup_ratio / max(end, 1e-9)) ** 0.5) if warmup_ratio > 0 else 1.0


def linear(start: float, end: float, warmup_ratio: float) -> float:
    """Linear decay to 0 at the end of the training. Source: Devlin et al. 2018, section A.2."""
    return min(1.0, (1 - start) / (1 - warmup_ratio))


def cosine(start: float, end: float, warmup_ratio: float) -> float:
    """Half a cosine, to 0 at the end of the training. Source: Loshchilov & Hutter 2017, equation 5."""
    return 0.5 * (1 + math.cos(math.pi * max(0.0, start - warmup_ratio) / (1 - warmup_ratio)))


def constant(start: float, end: float, warmup_ratio: float) -> float:
    """No decay."""
    return 1.0


@dataclass(frozen=True, slots=True)
class Schedule:
    """A row of SCHEDULES."""

    rate: Callable[[float, float, float], float]
    """Learning rate of an update after the warm-up, as a fraction of the peak. Arguments: the fractions of the budget
    used before the update, after the update, and by the warm-up."""
    options: tuple[str, ...] = ()
    """Options of `TrainConfig` that not every schedule has, and this one has."""


SCHEDULES = {
    "inverse-sqrt": Schedule(inverse_sqrt, ("decay_ratio",)),
    "linear": Schedule(linear),
    "cosine": Schedule(cosine),
    "constant": Schedule(constant, ("decay_ratio",)),
}


def learning_rate(
    start: float,
    end: float,
    *,
    peak: float,
    warmup_ratio: float,
    decay_ratio: float = 0.0,
    schedule: str = "inverse-sqrt",
) -> float:
    """Learning rate of one update: linear warm-up, then the schedule, and optionally a linear decay to 0 at the end.

    Args:
        start: fraction of the budget used before this update, 0 to 1.
        end: fraction of the budget used after this update.
        peak: learning rate at the end of the warm-up.
        warmup_ratio: fraction of the budget used for linear warm-up.
        decay_ratio: fraction of the budget, at its end, in which the rate additionally decays linearly to 0.
        schedule: a name in SCHEDULES.
    """
    rate = peak
    if end <= warmup_ratio:
        rate *= end / warmup_ratio
    else:
        rate *= SCHEDULES[schedule].rate(start, end, warmup_ratio)
    if decay_ratio > 0:
        rate *= min(1.0, (1 - start) / decay_ratio)
    return max(rate, 0.0)


def ema_decay(step: int, max_decay: float) -> float:
    """Decay of an exponential moving average at an update, counted from 1: the average of few weights is shorter.

    Source: `tf.train.ExponentialMovingAverage` with `num_updates`.
    """
    return min(max_decay, (1 + step) / (10 + step))


def crossed(before: float, after: float, n: int) -> bool:
    """Whether (before, after] contains one of the fractions 1/n, 2/n, …, 1."""
    return math.floor(after * n + 1e-9) > math.floor(before * n + 1e-9)
