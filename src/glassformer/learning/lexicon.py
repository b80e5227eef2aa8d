"""Lexicon of word translations, learned from the training pairs, and phrase pairs.

Source: Brown et al. 1993, section 4.1 (Model 1), in both directions; Och & Ney 2004, section 4.5.1, for phrase pairs.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from glassformer.documents.words import UNSPACED, marks, unit_spans
from glassformer.generate.shortlist import expected_counts, parts_of
from glassformer.tokens.tokenizer import Tokenizer

MIN_PROBABILITY = 0.25
"""Of both words, given the other."""

MIN_COUNT = 2.0
"""Expected number of occurrences of the pair of words."""

MAX_WORDS = 4
"""Maximum number of words of a phrase."""

MAX_PHRASE = 8
"""Maximum number of words of a phrase between tags."""

WORD = re.compile(rf"[^\W\d_](?:[^\W_]|[{marks()}]|['’&;-](?=\w))*")


class Lexicon:
    """Pairs of words that translate each other.

    Args:
        pairs: texts with translations, from which it is learned.
        tokenizer: says what the words are where no spaces separate them: its tokens. Default: all letters together.
    """

    def __init__(self, pairs: Sequence[tuple[str, str]], tokenizer: Tokenizer | None = None) -> None:
        self.tokenizers = tokenizer.sides if tokenizer else (None, None)
        words = [tuple(map(self.words, range(2), pair)) for pair in pairs]
        ids: dict[str, int] = {}
        numbered = [tuple([ids.setdefault(word, len(ids)) for word in side] for side in pair) for pair in words]
        n = len(ids)
        counts: Counter[int] = Counter()
        for part in parts_of([(src, tgt) for src, tgt in numbered]):
            keys, values = expected_counts(part, n)
            counts.update(dict(zip(keys.tolist(), values.tolist(), strict=True)))
        keys, values = np.array(list(counts)), np.array(list(counts.values()))
        self.pairs: set[tuple[str, str]] = set()
        """Words in lower case that translate each other."""
        if not len(keys):
            return
        sources, targets = np.divmod(keys, n)
        given_source = values / np.bincount(sources, values)[sources]
        given_target = values / np.bincount(targets, values)[targets]
        kept = (np.minimum(given_source, given_target) >= MIN_PROBABILITY) & (values >= MIN_COUNT) & (sources < n)
        names = list(ids)
        self.pairs = {(names[s], names[t]) for s, t in zip(sources[kept].tolist(), targets[kept].tolist(), strict=True)}

    def spans(self, side: int, text: str) -> list[tuple[int, int]]:
        """Start and end of each word of a source (0) or a translation (1)."""
        found = [match.span() for match in WORD.finditer(text)]
        tokenizer = self.tokenizers[side]
        if not tokenizer or not UNSPACED.search(text):
            return found
        _, offsets = tokenizer.offsets(text)
        cuts = sorted({start for start, _ in offsets} & {start for start, _ in unit_spans(text)})
        return [
            part
            for start, end in found
            for part in pairwise([start, *cuts[bisect_right(cuts, start) : bisect_left(cuts, end)], end])
        ]

    def words(self, side: int, text: str) -> list[str]:
        """The words of a source (0) or a translation (1), in lower case."""
        return [text[start:end].lower() for start, end in self.spans(side, text)]

    def phrase_pair(self, src: str, tgt: str, rng: np.random.Generator) -> tuple[str, str] | None:
        """A random phrase pair: adjacent words of the source, and those of the target that translate them, in the same
        order. None: the lexicon has no words of this pair.
        """
        sides = [self.spans(side, text) for side, text in enumerate((src, tgt))]
        links = self.unique_links((src, tgt), sides)
        if not links:
            return None
        i, j = links[int(rng.integers(len(links)))]
        length = int(rng.integers(1, MAX_WORDS + 1))
        end_i, end_j = i, j
        while end_i - i + 1 < length and (end_i + 1, end_j + 1) in links:
            end_i, end_j = end_i + 1, end_j + 1
        return (
            src[sides[0][i][0] : sides[0][end_i][1]],
            tgt[sides[1][j][0] : sides[1][end_j][1]],
        )

    def phrase_spans(
        self, src: str, tgt: str, rng: np.random.Generator
    ) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """Where a random phrase of the source is, and its translation, in any order of the words: the first and the
        last word of both are linked, and no word is linked to one outside. Each length is as probable. None: the
        lexicon has no words of this pair.
        """
        sides = [self.spans(side, text) for side, text in enumerate((src, tgt))]
        links = self.unique_links((src, tgt), sides)
        by_length: dict[int, list[tuple[int, int, int, int]]] = {}
        for first in sorted({s for s, _ in links}):
            for last in sorted({s for s, _ in links if first <= s < first + MAX_PHRASE}):
                targets = [t for s, t in links if first <= s <= last]
                low, high = min(targets), max(targets)
                is_consistent = all(first <= s <= last for s, t in links if low <= t <= high)
                if is_consistent and high - low < MAX_PHRASE:
                    by_length.setdefault(last - first, []).append((first, last, low, high))
        if not by_length:
            return None
        lengths = list(by_length)
        found = by_length[lengths[int(rng.integers(len(lengths)))]]
        first, last, low, high = found[int(rng.integers(len(found)))]
        return (sides[0][first][0], sides[0][last][1]), (sides[1][low][0], sides[1][high][1])

    def unique_links(self, texts: tuple[str, str], spans: Sequence[Sequence[tuple[int, int]]]) -> list[tuple[int, int]]:
        """Words of both sides that translate each other, without those that occur twice, which may correspond to each
        other in several ways."""
        words = [[text[a:b].lower() for a, b in side] for text, side in zip(texts, spans, strict=True)]
        links = [(i, j) for i, s in enumerate(words[0]) for j, t in enumerate(words[1]) if (s, t) in self.pairs]
        n_source, n_target = map(Counter, words)
        return [(i, j) for i, j in links if n_source[words[0][i]] == n_target[words[1][j]] == 1]
