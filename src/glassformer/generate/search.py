"""Beam search. Beam size 1 is greedy search."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from glassformer.generate.protocol import Candidates, Decodable, Ints, State
from glassformer.generate.rules import LogSoftmax, Rule, apply, fast_form
from glassformer.generate.scores import best_tokens


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A finished hypothesis: it ends with the end-of-sentence token or was truncated at the maximum length."""

    ids: list[int]
    """Token ids, including the end-of-sentence token if it was generated."""
    log_probs: list[float]
    """Natural log-probability of each token."""
    score: float
    """Sum of log_probs, divided by the length penalty."""


@dataclass(frozen=True, slots=True)
class SearchStep:
    """The 2 x beam best extensions of the hypotheses of one sentence at one step of beam search, best first."""

    sentence: int
    """Index of the sentence."""
    length: int
    """Number of tokens of the extended hypotheses."""
    parents: list[int]
    """Index of the extended hypothesis, in the order of `unfinished` of the previous step."""
    token_ids: list[int]
    log_probs: list[float]
    totals: list[float]
    """Sum of the log-probabilities of the extended hypothesis; -inf: excluded."""
    ended: list[int]
    """Indices of the extensions that end with the end-of-sentence token and are finished hypotheses."""
    unfinished: list[int]
    """Indices of the best `beam` extensions that do not end."""
    outcome: Literal["continued", "truncated", "stopped"]
    """What happens to `unfinished`: they are continued; finished, at the maximum length; or dropped, because none can
    exceed the score of the finished hypotheses."""


def length_penalty(n_tokens: int, alpha: float) -> float:
    """Length penalty ((5 + n) / 6)^alpha. Source: Wu et al. 2016, equation 14."""
    return float(((5 + n_tokens) / 6) ** alpha)


class BeamSearch:
    """Beam search for some sentences, step by step.

    At each step, the 2 x beam most probable extensions of a sentence's hypotheses are considered. Those among the first
    `beam` that end with the end-of-sentence token are finished; the best `beam` of the others are continued. A sentence
    is done when `beam` hypotheses are finished, when no unfinished one can exceed the score of the best `nbest`, or at
    its maximum length, where unfinished ones are truncated. It is then removed from the batch.
    """

    def __init__(
        self,
        state: State,
        last: Ints,
        max_new_tokens: Sequence[int],
        *,
        eos_id: int,
        rules: Sequence[Rule] = (LogSoftmax(),),
        beam: int = 4,
        alpha: float = 0.6,
        nbest: int = 1,
        report: Callable[[SearchStep], None] | None = None,
    ) -> None:
        """
        Args:
            state: decoder state with one hypothesis of each sentence.
            last: its first input token.
            max_new_tokens: maximum number of generated tokens of each sentence, including the end-of-sentence token.
            eos_id: id of the end-of-sentence token.
            rules: convert the logits to log-probabilities and apply constraints, such as `search_rules` returns. If
                they have no fast form, each step computes all logits.
            beam: beam size.
            alpha: exponent of the length penalty.
            nbest: number of hypotheses to return per sentence, at most `beam`.
            report: called with the extensions of each sentence at each step.
        """
        self.state, self.last = state, last
        self.max_new_tokens, self.eos_id, self.rules = max_new_tokens, eos_id, rules
        self.beam, self.alpha, self.nbest, self.report = beam, alpha, nbest, report
        self.fast = fast_form(rules)
        """The rules, if the search needs only the most probable tokens; None: it needs all logits."""
        self.excluded: list[set[int]] = []
        """Tokens that must not follow each hypothesis in the next step."""
        n_sentences = len(last)
        self.length = 0
        self.hypotheses: list[list[Hypothesis]] = [[] for _ in range(n_sentences)]
        """Finished hypotheses of each sentence."""
        self.alive = np.arange(n_sentences)
        """Sentence of each block of hypotheses."""
        self.limits, self.has_finished = np.array(max_new_tokens), np.zeros(n_sentences, bool)
        """Maximum number of generated tokens of each block, and whether it has finished hypotheses."""
        # One hypothesis of each sentence in the first step, then `beam`.
        self.sums = np.zeros((n_sentences, 1), np.float32)
        self.ids = np.empty((n_sentences, 0), np.int64)
        self.log_probs = np.empty((n_sentences, 0), np.float32)

    @property
    def sentences(self) -> list[int]:
        """The sentences that are not done."""
        return self.alive.tolist()

    @property
    def n_candidates(self) -> int:
        """Number of extensions of each hypothesis that a step considers."""
        return 2 * self.beam

    def candidates(self, model: Decodable) -> Candidates:
        """Compute the next step of the model. Returns the extensions of each hypothesis to consider."""
        if self.fast is not None:
            n = min(self.n_most_probable(), model.vocab_size)
            (candidates,) = model.next_tokens([(self.last, self.state)], n, self.fast.banned_ids)
            return self.allowed(*candidates)
        scores = apply(self.rules, model.logits(self.last, self.state), self.ids)
        values, tokens = best_tokens(scores, min(self.n_candidates, scores.shape[1]))
        return values.astype(np.float32, copy=False), tokens

    def n_most_probable(self) -> int:
        """Number of most probable tokens of each hypothesis that contain all candidates of the next step."""
        assert self.fast is not None
        self.excluded = self.fast.excluded(self.ids)
        return self.n_candidates + max(map(len, self.excluded), default=0)

    def allowed(self, values: NDArray[np.float32], tokens: NDArray[np.int64]) -> Candidates:
        """The candidates among the most probable tokens, after `n_most_probable`."""
        assert self.fast is not None
        if self.length in self.fast.forced:
            forced = self.fast.forced[self.length]
            return np.zeros((len(values), 1), np.float32), np.full((len(values), 1), forced, np.int64)
        if any(self.excluded):
            is_excluded = [[t in x for t in row] for row, x in zip(tokens.tolist(), self.excluded, strict=True)]
            values = np.where(is_excluded, np.float32(-np.inf), values)
            order = (-values).argsort(axis=1, kind="stable")
            values, tokens = np.take_along_axis(values, order, 1), np.take_along_axis(tokens, order, 1)
        return values[:, : self.n_candidates], tokens[:, : self.n_candidates]

    def advance(self, values: NDArray[np.float32], tokens: NDArray[np.int64]) -> dict[int, list[Hypothesis]]:
        """Extend the hypotheses by the candidates of a step.

        Returns:
            The sentences that are done now, each with its best hypotheses, best first.
        """
        self.length += 1
        totals, log_prob, token, parent = best_extensions(self.sums, values, tokens, 2 * self.beam, self.eos_id)
        may_end = (token == self.eos_id).any(1) | (self.limits <= self.length) | self.has_finished
        # The sentences of which nothing ends are continued with the best `beam` extensions.
        keep, done = np.arange(len(self.alive)), dict[int, list[Hypothesis]]()
        selected = (keep[:, None] * 2 * self.beam + np.arange(self.beam)).ravel()
        if may_end.any() or self.report is not None:
            is_continued, columns = np.ones(len(self.alive), bool), selected.reshape(-1, self.beam)
            for block in np.flatnonzero(may_end | (self.report is not None)).tolist():
                extensions = Extensions(totals[block].tolist(), log_prob[block], token[block].tolist(), parent[block])
                is_continued[block], unfinished = self.finish(int(self.alive[block]), block, extensions)
                columns[block] = np.array(unfinished) + block * 2 * self.beam
                self.has_finished[block] = bool(self.hypotheses[self.alive[block]])
            done = {sentence: self.best_hypotheses(sentence) for sentence in self.alive[~is_continued].tolist()}
            keep = np.flatnonzero(is_continued)
            selected = columns[keep].ravel()
        parents, self.sums = parent.take(selected), totals.take(selected).reshape(-1, self.beam)
        self.ids = np.concatenate([self.ids[parents], token.take(selected)[:, None]], axis=1)
        self.log_probs = np.concatenate([self.log_probs[parents], log_prob.take(selected)[:, None]], axis=1)
        self.keep(parents, keep)
        return done

    def finish(self, sentence: int, block: int, x: "Extensions") -> tuple[bool, list[int]]:
        """Finish the extensions of a sentence that end. Returns whether the others are continued, and which."""
        hypotheses = self.hypotheses[sentence]
        finished = [i for i in range(self.beam) if x.tokens[i] == self.eos_id]
        unfinished = [i for i in range(2 * self.beam) if x.tokens[i] != self.eos_id][: self.beam]
        truncated = unfinished if self.length >= self.max_new_tokens[sentence] else []
        for i in finished + truncated:
            if x.totals[i] > -math.inf and len(hypotheses) < 2 * self.beam:
                hypotheses.append(
                    Hypothesis(
                        [*self.ids[x.parents[i]].tolist(), x.tokens[i]],
                        [*self.log_probs[x.parents[i]].tolist(), float(x.log_probs[i])],
                        x.totals[i] / length_penalty(self.length, self.alpha),
                    )
                )
        is_continued = False
        if not truncated and len(hypotheses) < self.beam:
            # Upper bound: further tokens only decrease the sum, and the penalty is largest at the maximum length.
            reachable = max(x.totals[i] for i in unfinished) / length_penalty(self.max_new_tokens[sentence], self.alpha)
            ranked = sorted((h.score for h in hypotheses), reverse=True)
            is_continued = len(ranked) < self.nbest or reachable > ranked[self.nbest - 1]
        if self.report is not None:
            outcome: Literal["truncated", "stopped"] = "truncated" if truncated else "stopped"
            self.report(
                SearchStep(
                    sentence,
                    self.length,
                    (x.parents - block * self.sums.shape[1]).tolist(),
                    x.tokens,
                    x.log_probs.tolist(),
                    x.totals,
                    ended=finished,
                    unfinished=unfinished,
                    outcome="continued" if is_continued else outcome,
                )
            )
        return is_continued, unfinished

    def best_hypotheses(self, sentence: int) -> list[Hypothesis]:
        """The best finished hypotheses of a sentence, best first."""
        return sorted(self.hypotheses[sentence], key=lambda h: -h.score)[: self.nbest]

    def keep(self, rows: NDArray[np.int64], blocks: NDArray[np.int64]) -> None:
        """Continue with these rows of the decoder state, and these blocks of hypotheses."""
        self.last = self.ids[:, -1].copy()
        self.state.select(rows, blocks if len(blocks) < len(self.alive) else None)
        self.select_blocks(blocks)

    def select_blocks(self, blocks: NDArray[np.int64]) -> None:
        """Continue with these blocks."""
        if len(blocks) == len(self.alive):
            return
        self.alive, self.limits, self.has_finished = self.alive[blocks], self.limits[blocks], self.has_finished[blocks]

    def cancel(self, sentence: int) -> None:
        """Remove a sentence."""
        blocks = np.flatnonzero(self.alive != sentence)
        if self.length == 0:
            rows, self.last = blocks, self.last[blocks]
        else:
            rows = (blocks[:, None] * self.sums.shape[1] + np.arange(self.sums.shape[1])).ravel()
        self.sums, self.ids, self.log_probs = self.sums[blocks], self.ids[rows], self.log_probs[rows]
        if self.length:
            self.keep(rows, blocks)
        else:
            self.state.select(blocks, blocks)
            self.select_blocks(blocks)


@dataclass(frozen=True, slots=True)
class Extensions:
    """The 2 x beam best extensions of the hypotheses of one sentence, best first."""

    totals: list[float]
    log_probs: NDArray[np.float32]
    tokens: list[int]
    parents: NDArray[np.int64]
    """Row of the extended hypothesis."""


def beam_search(
    model: Decodable, sources: Sequence[Sequence[int]], max_new_tokens: Sequence[int], **options: Any
) -> list[list[Hypothesis]]:
    """Beam search: the best hypotheses of each source, best first.

    Args:
        model: the model.
        sources: token ids of each source, without padding.
        max_new_tokens: maximum number of generated tokens of each sentence, including the end-of-sentence token.
        options: as of `BeamSearch`.
    """
    search = BeamSearch(*model.start(sources), max_new_tokens, **options)
    while len(search.alive):
        search.advance(*search.candidates(model))
    return [search.best_hypotheses(sentence) for sentence in range(len(sources))]


def best_extensions(
    sums: NDArray[np.float32], log_probs: NDArray[np.float32], tokens: NDArray[np.int64], n: int, eos_id: int
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]:
    """The n best extensions of each sentence's hypotheses, best first.

    Args:
        sums: sum of the log-probabilities of each hypothesis: [sentences, hypotheses].
        log_probs: those of the best next tokens of each hypothesis: [sentences x hypotheses, k].
        tokens: ids of the tokens.

    Returns:
        For each extension the sum, the log-probability of the token, the token, and the row of the hypothesis. If there
        are fewer than n, the others have the sum -inf and do not end.
    """
    n_sentences, k = len(sums), log_probs.shape[1]
    totals = (sums.reshape(-1, 1) + log_probs).reshape(n_sentences, -1)
    log_probs, tokens = log_probs.reshape(n_sentences, -1), tokens.reshape(n_sentences, -1)
    if (missing := n - totals.shape[1]) > 0:
        fill = ((0, 0), (0, missing))
        totals, log_probs = (np.pad(x, fill, constant_values=-np.inf) for x in (totals, log_probs))
        tokens = np.pad(tokens, fill, constant_values=0 if eos_id else 1)
    index = (-totals).argsort(axis=1, kind="stable")[:, :n]
    rows = np.arange(n_sentences)[:, None]
    parents = np.minimum(index // k, sums.shape[1] - 1) + sums.shape[1] * rows
    index += totals.shape[1] * rows
    return totals.take(index), log_probs.take(index), tokens.take(index), parents
