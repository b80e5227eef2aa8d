"""A decoder in int8 or fp32 on a CPU: the model's encoder and decoding step, recorded as programs."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from glassformer.generate import protocol
from glassformer.kernels.library import Kernels
from glassformer.kernels.program import IDS, Array, Batch, Kind, Shortlist
from glassformer.models.base import Model
from glassformer.models.decoding import TransformerState
from glassformer.runtime.program import Program
from glassformer.runtime.recorder import Cached, Index, Node, PaddingMask, Recorder, UnsupportedError
from glassformer.runtime.slots import Ints, SlotCaches
from glassformer.runtime.tables import Tables

MAX_ROWS = 512
"""Maximum number of tokens of sources or prompts that are processed together, or one text."""

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
        self.used: list[tuple[Ints, Ints]] = []
        """Slots taken from `targets`, and the sentences that they belong to."""
        self.shortlists: list[Shortlist] = []
        self.shortlist = np.full(len(source_slots), -1, np.int32)
        """Of each sentence, the tokens that may follow, as an index of `shortlists`; -1: all."""
        self.set_sources()

    def __del__(self) -> None:
        self.targets.release([slots for slots, _ in self.used])
        self.sources.release(self.source_slots)

    def set_sources(self) -> None:
        """Compute the list of the sources' slots."""
        self.source_list = np.concatenate([*self.source_slots, NONE])
        self.source_lengths = np.array([len(slots) for slots in self.source_slots], np.int32)
        self.source_begins = (np.cumsum(self.source_lengths) - self.source_lengths).astype(np.int32)

    def append(self) -> Ints:
        """Take a slot for the next token of each hypothesis. Returns the slots."""
        slots = self.targets.take(len(self.sentence))
        self.used.append((slots, self.sentence))
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

    def select(self, rows: protocol.Ints, sentences: protocol.Ints | None = None) -> None:
        """Reorder: row i becomes the former row `rows[i]`; rows may repeat. Keep only `sentences` (None: all)."""
        self.slots, self.positions, self.sentence = self.slots[rows], self.positions[rows], self.sentence[rows]
        if sentences is None:
            return
        kept = sentences
        number = np.full(len(self.source_slots), -1, np.int32)
        number[kept] = np.arange(len(kept))
        self.sources.release([slots for i, slots in enumerate(self.source_slots) if number[i] < 0])
        self.targets.release([slots[number[owner] < 0] for slots, owner in self.used])
        self.used = [(slots[number[owner] >= 0], number[owner[number[owner] >= 0]]) for slots, owner in self.used]
        self.used = [pair for pair in self.used if len(pair[0])]
        self.source_slots = [self.source_slots[i] for i in kept]
        self.sentence, self.shortlist = number[self.sentence], self.shortlist[kept]
        self.set_sources()


class CompiledDecoder:
    """A model that generates text, as programs of kernels. It has the methods of `Decodable`.

    Args:
        model: the model.
        kernels: the C library. None: PyTorch, with the same quantization.
        tables: the tables of the programs. Default: computed from the weights.
        is_quantized: False: fp32, with the model's own weights.

    Raises:
        UnsupportedError: the model uses a function that has no kernel.
    """

    def __init__(
        self, model: Model, kernels: Kernels | None, tables: Tables | None = None, *, is_quantized: bool = True
    ) -> None:
        self.pad_to_multiple_of: int = model.pad_to_multiple_of  # type: ignore[assignment]
        self.config = model.config
        self.vocab_size: int = model.config.vocab_size
        with torch.inference_mode():
            encode, step, n_layers = record(model)
        self.tables = tables or Tables()
        self.encode = Program(encode, kernels, self.tables, is_quantized=is_quantized) if encode else None
        self.decode = Program(step, kernels, self.tables, is_quantized=is_quantized)
        self.n_layers = n_layers
        # All decoder states take their slots from the same caches, so that one step can process several.
        self.targets = SlotCaches(self.decode.cache_widths[:n_layers], self.decode.cache_dtype)
        self.sources = SlotCaches(self.encode.cache_widths if self.encode else [], self.decode.cache_dtype)
        self.cache_bytes = 2 * np.dtype(self.decode.cache_dtype).itemsize
        self.joins = True
        self.lock = threading.RLock()
        """The caches are changed by one call at a time."""
        self.all_caches: Sequence[tuple[Array, Array]] = ()
        self.memory: tuple[Sequence[tuple[Array, Array]], Sequence[tuple[Array, Array]]] = (), ()
        """The arrays of which `all_caches` consists."""

    @torch.inference_mode()
    def start(self, sources: Sequence[Sequence[int]], n_hypotheses: int = 1) -> tuple[SlotState, protocol.Ints]:
        """See `Decodable`."""
        texts = [np.array(ids, np.int32) for ids in sources]
        if self.encode is None:
            prompts = [text[:-1] for text in texts]
            slots = self.process(self.decode, prompts, self.targets)
            state = SlotState(self.targets, self.sources, [NONE[:0]] * len(texts), n_hypotheses)
            lengths = np.array([len(prompt) for prompt in prompts], np.int32)
            state.positions = np.repeat(lengths, n_hypotheses)
            width = int(lengths.max()) + 16
            state.slots = np.repeat(np.stack([np.pad(s, (0, width - len(s))) for s in slots]), n_hypotheses, 0)
            state.used = [(s, np.full(len(s), i, np.int32)) for i, s in enumerate(slots)]
            return state, np.repeat([text[-1] for text in texts], n_hypotheses)
        slots = self.process(self.encode, texts, self.sources, is_causal=False)
        last = np.full(len(texts) * n_hypotheses, self.config.bos_id)
        return SlotState(self.targets, self.sources, slots, n_hypotheses), last

    def restrict(self, state: SlotState, tokens: Sequence[Ints | None]) -> None:
        """Restrict `next_tokens` to a shortlist of tokens.

        Args:
            tokens: for each sentence of the state, the tokens that may follow, ascending; None: all.
        """
        state.shortlists = [self.decode.shortlist(ids) for ids in tokens if ids is not None]
        is_restricted = np.array([ids is not None for ids in tokens])
        state.shortlist = np.where(is_restricted, np.cumsum(is_restricted) - 1, -1).astype(np.int32)

    def process(
        self, program: Program, texts: Sequence[Ints], caches: SlotCaches, is_causal: bool = True
    ) -> list[Ints]:
        """Compute the keys and values of texts. Returns the slots of each."""
        with self.lock:
            slots = [caches.take(len(text)) for text in texts]
            first = 0
            while first < len(texts):
                last, n_rows = first + 1, len(texts[first])
                while last < len(texts) and n_rows + len(texts[last]) <= MAX_ROWS:
                    n_rows += len(texts[last])
                    last += 1
                if n_rows:
                    program.store(text_batch(texts[first:last], slots[first:last], is_causal), caches.arrays)
                first = last
            return slots

    def score(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], source_of: Sequence[int]
    ) -> list[list[float]]:
        """Natural log-probabilities of the tokens of targets, of an encoder-decoder.

        Args:
            sources: token ids, including the end-of-sentence token.
            targets: token ids, including the end-of-sentence token.
            source_of: index of the source of each target.
        """
        assert self.encode is not None
        results: list[list[float]] = []
        with self.lock:
            slots = self.process(self.encode, [np.array(ids, np.int32) for ids in sources], self.sources, False)
            lengths = np.array([len(ids) for ids in slots], np.int32)
            begins = (np.cumsum(lengths) - lengths).astype(np.int32)
            flat = np.concatenate([*slots, NONE])
            while len(results) < len(targets):
                last, n_rows = len(results) + 1, len(targets[len(results)])
                while last < len(targets) and n_rows + len(targets[last]) <= MAX_ROWS:
                    n_rows += len(targets[last])
                    last += 1
                ids = [np.array(target, np.int32) for target in targets[len(results) : last]]
                owners = np.repeat(source_of[len(results) : last], [len(target) for target in ids])
                taken = [self.targets.take(len(target)) for target in ids]
                inputs = [np.concatenate([[self.config.bos_id], target[:-1]]).astype(np.int32) for target in ids]
                rows = text_batch(inputs, taken, is_causal=True)
                batch = replace(
                    rows, lists=(rows.lists[0], flat), begins=(rows.begins[0], begins[owners]),
                    lengths=(rows.lengths[0], lengths[owners]),
                )  # fmt: skip
                logits = self.decode.run(batch, self.caches)
                chosen = torch.from_numpy(np.concatenate(ids)).long()[:, None]
                log_probs = logits.log_softmax(-1).gather(1, chosen)[:, 0]
                results += [part.tolist() for part in log_probs.split([len(target) for target in ids])]  # type: ignore[no-untyped-call]
                self.targets.release(taken)
            self.sources.release(slots)
        return results

    @property
    def caches(self) -> Sequence[tuple[Array, Array]]:
        """The caches of the decoding step: of self-attention, then of cross-attention, in the order of the layers. The
        same object as long as the caches have the same memory."""
        memory = self.targets.arrays, self.sources.arrays
        if self.memory[0] is not memory[0] or self.memory[1] is not memory[1]:
            self.memory, self.all_caches = memory, [*memory[0], *memory[1][1:]]
        return self.all_caches

    @torch.inference_mode()
    def logits(self, ids: protocol.Ints, state: SlotState) -> NDArray[np.float32]:
        """See `Decodable`."""
        with self.lock:
            return self.decode.run(state.batch(ids.astype(np.int32)), self.caches).numpy()

    @torch.inference_mode()
    def next_tokens(
        self, steps: Sequence[tuple[protocol.Ints, SlotState]], k: int, banned_ids: Sequence[int] = ()
    ) -> list[protocol.Candidates]:
        """See `Decodable`."""
        with self.lock:
            batches = [state.batch(ids.astype(np.int32)) for ids, state in steps]
            log_probs, tokens = self.decode.best(joined(batches), self.caches, k, tuple(banned_ids))
        if len(batches) == 1:
            return [(log_probs, tokens.astype(np.int64))]
        ends = np.cumsum([len(batch) for batch in batches])[:-1]
        return list(zip(np.split(log_probs, ends), np.split(tokens.astype(np.int64), ends), strict=True))


def joined(batches: Sequence[Batch]) -> Batch:
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
        joined_shortlist(batches) if shortlists else None,
    )


def joined_shortlist(batches: Sequence[Batch]) -> Ints:
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


def record(model: Any) -> tuple[list[Node], list[Node], int]:
    """Record a model that generates text. Returns the nodes of the encoder (none: a decoder-only model), those of a
    decoding step, and the number of decoder layers.

    Caches of the encoder: 0 that of its self-attention, which the layers share; 1 to n_layers those of cross-attention.
    Caches of the step: those of self-attention, then those of cross-attention.
    """
    n_positions = model.config.max_len + 1
    token = next(i for i in range(model.config.vocab_size) if i != model.config.pad_id)
    src = torch.full((1, 5 if model.kind == "encoder-decoder" else 1), token)
    encoder = Recorder(n_positions)
    encoder.track(src, Index(IDS))
    with encoder:
        state, last = model.start(src)
    if not isinstance(state, TransformerState):
        raise UnsupportedError(f"the decoder state {type(state).__name__} has no kernel")
    step = Recorder(n_positions, state.caches)
    n_layers = len(state.caches)
    for i, pair in enumerate(state.cross_keys_values):
        if pair is not None:
            k, v = map(encoder.value, pair)
            encoder.add(Kind.STORE, k.width, k, v, m=pair[0].size(-1), cache=1 + i)
            for tensor in pair:
                step.track(tensor, Cached(n_layers + i, 1))
    if state.cross_mask is not None:
        step.track(state.cross_mask, PaddingMask)
    step.track(last, Index(IDS))
    with step:
        model.step(last, state)
    if not step.nodes or step.nodes[-1].kind != Kind.PRODUCT:
        raise UnsupportedError("the logits are not the output of a linear layer")
    return encoder.nodes, step.nodes, n_layers


def verify(model: Any) -> None:
    """Check that a recorded model computes what the model computes.

    Raises:
        UnsupportedError: it does not.
    """
    recorded = CompiledDecoder(model, None, is_quantized=False)
    generator = torch.Generator().manual_seed(1)
    src = torch.randint(model.config.vocab_size, (2, 7), generator=generator)
    src[src == model.config.pad_id] = (model.config.pad_id + 1) % model.config.vocab_size
    if model.kind == "encoder-decoder":
        src[1, 4:] = model.config.pad_id
    sources = [row[row != model.config.pad_id].tolist() for row in src]
    with torch.inference_mode():
        (state, _), (expected_state, last) = recorded.start(sources), model.start(src)
        for _ in range(3):
            logits, expected = recorded.logits(last.numpy(), state), model.step(last, expected_state).float()
            tolerance = 1e-4 * float(expected.abs().max())
            if not torch.allclose(torch.from_numpy(logits), expected, atol=tolerance, rtol=0):
                raise UnsupportedError("the recorded program computes other logits than the model")
            last = torch.randint(model.config.vocab_size, last.shape, generator=generator)
