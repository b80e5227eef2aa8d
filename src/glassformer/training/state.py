"""State of a training run, except for tensors."""

from dataclasses import dataclass, field

from glassformer.training.divergence import DivergenceState
from glassformer.training.validation import ValidationState


@dataclass
class TrainerState(ValidationState, DivergenceState):
    """State of a run, except for tensors. Stored as progress.json."""

    fraction: float = 0.0
    """Fraction of the budget used, 0 to 1."""
    elapsed_s: float = 0.0
    sampler: dict[str, int] = field(default_factory=dict)
    in_domain: dict[str, int] = field(default_factory=dict)
    """State of the sampler of the text of --in-domain."""
    n_averaged: int = 0
    n_tokens: int = 0
    """Targets trained on: tokens to predict, or labels."""
    loss_sum_since_log: float = 0.0
    dropout: float | None = None
    """The dropout probability that --dropout auto has chosen."""
    n_processes: int = 1
    """Number of processes of the last part of the run."""
    validation_due: bool = False
    """The validation of this step has not finished. In a saved checkpoint: a signal stopped the run before
    or during it."""
