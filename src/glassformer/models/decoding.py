"""The protocols that decoding requires of a model, and the decoder state of Transformers."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from glassformer.nn.attention import KeyValueCache
from glassformer.nn.block import KeysValues

PAD_TO_MULTIPLE_OF = 8
"""Sources are padded to a multiple of this number of tokens. Only sources of one padded length are decoded together, so
that the result does not depend on the other sentences of the batch."""


@runtime_checkable
class DecoderState(Protocol):
    """Decoder state of the hypotheses of a batch."""

    def select(self, rows: Int[Tensor, " rows"], sentences: Int[Tensor, " sentences"] | None = None) -> None:
        """Reorder: row i becomes the former row `rows[i]`; rows may repeat. Keep only `sentences` (None: all)."""


@runtime_checkable
class Decodable(Protocol):
    """A model that generates text token by token from source sequences or prompts."""

    @property
    def pad_to_multiple_of(self) -> int:
        """All sources of a batch are padded to the same length, a multiple of this."""

    def start(
        self, src: Int[Tensor, "sentences src"], n_hypotheses: int = 1
    ) -> tuple[DecoderState, Int[Tensor, " rows"]]:
        """Encode the sources and create the decoder state for `n_hypotheses` adjacent hypotheses of each.

        Returns:
            The state, and the first input token of each hypothesis.
        """

    def step(self, ids: Int[Tensor, " rows"], state: Any) -> Float[Tensor, "rows vocab"]:
        """Logits of the next token, given the last token of each hypothesis. Updates the state."""


@runtime_checkable
class DecodesBest(Protocol):
    """A `Decodable` that can compute the most probable next tokens without all logits."""

    vocab_size: int

    def best(
        self, ids: Int[Tensor, " rows"], state: Any, k: int, banned_ids: Sequence[int] = ()
    ) -> tuple[Float[Tensor, "rows k"], Int[Tensor, "rows k"]]:
        """Log-probabilities and ids of the k most probable next tokens, best first. Updates the state.

        Args:
            banned_ids: ids of tokens with probability 0.
        """


@runtime_checkable
class DecodesTogether(DecodesBest, Protocol):
    """A `DecodesBest` of which one step can process the hypotheses of several decoder states."""

    cache_bytes: int
    """Memory for each key and value, with the copy that is made while a cache grows."""

    def best_together(
        self, steps: Sequence[tuple[Int[Tensor, " rows"], Any]], k: int, banned_ids: Sequence[int] = ()
    ) -> list[tuple[NDArray[np.float32], NDArray[np.int64]]]:
        """As `best`, for several states.

        Args:
            steps: last token of each hypothesis, and the decoder state.
        """

    def restrict(self, state: Any, tokens: Sequence[NDArray[np.int32] | None]) -> None:
        """Restrict `best` to a shortlist of tokens.

        Args:
            tokens: for each sentence of the state, the tokens that may follow, ascending; None: all.
        """


class TransformerState:
    """Decoder state of Transformers: cross-attention keys and values per sentence, self-attention cache per row."""

    def __init__(
        self,
        n_layers: int,
        cross_keys_values: list[KeysValues] | None = None,
        cross_mask: Bool[Tensor, "batch 1 1 src"] | None = None,
    ) -> None:
        """
        Args:
            n_layers: number of decoder layers.
            cross_keys_values: keys and values of the encoder output, for each layer. None: a decoder-only model.
            cross_mask: True where cross-attention may attend.
        """
        self.caches = [KeyValueCache() for _ in range(n_layers)]
        self.cross_keys_values: list[KeysValues] | list[None] = cross_keys_values or [None] * n_layers
        self.cross_mask = cross_mask

    @property
    def length(self) -> int:
        """Number of positions decoded so far."""
        return self.caches[0].length

    def select(self, rows: Int[Tensor, " rows"], sentences: Int[Tensor, " sentences"] | None = None) -> None:
        """Reorder: row i becomes the former row `rows[i]`; rows may repeat. Keep only `sentences` (None: all)."""
        for cache in self.caches:
            cache.select(rows)
        if sentences is not None and self.cross_mask is not None:
            self.cross_keys_values = [(k[sentences], v[sentences]) for k, v in self.cross_keys_values]  # type: ignore[misc]
            self.cross_mask = self.cross_mask[sentences]
