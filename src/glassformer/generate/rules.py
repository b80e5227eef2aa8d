"""Rules, which change the scores of the next tokens. Search, sampling and pipelines apply lists of them, in order. A
new decoding constraint is one class here.

A rule has up to two forms. `apply` changes the scores of all tokens. Rules that only exclude or force tokens state them
as well; a list of such rules needs only the most probable tokens of a step, which is faster (`fast_form`).
"""

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from glassformer.decode_config import SamplingConfig, SearchConfig
from glassformer.generate.protocol import Ints
from glassformer.generate.scores import Scores, log_softmax, softmax


class Stage(IntEnum):
    """Order of the rules in a list that has a fast form."""

    BAN = 0
    """Changes the log-probabilities of the other tokens: before `LogSoftmax`."""
    NORMALIZE = 1
    EXCLUDE = 2
    FORCE = 3


class Rule(ABC):
    """Base class. A rule that defines `apply` only is given the scores of all tokens in each step."""

    stage: ClassVar[Stage | None] = None
    """None: the rule has no fast form."""

    @abstractmethod
    def apply(self, scores: Scores, ids: Ints) -> Scores:
        """New scores of the next token of each hypothesis. It may change `scores` in place.

        Args:
            ids: the tokens before it: [rows, length]. They are those generated so far; in the pipelines for models of
                transformers, they begin with the prompt.
        """


def apply(rules: Iterable[Rule], scores: Scores, ids: Ints) -> Scores:
    """Apply rules in order."""
    for rule in rules:
        scores = rule.apply(scores, ids)
    return scores


@dataclass(frozen=True)
class LogSoftmax(Rule):
    """Log-probabilities of the tokens that earlier rules have not excluded."""

    stage = Stage.NORMALIZE

    def apply(self, scores: Scores, ids: Ints) -> Scores:
        return log_softmax(scores)


@dataclass(frozen=True)
class BannedTokens(Rule):
    """Exclude tokens."""

    token_ids: tuple[int, ...]
    stage = Stage.BAN

    def apply(self, scores: Scores, ids: Ints) -> Scores:
        scores[:, list(self.token_ids)] = -np.inf
        return scores


class Exclusion(Rule):
    """Base class of rules that exclude tokens which must not follow those before. The log-probabilities of the other
    tokens are not changed."""

    stage = Stage.EXCLUDE

    @abstractmethod
    def excluded(self, before: list[int]) -> Collection[int]:
        """The tokens that must not follow those before."""

    @property
    def n_excluded(self) -> int:
        """Number of tokens that it may exclude in a step, if they may be many."""
        return 0

    def apply(self, scores: Scores, ids: Ints) -> Scores:
        for row, before in zip(scores, ids.tolist(), strict=True):
            row[list(self.excluded(before))] = -np.inf
        return scores


@dataclass(frozen=True)
class ForcedToken(Rule):
    """Exclude all other tokens at one position, counted from 0. The token gets the score 0."""

    token_id: int
    position: int
    stage = Stage.FORCE

    def apply(self, scores: Scores, ids: Ints) -> Scores:
        if ids.shape[1] == self.position:
            scores = np.full_like(scores, -np.inf)
            scores[:, self.token_id] = 0
        return scores


@dataclass(frozen=True)
class FastForm:
    """Rules that need only the most probable tokens."""

    banned_ids: tuple[int, ...]
    exclusions: tuple[Exclusion, ...]
    forced: dict[int, int]
    """Token by position."""

    @property
    def n_excluded(self) -> int:
        """Number of tokens that they may exclude in a step, if they may be many."""
        return sum(exclusion.n_excluded for exclusion in self.exclusions)

    def excluded(self, texts: Sequence[list[int]]) -> list[set[int]]:
        """The tokens that must not follow each text of tokens."""
        return [{token for x in self.exclusions for token in x.excluded(before)} for before in texts]


def fast_form(rules: Sequence[Rule]) -> FastForm | None:
    """The fast form of a list of rules. None: the scores of all tokens are needed."""
    stages = [rule.stage for rule in rules if rule.stage is not None]
    if len(stages) < len(rules) or stages != sorted(stages) or stages.count(Stage.NORMALIZE) != 1:
        return None
    of: dict[Stage, list[Any]] = {stage: [rule for rule in rules if rule.stage == stage] for stage in Stage}
    return FastForm(
        tuple(i for rule in of[Stage.BAN] for i in rule.token_ids),
        tuple(of[Stage.EXCLUDE]),
        {rule.position: rule.token_id for rule in of[Stage.FORCE]},
    )


@dataclass(frozen=True)
class ExcludedTokens(Exclusion):
    """Exclude tokens, as `BannedTokens`, but without a change of the log-probabilities of the others."""

    token_ids: tuple[int, ...]

    def excluded(self, before: list[int]) -> Collection[int]:
        return self.token_ids

    @property
    def n_excluded(self) -> int:
        return len(self.token_ids)


@dataclass(frozen=True)
class BannedPhrases(Exclusion):
    """Exclude the last token of a phrase after its other tokens."""

    phrases: tuple[tuple[int, ...], ...]

    def excluded(self, before: list[int]) -> list[int]:
        return [last for *start, last in self.phrases if len(start) < len(before) and before[-len(start) :] == start]


def banned_ngram_tokens(ids: Sequence[int], n: int) -> list[int]:
    """Tokens that would repeat an n-gram of `ids`."""
    last = list(ids[len(ids) - n + 1 :])
    return [ids[i + n - 1] for i in range(len(ids) - n + 1) if list(ids[i : i + n - 1]) == last]


@dataclass(frozen=True)
class NoRepeatNgrams(Exclusion):
    """Exclude tokens that would repeat an n-gram. Source: Paulus et al. 2017, section 2.5."""

    n: int

    def excluded(self, before: list[int]) -> list[int]:
        return banned_ngram_tokens(before, self.n)


@dataclass(frozen=True)
class MinLength(Exclusion):
    """Exclude the end tokens until there are `n_tokens` tokens."""

    n_tokens: int
    eos_ids: tuple[int, ...]

    def excluded(self, before: list[int]) -> Collection[int]:
        return self.eos_ids if len(before) < self.n_tokens else ()


@dataclass(frozen=True)
class BannedTexts(Exclusion):
    """Exclude tokens with which the output would contain one of the texts, also as a part of a word."""

    texts: tuple[str, ...]
    token_bytes: Sequence[bytes] = field(repr=False, compare=False)
    """The bytes that each token of the vocabulary adds to a text."""

    @cached_property
    def banned(self) -> list[bytes]:
        """The texts in UTF-8."""
        return [text.encode() for text in self.texts]

    @cached_property
    def always(self) -> list[int]:
        """Tokens that contain one of the texts."""
        return [i for i, word in enumerate(self.token_bytes) if any(text in word for text in self.banned)]

    @cached_property
    def completing(self) -> dict[tuple[bytes, bytes], list[int]]:
        """The two parts of each text in all ways, and the tokens that begin with the second."""
        in_order = sorted(range(len(self.token_bytes)), key=self.token_bytes.__getitem__)
        words = [self.token_bytes[i] for i in in_order]

        def beginning_with(prefix: bytes) -> list[int]:
            first = bisect_left(words, prefix)
            return in_order[first : bisect_left(words, True, lo=first, key=lambda word: not word.startswith(prefix))]

        return {(text[:k], text[k:]): beginning_with(text[k:]) for text in self.banned for k in range(1, len(text))}

    @property
    def n_excluded(self) -> int:
        return len(self.always) + max(map(len, self.completing.values()), default=0)

    def excluded(self, before: list[int]) -> list[int]:
        end, n, n_bytes = b"", len(before), max(map(len, self.banned)) - 1
        while n and len(end) < n_bytes:
            n -= 1
            end = self.token_bytes[before[n]] + end
        return [*self.always, *(i for (start, _), ids in self.completing.items() if end.endswith(start) for i in ids)]


@dataclass(frozen=True)
class RepetitionPenalty(Rule):
    """Divide the positive scores of tokens that occur before by the penalty, and multiply the negative ones.

    Source: Keskar et al. 2019, section 4.1.
    """

    penalty: float

    def apply(self, scores: Scores, ids: Ints) -> Scores:
        penalized = np.take_along_axis(scores, ids, 1)
        penalized = np.where(penalized < 0, penalized * self.penalty, penalized / self.penalty)
        np.put_along_axis(scores, ids, penalized, 1)
        return scores


def without(scores: Scores, excluded: NDArray[np.bool_]) -> Scores:
    """The scores without some tokens."""
    scores[excluded] = -np.inf
    return scores


@dataclass(frozen=True)
class Temperature(Rule):
    """Divide the scores by the temperature."""

    value: float

    def apply(self, scores: Scores, ids: Ints) -> Scores:
        return scores / self.value


@dataclass(frozen=True)
class TopK(Rule):
    """Exclude all but the k best tokens, and those with the score of the k-th. Source: Fan et al. 2018, section 5.4."""

    k: int

    def apply(self, scores: Scores, ids: Ints) -> Scores:
        at = max(0, scores.shape[1] - self.k)
        return without(scores, scores < np.partition(scores, at, axis=1)[:, at : at + 1])


@dataclass(frozen=True)
class TopP(Rule):
    """Keep the most probable tokens until their probabilities sum to at least p (nucleus sampling), and those with the
    score of the last of them; exclude the others.

    Source: Holtzman et al. 2020, section 3.1.
    """

    p: float
    min_tokens_to_keep: int = 1

    def apply(self, scores: Scores, ids: Ints) -> Scores:
        ascending = np.sort(scores, axis=1)
        is_excluded = softmax(ascending).cumsum(axis=1) <= 1 - self.p
        is_excluded[:, -self.min_tokens_to_keep :] = False
        return without(scores, scores < np.take_along_axis(ascending, is_excluded.sum(axis=1, keepdims=True), 1))


@dataclass(frozen=True)
class MinP(Rule):
    """Exclude tokens whose probability is below p times that of the best. Source: Nguyen et al. 2024, section 3."""

    p: float

    def apply(self, scores: Scores, ids: Ints) -> Scores:
        return without(scores, scores < scores.max(axis=1, keepdims=True) + math.log(self.p))


@dataclass(frozen=True)
class TypicalP(Rule):
    """Keep the tokens whose information content is closest to the entropy of the distribution, until their
    probabilities sum to at least p. Source: Meister et al. 2022, section 3.
    """

    p: float

    def apply(self, scores: Scores, ids: Ints) -> Scores:
        log_probs = log_softmax(scores)
        probs = np.exp(log_probs)
        with np.errstate(invalid="ignore"):  # 0 x -inf of excluded tokens
            entropy = -np.nansum(probs * log_probs, axis=1, keepdims=True)
        order = np.abs(-log_probs - entropy).argsort(axis=1, kind="stable")
        before = np.roll(np.take_along_axis(probs, order, 1).cumsum(axis=1), 1, axis=1)
        before[:, 0] = 0
        is_excluded = np.empty(scores.shape, bool)
        np.put_along_axis(is_excluded, order, before >= self.p, 1)
        return without(scores, is_excluded)


def search_rules(
    banned_ids: Sequence[int] = (),
    options: SearchConfig | None = None,
    *,
    eos_id: int = 0,
    end_ids: Sequence[int] = (),
    prefix: Sequence[int] = (),
    token_bytes: Sequence[bytes] = (),
) -> list[Rule]:
    """Rules of search and sampling: log-probabilities over the tokens that may be generated. Tokens that are excluded
    after `LogSoftmax` do not change the log-probabilities of the others.

    Args:
        banned_ids: ids of tokens that are never generated.
        options: repetition penalty, n-grams that do not repeat, minimum length, banned texts.
        eos_id: id of the end-of-sentence token.
        end_ids: ids of further tokens that end a text.
        prefix: ids of the tokens that every output begins with. They have probability 1.
        token_bytes: the bytes that each token adds to a text, for banned texts.
    """
    c = options or SearchConfig()
    return [
        BannedTokens(tuple(banned_ids)),
        *([RepetitionPenalty(c.repetition_penalty)] if c.repetition_penalty else []),
        LogSoftmax(),
        *([NoRepeatNgrams(c.no_repeat_ngram_size)] if c.no_repeat_ngram_size else []),
        *([MinLength(c.min_length, (eos_id, *end_ids))] if c.min_length else []),
        *([BannedTexts(c.ban, token_bytes)] if c.ban else []),
        *(ForcedToken(token, position) for position, token in enumerate(prefix)),
    ]


def sampling_rules(options: SamplingConfig) -> list[Rule]:
    """Rules that shape the distribution to sample from: temperature, then top-k, top-p, min-p, typical sampling.
    Without any option of sampling, only the most probable token is kept.
    """
    if not options.do_sample:
        return [TopK(1)]
    return [
        *([Temperature(options.temperature)] if options.temperature is not None else []),
        *([TopK(options.top_k)] if options.top_k is not None else []),
        *([TopP(options.top_p)] if options.top_p is not None and options.top_p < 1 else []),
        *([MinP(options.min_p)] if options.min_p is not None else []),
        *([TypicalP(options.typical_p)] if options.typical_p is not None and options.typical_p < 1 else []),
    ]
