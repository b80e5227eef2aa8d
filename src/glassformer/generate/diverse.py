"""Diverse beam search: groups of hypotheses, each of which avoids the tokens that the groups before it have chosen.

Source: Vijayakumar et al. 2018, algorithm 1, with Hamming diversity.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.generate.search import BeamSearch, Extended, Hypothesis, best_extensions


class DiverseBeamSearch(BeamSearch):
    """Beam search in groups of equal size.

    In each step, a penalty is subtracted from the log-probability of a token for each hypothesis of the groups before
    that is continued with the same token. It determines which hypotheses are continued, and is not in their scores.

    The decoder state has `groups` rows for each sentence, one after the other.
    """

    def __init__(self, *args: Any, groups: int, penalty: float, beam: int, nbest: int, **options: Any) -> None:
        """
        Args:
            args, options: as of `BeamSearch`; lists with an entry for each group of each sentence.
            groups: number of groups.
            penalty: penalty of a token for each earlier hypothesis with the same token.
            beam: number of hypotheses of all groups.
            nbest: number of hypotheses to return per sentence.
        """
        size = beam // groups
        super().__init__(*args, beam=size, nbest=size, **options)
        self.groups, self.penalty, self.n_results = groups, penalty, nbest

    @property
    def n_candidates(self) -> int:
        """2 x beam, and as many tokens as the groups before can have penalized."""
        return (self.groups + 1) * self.beam

    @property
    def is_greedy(self) -> bool:
        return False

    @property
    def sentences(self) -> list[int]:
        return sorted(set((self.alive // self.groups).tolist()))

    def best(self, values: NDArray[np.float32], tokens: NDArray[np.int64]) -> Extended:
        n_rows = self.sums.shape[1]
        used: dict[int, dict[int, int]] = {}  # by sentence, how often a token is chosen
        parts = []
        for block, group in enumerate(self.alive.tolist()):
            counts = used.setdefault(group // self.groups, {})
            own = slice(block * n_rows, (block + 1) * n_rows)
            penalties = [[self.penalty * counts.get(t, 0) for t in row] for row in tokens[own].tolist()]
            part = best_extensions(
                self.sums[block : block + 1], values[own], tokens[own], 2 * self.beam, self.eos_id,
                np.array(penalties, np.float32),
            )  # fmt: skip
            totals, _, chosen, parents = part
            parents += own.start
            unfinished = (
                t for t, x in zip(chosen[0].tolist(), totals[0], strict=True) if t != self.eos_id and x > -np.inf
            )
            for token, _ in zip(unfinished, range(self.beam), strict=False):
                counts[token] = counts.get(token, 0) + 1
            parts.append(part)
        totals, log_probs, chosen, parents = (np.concatenate(x) for x in zip(*parts, strict=True))
        return totals, log_probs, chosen, parents

    def advance(self, values: NDArray[np.float32], tokens: NDArray[np.int64]) -> dict[int, list[Hypothesis]]:
        ended = {group // self.groups for group in super().advance(values, tokens)}
        return {sentence: self.results(sentence) for sentence in sorted(ended.difference(self.sentences))}

    def results(self, sentence: int) -> list[Hypothesis]:
        """The best hypotheses of all groups, best first."""
        groups = range(sentence * self.groups, (sentence + 1) * self.groups)
        different = {tuple(h.ids): h for group in groups for h in self.best_hypotheses(group)}
        return sorted(different.values(), key=lambda h: -h.score)[: self.n_results]

    def cancel(self, sentence: int) -> None:
        for group in range(sentence * self.groups, (sentence + 1) * self.groups):
            super().cancel(group)
