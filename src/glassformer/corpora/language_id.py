"""Language detection by character n-grams.

A naive Bayes classifier: the probability of a text in a language is the product of those of its n-grams of 1 to 4
characters. Source: Cavnar and Trenkle 1994 for the n-grams of a padded text; here with probabilities in place of ranks.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from glassformer.errors import CheckpointError
from glassformer.manifest import COPY_AGAIN

FILE = "languages.json"
MAX_N = 4
N_GRAMS = 20_000
"""Most n-grams of a language that are stored."""

MAX_SENTENCES = 10_000
"""Most sentences from which the n-grams of a language are counted."""

MAX_CHARACTERS = 1_000
"""Only the beginning of a text is examined."""

MAX_COUNT = 1 << 53
"""Counts of a file are smaller."""

SMOOTHING = 0.5
"""Added to the counts."""

NOT_LETTERS = re.compile(r"[\W\d_]+")


def n_grams(text: str) -> Counter[str]:
    """The n-grams of a text, in lower case, with one space for all that is between words."""
    padded = f" {NOT_LETTERS.sub(' ', text[:MAX_CHARACTERS].lower()).strip()} "
    if not padded.strip():
        return Counter()
    return Counter(padded[i : i + n] for n in range(1, MAX_N + 1) for i in range(len(padded) - n + 1))


def has_letters(text: str) -> bool:
    """Whether the part of a text that is examined has letters."""
    return bool(n_grams(text))


@dataclass(slots=True)
class Profile:
    """Counts of the n-grams of a language."""

    total: int
    counts: dict[str, int]

    @classmethod
    def of(cls, sentences: Iterable[str]) -> "Profile":
        """The profile of a language from sentences."""
        counts: Counter[str] = Counter()
        for sentence in sentences:
            counts.update(n_grams(sentence))
        return cls(counts.total(), dict(counts.most_common(N_GRAMS)))


@dataclass(slots=True)
class LanguageProfiles:
    """The profiles of several languages."""

    languages: dict[str, Profile] = field(default_factory=dict)

    @classmethod
    def fit(cls, sentences: dict[str, Sequence[str]]) -> "LanguageProfiles":
        """Profiles from sentences of each language, the first `MAX_SENTENCES` of them."""
        return cls({language: Profile.of(texts[:MAX_SENTENCES]) for language, texts in sentences.items()})

    @classmethod
    def read(cls, paths: Iterable[Path]) -> "LanguageProfiles":
        """The profiles of files; of a language that is in several the one with the most text.

        Raises:
            CheckpointError: a file is damaged.
        """
        return cls.merged(map(cls.of_file, paths))

    @classmethod
    def of_file(cls, path: Path) -> "LanguageProfiles":
        """The profiles of a file.

        Raises:
            CheckpointError: it is damaged.
        """
        try:
            text = path.read_text(encoding="utf-8")
        except ValueError:
            raise CheckpointError(f"{path}: damaged: not UTF-8.{COPY_AGAIN}") from None
        return cls.from_json(text)

    @classmethod
    def merged(cls, several: Iterable["LanguageProfiles"]) -> "LanguageProfiles":
        """The profiles of several; of a language that is in more than one the profile with the most text."""
        languages: dict[str, Profile] = {}
        for profiles in several:
            for language, profile in profiles.languages.items():
                if language not in languages or languages[language].total < profile.total:
                    languages[language] = profile
        return cls(languages)

    @classmethod
    def from_json(cls, text: str) -> "LanguageProfiles":
        """The profiles of the contents of a file.

        Raises:
            CheckpointError: it is damaged.
        """
        try:
            profiles = {
                str(language): Profile(int(value["total"]), {str(gram): int(n) for gram, n in value["counts"].items()})
                for language, value in json.loads(text).items()
            }
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError):
            raise CheckpointError(f"{FILE}: damaged.{COPY_AGAIN}") from None
        for language, profile in profiles.items():
            if not all(0 <= n <= profile.total < MAX_COUNT for n in (0, *profile.counts.values())):
                raise CheckpointError(f"{FILE}: damaged: the counts of {language!r}.{COPY_AGAIN}")
        return cls(profiles)

    def to_json(self) -> str:
        """Contents of the file in a model folder."""
        record = {name: {"total": p.total, "counts": p.counts} for name, p in self.languages.items()}
        return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"

    def detect(self, text: str) -> list[tuple[str, float]]:
        """The languages with their probabilities, the most probable first. Without letters, all are equal."""
        grams = n_grams(text)
        scores = {
            language: sum(
                n * math.log((profile.counts.get(gram, 0) + SMOOTHING) / (profile.total + SMOOTHING * N_GRAMS))
                for gram, n in grams.items()
            )
            for language, profile in self.languages.items()
        }
        best = max(scores.values(), default=0.0)
        # n-grams overlap: their product is that of the characters to the power MAX_N
        weights = {language: math.exp((score - best) / MAX_N) for language, score in scores.items()}
        total = sum(weights.values())
        return sorted(((name, weight / total) for name, weight in weights.items()), key=lambda row: -row[1])
