"""Recognizes a training that diverges: by updates that are not finite, and by a loss that rises and stays high."""

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from glassformer.errors import UserError

EVIDENCE = "divergence.json"
"""File of a run folder that is written when a training ends because it diverged."""

N_RECORDS = 10
"""The loss is compared by its median over so many records of metrics.jsonl, which is 100 updates."""

MAX_SKIPPED_FRACTION = 0.5
"""The training has diverged if more of the updates of a record were skipped."""

MAX_RETURNS = 3
"""How often a training returns to its best weights with half the learning rate before it ends with an error."""


class DivergedError(UserError):
    """The model of a training does not compute finite numbers any more."""


def largest(tensors: Mapping[str, Tensor]) -> dict[str, float | str]:
    """Largest absolute value of each tensor; "nan" or "inf" where it is not finite."""
    values = {name: tensor.abs().max().item() for name, tensor in tensors.items() if tensor.numel()}
    return {name: value if math.isfinite(value) else str(value) for name, value in values.items()}


@dataclass
class DivergenceState:
    """What a resumed run must know of losses and skipped updates so far."""

    n_skipped: int = 0
    """Updates that were skipped because their loss or gradient was not finite."""
    n_skipped_since_log: int = 0
    """Those of them since the last record."""
    n_returns: int = 0
    """How often the training has returned to its best weights; each time the learning rate is halved."""
    divergence: str = ""
    """How the training has diverged, until it returns to its best weights."""
    losses: list[float] = field(default_factory=list)
    """Of the last records, at most N_RECORDS."""
    first_loss: float | None = None
    """Of the first record."""
    lowest_loss: float | None = None
    """The lowest median of N_RECORDS records."""

    def add(self, loss: float | None, n_skipped: int, n_updates: int) -> None:
        """Add a record, and set `divergence` if by it the training has diverged.

        A loss has exploded if its median over N_RECORDS records is more than twice the lowest one so far, and more than
        halfway from the lowest back to the first loss: less than half of what was learned is left.

        Args:
            loss: mean of the updates that were not skipped; None if all were.
        """
        self.n_skipped += n_skipped
        if n_skipped > MAX_SKIPPED_FRACTION * n_updates:
            self.divergence = f"the loss or its gradient was not finite in {n_skipped} of {n_updates} updates"
        if loss is None:
            return
        self.first_loss = loss if self.first_loss is None else self.first_loss
        self.losses = [*self.losses, loss][-N_RECORDS:]
        if len(self.losses) < N_RECORDS:
            return
        median = statistics.median(self.losses)
        self.lowest_loss = median if self.lowest_loss is None else min(self.lowest_loss, median)
        if median > max(2 * self.lowest_loss, (self.lowest_loss + self.first_loss) / 2):
            self.divergence = f"the loss has risen from {self.lowest_loss:.3g} to {median:.3g}"
