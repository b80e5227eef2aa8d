"""The state of hypotheses that are being decoded, and the rows of a step."""

from collections.abc import Sequence

import numpy as np

from glassformer.kernels.program import Batch, Columns
from glassformer.runtime.slots import Indices, Ints, SlotCaches

NONE = np.zeros(1, np.int32)


class SlotState:
    """Decoder state in which every hypothesis has its own position and its own list of cache slots.

    Hypotheses are reordered by reordering their lists; keys and values are not copied.
    """

    def __init__(self, targets: SlotCaches, sources: SlotCaches, source_slots: list[Ints], n_hypotheses: int) -> None:
        """
        Args:
            targets: caches of self-attention.
            sources: caches of cross-attention.
            source_slots: slots of each source.
            n_hypotheses: number of adjacent hypotheses of each source.
        """
        self.targets, self.sources = targets, sources
        self.source_slots = source_slots
        self.sentence = np.repeat(np.arange(len(source_slots), dtype=np.int32), n_hypotheses)
        """Sentence of each hypothesis, as an index of `source_slots`."""
        self.positions = np.zeros(len(self.sentence), np.int32)
        """Number of tokens that are in the cache, for each hypothesis."""
        self.slots = np.zeros((len(self.sentence), 16), np.int32)
        """Slots of the tokens of each hypothesis."""
        self.used, self.owner = NONE[:0], NONE[:0]
        """Slots taken from `targets`, and the sentence of each."""
        self.shortlists: list[Columns] = []
        self.shortlist = np.full(len(source_slots), -1, np.int32)
        """Of each sentence, the tokens that may follow, as an index of `shortlists`; -1: all."""
        self.set_sources()

    def __del__(self) -> None:
        self.targets.release([self.used])
        self.sources.release(self.source_slots)

    def set_sources(self) -> None:
        """Compute the list of the sources' slots."""
        self.source_list = np.concatenate([*self.source_slots, NONE])
        self.source_lengths = np.array([len(slots) for slots in self.source_slots], np.int32)
        self.source_begins = (np.cumsum(self.source_lengths) - self.source_lengths).astype(np.int32)

    def use(self, slots: Ints, owner: Ints) -> None:
        """Add slots of `targets` that sentences use."""
        self.used, self.owner = np.concatenate([self.used, slots]), np.concatenate([self.owner, owner])

    def append(self) -> Ints:
        """Take a slot for the next token of each hypothesis. Returns the slots."""
        slots = self.targets.take(len(self.sentence))
        self.use(slots, self.sentence)
        if (longest := int(self.positions.max()) + 1) > self.slots.shape[1]:
            self.slots = np.pad(self.slots, ((0, 0), (0, longest)))
        self.slots[np.arange(len(slots)), self.positions] = slots
        self.positions = self.positions + np.int32(1)
        return slots

    def batch(self, ids: Ints) -> Batch:
        """The rows of a decoding step: the last token of each hypothesis."""
        slots, n = self.append(), len(ids)
        begins = np.arange(n, dtype=np.int32) * np.int32(self.slots.shape[1])
        return Batch(
            ids, self.positions - np.int32(1), np.zeros_like(ids), slots, (self.slots.ravel(), self.source_list),
            (begins, self.source_begins[self.sentence]), (self.positions, self.source_lengths[self.sentence]),
            self.shortlists, self.shortlist[self.sentence] if self.shortlists else None,
        )  # fmt: skip

    def select(self, rows: Indices, sentences: Indices | None = None) -> None:
        """Reorder: row i becomes the former row `rows[i]`; rows may repeat. Keep only `sentences` (None: all)."""
        self.slots, self.positions, self.sentence = self.slots[rows], self.positions[rows], self.sentence[rows]
        if sentences is None:
            return
        number = np.full(len(self.source_slots), -1, np.int32)
        number[sentences] = np.arange(len(sentences))
        self.sources.release([slots for i, slots in enumerate(self.source_slots) if number[i] < 0])
        owner = number[self.owner]
        self.targets.release([self.used[owner < 0]])
        self.used, self.owner = self.used[owner >= 0], owner[owner >= 0]
        self.source_slots = [self.source_slots[i] for i in sentences]
        self.sentence, self.shortlist = number[self.sentence], self.shortlist[sentences]
        if self.shortlists:
            used, index = np.unique(self.shortlist, return_inverse=True)
            self.shortlists = [self.shortlists[i] for i in used if i >= 0]
            self.shortlist = (index - np.count_nonzero(used < 0)).astype(np.int32)
        self.set_sources()

    def join(self, other: "SlotState") -> None:
        """Add the hypotheses of another state of the same caches, after the own ones. The other state is empty then."""
        width = max(self.slots.shape[1], other.slots.shape[1])
        self.slots = np.concatenate([np.pad(x.slots, ((0, 0), (0, width - x.slots.shape[1]))) for x in (self, other)])
        n = np.int32(len(self.source_slots))
        self.use(other.used, other.owner + n)
        self.sentence = np.concatenate([self.sentence, other.sentence + n])
        self.positions = np.concatenate([self.positions, other.positions])
        joined = np.where(other.shortlist < 0, np.int32(-1), other.shortlist + np.int32(len(self.shortlists)))
        self.shortlist = np.concatenate([self.shortlist, joined])
        self.shortlists = [*self.shortlists, *other.shortlists]
        self.source_slots = [*self.source_slots, *other.source_slots]
        self.set_sources()
        other.used, other.source_slots = NONE[:0], []


def concatenated(batches: Sequence[Batch]) -> Batch:
    """The rows of several batches as one batch."""
    if len(batches) == 1:
        return batches[0]
    lists, begins = [], []
    for side in (0, 1):
        sizes = [len(batch.lists[side]) for batch in batches]
        parts = zip(batches, np.cumsum([0, *sizes[:-1]], dtype=np.int32), strict=True)
        lists.append(np.concatenate([batch.lists[side] for batch in batches]))
        begins.append(np.concatenate([batch.begins[side] + offset for batch, offset in parts]))
    ids, positions, types, slots = (
        np.concatenate([getattr(batch, name) for batch in batches]) for name in ("ids", "positions", "types", "slots")
    )
    lengths = [np.concatenate([batch.lengths[side] for batch in batches]) for side in (0, 1)]
    shortlists = [shortlist for batch in batches for shortlist in batch.shortlists]
    return Batch(
        ids,
        positions,
        types,
        slots,
        (lists[0], lists[1]),
        (begins[0], begins[1]),
        (lengths[0], lengths[1]),
        shortlists,
        concatenated_shortlist(batches) if shortlists else None,
    )


def concatenated_shortlist(batches: Sequence[Batch]) -> Ints:
    """`Batch.shortlist` of several batches as one batch."""
    parts, n = [], 0
    for batch in batches:
        index = np.full(len(batch), -1, np.int32) if batch.shortlist is None else batch.shortlist
        parts.append(np.where(index < 0, np.int32(-1), index + np.int32(n)))
        n += len(batch.shortlists)
    return np.concatenate(parts)


def text_batch(texts: Sequence[Ints], slots: Sequence[Ints], is_causal: bool) -> Batch:
    """The rows of whole texts: a token attends to its text, or if causal to the tokens up to itself."""
    lengths = np.array([len(text) for text in texts], np.int32)
    positions = np.concatenate([np.arange(n, dtype=np.int32) for n in lengths])
    ids, flat = np.concatenate(texts), np.concatenate(slots)
    begins = np.repeat((np.cumsum(lengths) - lengths).astype(np.int32), lengths)
    attended = positions + np.int32(1) if is_causal else np.repeat(lengths, lengths)
    return Batch(ids, positions, np.zeros_like(ids), flat, (flat, flat), (begins, begins), (attended, attended))
