"""Beam search. Beam size 1 is greedy search."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from glassformer.generate.policy import Policy
from glassformer.generate.protocol import Candidates, Decodable, Ints, Joinable, State
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
    """The extensions of the hypotheses of one sentence that a step of beam search considers, best first."""

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


ScalarT = TypeVar("ScalarT", bound=np.generic)

DUPLICATE = -1e9
"""Initial sum of all hypotheses of a sentence but the first: they are equal, so the first step extends only one."""


class BeamSearch:
    """Beam search for some sentences, step by step.

    At each step, the most probable extensions of a sentence's hypotheses are considered, or with random generators
    sampled ones. Those among the first `beam` that end with an end token are finished; the best `beam` of the others
    are continued. The policy says how many are considered, and when a sentence is done; at its maximum length,
    unfinished hypotheses are truncated. It is then removed from the batch. Sentences that began later can `join`.
    """

    def __init__(
        self,
        state: State,
        last: Ints,
        max_new_tokens: Sequence[int],
        *,
        eos_ids: Sequence[int],
        rules: Sequence[Rule] = (LogSoftmax(),),
        policy: Policy | None = None,
        prompts: Ints | None = None,
        generators: Sequence[np.random.Generator] | None = None,
        report: Callable[[SearchStep], None] | None = None,
    ) -> None:
        """
        Args:
            state: decoder state with the same number of hypotheses of each sentence, one or more.
            last: the first input token of each.
            max_new_tokens: maximum number of generated tokens of each sentence, including the end token. Sentences are
                numbered in this order.
            eos_ids: ids of the tokens that end a hypothesis.
            rules: convert the logits to log-probabilities and apply constraints, such as `search_rules` returns. If
                they have no fast form, each step computes all logits.
            policy: beam size, scores, and when the search of a sentence ends.
            prompts: for each hypothesis tokens that the rules take into account before the generated ones.
            generators: of random numbers, for each sentence: the extensions are sampled without replacement.
            report: called with the extensions of each sentence at each step.
        """
        self.state, self.last = state, last
        self.eos_ids, self.rules, self.policy = list(eos_ids), rules, policy or Policy()
        self.not_eos_id = next(i for i in count() if i not in self.eos_ids)
        """The token of extensions that are not possible, which must not end."""
        self.generators, self.report = generators, report
        self.fast = None if generators else fast_form(rules)
        """The rules, if the search needs only the most probable tokens; None: it needs all logits."""
        self.excluded: list[set[int]] = []
        """Tokens that must not follow each hypothesis in the next step."""
        self.noise: NDArray[np.float64] | None = None
        """What is added to the log-probabilities of the candidates to rank them, if they are sampled."""
        self.n_begun = len(max_new_tokens)
        """Number of sentences, with those that are done."""
        self.alive = np.arange(self.n_begun)
        """Sentence of each block of hypotheses."""
        self.hypotheses: dict[int, list[Hypothesis]] = {sentence: [] for sentence in self.sentences}
        """The `beam` best finished hypotheses of each sentence that is not done, best first."""
        self.limits, self.lengths = np.array(max_new_tokens), np.zeros(self.n_begun, np.int64)
        """Of each block, the maximum number of generated tokens, and the number of those that are generated."""
        self.has_finished = np.zeros(self.n_begun, bool)
        """Whether the sentence of each block has finished hypotheses."""
        self.sums = np.full((self.n_begun, len(last) // self.n_begun), DUPLICATE, np.float32)
        self.sums[:, 0] = 0
        self.ids = np.empty((len(last), 0), np.int64) if prompts is None else prompts
        """Tokens of each hypothesis. As in `log_probs`, the last column has the last tokens: shorter ones begin after
        columns without meaning."""
        self.n_prompt = self.ids.shape[1]
        self.log_probs = np.empty((len(last), 0), np.float32)

    @property
    def sentences(self) -> list[int]:
        """The sentences that are not done."""
        return self.alive.tolist()

    def candidates(self, model: Decodable) -> Candidates:
        """Compute the next step of the model. Returns the extensions of each hypothesis to consider."""
        if self.fast is not None:
            n = min(self.n_most_probable(), model.vocab_size)
            (candidates,) = model.next_tokens([(self.last, self.state)], n, self.fast.banned_ids)
            return self.allowed(*candidates)
        scores = apply(self.rules, model.logits(self.last, self.state), self.ids).astype(np.float32, copy=False)
        n = min(self.policy.n_considered, scores.shape[1])
        if self.generators is None:
            return best_tokens(scores, n)
        # Gumbel-top-k: the k largest log-probabilities after adding Gumbel noise are a sample without replacement
        # (Yellott 1977).
        n_random = self.sums.shape[1] * scores.shape[1]
        uniform = np.stack([self.generators[sentence].random(n_random) for sentence in self.sentences])
        noise = -np.log(-np.log(uniform.reshape(scores.shape) + 1e-300))
        tokens = best_tokens(scores + noise, n)[1]
        self.noise = np.take_along_axis(noise, tokens, 1)
        return np.take_along_axis(scores, tokens, 1), tokens

    def n_most_probable(self) -> int:
        """Number of most probable tokens of each hypothesis that contain all candidates of the next step."""
        assert self.fast is not None
        if self.fast.exclusions:
            first = np.repeat(self.lengths.max() - self.lengths, self.sums.shape[1]).tolist()
            self.excluded = self.fast.excluded([row[n:] for row, n in zip(self.ids.tolist(), first, strict=True)])
        return self.policy.n_considered + max(map(len, self.excluded), default=0)

    def allowed(self, values: NDArray[np.float32], tokens: NDArray[np.int64]) -> Candidates:
        """The candidates among the most probable tokens, after `n_most_probable`."""
        assert self.fast is not None
        if any(self.excluded):
            is_excluded = [[t in x for t in row] for row, x in zip(tokens.tolist(), self.excluded, strict=True)]
            values = np.where(is_excluded, np.float32(-np.inf), values)
            order = (-values).argsort(axis=1, kind="stable")
            values, tokens = np.take_along_axis(values, order, 1), np.take_along_axis(tokens, order, 1)
        values, tokens = values[:, : self.policy.n_considered], tokens[:, : self.policy.n_considered]
        if self.fast.forced:
            positions = np.repeat(self.n_prompt + self.lengths, self.sums.shape[1])
            for position, token in self.fast.forced.items():
                rows = positions == position
                values[rows], tokens[rows] = -np.inf, self.not_eos_id
                values[rows, 0], tokens[rows, 0] = 0, token
        return values, tokens

    def advance(self, values: NDArray[np.float32], tokens: NDArray[np.int64]) -> dict[int, list[Hypothesis]]:
        """Extend the hypotheses by the candidates of a step.

        Returns:
            The sentences that are done now, each with its best hypotheses, best first.
        """
        self.lengths += 1
        n, beam = self.policy.n_considered, self.policy.beam
        totals, log_prob, token, parent = best_extensions(self.sums, values, tokens, n, self.not_eos_id, self.noise)
        may_end = (self.limits <= self.lengths) | self.has_finished
        for eos_id in self.eos_ids:  # np.isin takes ten times as long
            may_end |= (token == eos_id).any(1)
        if self.report is not None or self.generators is not None:
            may_end[:] = True
        # The sentences of which nothing ends are continued with the best `beam` extensions.
        keep, done = np.arange(len(self.alive), dtype=np.int64), dict[int, list[Hypothesis]]()
        selected = (keep[:, None] * n + np.arange(beam)).ravel()
        if may_end.any():
            is_continued, columns = np.ones(len(self.alive), bool), selected.reshape(-1, beam)
            for block in np.flatnonzero(may_end).tolist():
                extensions = Extensions(totals[block].tolist(), log_prob[block], token[block].tolist(), parent[block])
                is_continued[block], unfinished = self.finish(int(self.alive[block]), block, extensions)
                columns[block] = np.array(unfinished) + block * n
                self.has_finished[block] = bool(self.hypotheses[int(self.alive[block])])
            ended = self.alive[~is_continued].tolist()
            done = {sentence: self.hypotheses.pop(sentence)[: self.policy.nbest] for sentence in ended}
            keep = np.flatnonzero(is_continued)
            selected = columns[keep].ravel()
        parents, self.sums = parent.take(selected), totals.take(selected).reshape(-1, beam)
        self.last = token.take(selected)
        self.ids = np.concatenate([self.ids[parents], self.last[:, None]], axis=1)
        self.log_probs = np.concatenate([self.log_probs[parents], log_prob.take(selected)[:, None]], axis=1)
        self.keep(parents, keep)
        return done

    def finish(self, sentence: int, block: int, x: "Extensions") -> tuple[bool, list[int]]:
        """Finish the extensions of a sentence that end. Returns whether the others are continued, and which."""
        policy, limit, length = self.policy, int(self.limits[block]), int(self.lengths[block])
        finished = [i for i in range(policy.beam) if x.tokens[i] in self.eos_ids]
        unfinished = [i for i, token in enumerate(x.tokens) if token not in self.eos_ids]
        truncated = policy.truncated(unfinished) if length >= limit else []
        if self.generators is not None:
            unfinished.sort(key=lambda i: -x.totals[i])
        unfinished = unfinished[: policy.beam]
        first_id, first = self.ids.shape[1] - length + 1, self.log_probs.shape[1] - length + 1
        ended = [
            Hypothesis(
                [*self.ids[x.parents[i], first_id:].tolist(), x.tokens[i]],
                [*self.log_probs[x.parents[i], first:].tolist(), float(x.log_probs[i])],
                policy.score(x.totals[i], length),
            )
            for i in finished + truncated
            if x.totals[i] > -math.inf
        ]
        best = sorted([*self.hypotheses[sentence], *ended], key=lambda h: -h.score)[: policy.beam]
        self.hypotheses[sentence] = best
        is_continued = length < limit and policy.continues(
            [h.score for h in best], max(x.totals[i] for i in unfinished), length, limit
        )
        if self.report is not None:
            outcome: Literal["truncated", "stopped"] = "truncated" if truncated else "stopped"
            self.report(
                SearchStep(
                    sentence,
                    length,
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

    def keep(self, rows: NDArray[np.int64], blocks: NDArray[np.int64]) -> None:
        """Continue with these rows of the decoder state, and these blocks of hypotheses."""
        if len(blocks) == len(self.alive):
            self.state.select(rows)
            return
        self.state.select(rows, blocks)
        self.alive, self.limits, self.lengths = self.alive[blocks], self.limits[blocks], self.lengths[blocks]
        self.has_finished = self.has_finished[blocks]
        longest = int(self.lengths.max(initial=0))
        self.ids = self.ids[:, self.ids.shape[1] - self.n_prompt - longest :]
        self.log_probs = self.log_probs[:, self.log_probs.shape[1] - longest :]

    def run(self, model: Decodable) -> list[list[Hypothesis]]:
        """Compute the search to its end. Returns the best hypotheses of each sentence, best first."""
        results: dict[int, list[Hypothesis]] = {}
        while len(self.alive):
            results |= self.advance(*self.candidates(model))
        return [results[sentence] for sentence in range(self.n_begun)]

    def cancel(self, sentence: int) -> None:
        """Remove a sentence."""
        blocks = np.flatnonzero(self.alive != sentence)
        rows = (blocks[:, None] * self.sums.shape[1] + np.arange(self.sums.shape[1])).ravel()
        self.last, self.sums, self.ids = self.last[rows], self.sums[blocks], self.ids[rows]
        self.log_probs = self.log_probs[rows]
        self.keep(rows, blocks)
        self.hypotheses.pop(sentence, None)

    def can_join(self, other: "BeamSearch") -> bool:
        """Whether another search of the same policy and rules can join. The first step makes `beam` hypotheses of one;
        rules of all scores, prompts and sampling need rows of one length.
        """
        same_width = self.sums.shape[1] == other.sums.shape[1] == self.policy.beam
        return same_width and self.fast is not None and not self.n_prompt and isinstance(self.state, Joinable)

    def join(self, other: "BeamSearch") -> int:
        """Continue the sentences of another search of the same policy and rules, which `can_join`, as well.

        Returns:
            What is added to their numbers.
        """
        assert isinstance(self.state, Joinable)
        first = self.n_begun
        self.n_begun += other.n_begun
        self.state.join(other.state)
        self.hypotheses |= {first + sentence: found for sentence, found in other.hypotheses.items()}
        self.alive = np.concatenate([self.alive, first + other.alive])
        for name in ("last", "limits", "lengths", "has_finished", "sums"):
            setattr(self, name, np.concatenate([getattr(self, name), getattr(other, name)]))
        self.ids = stacked_at_the_end(self.ids, other.ids)
        self.log_probs = stacked_at_the_end(self.log_probs, other.log_probs)
        return first


def stacked_at_the_end(a: NDArray[ScalarT], b: NDArray[ScalarT]) -> NDArray[ScalarT]:
    """The rows of two tables below each other, the last columns aligned. The narrower one begins with zeros."""
    width = max(a.shape[1], b.shape[1])
    return np.concatenate([np.pad(x, ((0, 0), (width - x.shape[1], 0))) for x in (a, b)])


@dataclass(frozen=True, slots=True)
class Extensions:
    """The extensions of the hypotheses of one sentence that a step considers, best first."""

    totals: list[float]
    log_probs: NDArray[np.float32]
    tokens: list[int]
    parents: NDArray[np.int64]
    """Row of the extended hypothesis."""


def beam_search(
    model: Decodable,
    sources: Sequence[Sequence[int]],
    max_new_tokens: Sequence[int],
    *,
    eos_id: int,
    end_ids: Sequence[int] = (),
    rules: Sequence[Rule] = (LogSoftmax(),),
    beam: int = 4,
    alpha: float = 1.0,
    nbest: int = 1,
    report: Callable[[SearchStep], None] | None = None,
) -> list[list[Hypothesis]]:
    """Beam search: the best hypotheses of each source, best first.

    Args:
        model: the model.
        sources: token ids of each source, without padding.
        max_new_tokens: maximum number of generated tokens of each sentence, including the end-of-sentence token.
        eos_id: id of the end-of-sentence token.
        end_ids: ids of further tokens that end a text.
        rules: see `BeamSearch`.
        beam: beam size.
        alpha: exponent of the length penalty.
        nbest: number of hypotheses to return per sentence, at most `beam`.
        report: called with the extensions of each sentence at each step.
    """
    policy = Policy(beam, alpha, nbest)
    search = BeamSearch(
        *model.start(sources), max_new_tokens, eos_ids=[eos_id, *end_ids], rules=rules, policy=policy, report=report
    )
    return search.run(model)


def best_extensions(
    sums: NDArray[np.float32],
    log_probs: NDArray[np.float32],
    tokens: NDArray[np.int64],
    n: int,
    filler: int,
    noise: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]:
    """The n best extensions of each sentence's hypotheses, best first.

    Args:
        sums: sum of the log-probabilities of each hypothesis: [sentences, hypotheses].
        log_probs: those of the best next tokens of each hypothesis: [sentences x hypotheses, k].
        tokens: ids of the tokens.
        n: number of extensions.
        filler: the token of the others, if there are fewer than n.
        noise: is added to the sums to rank them.

    Returns:
        For each extension the sum, the log-probability of the token, the token, and the row of the hypothesis. If there
        are fewer than n, the others have the sum -inf.
    """
    n_sentences, k = len(sums), log_probs.shape[1]
    totals = (sums.reshape(-1, 1) + log_probs).reshape(n_sentences, -1)
    log_probs, tokens = log_probs.reshape(n_sentences, -1), tokens.reshape(n_sentences, -1)
    ranks = totals if noise is None else totals + noise.reshape(totals.shape)
    if (missing := n - totals.shape[1]) > 0:
        fill = ((0, 0), (0, missing))
        totals, log_probs, ranks = (np.pad(x, fill, constant_values=-np.inf) for x in (totals, log_probs, ranks))
        tokens = np.pad(tokens, fill, constant_values=filler)
    index = (-ranks).argsort(axis=1, kind="stable")[:, :n]
    rows = np.arange(n_sentences)[:, None]
    parents = np.minimum(index // k, sums.shape[1] - 1) + sums.shape[1] * rows
    index += totals.shape[1] * rows
    return totals.take(index), log_probs.take(index), tokens.take(index), parents
