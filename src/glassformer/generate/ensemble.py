"""Several models that generate a text together: each next token has the mean of its probabilities."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from glassformer.generate.protocol import ComputesLogits, Decodable, Ints, State
from glassformer.generate.scores import log_softmax


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

    def logits(self, ids: Ints, state: EnsembleState) -> NDArray[np.float32]:
        """Logarithms of the mean probabilities, with which the softmax gives these: [rows, vocab]."""
        log_probs = [log_softmax(model.logits(ids, own)) for model, own in zip(self.models, state.states, strict=True)]
        top = np.maximum.reduce(log_probs).clip(min=np.finfo(np.float32).min)  # finite where all have -inf
        with np.errstate(divide="ignore"):
            # As np.logaddexp, in a third of the time.
            total = sum(np.exp(each - top) for each in log_probs)
            return top + np.log(total / np.float32(len(log_probs)))
