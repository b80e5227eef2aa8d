"""Lexically constrained beam search: token sequences that must occur in the output.

The hypotheses of a sentence are divided into banks by the number of constraint tokens that they contain, and each bank
gets places in the beam, because hypotheses with improbable required tokens would lose against those without.
Source: Post and Vilar 2018 (dynamic beam allocation).
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from glassformer.generate.processors import apply
from glassformer.generate.search import BeamSearch, Hypothesis, blockwise_topk, length_penalty
from glassformer.models.decoding import Decodable

CONSTRAINED_BEAM = 8
"""Least number of hypotheses of a sentence with constraints."""


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """Token sequences of which one must occur in the output."""

    alternatives: tuple[tuple[int, ...], ...]
    not_before: NDArray[np.bool_] | None = None
    """For each token of the vocabulary, whether it must not follow: tokens that would continue the last word."""

    @property
    def size(self) -> int:
        """Number of tokens of the longest alternative."""
        return max(map(len, self.alternatives))


@dataclass(frozen=True, slots=True)
class Progress:
    """What a hypothesis contains of the constraints of its sentence."""

    met: frozenset[int] = frozenset()
    """Indices of the constraints that are met."""
    partial: frozenset[tuple[int, int, int]] = frozenset()
    """Alternatives whose first tokens are the last tokens of the hypothesis: constraint, alternative, number of these
    tokens."""
    last: int | None = None
    """The constraint whose last token is the last token of the hypothesis."""


class Constraints:
    """The constraints of one sentence. The methods are pure functions of the progress of a hypothesis.

    Args:
        constraints: the constraints. Those that do not fit are left out, the last first.
        max_new_tokens: maximum number of tokens of a hypothesis, including the end-of-sentence token.
    """

    def __init__(self, constraints: Sequence[Constraint], max_new_tokens: int) -> None:
        self.constraints = list(constraints)
        while sum(constraint.size for constraint in self.constraints) >= max_new_tokens:
            self.constraints.pop()

    def open(self, progress: Progress) -> list[int]:
        """Indices of the constraints that can begin: of equal ones, the first."""
        found: dict[tuple[tuple[int, ...], ...], int] = {}
        for i, constraint in enumerate(self.constraints):
            if i not in progress.met:
                found.setdefault(constraint.alternatives, i)
        return list(found.values())

    def useful_tokens(self, progress: Progress) -> set[int]:
        """Tokens that begin or continue a constraint."""
        tokens = {self.constraints[c].alternatives[a][n] for c, a, n in progress.partial}
        return tokens | {sequence[0] for c in self.open(progress) for sequence in self.constraints[c].alternatives}

    def extended(self, progress: Progress, token: int) -> Progress | None:
        """The progress after a token. None: the token must not follow."""
        not_before = None if progress.last is None else self.constraints[progress.last].not_before
        if not_before is not None and not_before[token] and token not in self.useful_tokens(progress):
            return None
        begun = {(c, a, 0) for c in self.open(progress) for a in range(len(self.constraints[c].alternatives))}
        advanced = {
            (c, a, n + 1) for c, a, n in begun | progress.partial if self.constraints[c].alternatives[a][n] == token
        }
        complete = [(-n, c) for c, a, n in advanced if n == len(self.constraints[c].alternatives[a])]
        if not complete:
            return Progress(progress.met, frozenset(advanced))
        _, done = min(complete)  # the longest
        return Progress(progress.met | {done}, last=done)

    def level(self, progress: Progress) -> int:
        """Number of constraint tokens of a hypothesis: the bank that it is in."""
        begun = max((n for _, _, n in progress.partial), default=0)
        return sum(self.constraints[c].size for c in progress.met) + begun

    def n_missing(self, progress: Progress) -> int:
        """Number of tokens that the shortest completion has."""
        missing = [c for c in range(len(self.constraints)) if c not in progress.met]
        n = sum(min(map(len, self.constraints[c].alternatives)) for c in missing)
        rest = [(len(self.constraints[c].alternatives[a]) - k, c) for c, a, k in progress.partial]
        if rest:
            least, c = min(rest)
            n += min(0, least - min(map(len, self.constraints[c].alternatives)))
        return n

    def is_met(self, progress: Progress) -> bool:
        """Whether all constraints are met."""
        return len(progress.met) == len(self.constraints)


class ConstrainedBeamSearch(BeamSearch):
    """Beam search in which the output of each sentence meets its constraints.

    A hypothesis ends only when it meets all. When only as many tokens are left as it still needs, it must take them.
    """

    def __init__(self, *args: Any, constraints: Sequence[Sequence[Constraint]], **options: Any) -> None:
        """
        Args:
            args, options: as of `BeamSearch`.
            constraints: those of each sentence.
        """
        super().__init__(*args, **options)
        self.beam = max(self.beam, CONSTRAINED_BEAM)
        self.rules = None  # constraint tokens are seldom among the most probable tokens
        self.constraints = list(map(Constraints, constraints, self.max_new_tokens))
        self.progress: dict[tuple[int, bytes], Progress] = {(s, b""): Progress() for s in range(len(constraints))}
        """By sentence and tokens of a hypothesis."""

    def progress_of(self, sentence: int, row: int) -> Progress:
        """The progress of a hypothesis."""
        return self.progress[sentence, self.ids[row].tobytes()]

    def candidates(self, model: Decodable) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The most probable tokens of each hypothesis, and all that begin or continue a constraint."""
        device = self.last.device
        scores = apply(
            self.processors, model.step(self.last, self.state).float(), torch.from_numpy(self.ids).to(device)
        )
        values, tokens = blockwise_topk(scores, min(self.n_candidates, scores.size(-1)))
        sentences = self.alive.repeat(self.sums.shape[1]).tolist()
        useful = [
            [self.eos_id, *sorted(self.constraints[sentence].useful_tokens(self.progress_of(sentence, row)))]
            for row, sentence in enumerate(sentences)
        ]
        width = max(map(len, useful))
        added = torch.tensor([row + [self.eos_id] * (width - len(row)) for row in useful], device=device)
        values, tokens = torch.cat([values, scores.gather(1, added)], 1), torch.cat([tokens, added], 1)
        return values.cpu().numpy(), tokens.cpu().numpy()

    def advance(self, values: NDArray[np.float32], tokens: NDArray[np.int64]) -> dict[int, list[Hypothesis]]:
        self.length += 1
        n = self.sums.shape[1]
        totals = self.sums.reshape(-1, 1) + values
        progress: dict[tuple[int, bytes], Progress] = {}
        kept: list[int] = []
        rows: list[tuple[int, int, float, float]] = []  # parent, token, log-probability, total
        done: dict[int, list[Hypothesis]] = {}
        for block, sentence in enumerate(self.alive.tolist()):
            own = slice(block * n, (block + 1) * n)
            extensions = self.extensions(sentence, own, totals[own], tokens[own])
            selected, ended, is_continued = self.select(sentence, extensions)
            self.hypotheses[sentence] += [self.hypothesis(x, values) for x in ended]
            if not is_continued:
                done[sentence] = self.best_hypotheses(sentence)
                continue
            kept.append(block)
            for x in selected:
                rows.append((x.row, x.token, float(values[x.row, x.column]), x.total))
                progress[sentence, self.ids_of(x).tobytes()] = x.progress
            # Fewer extensions than places: the others have probability 0.
            filler = selected[0]
            rows += [(filler.row, filler.token, -np.inf, -np.inf)] * (self.beam - len(selected))
        parents = np.array([row[0] for row in rows], np.int64)
        columns = [np.array([row[i] for row in rows]) for i in (1, 2, 3)]
        self.sums = columns[2].astype(np.float32).reshape(-1, self.beam)
        self.ids = np.concatenate([self.ids[parents], columns[0].astype(np.int64)[:, None]], axis=1)
        self.log_probs = np.concatenate([self.log_probs[parents], columns[1].astype(np.float32)[:, None]], axis=1)
        self.progress = progress
        self.keep(parents, np.array(kept, np.int64))
        return done

    def ids_of(self, x: "Extension") -> NDArray[np.int64]:
        """Tokens of an extended hypothesis."""
        return np.append(self.ids[x.row], x.token)

    def hypothesis(self, x: "Extension", values: NDArray[np.float32]) -> Hypothesis:
        """A finished hypothesis."""
        log_probs = [*self.log_probs[x.row].tolist(), float(values[x.row, x.column])]
        return Hypothesis(self.ids_of(x).tolist(), log_probs, x.total / length_penalty(self.length, self.alpha))

    def extensions(
        self, sentence: int, own: slice, totals: NDArray[np.float32], tokens: NDArray[np.int64]
    ) -> list["Extension"]:
        """The extensions of a sentence's hypotheses that can still meet all constraints, best first."""
        constraints, found, seen = self.constraints[sentence], [], set()
        n_left = self.max_new_tokens[sentence] - self.length
        for row, column in np.argwhere(totals > -np.inf).tolist():
            token = int(tokens[row, column])
            if (row, token) in seen:
                continue
            seen.add((row, token))
            before = self.progress_of(sentence, own.start + row)
            if token == self.eos_id:
                after = before if constraints.is_met(before) else None
            else:
                after = constraints.extended(before, token)
                if after and constraints.n_missing(after) > max(n_left - 1, 0):
                    after = None
            if after:
                total = float(totals[row, column])
                found.append(Extension(own.start + row, column, token, total, after))
        return sorted(found, key=lambda x: -x.total)

    def select(self, sentence: int, extensions: list["Extension"]) -> tuple[list["Extension"], list["Extension"], bool]:
        """The extensions to continue, those that end, and whether the search goes on."""
        constraints = self.constraints[sentence]
        final = [x for x in extensions if constraints.is_met(x.progress)]
        ended = [x for x in final[: self.beam] if x.token == self.eos_id]
        others = [x for x in extensions if x.token != self.eos_id]
        banks: dict[int, list[Extension]] = defaultdict(list)
        for x in others:
            banks[constraints.level(x.progress)].append(x)
        levels = sorted(banks, reverse=True)
        if len(levels) > self.beam:  # the bank with the fewest tokens has all possibilities left
            levels = [*levels[: self.beam - 1], levels[-1]]
        rounds = zip_longest(*(banks[level] for level in levels))
        selected = [x for round_ in rounds for x in round_ if x is not None][: self.beam]
        if self.length >= self.max_new_tokens[sentence]:
            return [], ended or [x for x in final if x.token != self.eos_id][:1], False
        scores = sorted([*(h.score for h in self.hypotheses[sentence]), *map(self.score, ended)], reverse=True)
        if not selected or len(scores) >= self.beam:
            return [], ended, False
        # Upper bound, also for those that have yet to meet a constraint: their sum does not increase.
        reachable = others[0].total / length_penalty(self.max_new_tokens[sentence], self.alpha)
        return selected, ended, len(scores) < self.nbest or reachable > scores[self.nbest - 1]

    def score(self, x: "Extension") -> float:
        """Score of an extension that ends."""
        return x.total / length_penalty(self.length, self.alpha)


@dataclass(frozen=True, slots=True)
class Extension:
    """A hypothesis with one more token."""

    row: int
    """Row of the hypothesis."""
    column: int
    """Column of the candidate."""
    token: int
    total: float
    progress: Progress
