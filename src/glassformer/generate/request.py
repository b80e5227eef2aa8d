"""Requests of an engine, and what comes of them."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from glassformer.decode_config import DecodeConfig
from glassformer.errors import NON_FINITE, NonFiniteError
from glassformer.generate.policy import length_penalty
from glassformer.generate.sample import Sampling
from glassformer.generate.search import BeamSearch, Hypothesis


@dataclass(slots=True)
class Request:
    """A source to decode."""

    request_id: int
    source: Sequence[int]
    options: DecodeConfig
    max_new_tokens: int
    index: int
    """With the seed, it determines the random numbers of sampling."""
    n_tokens: int
    """Length of the source in a batch, with padding."""
    n_bytes: int
    """Estimate of the memory that it needs."""
    prefix: Sequence[int] = ()
    """Tokens that the output begins with."""
    tokens: list[int] = field(default_factory=list)
    """Tokens that are certain: all in sampling and greedy search; in beam search none before the end."""
    log_probs: list[float] = field(default_factory=list)
    n_reported: int = 0
    """Number of tokens that were reported, which may be more if the request was begun again."""

    def add(self, tokens: list[int]) -> list[int]:
        """Append tokens. Returns those that were not reported yet."""
        self.tokens += tokens
        new = self.tokens[self.n_reported :]
        self.n_reported = max(self.n_reported, len(self.tokens))
        return new


@dataclass(frozen=True, slots=True)
class Sources:
    """Sources that are decoded with the same options. The fields are the arguments of `Engine.submit`."""

    ids: Sequence[Sequence[int]]
    """Token ids of each source, including the end-of-sentence token."""
    options: DecodeConfig
    limits: Sequence[int] = ()
    """Maximum number of generated tokens of each source. Default: `options.max_length`, else the source length + 50."""
    prefix: Sequence[int] = ()
    """Tokens that every output begins with."""
    indices: Sequence[int] = ()
    """With the seed, they determine the random numbers of sampling. Default: the positions of the sources."""


ResultT = TypeVar("ResultT")
Decoding = Generator[Sources, list[list[Hypothesis]], ResultT]
"""A computation that yields sources, is sent their best hypotheses, in the order of the sources, and returns a result.
Several of them can be computed together by one engine."""


@dataclass(frozen=True, slots=True)
class Event:
    """What a step has brought for a request."""

    request_id: int
    tokens: list[int]
    """New tokens. In beam search, all come at the end."""
    hypotheses: list[Hypothesis] | None
    """The result, best first, if the request is done; None: it is not."""


@dataclass(slots=True)
class RequestBatch:
    """Requests with equal options that are searched or sampled together."""

    requests: dict[int, Request]
    """By the number of the sentence in the search."""
    search: BeamSearch | Sampling

    @property
    def n_tokens(self) -> int:
        """Number of tokens of the sources that are not done."""
        return sum(self.requests[i].n_tokens for i in self.search.sentences)

    @property
    def n_bytes(self) -> int:
        """Memory that they need."""
        return sum(self.requests[i].n_bytes for i in self.search.sentences)

    def absorb(self, other: "RequestBatch") -> bool:
        """Add the requests of another batch, if its options are the same, and the searches allow it. Returns whether
        they were added.
        """
        if not isinstance(self.search, BeamSearch) or not isinstance(other.search, BeamSearch):
            return False
        one, another = next(iter(self.requests.values())), next(iter(other.requests.values()))
        if one.options != another.options or one.prefix != another.prefix or not self.search.can_join(other.search):
            return False
        first = self.search.join(other.search)
        self.requests |= {first + i: request for i, request in other.requests.items()}
        return True


def results(batch: RequestBatch, search: BeamSearch, done: dict[int, list[Hypothesis]]) -> Iterator[Event]:
    """Events of a step of beam search.

    Raises:
        NonFiniteError: no token has a finite probability.
    """
    if search.policy.beam == 1:
        for i, token in zip(search.alive.tolist(), search.last.tolist(), strict=True):
            yield Event(batch.requests[i].request_id, batch.requests[i].add([token]), None)
    for i, hypotheses in done.items():
        if not hypotheses:
            raise NonFiniteError(NON_FINITE)
        request = batch.requests.pop(i)
        yield Event(request.request_id, request.add(hypotheses[0].ids[len(request.tokens) :]), hypotheses)


def sampled(batch: RequestBatch, sampling: Sampling, tokens: list[tuple[int, int, float]]) -> Iterator[Event]:
    """Events of a step of sampling. The score of a hypothesis is that of beam search."""
    for i, token, log_prob in tokens:
        request = batch.requests[i]
        new = request.add([token])
        request.log_probs.append(log_prob)
        hypotheses = None
        if i in sampling.ended:
            penalty = length_penalty(len(request.tokens), request.options.length_penalty)
            hypotheses = [Hypothesis(request.tokens, request.log_probs, sum(request.log_probs) / penalty)]
            del batch.requests[i]
        yield Event(request.request_id, new, hypotheses)
    sampling.remove_ended()
