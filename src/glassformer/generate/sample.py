"""Sampling with temperature, top-k and top-p."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from glassformer.errors import NON_FINITE, NonFiniteError
from glassformer.generate.protocol import Decodable, Ints, State
from glassformer.generate.rules import LogSoftmax, Rule, apply
from glassformer.generate.scores import Scores, softmax


def random_generator(seed: int, index: int) -> np.random.Generator:
    """Generator of random numbers of one text, determined by the seed and the index of the text."""
    return np.random.Generator(np.random.Philox(key=[seed, index]))


class Sampling:
    """Samples continuations of some sources, step by step.

    The log-probability of a token is that of the model without banned tokens, before temperature, top-k and top-p.
    """

    def __init__(
        self,
        state: State,
        last: Ints,
        max_new_tokens: Sequence[int],
        *,
        eos_ids: Sequence[int],
        rules: Sequence[Rule] = (LogSoftmax(),),
        warpers: Sequence[Rule] = (),
        seed: int = 1,
        indices: Sequence[int] = (0,),
        prompts: Ints | None = None,
    ) -> None:
        """
        Args:
            state: decoder state with one hypothesis of each source.
            last: its first input token.
            max_new_tokens: maximum number of generated tokens of each source, including the end token.
            eos_ids: ids of the tokens that end a text.
            rules: convert the logits to log-probabilities and apply constraints, such as `search_rules` returns.
            warpers: shape the distribution to sample from, such as `sampling_rules` returns.
            seed: seed of the random numbers.
            indices: index of each source among all texts of the call; with the seed it determines the random numbers.
            prompts: for each source tokens that the rules take into account before the generated ones.
        """
        self.state, self.last, self.max_new_tokens, self.eos_ids = state, last, max_new_tokens, set(eos_ids)
        self.rules, self.warpers = rules, warpers
        self.draws = [random_generator(seed, index).random(n) for index, n in zip(indices, max_new_tokens, strict=True)]
        self.alive = list(range(len(last)))
        """Source of each row."""
        self.ids = np.empty((len(last), 0), np.int64) if prompts is None else prompts
        self.n_prompt = self.ids.shape[1]
        self.ended: set[int] = set()
        """Sources that have ended and whose rows are not removed yet."""

    @property
    def sentences(self) -> list[int]:
        """The sources that have not ended."""
        return self.alive

    def step(self, model: Decodable) -> list[tuple[int, int, float]]:
        """Sample one token of each source. Returns source, token id and natural log-probability."""
        length = self.ids.shape[1] - self.n_prompt
        log_probs = apply(self.rules, model.logits(self.last, self.state), self.ids)
        u = np.array([self.draws[source][length] for source in self.alive])
        self.last = sample_tokens(apply(self.warpers, log_probs.astype(np.float64), self.ids), u)
        self.ids = np.concatenate([self.ids, self.last[:, None]], axis=1)
        token_log_probs = np.take_along_axis(log_probs, self.last[:, None], 1)[:, 0]
        sampled = list(zip(self.alive, self.last.tolist(), token_log_probs.tolist(), strict=True))
        self.ended |= {s for s, token, _ in sampled if token in self.eos_ids or length + 1 >= self.max_new_tokens[s]}
        return sampled

    def run(self, model: Decodable) -> list[list[int]]:
        """Sample to the end. Returns the tokens of each source."""
        ids: list[list[int]] = [[] for _ in self.alive]
        while self.alive:
            for source, token, _ in self.step(model):
                ids[source].append(token)
            self.remove_ended()
        return ids

    def cancel(self, source: int) -> None:
        """End a source."""
        self.ended.add(source)

    def remove_ended(self) -> None:
        """Remove the rows of the sources that have ended."""
        keep = [i for i, source in enumerate(self.alive) if source not in self.ended]
        if len(keep) < len(self.alive):
            kept = np.array(keep, np.int64)
            self.state.select(kept, kept)
            self.alive = [self.alive[i] for i in keep]
            self.last, self.ids = self.last[kept], self.ids[kept]


def sample_tokens(scores: Scores, u: NDArray[np.float64]) -> NDArray[np.int64]:
    """Sample a token of each row from the softmax of its scores, by inversion of the cumulative distribution function.

    Args:
        scores: scores of the tokens; -inf excludes a token.
        u: a random number in [0, 1) for each row. It selects the token in whose interval of the cumulative distribution
            it lies, in the order of the vocabulary.

    Raises:
        NonFiniteError: all tokens of a row are excluded, or a score is not a number.
    """
    cumulative = softmax(scores.astype(np.float64, copy=False)).cumsum(axis=1)
    total = cumulative[:, -1]
    if not (total > 0).all():
        raise NonFiniteError(NON_FINITE)
    # Rounding of the sum must not select a token of probability 0 at the end.
    u = np.minimum(u, np.nextafter(total, 0))
    return np.array([row.searchsorted(x, side="right") for row, x in zip(cumulative, u, strict=True)])
