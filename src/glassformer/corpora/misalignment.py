"""Where the pairing of two files slips, guessed from words that translate each other and from lengths."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from statistics import median

MAX_LINES = 2_000_000  # of one side, held in memory for the guess
_N_TRAIN = 6_000  # pairs that the word table is learned from
_WINDOW = 150  # lines that one probe of the pairing looks at
_REACH = 8  # largest slip looked for right after the place, in lines
_NEAR = 3  # a guess counts as certain if the evidence puts the place within this many lines
_CERTAIN = 0.8
_TEMPER = 0.5  # words of one line are not independent, so their summed evidence is too sure of itself

_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_]+|[?!:;…%()\"]")


def _tokens(line: str) -> list[str]:
    return list(dict.fromkeys(token[:7] for token in _TOKEN.findall(line.lower())))[:60]


class _PairScore:
    """log p(pair | translation) - log p(pair | chance), from a word table learned on the two files themselves."""

    def __init__(self, src: Sequence[str], tgt: Sequence[str]):
        self.src, self.tgt = src, tgt
        n = min(len(src), len(tgt))
        shift = len(src) - n, len(tgt) - n
        # Pairs before the slip agree when counted from the start, those after it from the end: train on both,
        # so that each right pair comes once or twice and each wrong one is noise.
        step = -(-n // _N_TRAIN)
        block = 20
        chosen = [i for i in range(n) if i // block % step == 0]
        pairs = [(i, i) for i in chosen] + [(i + shift[0], i + shift[1]) for i in chosen]
        self._learn_words(pairs)
        self._learn_lengths(pairs)

    def _learn_words(self, pairs: Sequence[tuple[int, int]]) -> None:
        n_src: Counter[str] = Counter()
        n_tgt: Counter[str] = Counter()
        both: Counter[tuple[str, str]] = Counter()
        bags = [(_tokens(self.src[i])[:24], _tokens(self.tgt[j])[:24]) for i, j in pairs]
        for src, tgt in bags:
            n_src.update(src)
            n_tgt.update(tgt)
        # Words in more than a tenth of the lines tell nothing about the place, and cost the most.
        common = len(pairs) / 10
        for src, tgt in bags:
            kept = [word for word in tgt if 2 <= n_tgt[word] <= common]
            for word in src:
                if 2 <= n_src[word] <= common:
                    both.update([(word, other) for other in kept])
        self.partners: dict[str, set[str]] = {}
        for (word, other), n in both.items():
            expected = n_src[word] * n_tgt[other] / len(pairs)
            if n >= 2 and 2 * n / (n_src[word] + n_tgt[other]) > 0.1 and n > 4 * expected:
                self.partners.setdefault(other, set()).add(word)
        far = len(pairs) // 2 // 3 or 1
        sample = pairs[:: max(1, len(pairs) // 2000)]
        # Half of `pairs` may be wrong, so the share seen there is a low estimate of the true one.
        true = self._matched(sample)
        chance = self._matched([(i, (j + far) % len(self.tgt)) for i, j in sample])
        true = min(0.95, max(true, chance + 0.02))
        self.hit = math.log(true / chance)
        self.miss = math.log((1 - true) / (1 - chance))

    def _known(self, token: str) -> bool:
        return token in self.partners or not token.isalpha()

    def _counts(self, i: int, j: int) -> tuple[int, int]:
        src = set(_tokens(self.src[i]))
        n = n_hit = 0
        for token in _tokens(self.tgt[j]):
            if self._known(token):
                n += 1
                n_hit += token in src or not src.isdisjoint(self.partners.get(token, ()))
        return n, n_hit

    def _matched(self, pairs: Sequence[tuple[int, int]]) -> float:
        counts = [self._counts(i, j) for i, j in pairs]
        return (sum(hit for _, hit in counts) + 1) / (sum(n for n, _ in counts) + 2)

    def _ratio(self, i: int, j: int) -> float:
        return math.log((len(self.tgt[j]) + 5) / (len(self.src[i]) + 5))

    def _learn_lengths(self, pairs: Sequence[tuple[int, int]]) -> None:
        sample = pairs[:: max(1, len(pairs) // 2000)]
        far = len(pairs) // 2 // 3 or 1
        ratios = [self._ratio(i, j) for i, j in sample]
        chance = [self._ratio(i, (j + far) % len(self.tgt)) for i, j in sample]
        self.mid = median(ratios)
        self.spread = 1.5 * median(abs(x - self.mid) for x in ratios) + 0.02
        self.chance_mid = median(chance)
        self.chance_spread = max(self.spread, 1.5 * median(abs(x - self.chance_mid) for x in chance))

    def __call__(self, i: int, j: int) -> float:
        blanks = (not self.src[i].strip()) + (not self.tgt[j].strip())
        if blanks:
            return 2.0 if blanks == 2 else -4.0
        n, n_hit = self._counts(i, j)
        words = n_hit * self.hit + (n - n_hit) * self.miss
        x = self._ratio(i, j)
        near = min(20.0, ((x - self.mid) / self.spread) ** 2 / 2)
        far = min(20.0, ((x - self.chance_mid) / self.chance_spread) ** 2 / 2)
        return words + max(-3.0, far - near + math.log(self.chance_spread / self.spread))


def guess_misalignment(src_lines: Sequence[str], tgt_lines: Sequence[str]) -> int | None:
    """The first line, from 1, that no longer pairs with the same line of the other side; None without good evidence.

    Probes of the pairing bisect to the place; there, the likeliest change from "line n with line n" to
    "line n with line n + d" is taken if almost all of the probability lies near it.
    """
    n = min(len(src_lines), len(tgt_lines))
    if n < 10 or len(src_lines) == len(tgt_lines):
        return None
    score = _PairScore(src_lines, tgt_lines)

    gap = len(src_lines) - len(tgt_lines)
    reach = min(_REACH, abs(gap) + 1)
    shifts = [d for d in range(-reach, reach + 1) if d and (abs(d) == 1 or d * gap > 0)]

    def paired(at: int) -> bool:
        lines = range(max(0, at - _WINDOW // 2), min(n, at + _WINDOW // 2))
        straight = sum(score(i, i) for i in lines)
        # In sorted corpora neighbors are near copies: a slipped pair still looks like a translation, only less so.
        return straight > max(0.0, *(sum(_shifted(score, i, d) for i in lines) for d in shifts))

    low, high = 0, n
    while high - low > _WINDOW // 2:
        middle = (low + high) // 2
        low, high = (middle, high) if paired(middle) else (low, middle)
    start, stop = max(0, low - _WINDOW), min(n, high + _WINDOW)
    straight = [score(i, i) for i in range(start, stop)]
    shifted = {d: [_shifted(score, i, d) for i in range(start, stop)] for d in shifts}
    paths = {  # by (shift, first shifted line): evidence over the whole stretch
        (d, start + k): _TEMPER * total
        for d, scores in shifted.items()
        for k, total in enumerate(_change_scores(straight, scores))
    }
    best = max(paths, key=lambda place: paths[place])
    weights = {place: math.exp(value - paths[best]) for place, value in paths.items()}
    near = sum(weight for (_, line), weight in weights.items() if abs(line - best[1]) <= _NEAR)
    first = best[1]
    before = sum(straight[: first - start])
    after = sum(shifted[best[0]][first - start :]) - sum(straight[first - start :])
    seen_before = first == 0 or before > 0
    if near < _CERTAIN * sum(weights.values()) or not seen_before or (after < 3 and first < n - _NEAR):
        return None
    return first + 1


def _shifted(score: _PairScore, i: int, d: int) -> float:
    j, k = (i + d, i) if d > 0 else (i, i - d)
    return score(j, k) if j < len(score.src) and k < len(score.tgt) else 0.0


def _change_scores(before: Sequence[float], after: Sequence[float]) -> list[float]:
    """Total evidence when the change falls before line k, for k = 0 … len."""
    left = accumulate(before, initial=0.0)
    right = reversed(list(accumulate(reversed(after), initial=0.0)))
    return [a + b for a, b in zip(left, right, strict=True)]
