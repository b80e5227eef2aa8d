"""Several models that generate a text together: each next token has the mean of its probabilities."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.generate.protocol import Candidates, ComputesLogits, Decodable, Ints, State
from glassformer.generate.scores import best_tokens, log_softmax, softmax

ROWS = 16
"""Number of hypotheses whose probabilities are computed together: they stay in the cache of the processor."""


class EnsembleState:
    """The decoder states of the models."""

    def __init__(self, states: Sequence[State]) -> None:
        self.states = states

    def select(self, rows: Ints, sentences: Ints | None = None) -> None:
        """See `State`."""
        for state in self.states:
            state.select(rows, sentences)


class Ensemble(ComputesLogits):
    """Models of the same vocabulary as one model, with the methods of `generate.protocol.Decodable`."""

    def __init__(self, models: Sequence[Decodable]) -> None:
        self.models = models
        self.config, self.vocab_size = models[0].config, models[0].vocab_size
        self.pad_to_multiple_of = max(model.pad_to_multiple_of for model in models)
        self.cache_bytes = sum(model.cache_bytes for model in models)

    def start(self, sources: Sequence[Sequence[int]], n_hypotheses: int = 1) -> tuple[EnsembleState, Ints]:
        """See `Decodable`."""
        started = [model.start(sources, n_hypotheses) for model in self.models]
        return EnsembleState([state for state, _ in started]), started[0][1]

    def next_tokens(
        self, steps: Sequence[tuple[Ints, Any]], k: int, banned_ids: Sequence[int] = ()
    ) -> list[Candidates]:
        """See `Decodable`. The probabilities of `logits`, without logarithms of those that are not among the best."""
        found = []
        for ids, state in steps:
            logits = [model.logits(ids, own) for model, own in zip(self.models, state.states, strict=True)]
            parts = [slice(start, start + ROWS) for start in range(0, len(ids), ROWS)]
            best = [best_of_mean([each[part] for each in logits], k, list(banned_ids)) for part in parts]
            log_probs, tokens = zip(*best, strict=True)
            found.append((np.concatenate(log_probs), np.concatenate(tokens)))
        return found

    def logits(self, ids: Ints, state: EnsembleState) -> NDArray[np.float32]:
        """Logarithms of the mean probabilities, with which the softmax gives these: [rows, vocab]."""
        log_probs = [log_softmax(model.logits(ids, own)) for model, own in zip(self.models, state.states, strict=True)]
        top = np.maximum.reduce(log_probs).clip(min=np.finfo(np.float32).min)  # finite where all have -inf
        with np.errstate(divide="ignore"):
            # As np.logaddexp, in a third of the time.
            total = sum(np.exp(each - top) for each in log_probs)
            return top + np.log(total / np.float32(len(log_probs)))


def best_of_mean(logits: Sequence[NDArray[np.float32]], k: int, banned_ids: Sequence[int]) -> Candidates:
    """The k best tokens of the mean of the probabilities of several models, and their log-probabilities."""
    total = softmax(logits[0])
    for each in logits[1:]:
        total += softmax(each)
    total[:, banned_ids] = 0
    values, tokens = best_tokens(total, k)
    with np.errstate(divide="ignore"):
        return np.log(values / total.sum(axis=1, keepdims=True)), tokens
