"""A translation memory in use: the translation of a text, and that of the most similar text."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from glassformer.documents.words import UNSPACED_RANGES, marks


@cache
def token_pattern() -> re.Pattern[str]:
    """A word with the marks of its letters, or a letter of a script that has no spaces between words."""
    return re.compile(rf"[{UNSPACED_RANGES}]|[^\W{UNSPACED_RANGES}](?:[^\W{UNSPACED_RANGES}]|[{marks()}])*")


MAX_POSTINGS = 20_000
"""Number of occurrences of the tokens of a text that are looked at, those of rare tokens first."""

N_CANDIDATES = 48
"""Number of texts whose similarity is computed: those with the most tokens in common."""


@dataclass(frozen=True, slots=True)
class Match:
    """A text of a memory that is similar to another."""

    source: str
    target: str
    """Its translation."""
    similarity: float
    """1 - the edit distance in words, in lower case, divided by the number of words of the longer text; 1 for an equal
    text only, 0.99 for one with the same words."""
    used: bool = True
    """Whether a translation was made of it."""


def tokens_of(text: str) -> list[str]:
    """The words by which texts are compared, in lower case; other signs count only in texts without words."""
    return token_pattern().findall(text.lower()) or text.split()


def edit_distance(first: Sequence[int], second: Sequence[int]) -> int:
    """Number of tokens to insert, remove or replace (Levenshtein). Source: Hyyrö 2003, after Myers 1999."""
    if not first:
        return len(second)
    positions: dict[int, int] = {}
    for i, token in enumerate(first):
        positions[token] = positions.get(token, 0) | 1 << i
    every, last = (1 << len(first)) - 1, 1 << (len(first) - 1)
    distance, more, less = len(first), every, 0
    for token in second:
        equal = positions.get(token, 0)
        diagonal = (((equal & more) + more) ^ more) | equal | less
        right_more, right_less = (less | ~(diagonal | more)) & every, diagonal & more
        distance += bool(right_more & last) - bool(right_less & last)
        right_more, right_less = (right_more << 1 | 1) & every, (right_less << 1) & every
        more, less = (right_less | ~(diagonal | right_more)) & every, diagonal & right_more & every
    return distance


class Memory:
    """Texts and their translations, with an index of their words.

    Args:
        pairs: the texts. Of several translations of a text, the last is used.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.translations = {src.strip(): tgt.strip() for src, tgt in pairs}
        self.sources = list(self.translations)
        self.ids: dict[str, int] = {}
        """Number of each token."""
        of_sources = [[self.ids.setdefault(token, len(self.ids)) for token in tokens_of(text)] for text in self.sources]
        self.tokens = np.fromiter(chain.from_iterable(of_sources), np.int32)
        self.begins = np.cumsum([0, *map(len, of_sources)])
        """Where the tokens of each text begin in `tokens`."""
        distinct = [sorted(set(tokens)) for tokens in of_sources]
        self.n_distinct = np.array(list(map(len, distinct)), np.int32)
        owners = np.repeat(np.arange(len(distinct), dtype=np.int32), self.n_distinct)
        tokens = np.fromiter(chain.from_iterable(distinct), np.int32)
        order = np.argsort(tokens, kind="stable")
        self.postings: NDArray[np.int32] = owners[order]
        """The texts that each token is in, in the order of the tokens."""
        self.posting_begins = np.searchsorted(tokens[order], np.arange(len(self.ids) + 1))

    def __len__(self) -> int:
        return len(self.sources)

    def exact(self, text: str) -> Match | None:
        """The text itself."""
        target = self.translations.get(text.strip())
        return None if target is None else Match(text.strip(), target, 1.0)

    def similar(self, text: str, least: float) -> Match | None:
        """The text that is most similar to another and not equal to it; of several, the one that is in the memory last.

        Args:
            least: the similarity that it has at least.
        """
        text = text.strip()
        words = tokens_of(text)
        ids = [self.ids.get(word, -1) for word in words]
        best, found = least, None
        for index, bound in self.candidates(ids):
            if bound < best:
                break
            other = self.tokens[self.begins[index] : self.begins[index + 1]].tolist()
            longest = max(len(ids), len(other))
            if min(len(ids), len(other)) < best * longest or self.sources[index] == text:
                continue
            similarity = min(1 - edit_distance(ids, other) / longest, 0.99)
            if similarity > best or (similarity == best and (found is None or index > found)):
                best, found = similarity, index
        if found is None:
            return None
        source = self.sources[found]
        return Match(source, self.translations[source], best)

    def candidates(self, ids: Sequence[int]) -> Iterator[tuple[int, float]]:
        """The texts with the most distinct tokens in common, and an estimate of the similarity, the best first.

        Args:
            ids: tokens of a text, -1 for one that the memory does not have.
        """
        known = sorted({i for i in ids if i >= 0}, key=lambda i: self.posting_begins[i + 1] - self.posting_begins[i])
        used: list[NDArray[np.int32]] = []
        n = 0
        for token in known:
            begin, end = self.posting_begins[token], self.posting_begins[token + 1]
            n += end - begin
            if used and n > MAX_POSTINGS:
                break
            used.append(self.postings[begin:end])
        if not used:
            return
        texts, counts = np.unique(np.concatenate(used), return_counts=True)
        n_common_at_most = counts + (len(known) - len(used))
        n_distinct = len(set(ids))
        bounds = n_common_at_most / np.maximum(n_distinct, self.n_distinct[texts])
        if len(texts) > N_CANDIDATES:
            top = np.argpartition(-bounds, N_CANDIDATES)[:N_CANDIDATES]
            texts, bounds = texts[top], bounds[top]
        for i in np.argsort(-bounds, kind="stable"):
            yield int(texts[i]), float(bounds[i])
