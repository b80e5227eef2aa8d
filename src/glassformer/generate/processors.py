"""Logits processors: functions that change the scores of the next tokens. Search, sampling and pipelines apply lists of
them, in order. A new decoding constraint is one function here.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
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


def only_banned_ids(processors: Sequence[LogitsProcessor]) -> tuple[int, ...] | None:
    """Ids of the excluded tokens, if the processors only exclude tokens and then compute log-probabilities; else None.

    A model that has a method `best` needs to compute only the most probable tokens then.
    """
    *bans, last = processors
    if last is not log_softmax or not all(isinstance(ban, TokenBan) for ban in bans):
        return None
    return tuple(i for ban in bans for i in ban.token_ids)  # type: ignore[attr-defined]


def ban_phrases(phrases: Sequence[Sequence[int]]) -> LogitsProcessor:
    """Exclude the last token of a phrase after its other tokens."""

    def process(scores: Scores, ids: TokenIds) -> Scores:
        for *start, last in phrases:
            if len(start) < ids.size(1):
                scores[(ids[:, -len(start) :] == ids.new_tensor(start)).all(1), last] = -torch.inf
        return scores

    return process


def banned_ngram_tokens(ids: Sequence[int], n: int) -> list[int]:
    """Tokens that would repeat an n-gram of `ids`."""
    last = list(ids[len(ids) - n + 1 :])
    return [ids[i + n - 1] for i in range(len(ids) - n + 1) if list(ids[i : i + n - 1]) == last]


def no_repeat_ngrams(n: int) -> LogitsProcessor:
    """Exclude tokens that would repeat an n-gram. Source: Paulus et al. 2017, section 2.5."""

    def process(scores: Scores, ids: TokenIds) -> Scores:
        for row, previous in zip(scores, ids.tolist(), strict=True):
            row[banned_ngram_tokens(previous, n)] = -torch.inf
        return scores

    return process


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

    def process(scores: Scores, ids: TokenIds) -> Scores:
        if ids.size(1) < n_tokens:
            scores[:, list(eos_ids)] = -torch.inf
        return scores

    return process


def force_token(token_id: int, position: int) -> LogitsProcessor:
    """Exclude all other tokens at one position, counted from 0."""

    def process(scores: Scores, ids: TokenIds) -> Scores:
        if ids.size(1) == position:
            scores = torch.full_like(scores, -torch.inf)
            scores[:, token_id] = 0.0
        return scores

    return process


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
    no_repeat_ngram_size: int | None = None,
    constraints: Sequence[LogitsProcessor] = (),
    prefix: Sequence[int] = (),
) -> list[LogitsProcessor]:
    """Processors of search and sampling: log-probabilities over the tokens that may be generated, without renormalizing
    after repeated n-grams are excluded.

    Args:
        banned_ids: ids of tokens that are never generated.
        constraints: applied to the logits, such as `logit_processors` returns.
        prefix: ids of the tokens that every output begins with. They have probability 1.
    """
    ngrams = [no_repeat_ngrams(no_repeat_ngram_size)] if no_repeat_ngram_size else []
    forced = [force_token(token, position) for position, token in enumerate(prefix)]
    return [ban_tokens(banned_ids), *constraints, log_softmax, *ngrams, *forced]


def logit_processors(options: DecodeConfig, eos_id: int) -> list[LogitsProcessor]:
    """Processors of the options that change logits."""
    return [
        *([repetition_penalty(options.repetition_penalty)] if options.repetition_penalty else []),
        *([min_length(options.min_length, [eos_id])] if options.min_length else []),
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
