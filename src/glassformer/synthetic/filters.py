"""Which translations by a model are not used for training, and why."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from glassformer.corpora.language_id import N_GRAMS, SMOOTHING, Profile, n_grams
from glassformer.corpora.repetition import repeats
from glassformer.corpora.words import letters_of
from glassformer.errors import CorpusError
from glassformer.synthetic.answers import Answer

MIN_LETTERS = 20
"""A text with fewer letters does not tell its language."""

OUTLIERS = 0.002
"""Fraction of the known texts of a language that are less probable in it than what is accepted."""

MARGIN = 0.5
"""How much less probable, in nats for each n-gram, a text may be than these."""

MIN_KNOWN = 200
"""A language is known from at least so many sentences."""

MAX_SENTENCES = 10_000
"""Number of sentences from which a language is learned."""

MIN_LENGTH_RATIO, MAX_LENGTH_RATIO = 1 / 3, 3.0
"""Number of characters of a translation, to that of translations of the same length on average."""

MORE_CHARACTERS = 20
"""A translation may have so many more, or fewer, for short texts."""

CHATTER = re.compile(
    r"^(?:sure|certainly|of course|here(?:'s| is| are)|translation|the translation|note|i'm sorry|i am sorry|i cannot"
    r"|as an ai|natürlich|gerne|hier ist|übersetzung|voici|bien sûr|traduction|claro|por supuesto|traducción)"
    r"\b[^.\n]{0,60}:|^(?:i'm sorry|i am sorry|i cannot|i can't|as an ai)\b",
    re.IGNORECASE,
)
"""How chat models begin when they talk about a translation."""


class Language:
    """Recognizes sentences of a language by the mean log-probability of their character n-grams."""

    def __init__(self, sentences: Sequence[str]) -> None:
        """
        Args:
            sentences: sentences of the language, from which the n-grams and their probabilities are counted.
        """
        known = [text for text in sentences if len(letters_of(text)) >= MIN_LETTERS][:MAX_SENTENCES]
        # Half of the sentences tell how probable unseen ones are.
        seen, unseen = known[::2], known[1::2]
        self.is_known = len(known) >= MIN_KNOWN
        self.profile = Profile.of(seen)
        scores = [self.score(text) for text in unseen]
        self.least = float(np.quantile(scores, OUTLIERS)) - MARGIN if self.is_known else -math.inf

    def score(self, text: str) -> float:
        """Mean log-probability of the n-grams of a text, in nats."""
        grams = n_grams(text)
        total = self.profile.total + SMOOTHING * N_GRAMS
        log_probs = (n * math.log((self.profile.counts.get(gram, 0) + SMOOTHING) / total) for gram, n in grams.items())
        return sum(log_probs) / max(1, grams.total())

    def has(self, text: str) -> bool:
        """Whether a text may be of the language."""
        return not self.is_known or len(letters_of(text)) < MIN_LETTERS or self.score(text) >= self.least


@dataclass(slots=True)
class Filter:
    """Decides which translations are used, and counts the reasons of the others."""

    language: Language | None = None
    """The language of the translations, if it is known."""
    length_ratio: float = 1.0
    """Number of characters of a translation for each character of its source, on average."""
    min_score: float | None = None
    """Least mean log-probability of the tokens."""
    of_chats: bool = False
    """The translations are answers of a chat model, which may talk about them instead."""
    counts: Counter[str] = field(default_factory=Counter)
    """Number of translations that are not used, by reason."""
    first: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The first of each reason: source and translation."""

    def accepts(self, source: str, text: str, answer: Answer) -> bool:
        """Whether a translation is used."""
        reason = self.reason(source, text, answer)
        if reason:
            self.counts[reason] += 1
            self.first.setdefault(reason, (source, text))
        return not reason

    def reason(self, source: str, text: str, answer: Answer) -> str:
        """Why a translation is not used; empty if it is."""
        if not answer.texts:
            return "refused by the endpoint"
        if not text.strip():
            return "empty"
        if answer.is_truncated:
            return "cut at the maximum length"
        if text.strip().count("\n") > source.strip().count("\n"):
            return "more lines than the source"
        if self.of_chats and CHATTER.match(text) and not CHATTER.match(source):
            return "talks about the translation"
        if text.strip() == source.strip() and len(letters_of(text)) >= MIN_LETTERS:
            return "equal to the source"
        expected = self.length_ratio * len(source)
        if (
            not MIN_LENGTH_RATIO * expected - MORE_CHARACTERS
            <= len(text)
            <= MAX_LENGTH_RATIO * expected + MORE_CHARACTERS
        ):
            return "much longer or shorter than the source"
        if repeats(text) and not repeats(source):
            return "repeats itself"
        if self.language and not self.language.has(text):
            return "in another language"
        if self.min_score is not None and answer.score is not None and answer.score < self.min_score:
            return "improbable"
        return ""

    def check(self, n: int, answers: Path, advice: str) -> None:
        """Check that at least half of the translations are used.

        Args:
            n: number of all.
            answers: the file that has them.
            advice: what to do otherwise, as a sentence without a full stop.

        Raises:
            CorpusError: fewer are used.
        """
        n_unused = self.counts.total()
        if n_unused > n / 2:
            raise CorpusError(
                f"{n_unused:,} of {n:,} translations cannot be used: see above. All are in {answers}.\n  {advice}."
            )

    def report(self, n: int) -> str:
        """Message with the number of translations that are not used, and the first of each reason.

        Args:
            n: number of all.
        """
        if not self.counts:
            return f"All {n:,} translations are used."
        lines = [f"{self.counts.total():,} of {n:,} translations are not used:"]
        for reason, count in self.counts.most_common():
            source, text = (repr(side if len(side) < 60 else f"{side[:57]}…") for side in self.first[reason])
            lines.append(f"  {count:,} {reason}: {source} -> {text}")
        return "\n".join(lines)


def typical_ratio(pairs: Sequence[tuple[str, str]]) -> float:
    """Median number of characters of a translation for each of its source."""
    ratios = [len(text) / len(source) for source, text in pairs if source and text]
    return float(np.median(ratios)) if ratios else 1.0
