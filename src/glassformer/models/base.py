"""What search and objectives ask of a model. They know no model class."""

from typing import Any, Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

LENGTH_STEP = 8
"""Sources are padded to a multiple of this: a function of the sentence alone, so neighbours change no bit of it."""


@runtime_checkable
class State(Protocol):
    """What a model remembers of hypotheses that are being decoded."""

    def select(self, rows: Int[Tensor, " rows"], sentences: Int[Tensor, " sentences"] | None = None) -> None:
        """Keep these hypotheses, in this order, and of the sentences only these (None: all)."""


@runtime_checkable
class Decodable(Protocol):
    """A model that reads sources and then says one token after the other."""

    def start(self, src: Int[Tensor, "sentences src"], n_hypotheses: int = 1) -> State:
        """Read the sources; get ready for `n_hypotheses` of each, side by side."""

    def step(self, ids: Int[Tensor, " rows"], state: Any) -> Float[Tensor, "rows vocab"]:
        """Logits of what follows, given the last token of each hypothesis."""
