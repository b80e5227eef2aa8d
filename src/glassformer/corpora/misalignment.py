"""Detection of misalignment in parallel files, from co-occurring words and length ratios."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from statistics import median

MAX_LINES = 2_000_000  # maximum number of lines per side, which are held in memory
_N_TRAIN = 6_000  # pairs from which the word table is estimated
_PROBE_LINES = 150  # number of lines from which it is decided whether the files are aligned there
_MAX_SHIFT = 8  # maximum shift of the alignment that is tested, in lines
_TOLERANCE = 3  # tolerance in lines within which the probability of the result is summed
_MIN_PROBABILITY = 0.8  # minimum probability of the result
_EVIDENCE_SCALE = 0.5  # words of a line are not independent, so their summed evidence is too large

_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_]+|[?!:;…%()\"]")


def _tokens(line: str) -> list[str]:
    return list(dict.fromkeys(token[:7] for token in _TOKEN.findall(line.lower())))[:60]


class _PairScore:
    """log p(pair | translation) - log p(pair | random pairing), from a word table estimated on the two files."""

    def __init__(self, src: Sequence[str], tgt: Sequence[str]):
        self.src, self.tgt = src, tgt
        n = min(len(src), len(tgt))
        shift = len(src) - n, len(tgt) - n
        # Lines before the misalignment correspond when counted from the start, later ones when counted from the end.
        # Train on both: correct pairs occur once or twice, wrong pairs are noise.
        step = -(-n // _N_TRAIN)
        block = 20
        chosen = [i for i in range(n) if i // block % step == 0]
        pairs = [(i, i) for i in chosen] + [(i + shift[0], i + shift[1]) for i in chosen]
        self._fit_words(pairs)
        self._fit_lengths(pairs)

    def _fit_words(self, pairs: Sequence[tuple[int, int]]) -> None:
        n_src: Counter[str] = Counter()
        n_tgt: Counter[str] = Counter()
        both: Counter[tuple[str, str]] = Counter()
        token_lists = [(_tokens(self.src[i])[:24], _tokens(self.tgt[j])[:24]) for i, j in pairs]
        for src, tgt in token_lists:
            n_src.update(src)
            n_tgt.update(tgt)
        # Words in more than 10% of the lines are not informative, and most expensive to count.
        common = len(pairs) / 10
        for src, tgt in token_lists:
            kept = [word for word in tgt if 2 <= n_tgt[word] <= common]
            for word in src:
                if 2 <= n_src[word] <= common:
                    both.update([(word, other) for other in kept])
        self.translations: dict[str, set[str]] = {}
        for (word, other), n in both.items():
            expected = n_src[word] * n_tgt[other] / len(pairs)
            if n >= 2 and 2 * n / (n_src[word] + n_tgt[other]) > 0.1 and n > 4 * expected:
                self.translations.setdefault(other, set()).add(word)
        random_offset = len(pairs) // 2 // 3 or 1
        sample = pairs[:: max(1, len(pairs) // 2000)]
        # Half of `pairs` may be wrong, so the fraction of matches in them is a low estimate.
        match_rate = self._match_rate(sample)
        random_rate = self._match_rate([(i, (j + random_offset) % len(self.tgt)) for i, j in sample])
        match_rate = min(0.95, max(match_rate, random_rate + 0.02))
        self.match_score = math.log(match_rate / random_rate)
        self.mismatch_score = math.log((1 - match_rate) / (1 - random_rate))

    def _known(self, token: str) -> bool:
        return token in self.translations or not token.isalpha()

    def _counts(self, i: int, j: int) -> tuple[int, int]:
        src = set(_tokens(self.src[i]))
        n = n_hit = 0
        for token in _tokens(self.tgt[j]):
            if self._known(token):
                n += 1
                n_hit += token in src or not src.isdisjoint(self.translations.get(token, ()))
        return n, n_hit

    def _match_rate(self, pairs: Sequence[tuple[int, int]]) -> float:
        counts = [self._counts(i, j) for i, j in pairs]
        return (sum(hit for _, hit in counts) + 1) / (sum(n for n, _ in counts) + 2)

    def _ratio(self, i: int, j: int) -> float:
        return math.log((len(self.tgt[j]) + 5) / (len(self.src[i]) + 5))

    def _fit_lengths(self, pairs: Sequence[tuple[int, int]]) -> None:
        sample = pairs[:: max(1, len(pairs) // 2000)]
        random_offset = len(pairs) // 2 // 3 or 1
        ratios = [self._ratio(i, j) for i, j in sample]
        random_ratios = [self._ratio(i, (j + random_offset) % len(self.tgt)) for i, j in sample]
        self.median = median(ratios)
        self.spread = 1.5 * median(abs(x - self.median) for x in ratios) + 0.02
        self.random_median = median(random_ratios)
        self.random_spread = max(self.spread, 1.5 * median(abs(x - self.random_median) for x in random_ratios))

    def __call__(self, i: int, j: int) -> float:
        blanks = (not self.src[i].strip()) + (not self.tgt[j].strip())
        if blanks:
            return 2.0 if blanks == 2 else -4.0
        n, n_hit = self._counts(i, j)
        word_score = n_hit * self.match_score + (n - n_hit) * self.mismatch_score
        ratio = self._ratio(i, j)
        cost = min(20.0, ((ratio - self.median) / self.spread) ** 2 / 2)
        random_cost = min(20.0, ((ratio - self.random_median) / self.random_spread) ** 2 / 2)
        return word_score + max(-3.0, random_cost - cost + math.log(self.random_spread / self.spread))


def guess_misalignment(src_lines: Sequence[str], tgt_lines: Sequence[str]) -> int | None:
    """The first line, counted from 1, that does not correspond to the same line of the other side; None if uncertain.

    A bisection with probes of the alignment finds the region. In it, the most probable change from "line n with line
    n" to "line n with line n + d" is returned if most of the probability is near it.
    """
    n = min(len(src_lines), len(tgt_lines))
    if n < 10 or len(src_lines) == len(tgt_lines):
        return None
    score = _PairScore(src_lines, tgt_lines)

    n_extra = len(src_lines) - len(tgt_lines)
    max_shift = min(_MAX_SHIFT, abs(n_extra) + 1)
    shifts = [d for d in range(-max_shift, max_shift + 1) if d and (abs(d) == 1 or d * n_extra > 0)]

    def is_aligned(line: int) -> bool:
        lines = range(max(0, line - _PROBE_LINES // 2), min(n, line + _PROBE_LINES // 2))
        unshifted = sum(score(i, i) for i in lines)
        # In sorted corpora, neighbors are similar: a shifted pair still resembles a translation, but less than the
        # correct one.
        return unshifted > max(0.0, *(sum(_shifted(score, i, d) for i in lines) for d in shifts))

    low, high = 0, n
    while high - low > _PROBE_LINES // 2:
        middle = (low + high) // 2
        low, high = (middle, high) if is_aligned(middle) else (low, middle)
    start, stop = max(0, low - _PROBE_LINES), min(n, high + _PROBE_LINES)
    unshifted = [score(i, i) for i in range(start, stop)]
    shifted = {d: [_shifted(score, i, d) for i in range(start, stop)] for d in shifts}
    paths = {  # by (shift, first shifted line): evidence over the region
        (d, start + k): _EVIDENCE_SCALE * total
        for d, scores in shifted.items()
        for k, total in enumerate(_change_scores(unshifted, scores))
    }
    best_path = max(paths, key=lambda path: paths[path])
    weights = {path: math.exp(value - paths[best_path]) for path, value in paths.items()}
    near_weight = sum(weight for (_, line), weight in weights.items() if abs(line - best_path[1]) <= _TOLERANCE)
    first_shifted = best_path[1]
    before = sum(unshifted[: first_shifted - start])
    after = sum(shifted[best_path[0]][first_shifted - start :]) - sum(unshifted[first_shifted - start :])
    seen_before = first_shifted == 0 or before > 0
    if (
        near_weight < _MIN_PROBABILITY * sum(weights.values())
        or not seen_before
        or (after < 3 and first_shifted < n - _TOLERANCE)
    ):
        return None
    return first_shifted + 1


def _shifted(score: _PairScore, i: int, d: int) -> float:
    j, k = (i + d, i) if d > 0 else (i, i - d)
    return score(j, k) if j < len(score.src) and k < len(score.tgt) else 0.0


def _change_scores(before: Sequence[float], after: Sequence[float]) -> list[float]:
    """Total evidence for a change before line k, for k = 0 … len."""
    left = accumulate(before, initial=0.0)
    right = reversed(list(accumulate(reversed(after), initial=0.0)))
    return [a + b for a, b in zip(left, right, strict=True)]
