"""Statistics of a parallel corpus, and the issues of pairs that differ from them: length ratios and scripts."""

import math
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median

from glassformer.corpora.doctor.issues import Issue

RATIO_MIN_CHARS = 20  # in shorter texts, one word more or less makes a ratio extreme
RATIO_FACTOR = 3.0  # a ratio is extreme only if it differs from the corpus median by more than this factor
RATIO_MAX_DEVIATIONS = 7.0  # and by more than this number of robust standard deviations
SCRIPT_MIN_LETTERS = 10  # minimum number of foreign letters; lines with fewer contain a name, not another language
SCRIPT_MIN_FRACTION = 0.1  # minimum fraction of lines for a script to be expected in the corpus
MIN_STATISTICS_PAIRS = 20  # minimum number of pairs for statistics


@lru_cache(maxsize=1 << 16)
def _script(char: str) -> str:
    if not char.isalpha():
        return ""
    first = unicodedata.name(char, "").split(" ")[0]
    if first in ("CJK", "HIRAGANA", "KATAKANA", "HALFWIDTH", "BOPOMOFO", "KATAKANA-HIRAGANA"):
        return "CJK"
    return "LATIN" if first in ("FULLWIDTH", "FEMININE", "MASCULINE") else first


def _all_latin(text: str) -> bool:
    return text.isascii() or max(text) < "\u0250"  # the end of Latin Extended-B


def _script_counts(text: str) -> Counter[str]:
    """Number of letters of each script."""
    counts = Counter(map(_script, text))
    counts.pop("", None)
    return counts


def _log_ratio(src: str, tgt: str) -> float:
    return math.log((len(tgt) + 5) / (len(src) + 5))


@dataclass(frozen=True, slots=True)
class CorpusStatistics:
    """Statistics of a corpus: median log length ratio, its tolerance, and the usual scripts of each side."""

    log_ratio: float
    tolerance: float
    scripts: tuple[frozenset[str], frozenset[str]]

    def issues(self, src: str, tgt: str) -> Iterator[Issue]:
        """Issues of a pair relative to these statistics."""
        ratio = _log_ratio(src, tgt) - self.log_ratio
        if abs(ratio) > self.tolerance and max(len(src), len(tgt)) >= RATIO_MIN_CHARS:
            shorter = tgt if len(src) > len(tgt) else src
            usual = f"usual is 1 to {math.exp(self.log_ratio):.2f}"
            yield Issue(
                "length-ratio", int(ratio > 0), f"{len(src)} characters to {len(tgt)} {shorter[:40]!r}; {usual}"
            )
        for side, text in enumerate((src, tgt)):
            if not self.scripts[side] or ("LATIN" in self.scripts[side] and _all_latin(text)):
                continue
            letters = _script_counts(text)
            foreign = {script: n for script, n in letters.items() if script not in self.scripts[side]}
            n_foreign = sum(foreign.values())
            if n_foreign >= SCRIPT_MIN_LETTERS and 2 * n_foreign > sum(letters.values()):
                most = max(foreign, key=lambda script: foreign[script])
                usual_scripts = ", ".join(sorted(self.scripts[side]))
                yield Issue("wrong-script", side, f"{n_foreign} letters in {most}; this side is {usual_scripts}")


class StatisticsSampler:
    """Computes `CorpusStatistics` from an evenly spaced sample of a stream of unknown length."""

    def __init__(self, n_sample: int = 20_000):
        self.n_sample = n_sample
        self.step = 1
        self.n_seen = 0
        self.sample: list[tuple[str, str]] = []

    def add(self, src: str, tgt: str) -> None:
        """Add a pair of the stream."""
        if self.n_seen % self.step == 0:
            self.sample.append((src, tgt))
            if len(self.sample) == 2 * self.n_sample:
                del self.sample[1::2]
                self.step *= 2
        self.n_seen += 1

    def statistics(self) -> CorpusStatistics | None:
        """The statistics, or None for fewer than MIN_STATISTICS_PAIRS pairs."""
        pairs = [(src, tgt) for src, tgt in self.sample if src.strip() and tgt.strip()]
        if len(pairs) < MIN_STATISTICS_PAIRS:
            return None
        # The ratios of short pairs vary more: estimate the spread from pairs that are long enough to be checked.
        ratios = [_log_ratio(*pair) for pair in pairs if max(map(len, pair)) >= RATIO_MIN_CHARS]
        if len(ratios) < MIN_STATISTICS_PAIRS:
            ratios = [_log_ratio(*pair) for pair in pairs]
        median_ratio = median(ratios)
        spread = 1.4826 * median(abs(ratio - median_ratio) for ratio in ratios)
        tolerance = max(math.log(RATIO_FACTOR), RATIO_MAX_DEVIATIONS * spread)
        src_scripts, tgt_scripts = (_usual_scripts([pair[side] for pair in pairs]) for side in (0, 1))
        return CorpusStatistics(median_ratio, tolerance, (src_scripts, tgt_scripts))


def _usual_scripts(texts: Sequence[str]) -> frozenset[str]:
    lines = Counter(
        max(letters, key=lambda script: letters[script]) for text in texts if (letters := _script_counts(text))
    )
    return frozenset(script for script, n in lines.items() if n >= SCRIPT_MIN_FRACTION * lines.total())
