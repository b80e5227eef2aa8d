"""What the variants of beam search differ in: how hypotheses are ranked, and when a search ends."""

from collections.abc import Sequence
from dataclasses import dataclass


def length_penalty(n_tokens: int, alpha: float) -> float:
    """Length penalty ((5 + n) / 6)^alpha. Source: Wu et al. 2016, equation 14."""
    return float(((5 + n_tokens) / 6) ** alpha)


@dataclass(frozen=True)
class Policy:
    """Policy of glassformer: a search ends when `beam` hypotheses are finished, or when no unfinished one can exceed
    the score of the best `nbest`."""

    beam: int = 4
    """Beam size."""
    alpha: float = 1.0
    """Exponent of the length penalty."""
    nbest: int = 1
    """Number of hypotheses to return per sentence, at most `beam`."""

    @property
    def n_considered(self) -> int:
        """Number of extensions of a sentence's hypotheses that a step considers. At least `beam` of them do not end."""
        return 2 * self.beam

    def score(self, total: float, n_tokens: int) -> float:
        """Score of a finished hypothesis.

        Args:
            total: sum of the log-probabilities.
        """
        return total / length_penalty(n_tokens, self.alpha)

    def truncated(self, unfinished: list[int]) -> list[int]:
        """Those of the unfinished extensions that are finished hypotheses at the maximum length.

        Args:
            unfinished: indices of the extensions that do not end, by rank.
        """
        return unfinished[: self.beam]

    def continues(self, scores: Sequence[float], total: float, n_tokens: int, limit: int) -> bool:
        """Whether the search of a sentence is continued.

        Args:
            scores: those of the finished hypotheses, best first, at most `beam`.
            total: largest sum of the log-probabilities of an unfinished hypothesis.
            n_tokens: number of its tokens.
            limit: maximum number of tokens.
        """
        if len(scores) >= self.beam:
            return False
        # Upper bound: further tokens only decrease the sum, and the penalty is largest at the maximum length.
        return len(scores) < self.nbest or self.score(total, limit) > scores[self.nbest - 1]
