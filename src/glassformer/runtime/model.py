"""Models that generate text, without torch: the programs of a graph, and caches."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from glassformer.errors import NON_FINITE, CheckpointError, NonFiniteError
from glassformer.generate.scores import log_softmax
from glassformer.kernels.library import Kernels
from glassformer.kernels.program import Array, Batch
from glassformer.model_config import ModelConfig
from glassformer.runtime.cross_attention import CrossAttention
from glassformer.runtime.graph import Floats, Graph, Weights, array_of
from glassformer.runtime.program import Program, cache_widths_of
from glassformer.runtime.slots import Ints, SlotCaches
from glassformer.runtime.state import NONE, SlotState, concatenated, text_batch
from glassformer.runtime.tables import Tables
from glassformer.runtime.verify import n_entries, n_positions

MAX_ROWS = 512
"""Maximum number of tokens of sources or prompts that are processed together, or one text."""

MAX_READ = 8 * MAX_ROWS
"""Maximum number of tokens of the sources of texts that are scored together, or one source."""

MAX_LOGITS = 1 << 25
"""Maximum number of logits that are computed together for given texts: 128 MB, or one token."""


class RuntimeModel:
    """A model that generates text, as programs of kernels. It has the methods of `generate.protocol.Decodable`."""

    joins = True

    def __init__(
        self,
        graph: Graph,
        config: ModelConfig,
        kernels: Kernels | None,
        weights: Weights,
        stored: dict[str, Array] | None = None,
        *,
        is_quantized: bool = True,
    ) -> None:
        """
        Args:
            graph: its verified graph.
            config: its configuration.
            kernels: the C library. None: PyTorch, with the same quantization.
            weights: its weights by name.
            stored: the tables of a folder in int8, instead of weights.
            is_quantized: False: fp32, with the weights themselves.

        Raises:
            CheckpointError: the graph does not fit the configuration, or the tables not the graph.
        """
        check_sizes(graph, config)
        self.graph, self.config, self.vocab_size = graph, config, config.vocab_size
        self.is_quantized = is_quantized
        self.pad_to_multiple_of = 8 if "encode" in graph.programs else 1
        self.n_positions = n_positions(graph)
        self.tables = Tables(lambda table: array_of(table, weights, graph), stored)
        step = graph.programs["step"]
        source_widths = cache_widths_of([*graph.programs.get("encode", ()), *step], "source")
        self.encode: Program | None = None
        if "encode" in graph.programs:
            encode = graph.programs["encode"]
            self.encode = Program(encode, source_widths, kernels, self.tables, is_quantized=is_quantized)
        self.decode = Program(step, source_widths, kernels, self.tables, is_quantized=is_quantized)
        self.n_layers = len(self.decode.cache_widths) - len(source_widths)
        # All decoder states take their slots from the same caches, so that one step can process several.
        self.targets = SlotCaches(self.decode.cache_widths[: self.n_layers], self.decode.cache_dtype)
        self.sources = SlotCaches(self.encode.cache_widths if self.encode else [], self.decode.cache_dtype)
        self.cache_bytes = 2 * np.dtype(self.decode.cache_dtype).itemsize
        self.lock = threading.RLock()
        """The caches are changed by one call at a time."""
        self.all_caches: Sequence[tuple[Array, Array]] = ()
        self.memory: tuple[Sequence[tuple[Array, Array]], Sequence[tuple[Array, Array]]] = (), ()
        """The arrays of which `all_caches` consists."""

    def start(self, sources: Sequence[Sequence[int]], n_hypotheses: int = 1) -> tuple[SlotState, Ints]:
        """Encode the sources and create the decoder state for `n_hypotheses` adjacent hypotheses of each.

        Args:
            sources: token ids without padding.

        Returns:
            The state, and the first input token of each hypothesis.
        """
        texts = [np.array(ids, np.int32) for ids in sources]
        if self.encode is None:
            slots = self.process(self.decode, [text[:-1] for text in texts], self.targets)
            state = SlotState(self.targets, self.sources, [NONE[:0]] * len(texts), n_hypotheses)
            lengths = np.array([len(s) for s in slots], np.int32)
            state.positions = np.repeat(lengths, n_hypotheses)
            width = int(lengths.max()) + 16
            state.slots = np.repeat(np.stack([np.pad(s, (0, width - len(s))) for s in slots]), n_hypotheses, 0)
            state.use(np.concatenate(slots), np.repeat(np.arange(len(slots), dtype=np.int32), lengths))
            return state, np.repeat(np.array([text[-1] for text in texts], np.int32), n_hypotheses)
        slots = self.process(self.encode, texts, self.sources, is_causal=False)
        state = SlotState(self.targets, self.sources, slots, n_hypotheses)
        return state, np.full(len(texts) * n_hypotheses, self.config.bos_id, np.int32)

    def restrict(self, state: SlotState, tokens: Sequence[Ints | None]) -> None:
        """Restrict `next_tokens` to a shortlist of tokens.

        Args:
            tokens: for each sentence of the state, the tokens that may follow, ascending; None: all.
        """
        state.shortlists = [self.decode.columns(ids) for ids in tokens if ids is not None]
        is_restricted = np.array([ids is not None for ids in tokens])
        state.shortlist = np.where(is_restricted, np.cumsum(is_restricted) - 1, -1).astype(np.int32)

    def process(
        self, program: Program, texts: Sequence[Ints], caches: SlotCaches, is_causal: bool = True
    ) -> list[Ints]:
        """Compute the keys and values of texts. Returns the slots of each."""
        with self.lock:
            slots = [caches.take(len(text)) for text in texts]
            for part in parts_of(texts):
                if any(len(text) for text in texts[part]):
                    batch = self.checked(text_batch(texts[part], slots[part], is_causal))
                    program.store(batch, caches.arrays)
            return slots

    @cached_property
    def cross_attention(self) -> CrossAttention:
        """What source tokens contribute to target tokens."""
        return CrossAttention(self)

    def checked(self, batch: Batch) -> Batch:
        """The rows of a step, after the check that the tables have their tokens and positions: the kernels have none.

        Raises:
            ValueError: they have not.
        """
        ids, positions = batch.ids, batch.positions
        if len(ids) and (ids.min() < 0 or ids.max() >= self.vocab_size):
            raise ValueError(f"a token id that is not in the vocabulary of {self.vocab_size:,}")
        if self.n_positions is not None and len(ids) and positions.max() >= self.n_positions:
            raise ValueError(f"a text of more than {self.n_positions:,} positions")
        return batch

    @property
    def caches(self) -> Sequence[tuple[Array, Array]]:
        """The caches of the decoding step: of self-attention, then of cross-attention, in the order of the layers. The
        same object as long as the caches have the same memory."""
        memory = self.targets.arrays, self.sources.arrays
        if self.memory[0] is not memory[0] or self.memory[1] is not memory[1]:
            self.memory, self.all_caches = memory, [*memory[0], *memory[1][1:]]
        return self.all_caches

    def next_tokens(
        self, steps: Sequence[tuple[NDArray[np.integer], SlotState]], k: int, banned_ids: Sequence[int] = ()
    ) -> list[tuple[NDArray[np.float32], NDArray[np.int64]]]:
        """The k most probable next tokens of the hypotheses of several states and their log-probabilities, best first.
        Updates the states.

        Args:
            steps: last token of each hypothesis, and the decoder state.
            banned_ids: ids of tokens with probability 0.

        Raises:
            NonFiniteError: the model's outputs are not finite.
        """
        with self.lock:
            batches = [state.batch(ids.astype(np.int32)) for ids, state in steps]
            batch = self.checked(concatenated(batches))
            log_probs, tokens = self.decode.best(batch, self.caches, k, tuple(banned_ids))
        if (tokens[:, 0] >= self.vocab_size).any():  # comparisons with NaN found no token
            raise NonFiniteError(NON_FINITE)
        if len(batches) == 1:
            return [(log_probs, tokens.astype(np.int64))]
        ends = np.cumsum([len(batch) for batch in batches])[:-1]
        return list(zip(np.split(log_probs, ends), np.split(tokens.astype(np.int64), ends), strict=True))

    def logits(self, ids: NDArray[np.integer], state: SlotState) -> Floats:
        """Logits of the next token, [rows, vocab], given the last token of each hypothesis. Updates the state."""
        with self.lock:
            return self.decode.run(self.checked(state.batch(ids.astype(np.int32))), self.caches)

    def score(
        self,
        inputs: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        sources: Sequence[Sequence[int]] = (),
        source_of: Sequence[int] = (),
    ) -> list[list[float]]:
        """Natural log-probability of each target token, given the tokens up to the same position of the input.

        Args:
            inputs: token ids of each text, beginning with a start token.
            targets: token ids that follow those of the input: as many.
            sources: token ids of the sources, including the end-of-sentence token; none for a model without an encoder.
            source_of: index of the source of each text.
        """
        results: list[list[float]] = []
        n_together = max(1, MAX_LOGITS // self.vocab_size)
        for part, batch in self.batches_of(inputs, sources, source_of):
            chosen = np.concatenate([np.array(target, np.int64) for target in targets[part]])
            log_probs = np.empty(len(chosen), np.float32)
            for start in range(0, len(chosen), n_together):
                rows = slice(start, start + n_together)
                logits = self.decode.run(batch.rows(rows), self.caches)
                log_probs[rows] = log_softmax(logits)[np.arange(len(logits)), chosen[rows]]
            ends = np.cumsum([len(target) for target in targets[part]])[:-1]
            results += [row.tolist() for row in np.split(log_probs, ends)]
        return results

    def batches_of(
        self, inputs: Sequence[Sequence[int]], sources: Sequence[Sequence[int]], source_of: Sequence[int]
    ) -> Iterator[tuple[slice, Batch]]:
        """The rows of given texts, some texts at a time, whose slots are free again after the next step of the
        iteration. Arguments: as of `score`."""
        texts = [np.array(ids, np.int32) for ids in inputs]
        n_read = [len(sources[i]) for i in source_of] if self.encode else []
        encoded: dict[int, Ints] = {}
        """Slots of the sources of a part."""
        taken: list[Ints] = []
        with self.lock:
            try:
                for part in parts_of(texts, n_read):
                    wanted = dict.fromkeys(source_of[part] if self.encode else ())
                    self.sources.release([encoded.pop(i) for i in encoded.keys() - wanted])
                    if self.encode and (new := [i for i in wanted if i not in encoded]):
                        read = [np.array(sources[i], np.int32) for i in new]
                        encoded |= zip(new, self.process(self.encode, read, self.sources, False), strict=True)
                    number = {i: n for n, i in enumerate(encoded)}
                    taken = [self.targets.take(len(text)) for text in texts[part]]
                    owners = [number[i] for i in source_of[part]]
                    yield part, self.batch_of_texts(texts[part], taken, [*encoded.values()], owners)
                    self.targets.release(taken)
                    taken = []
            finally:
                self.targets.release(taken)
                self.sources.release([*encoded.values()])

    def batch_of_texts(
        self, texts: Sequence[Ints], taken: Sequence[Ints], slots: Sequence[Ints], source_of: Sequence[int]
    ) -> Batch:
        """The rows of texts that are given.

        Args:
            taken: slots of the tokens of each text.
            slots: slots of each source.
        """
        rows = self.checked(text_batch(texts, taken, is_causal=True))
        if not self.encode:
            return rows
        lengths = np.array([len(ids) for ids in slots], np.int32)
        begins = (np.cumsum(lengths) - lengths).astype(np.int32)
        owners = np.repeat(source_of, [len(text) for text in texts])
        return replace(
            rows, lists=(rows.lists[0], np.concatenate([*slots, NONE])), begins=(rows.begins[0], begins[owners]),
            lengths=(rows.lengths[0], lengths[owners]),
        )  # fmt: skip


def check_sizes(graph: Graph, config: ModelConfig) -> None:
    """Check that a graph has entries for the vocabulary and the positions of a configuration.

    Raises:
        CheckpointError: it has not.
    """
    last = graph.programs["step" if "step" in graph.programs else "encode"][-1]
    limit = n_positions(graph)
    if n_entries(graph, "token") < config.vocab_size or (limit is not None and limit < config.max_len):
        raise CheckpointError("programs.json has fewer tokens or positions than config.json.\n  Copy the folder again.")
    if "step" in graph.programs and last.width != config.vocab_size:
        raise CheckpointError("programs.json has another number of logits than config.json.\n  Copy the folder again.")


def parts_of(texts: Sequence[Ints], n_read: Sequence[int] = ()) -> Iterator[slice]:
    """Parts of texts with at most `MAX_ROWS` tokens, or one text.

    Args:
        n_read: number of tokens of the source of each text. Those of a part have at most `MAX_READ`.
    """
    first = n_rows = n_source = 0
    for last, text in enumerate(texts):
        more = n_read[last] if n_read else 0
        if last > first and (n_rows + len(text) > MAX_ROWS or n_source + more > MAX_READ):
            yield slice(first, last)
            first, n_rows, n_source = last, 0, 0
        n_rows += len(text)
        n_source += more
    if texts:
        yield slice(first, len(texts))
