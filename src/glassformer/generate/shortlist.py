"""Vocabulary shortlist: the few tokens that the translation of a source may need, learned from parallel text.

With it, the output layer computes the logits of some hundred tokens and not of the whole vocabulary. For each token of
the source, the tokens with the highest probabilities p(target token | source token) of IBM Model 1 are on the list; and
the most frequent target tokens, and the tokens of the source, for words that are copied.
Sources: Brown et al. 1993, section 4.1 (Model 1); Jean et al. 2015, section 3.2 (lists by source word).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.errors import CheckpointError
from glassformer.manifest import COPY_AGAIN

Ints = NDArray[np.int32]
Pair = tuple[Sequence[int], Sequence[int]]
"""Token ids of a source and of its translation, without the end-of-sentence token."""

FILE = "shortlist.safetensors"

N_FREQUENT = 500
"""Number of the most frequent target tokens, which are on every list."""

N_PER_TOKEN = 100
"""Maximum number of target tokens for each source token."""

MIN_PROBABILITY = 1e-4
"""Target tokens that are less probable are not on the list of the source token."""

N_ITERATIONS = 5
"""Iterations of expectation maximization."""

MAX_LINKS = 4_000_000
"""Number of pairs of a source and a target token of the same line that are processed together, in memory of about
100 bytes each."""

MIN_COUNT = 0.01
"""Pairs whose expected count among `MAX_LINKS` is lower are dropped."""


class Shortlist:
    """Target tokens by source token."""

    def __init__(self, frequent: Ints, begins: Ints, targets: Ints) -> None:
        """
        Args:
            frequent: tokens that are on every list.
            begins: for each token of the vocabulary, where its part of `targets` begins; then the length of `targets`.
            targets: target tokens.
        """
        self.frequent, self.begins, self.targets = frequent, begins, targets

    @classmethod
    def learn(
        cls, pairs: Iterable[Pair], vocab_size: int, eos_id: int, progress: Callable[[int], None] = lambda n: None
    ) -> "Shortlist":
        """Learn from parallel text.

        Args:
            eos_id: the end-of-sentence token, which is on every list.
            progress: called with the number of pairs processed since the last call.
        """
        frequency = np.zeros(vocab_size, np.int64)
        keys = np.empty(0, np.int64)
        counts: NDArray[np.float64] = np.empty(0)
        for part in parts_of(pairs):
            np.add.at(frequency, np.concatenate([target for _, target in part]), 1)
            added = expected_counts(part, vocab_size)
            keys, index = np.unique(np.concatenate([keys, added[0]]), return_inverse=True)
            counts = np.bincount(index, np.concatenate([counts, added[1]])).astype(np.float64)
            progress(len(part))
        sources, targets = np.divmod(keys, vocab_size)
        order = np.lexsort((-counts, sources))
        sources, targets, counts = sources[order], targets[order], counts[order]
        probability = counts / np.bincount(sources, counts, vocab_size + 1)[sources]
        rank = np.arange(len(sources)) - np.searchsorted(sources, sources)
        kept = (rank < N_PER_TOKEN) & (probability >= MIN_PROBABILITY) & (sources < vocab_size)
        begins = np.searchsorted(sources[kept], np.arange(vocab_size + 1)).astype(np.int32)
        most = np.argsort(-frequency, kind="stable")[:N_FREQUENT]
        frequent = np.union1d(most[frequency[most] > 0], [eos_id]).astype(np.int32)
        return cls(frequent, begins, targets[kept].astype(np.int32))

    def tokens(self, source: Sequence[int], excluded: Sequence[int] = ()) -> Ints | None:
        """The tokens that the translation of a source may need, ascending. None: all of the vocabulary, because nothing
        was learned of a token of the source.

        Args:
            source: token ids, including the end-of-sentence token.
            excluded: tokens that are left out.
        """
        is_listed = np.zeros(len(self.begins) - 1, bool)
        is_listed[self.frequent] = True
        for token in source[:-1]:
            begin, end = self.begins[token], self.begins[token + 1]
            if begin == end:
                return None
            is_listed[token] = True
            is_listed[self.targets[begin:end]] = True
        is_listed[list(excluded)] = False
        return np.flatnonzero(is_listed).astype(np.int32)

    def to_tensors(self) -> dict[str, Ints]:
        """Contents of the file in a model folder."""
        return {"frequent": self.frequent, "begins": self.begins, "targets": self.targets}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, NDArray[Any]], vocab_size: int) -> "Shortlist":
        """The shortlist of a file.

        Raises:
            CheckpointError: the file is damaged, or of another vocabulary.
        """
        names = ("frequent", "begins", "targets")
        if set(tensors) != set(names) or any(t.dtype != np.int32 or t.ndim != 1 for t in tensors.values()):
            raise CheckpointError(f"{FILE}: damaged.{COPY_AGAIN}")
        frequent, begins, targets = (tensors[name] for name in names)
        tokens = np.concatenate([frequent, targets])
        if (
            len(begins) != vocab_size + 1 or begins[0] != 0 or begins[-1] != len(targets) or (np.diff(begins) < 0).any()
            or not len(frequent) or tokens.min() < 0 or tokens.max() >= vocab_size
        ):  # fmt: skip
            raise CheckpointError(
                f"{FILE}: damaged, or of another vocabulary.\n"
                "  Make it again: glassformer shortlist MODEL --src FILE --ref FILE"
            )
        return cls(frequent, begins, targets)


def parts_of(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    """Parts of a corpus with at most `MAX_LINKS` links, or one pair; without pairs of which a side is empty."""
    part: list[Pair] = []
    n_links = 0
    for source, target in pairs:
        if not source or not target:
            continue
        n = (len(source) + 1) * len(target)
        if part and n_links + n > MAX_LINKS:
            yield part
            part, n_links = [], 0
        part.append((source, target))
        n_links += n
    if part:
        yield part


def expected_counts(pairs: Sequence[Pair], vocab_size: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Expected counts of links between tokens by IBM Model 1. Source token number `vocab_size` is the empty word.

    Returns:
        source token x vocab_size + target token, ascending; and the count.
    """
    links: list[NDArray[np.int64]] = []
    sizes: list[NDArray[np.int64]] = []
    for source, target in pairs:
        s, t = np.array([*set(source), vocab_size]), np.array(list(set(target)))
        links.append((s * vocab_size + t[:, None]).ravel())
        sizes.append(np.full(len(t), len(s)))
    keys, index = np.unique(np.concatenate(links), return_inverse=True)
    n_sources = np.concatenate(sizes)  # of each target token of each line
    begins = np.cumsum(n_sources) - n_sources
    sources = keys // vocab_size
    probability = counts = np.ones(len(keys))
    for _ in range(N_ITERATIONS):
        weights = probability[index]
        weights /= np.repeat(np.add.reduceat(weights, begins), n_sources)
        counts = np.bincount(index, weights, len(keys)).astype(np.float64)
        probability = counts / np.bincount(sources, counts)[sources]
    kept = counts >= MIN_COUNT
    return keys[kept], counts[kept]
