"""Selection of the dev examples while a corpus is read, in memory that does not grow with the corpus."""

from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from glassformer.errors import CorpusError

MAX_HELD_OUT = 1000
"""Maximum number of distinct keys, and of examples, held out for validation."""
EVERY = 20
"""One of this number of keys or examples is held out."""


class HeldOut(Protocol):
    """Selects the dev examples of a corpus."""

    def add(self, hashes: NDArray[np.uint64]) -> None:
        """Add the hashes of the keys of the next examples."""

    def indices(self, path: Path) -> NDArray[np.int64]:
        """Indices of the held-out examples, ascending.

        Args:
            path: file of the corpus, for messages.

        Raises:
            CorpusError: too few examples.
        """


class SmallestHashes:
    """Holds out 5% of the distinct keys, those with the smallest hashes, at most as many as have MAX_HELD_OUT examples
    together.

    The selection does not depend on the order of the examples.
    """

    def __init__(self) -> None:
        self.n_examples = 0
        self.distinct = np.empty(0, np.uint64)
        """The smallest distinct hashes: no more than are needed to know whether MAX_HELD_OUT keys are 5% of all."""
        self.candidates = np.empty(0, np.uint64)
        """Hashes of the examples that are held out if no smaller hashes follow."""
        self.candidate_indices = np.empty(0, np.int64)

    def add(self, hashes: NDArray[np.uint64]) -> None:
        n_counted = EVERY * MAX_HELD_OUT
        new = hashes if len(self.distinct) < n_counted else hashes[hashes < self.distinct[-1]]
        if len(new):
            self.distinct = np.unique(np.concatenate([self.distinct, new]))[:n_counted]
            largest = self.distinct[:MAX_HELD_OUT][-1]
            indices = np.arange(self.n_examples, self.n_examples + len(hashes))
            candidates = np.concatenate([self.candidates, hashes])
            may_be_held_out = candidates <= largest
            self.candidates = candidates[may_be_held_out]
            self.candidate_indices = np.concatenate([self.candidate_indices, indices])[may_be_held_out]
        self.n_examples += len(hashes)

    def indices(self, path: Path) -> NDArray[np.int64]:
        if len(self.distinct) < 2:
            raise CorpusError(
                f"{path}: only one distinct example; training and validation need at least one each.\n  Give more text."
            )
        keys = self.distinct[: min(MAX_HELD_OUT, max(1, len(self.distinct) // EVERY))]
        n_examples = np.searchsorted(np.sort(self.candidates), keys, side="right")  # of each key and those before it
        n_keys = max(1, int(np.searchsorted(n_examples, MAX_HELD_OUT, side="right")))
        return self.candidate_indices[self.candidates <= keys[n_keys - 1]]


class LastExamples:
    """Holds out the last 5% of the examples, at most MAX_HELD_OUT, for documents: context from both sides of a held-out
    part would be in training. A document that is repeated before this part is in training too; to find it, the hashes
    of all documents would have to be kept."""

    def __init__(self) -> None:
        self.n_examples = 0

    def add(self, hashes: NDArray[np.uint64]) -> None:
        self.n_examples += len(hashes)

    def indices(self, path: Path) -> NDArray[np.int64]:
        if self.n_examples < 2:
            raise CorpusError(
                f"{path}: too short to hold out a dev set.\n  Give a longer text, or a dev set: --dev FILE."
            )
        n_dev = min(MAX_HELD_OUT, max(1, self.n_examples // EVERY))
        return np.arange(self.n_examples - n_dev, self.n_examples)
