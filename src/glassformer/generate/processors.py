"""Logits processors: functions that change the scores of the next tokens. Search, sampling and pipelines apply lists of
them, in order. A new decoding constraint is one function here.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from glassformer.config import DecodeConfig

Scores = Float[Tensor, "rows vocab"]
TokenIds = Int[Tensor, "rows length"]
LogitsProcessor = Callable[[Scores, TokenIds], Scores]
"""Takes the scores of the next token of each hypothesis and the tokens before it, and returns new scores. It may change
the scores in place. The score -inf excludes a token. The tokens before it are those generated so far; in the pipelines
for models of transformers, they begin with the prompt."""


def apply(processors: Iterable[LogitsProcessor], scores: Scores, ids: TokenIds) -> Scores:
    """Apply processors in order."""
    for processor in processors:
        scores = processor(scores, ids)
    return scores


def log_softmax(scores: Scores, ids: TokenIds) -> Scores:
    """Log-probabilities of the tokens that earlier processors have not excluded."""
    return scores.log_softmax(-1)


@dataclass(frozen=True, slots=True)
class TokenBan:
    """Exclude tokens."""

    token_ids: tuple[int, ...]

    def __call__(self, scores: Scores, ids: TokenIds) -> Scores:
        if self.token_ids:
            scores[:, list(self.token_ids)] = -torch.inf
        return scores


def ban_tokens(token_ids: Sequence[int]) -> LogitsProcessor:
    """Exclude tokens."""
    return TokenBan(tuple(token_ids))


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Exclude tokens that must not follow those before."""

    rule: Callable[[list[int]], Collection[int]]
    """Takes the tokens before, returns the excluded ones."""

    def __call__(self, scores: Scores, ids: TokenIds) -> Scores:
        for row, before in zip(scores, ids.tolist(), strict=True):
            row[list(self.rule(before))] = -torch.inf
        return scores


@dataclass(frozen=True, slots=True)
class ForcedToken:
    """Exclude all other tokens at one position, counted from 0. The token gets the score 0."""

    token_id: int
    position: int

    def __call__(self, scores: Scores, ids: TokenIds) -> Scores:
        if ids.size(1) == self.position:
            scores = torch.full_like(scores, -torch.inf)
            scores[:, self.token_id] = 0.0
        return scores


@dataclass(frozen=True, slots=True)
class CandidateRules:
    """Processors in a form that needs only the most probable tokens, not all logits."""

    banned_ids: tuple[int, ...]
    exclusions: tuple[Exclusion, ...] = ()
    forced: Mapping[int, int] = field(default_factory=dict)
    """Token by position."""

    def excluded(self, ids: NDArray[np.int64]) -> list[set[int]]:
        """The tokens that must not follow each hypothesis."""
        return [{token for x in self.exclusions for token in x.rule(before)} for before in ids.tolist()]


def candidate_rules(processors: Sequence[LogitsProcessor]) -> CandidateRules | None:
    """The rules that the processors apply. None: they need all logits."""
    if log_softmax not in processors:
        return None
    at = list(processors).index(log_softmax)
    bans = [x for x in processors[:at] if isinstance(x, TokenBan)]
    exclusions = [x for x in processors[at + 1 :] if isinstance(x, Exclusion)]
    forced = [x for x in processors[at + 1 :] if isinstance(x, ForcedToken)]
    if [*bans, log_softmax, *exclusions, *forced] != list(processors):
        return None
    banned_ids = tuple(i for ban in bans for i in ban.token_ids)
    return CandidateRules(banned_ids, tuple(exclusions), {x.position: x.token_id for x in forced})


def ban_phrases(phrases: Sequence[Sequence[int]]) -> LogitsProcessor:
    """Exclude the last token of a phrase after its other tokens."""

    def rule(before: list[int]) -> list[int]:
        return [last for *start, last in phrases if len(start) < len(before) and before[-len(start) :] == start]

    return Exclusion(rule)


def banned_ngram_tokens(ids: Sequence[int], n: int) -> list[int]:
    """Tokens that would repeat an n-gram of `ids`."""
    last = list(ids[len(ids) - n + 1 :])
    return [ids[i + n - 1] for i in range(len(ids) - n + 1) if list(ids[i : i + n - 1]) == last]


def no_repeat_ngrams(n: int) -> LogitsProcessor:
    """Exclude tokens that would repeat an n-gram. Source: Paulus et al. 2017, section 2.5."""

    return Exclusion(lambda before: banned_ngram_tokens(before, n))


def repetition_penalty(penalty: float) -> LogitsProcessor:
    """Divide the positive scores of tokens that occur before by the penalty, and multiply the negative ones.

    Source: Keskar et al. 2019, section 4.1.
    """

    def process(scores: Scores, ids: TokenIds) -> Scores:
        penalized = scores.gather(1, ids)
        return scores.scatter(1, ids, torch.where(penalized < 0, penalized * penalty, penalized / penalty))

    return process


def min_length(n_tokens: int, eos_ids: Sequence[int]) -> LogitsProcessor:
    """Exclude the end tokens until there are `n_tokens` tokens."""

    return Exclusion(lambda before: eos_ids if len(before) < n_tokens else ())


def ban_texts(texts: Sequence[str], token_bytes: Sequence[bytes]) -> LogitsProcessor:
    """Exclude tokens with which the output would contain one of the texts, also as a part of a word.

    Args:
        token_bytes: the bytes that each token of the vocabulary adds to a text.
    """
    in_order = sorted(range(len(token_bytes)), key=token_bytes.__getitem__)
    words = [token_bytes[i] for i in in_order]

    def beginning_with(prefix: bytes) -> list[int]:
        first = bisect_left(words, prefix)
        return in_order[first : bisect_left(words, True, lo=first, key=lambda word: not word.startswith(prefix))]

    banned = [text.encode() for text in texts]
    always = [i for i, word in enumerate(token_bytes) if any(text in word for text in banned)]
    completing = {(text[:k], text[k:]): beginning_with(text[k:]) for text in banned for k in range(1, len(text))}
    n_bytes = max(map(len, banned)) - 1

    def rule(before: list[int]) -> list[int]:
        end, n = b"", len(before)
        while n and len(end) < n_bytes:
            n -= 1
            end = token_bytes[before[n]] + end
        return [*always, *(i for (start, _), ids in completing.items() if end.endswith(start) for i in ids)]

    return Exclusion(rule)


def temperature(value: float) -> LogitsProcessor:
    """Divide the scores by the temperature."""
    return lambda scores, ids: scores / value


def top_k(k: int) -> LogitsProcessor:
    """Exclude all but the k best tokens, and those with the score of the k-th. Source: Fan et al. 2018, section 5.4."""

    def process(scores: Scores, ids: TokenIds) -> Scores:
        lowest = scores.topk(min(k, scores.size(-1))).values[:, -1:]
        return scores.masked_fill(scores < lowest, -torch.inf)

    return process


def top_p(p: float, min_tokens_to_keep: int = 1) -> LogitsProcessor:
    """Keep the most probable tokens until their probabilities sum to at least p (nucleus sampling), exclude the others.

    Source: Holtzman et al. 2020, section 3.1.
    """

    def process(scores: Scores, ids: TokenIds) -> Scores:
        ascending, order = scores.sort(dim=-1)
        excluded = ascending.softmax(-1).cumsum(-1) <= 1 - p
        excluded[:, -min_tokens_to_keep:] = False
        return scores.masked_fill(excluded.scatter(1, order, excluded), -torch.inf)

    return process


def min_p(p: float) -> LogitsProcessor:
    """Exclude tokens whose probability is below p times that of the best. Source: Nguyen et al. 2024, section 3."""

    def process(scores: Scores, ids: TokenIds) -> Scores:
        return scores.masked_fill(scores < scores.amax(-1, keepdim=True) + math.log(p), -torch.inf)

    return process


def typical_p(p: float) -> LogitsProcessor:
    """Keep the tokens whose information content is closest to the entropy of the distribution, until their
    probabilities sum to at least p. Source: Meister et al. 2022, section 3.
    """

    def process(scores: Scores, ids: TokenIds) -> Scores:
        log_probs = scores.log_softmax(-1)
        probs = log_probs.exp()
        entropy = -(probs * log_probs).nansum(-1, keepdim=True)
        order = (-log_probs - entropy).abs().argsort(dim=-1, stable=True)
        before = probs.gather(1, order).cumsum(-1).roll(1, -1)
        before[:, 0] = 0
        return scores.masked_fill((before >= p).scatter(1, order, before >= p), -torch.inf)

    return process


def search_processors(
    banned_ids: Sequence[int] = (),
    options: DecodeConfig | None = None,
    *,
    eos_id: int = 0,
    prefix: Sequence[int] = (),
    token_bytes: Sequence[bytes] = (),
) -> list[LogitsProcessor]:
    """Processors of search and sampling: log-probabilities over the tokens that may be generated. Tokens that are
    excluded after `log_softmax` do not change the log-probabilities of the others.

    Args:
        banned_ids: ids of tokens that are never generated.
        options: repetition penalty, n-grams that do not repeat, minimum length, banned texts.
        eos_id: id of the end-of-sentence token.
        prefix: ids of the tokens that every output begins with. They have probability 1.
        token_bytes: the bytes that each token adds to a text, for banned texts.
    """
    c = options or DecodeConfig()
    return [
        ban_tokens(banned_ids),
        *([repetition_penalty(c.repetition_penalty)] if c.repetition_penalty else []),
        log_softmax,
        *([no_repeat_ngrams(c.no_repeat_ngram_size)] if c.no_repeat_ngram_size else []),
        *([min_length(c.min_length, [eos_id])] if c.min_length else []),
        *([ban_texts(c.ban, token_bytes)] if c.ban else []),
        *(ForcedToken(token, position) for position, token in enumerate(prefix)),
    ]


def sampling_processors(options: DecodeConfig) -> list[LogitsProcessor]:
    """Processors that shape the distribution to sample from: temperature, then top-k, top-p, min-p, typical sampling.
    Without any option of sampling, only the most probable token is kept.
    """
    if not options.do_sample:
        return [top_k(1)]
    return [
        *([temperature(options.temperature)] if options.temperature is not None else []),
        *([top_k(options.top_k)] if options.top_k is not None else []),
        *([top_p(options.top_p)] if options.top_p is not None and options.top_p < 1 else []),
        *([min_p(options.min_p)] if options.min_p is not None else []),
        *([typical_p(options.typical_p)] if options.typical_p is not None and options.typical_p < 1 else []),
    ]
