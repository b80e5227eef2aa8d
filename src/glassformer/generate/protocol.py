"""The protocol of models that generate text. Arrays are NumPy's: `glassformer.generate` needs no tensor library."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from glassformer.generate.scores import best_log_probs

Ints = NDArray[np.signedinteger[Any]]

Candidates = tuple[NDArray[np.float32], NDArray[np.int64]]
"""Log-probabilities and ids of the most probable next tokens of each hypothesis, best first: [rows, k]."""

PAD_TO_MULTIPLE_OF = 8
"""Number of tokens to a multiple of which sources are padded, by models that pad. Only sources of one padded length are
decoded together, so that the result does not depend on the other sentences of the batch."""


@runtime_checkable
class State(Protocol):
    """Decoder state of the hypotheses of a batch."""

    def select(self, rows: Ints, sentences: Ints | None = None) -> None:
        """Reorder: row i becomes the former row `rows[i]`; rows may repeat. Keep only `sentences` (None: all)."""


@runtime_checkable
class Joinable(State, Protocol):
    """Decoder state of a model that joins sources of any length."""

    def join(self, other: Any) -> None:
        """Add the hypotheses of another state of the model, after the own ones. The other state is empty then."""


@runtime_checkable
class Decodable(Protocol):
    """A model that generates text token by token from source sequences or prompts."""

    @property
    def config(self) -> Any:
        """Configuration, from which the memory of a request is estimated."""

    @property
    def vocab_size(self) -> int:
        """Number of tokens of the vocabulary."""

    @property
    def pad_to_multiple_of(self) -> int:
        """Sources that begin together are padded to the same length, a multiple of this."""

    @property
    def cache_bytes(self) -> int:
        """Memory for each key and value, with the copy that is made while a cache grows."""

    @property
    def joins(self) -> bool:
        """One step computes several states, sources of any length begin together, and `restrict` has an effect."""

    def start(self, sources: Sequence[Sequence[int]], n_hypotheses: int = 1) -> tuple[State, Ints]:
        """Encode the sources and create the decoder state for `n_hypotheses` adjacent hypotheses of each.

        Args:
            sources: token ids without padding.

        Returns:
            The state, and the first input token of each hypothesis.
        """

    def next_tokens(
        self, steps: Sequence[tuple[Ints, Any]], k: int, banned_ids: Sequence[int] = ()
    ) -> list[Candidates]:
        """The k most probable next tokens of the hypotheses of each state. Updates the states.

        Args:
            steps: last token of each hypothesis, and the decoder state.
            banned_ids: ids of tokens with probability 0.
        """

    def logits(self, ids: Ints, state: Any) -> NDArray[np.float32]:
        """Logits of the next token, given the last token of each hypothesis: [rows, vocab]. Updates the state."""

    def restrict(self, state: Any, tokens: Sequence[NDArray[np.int32] | None]) -> None:
        """Restrict `next_tokens` to a shortlist of tokens.

        Args:
            tokens: for each sentence of the state, the tokens that may follow, ascending; None: all.
        """


class ComputesLogits(ABC):
    """Base class of models that compute all logits in each step: `next_tokens` selects among them."""

    pad_to_multiple_of: int = 1
    cache_bytes: int = 12
    """fp32, and a copy while a cache grows or is reordered; keys and values of cross-attention."""
    joins: bool = False

    @abstractmethod
    def logits(self, ids: Ints, state: Any) -> NDArray[np.float32]:
        """See `Decodable`."""

    def next_tokens(
        self, steps: Sequence[tuple[Ints, Any]], k: int, banned_ids: Sequence[int] = ()
    ) -> list[Candidates]:
        """See `Decodable`."""
        candidates = []
        for ids, state in steps:
            scores = self.logits(ids, state)
            scores[:, list(banned_ids)] = -np.inf
            candidates.append(best_log_probs(scores, k))
        return candidates

    def restrict(self, state: Any, tokens: Sequence[NDArray[np.int32] | None]) -> None:
        """See `Decodable`. Models that compute all logits use no shortlist."""
        raise ValueError("a shortlist is given to a model that computes all logits")
