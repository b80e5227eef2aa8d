"""Decoding of requests that arrive at any time, in batches that change from step to step.

The result of a request does not depend on the others. Sources that are decoded together with padding have the same
padded length; a model that joins requests has no padding, and one of its steps computes all requests.
"""

import math
import threading
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic

from glassformer.decode_config import DecodeConfig
from glassformer.errors import UserError
from glassformer.generate.batches import padded_length
from glassformer.generate.policy import Policy
from glassformer.generate.protocol import Decodable
from glassformer.generate.request import Decoding, Event, Request, RequestBatch, ResultT, Sources, results, sampled
from glassformer.generate.rules import sampling_rules, search_rules
from glassformer.generate.sample import Sampling
from glassformer.generate.search import BeamSearch, Hypothesis
from glassformer.generate.shortlist import Shortlist
from glassformer.memory import available_bytes, is_out_of_memory

MIN_JOINING = 8
"""A model that joins requests is given new ones when one part in this number of the budget is free, not for each
sentence: sentences that begin together cost less."""

MAX_EXCLUDED = 256
"""Tokens that a step may exclude, up to which it computes only the most probable tokens, and those that are excluded.
The time to find so many grows with their number times the vocabulary."""

USABLE = 0.5
"""Part of the available memory that is used."""

LOGIT_BYTES = 16
"""For each hypothesis and entry of the vocabulary: logits, log-probabilities, sums of the hypotheses and a copy."""

MORE_TOKENS = 50
"""Number of tokens that an output may have beyond those of its source. Source: Vaswani et al. 2017, section 6.1."""


class Engine:
    """Decodes requests, a token of each at a time. Methods may be called by several threads."""

    def __init__(
        self,
        model: Decodable,
        *,
        eos_id: int,
        max_len: int,
        device: str = "cpu",
        batch_tokens: int,
        banned_ids: Sequence[int] = (),
        end_ids: Sequence[int] = (),
        token_bytes: Callable[[], Sequence[bytes]] = tuple,
        shortlist: Shortlist | None = None,
    ) -> None:
        """
        Args:
            model: the model.
            eos_id: id of the end-of-sentence token.
            max_len: maximum target length of the model, in tokens.
            device: name of the device whose memory the model uses, such as "cpu" or "cuda:0".
            batch_tokens: maximum number of source tokens that are decoded together, including padding, or one source.
            banned_ids: ids of tokens that are never generated, such as padding.
            end_ids: ids of further tokens that end a text.
            token_bytes: returns the bytes that each token adds to a text; for banned texts.
            shortlist: for requests with the option `shortlist`.
        """
        self.token_bytes, self.shortlist = token_bytes, shortlist
        self.model, self.eos_id, self.max_len = model, eos_id, max_len
        self.end_ids = tuple(end_ids)
        self.batch_tokens, self.banned_ids = batch_tokens, tuple(banned_ids)
        available = available_bytes(device)
        self.available_bytes = math.inf if available is None else USABLE * available
        """Memory for the requests that are decoded together."""
        self.waiting: deque[Request] = deque()
        self.batches: list[RequestBatch] = []
        self.n_requests = self.n_steps = 0
        """Number of requests; number of steps since a batch was begun."""
        self.lock = threading.Lock()

    def submit(
        self,
        source: Sequence[int],
        options: DecodeConfig,
        *,
        max_new_tokens: int,
        index: int | None = None,
        prefix: Sequence[int] = (),
    ) -> int:
        """Add a request. Requests are begun in the order of their arrival. Returns the id of the request.

        Args:
            source: token ids, including the end-of-sentence token.
            options: decoding options.
            max_new_tokens: maximum number of generated tokens, including the end-of-sentence token.
            index: with the seed, it determines the random numbers of sampling. Default: the id of the request.
            prefix: tokens that the output begins with, in addition to the maximum.

        Raises:
            ValueError: the source is empty, the maximum is below 1, or there is no shortlist, or the model uses none.
        """
        if options.shortlist and not (self.shortlist and self.model.joins):
            raise ValueError("a shortlist is asked for, but none is there, or the model uses none")
        limit = min(self.max_len, max_new_tokens + len(prefix))
        if not source or limit < 1:
            raise ValueError(f"source of {len(source)} tokens, at most {limit} new tokens: both must be at least 1")
        with self.lock:
            request_id, self.n_requests = self.n_requests, self.n_requests + 1
            n_tokens = padded_length(len(source), 1 if self.model.joins else self.model.pad_to_multiple_of)
            index = request_id if index is None else index
            n_bytes = bytes_needed(self.model, options.beam, len(source) + limit)
            self.waiting.append(Request(request_id, source, options, limit, index, n_tokens, n_bytes, prefix))
            return request_id

    def cancel(self, request_id: int) -> None:
        """Remove a request. Without effect if it is done."""
        with self.lock:
            self.waiting = deque(request for request in self.waiting if request.request_id != request_id)
            for batch in self.batches:
                for i in [i for i, request in batch.requests.items() if request.request_id == request_id]:
                    del batch.requests[i]
                    batch.search.cancel(i)
                    if isinstance(batch.search, Sampling):
                        batch.search.remove_ended()
            self.batches = [batch for batch in self.batches if len(batch.search.alive)]

    @property
    def n_unfinished(self) -> int:
        """Number of requests that are not done."""
        return len(self.waiting) + sum(len(batch.search.sentences) for batch in self.batches)

    def step(self) -> list[Event]:
        """Compute the next token of the requests that are being decoded, after beginning waiting ones for which there
        is room. Returns the new tokens and results.

        If the memory is insufficient, requests are decoded again in batches of half the size.

        Raises:
            NonFiniteError: the outputs of the model are not finite.
            UserError: the memory is insufficient for one request.
        """
        events: list[Event] = []
        with self.lock:
            try:
                self.begin_waiting()
                self.advance(events)
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
                self.begin_again(error)
        return events

    def begin_waiting(self) -> None:
        """Begin waiting requests, as far as the budget and the memory allow.

        Raises:
            UserError: the memory is insufficient for one request.
        """
        self.n_steps += 1
        # A batch takes time in each step: the more there are, the longer do new requests wait for others.
        if not self.waiting or (self.batches and self.n_steps < len(self.batches)):
            return
        free = self.batch_tokens - sum(batch.n_tokens for batch in self.batches)
        free_bytes = self.available_bytes - sum(batch.n_bytes for batch in self.batches)
        while self.waiting and (not self.batches or self.has_room(free, free_bytes)):
            first = self.waiting[0]
            if not self.batches and first.n_bytes > free_bytes:
                raise insufficient_memory(first.n_tokens)
            requests: list[Request] = []
            others: deque[Request] = deque()
            n_tokens = n_bytes = 0
            while self.waiting:
                request = self.waiting.popleft()
                is_equal = self.model.joins or request.n_tokens == first.n_tokens
                is_equal &= request.prefix == first.prefix
                fits = n_tokens + request.n_tokens <= free and n_bytes + request.n_bytes <= free_bytes
                if requests and not fits:
                    self.waiting.appendleft(request)
                    if n_tokens + request.n_tokens <= free:  # the memory is the limit
                        self.reduce(self.batch_tokens - free + n_tokens)
                    break
                if request.options == first.options and is_equal:
                    requests.append(request)
                    n_tokens += request.n_tokens
                    n_bytes += request.n_bytes
                else:
                    others.append(request)
            self.waiting = others + self.waiting
            self.n_steps = 0
            free -= n_tokens
            free_bytes -= n_bytes
            try:
                self.batches.append(self.begin(requests))
            except BaseException:
                self.waiting.extendleft(reversed(requests))
                raise

    def has_room(self, free: int, free_bytes: float) -> bool:
        """Whether the next waiting request is begun now."""
        enough = self.batch_tokens // MIN_JOINING if self.model.joins else 0
        return free >= max(self.waiting[0].n_tokens, enough) and free_bytes >= self.waiting[0].n_bytes

    def begin(self, requests: list[Request]) -> RequestBatch:
        """Encode the sources of requests with equal options."""
        options = requests[0].options
        state, last = self.model.start([request.source for request in requests])
        limits = [request.max_new_tokens for request in requests]
        rules = search_rules(
            self.banned_ids, options, eos_id=self.eos_id, end_ids=self.end_ids, prefix=requests[0].prefix,
            token_bytes=self.token_bytes() if options.ban else (),
        )  # fmt: skip
        eos_ids = [self.eos_id, *self.end_ids]
        if options.do_sample:
            indices = [request.index for request in requests]
            return RequestBatch(
                dict(enumerate(requests)),
                Sampling(
                    state, last, limits, eos_ids=eos_ids, rules=rules, warpers=sampling_rules(options),
                    seed=options.seed, indices=indices,
                ),
            )  # fmt: skip
        begun = BeamSearch(
            state, last, limits, eos_ids=eos_ids, rules=rules,
            policy=Policy(options.beam, options.length_penalty, options.nbest),
        )  # fmt: skip
        if begun.fast and begun.fast.n_excluded > MAX_EXCLUDED and not options.shortlist:
            begun.fast = None
        if options.shortlist:
            assert self.shortlist
            assert begun.fast is not None
            tokens = [self.shortlist.tokens(request.source, self.banned_ids) for request in requests]
            self.model.restrict(state, tokens)
        return RequestBatch(dict(enumerate(requests)), begun)

    def advance(self, events: list[Event]) -> None:
        """One step of every batch. Appends what it brings to `events`, also if a later batch fails."""
        together = [
            (batch, batch.search)
            for batch in self.batches
            if self.model.joins and isinstance(batch.search, BeamSearch) and batch.search.fast is not None
        ]
        if together:
            n = min(max(search.n_most_probable() for _, search in together), self.model.vocab_size)
            steps = [(search.last, search.state) for _, search in together]
            best = self.model.next_tokens(steps, n, self.banned_ids)
            for (batch, search), (values, tokens) in zip(together, best, strict=True):
                events += results(batch, search, search.advance(*search.allowed(values, tokens)))
        done_together = {id(batch) for batch, _ in together}
        for batch in self.batches:
            if id(batch) in done_together:
                continue
            if isinstance(batch.search, BeamSearch):
                events += results(batch, batch.search, batch.search.advance(*batch.search.candidates(self.model)))
            else:
                events += sampled(batch, batch.search, batch.search.step(self.model))
        batches: list[RequestBatch] = []
        for batch in self.batches:
            if len(batch.search.alive) and not any(other.absorb(batch) for other in batches):
                batches.append(batch)
        self.batches = batches

    def begin_again(self, error: Exception) -> None:
        """Return all requests to the queue, and halve the budget.

        Raises:
            UserError: a single request does not fit.
        """
        unfinished = [batch.requests[i] for batch in self.batches for i in batch.search.sentences]
        self.batches = []
        largest = max(request.n_tokens for request in [*unfinished, *self.waiting])
        if self.batch_tokens < largest:
            raise insufficient_memory(largest) from error
        self.reduce(self.batch_tokens // 2)
        for request in unfinished:
            request.tokens, request.log_probs = [], []
        self.waiting.extendleft(reversed(unfinished))

    def reduce(self, batch_tokens: int) -> None:
        """Reduce the budget, with a warning."""
        self.batch_tokens = batch_tokens
        warnings.warn(f"not enough memory: batches have at most {batch_tokens:,} tokens from now on", stacklevel=4)

    def submit_all(self, sources: Sources) -> dict[int, int]:
        """Add a request for each source, the longest first. Returns the index of the source of each request."""
        least = (sources.options.min_length or 0) + 1
        limits = sources.limits or [
            sources.options.max_length or max(len(ids) + MORE_TOKENS, least) for ids in sources.ids
        ]
        index_of: dict[int, int] = {}
        for i in sorted(range(len(sources.ids)), key=lambda i: (-padded_length(len(sources.ids[i])), i)):
            request = self.submit(
                sources.ids[i], sources.options, max_new_tokens=limits[i], prefix=sources.prefix,
                index=sources.indices[i] if sources.indices else i,
            )  # fmt: skip
            index_of[request] = i
        return index_of

    def decode(self, sources: Sources, progress: Callable[[int], None] = lambda n: None) -> list[list[Hypothesis]]:
        """Decode the best hypotheses of each source, in the order of the sources. There must be no other requests.

        Args:
            progress: called with the number of sources that a step has finished.

        Raises:
            NonFiniteError: the outputs of the model are not finite.
            UserError: the memory is insufficient for one source.
        """

        def decoding() -> Decoding[list[list[Hypothesis]]]:
            return (yield sources)

        return self.run(decoding(), progress)

    def run(self, decoding: Decoding[ResultT], progress: Callable[[int], None] = lambda n: None) -> ResultT:
        """Compute a decoding to its end. There must be no other requests.

        Args:
            progress: called with the number of sources that a step has finished, of the first that are decoded.
        """
        running = RunningDecoding(self, decoding)
        while running.advance():
            while running.requests:
                finished = [event for event in self.step() if running.take(event)]
                if finished and running.n_yielded == 1:
                    progress(len(finished))
        return running.result


class RunningDecoding(Generic[ResultT]):
    """A decoding that an engine computes, together with other requests.

    `advance` until it returns False; before each further call, `take` the events of the steps of the engine until there
    are no `requests`.
    """

    result: ResultT
    """What the decoding has returned."""

    def __init__(self, engine: Engine, decoding: Decoding[ResultT]) -> None:
        self.engine, self.decoding = engine, decoding
        self.requests: dict[int, int] = {}
        """Requests of the engine that are not done -> index of their source."""
        self.hypotheses: list[list[Hypothesis]] = []
        """Of each source that was yielded last."""
        self.n_yielded = 0
        """Number of times that sources were yielded."""

    def advance(self) -> bool:
        """Continue the decoding with the hypotheses of its sources until it yields others. Returns False at its end."""
        try:
            sources = self.decoding.send(self.hypotheses) if self.n_yielded else next(self.decoding)
        except StopIteration as end:
            self.result = end.value
            return False
        self.n_yielded += 1
        self.hypotheses = [[] for _ in sources.ids]
        self.requests = self.engine.submit_all(sources)
        return True

    def take(self, event: Event) -> bool:
        """Take the event of a step. Returns whether it is the result of one of the requests."""
        if event.hypotheses is None or event.request_id not in self.requests:
            return False
        self.hypotheses[self.requests.pop(event.request_id)] = event.hypotheses
        return True


def insufficient_memory(n_tokens: int) -> UserError:
    """The error for a source that does not fit in memory alone."""
    return UserError(
        f"not enough memory to decode a source of {n_tokens:,} tokens.\n"
        "  Give a smaller --beam or --max-length, or split the text."
    )


def bytes_needed(model: Decodable, beam: int, length: int) -> int:
    """Estimate of the memory of a request: logits, log-probabilities and totals of the vocabulary, keys and values.

    Args:
        length: number of tokens of source and output.
    """
    config = model.config
    n_layers = getattr(config, "n_decoder_layers", 0) or getattr(config, "n_layers", 0)
    return beam * (LOGIT_BYTES * model.vocab_size + model.cache_bytes * 2 * length * n_layers * config.d_model)
