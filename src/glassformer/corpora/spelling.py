"""Typing errors in the words of a text, found by the words of the training text.

A model has never seen `wiht`, and translates it into anything. A word that the training text does not have is either a
new word or one of its words with a typing error; here it is what is more probable (noisy channel: Kernighan, Church and
Gale 1990). The probability of all new words is that of Good and Turing; a model of letters divides it among them
(n-grams of the known words, smoothed as by Witten and Bell 1991). Counterpart: browser/page/spelling.js, which computes
the same numbers in the same order.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from glassformer.config import JsonObject
from glassformer.errors import CheckpointError
from glassformer.manifest import COPY_AGAIN

FILE = "words.json"
MAX_TEXTS = 200_000
"""Most texts whose words are counted."""

MAX_WORDS = 100_000
"""Most words that are stored, the most frequent ones."""

MIN_LETTERS, MAX_LETTERS = 4, 40
"""Shorter words stay as they are, because many words are like them; longer ones are no words."""

TYPING_ERRORS = 0.0001
"""Probability that a word has a typing error: fewer than people make, as a right word that is taken for another one is
worse than an error that stays."""

MIN_COUNT = 3
"""No word is taken for a rarer one, which may be an error itself."""

FIRST_LETTER = 0.1
"""How probable an error of the first letter is, compared with others."""

NEW_WORDS = 0.001
"""Least probability that a word of a text is a new one: training text may be made of few words."""

EXPECTED_IN = 20
"""The expected fraction of new words counts as much as so many words of the text itself."""

N_KINDS = 4
"""Kinds of errors, which are equally probable: two letters exchanged, one left out, one too many, one replaced."""

ORDER = 5
"""Largest number of letters of an n-gram."""

ALPHABET = 60
"""Number of letters, the most frequent ones, with which a letter is replaced, or that are added."""

NOUNS_HAVE_CAPITALS = ("de", "lb")
"""Languages in which a capital within a sentence does not tell a name."""

SHARED = 0.5
"""A word in capitals that the translations have, so often in relation to the sources, is a name."""

LETTERS = re.compile(r"[^\W\d_]+")
WORD = re.compile(
    r"""(?<!\S)(["'“‘«„(\[¿¡]*(?:[^\W\d_]{1,4}['’])?)([^\W\d_]+)"""
    r"""(?=(?:['’]s)?["'”’“»)\]]*[,.;:!?…]*["'”’“»)\]]*(?!\S))"""
)
"""What is before a word of letters without space, and the word, between spaces and punctuation: no part of a code, of
an address, or of a name in a program."""
SENTENCE_BEGIN = re.compile(r"""(?:^|[.!?…:])["'”’“‘»«„)(\]\[¿¡\s]*$""")
MAX_BEFORE = 20
"""Number of characters before a word that are searched for the end of a sentence."""
MAX_COUNT = 1 << 53
"""Counts of a file are smaller."""


def has_case(word: str) -> bool:
    """Whether all letters of a word have small forms and capitals, each of one character."""
    return all(letter.lower() != letter.upper() and len(letter.lower()) == 1 and letter <= "\uffff" for letter in word)


def is_regular(word: str) -> bool:
    """Whether a word has letters with capitals, of which only the first may be one."""
    return has_case(word) and word[1:] == word[1:].lower()


@dataclass(frozen=True, slots=True)
class Reading:
    """A word of a text that is taken for another one."""

    start: int
    """Its position in the text."""
    written: str
    word: str

    def in_text(self, text: str) -> str:
        """The text with the other word."""
        return text[: self.start] + self.word + text[self.start + len(self.written) :]


@dataclass
class KnownWords:
    """The words of the sources of a training."""

    n_words: int
    """Number of words of the text."""
    n_once: int
    """Number of words that occur once."""
    counts: Mapping[str, int]
    """How often each word occurs; 0 for names, which no other word is taken for."""
    nouns_have_capitals: bool = False

    @classmethod
    def of(cls, sources: Iterable[str], targets: Iterable[str], language: str = "") -> "KnownWords":
        """The words of texts.

        Args:
            targets: the translations of the sources.
            language: of the sources.
        """
        counts = Counter(word for text in sources for word in LETTERS.findall(text) if has_case(word))
        once = Counter(counts.values())[1]
        nouns = language in NOUNS_HAVE_CAPITALS
        others = Counter(word for text in targets for word in LETTERS.findall(text)) if nouns else {}
        known = dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_WORDS])
        for word, n in known.items():
            if word != word.lower():
                is_name = others[word] >= SHARED * n if nouns else word.lower() not in counts
                known[word] = 0 if is_name else n
        return cls(counts.total(), once, known, nouns)

    def with_words_of(self, other: "KnownWords") -> "KnownWords":
        """These words and others."""
        counts = dict(self.counts)
        for word, n in other.counts.items():
            counts[word] = counts[word] + n if counts.get(word) and n else n if word not in counts else 0
        once = self.n_once + other.n_once
        return KnownWords(self.n_words + other.n_words, once, counts, other.nouns_have_capitals)

    def to_record(self) -> JsonObject:
        """The JSON record; words that occur equally often are one text."""
        groups: dict[str, list[str]] = {}
        for word, n in self.counts.items():
            groups.setdefault(str(n), []).append(word)
        words = {n: " ".join(sorted(group)) for n, group in groups.items()}
        nouns = {"nouns_have_capitals": True} if self.nouns_have_capitals else {}
        return {"n_words": self.n_words, "n_once": self.n_once, **nouns, "words": words}

    @classmethod
    def of_file(cls, path: Path) -> "KnownWords":
        """The words of a file.

        Raises:
            CheckpointError: it is damaged.
        """
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            counts = {word: int(n) for n, group in record["words"].items() for word in group.split(" ")}
            words = cls(int(record["n_words"]), int(record["n_once"]), counts, bool(record.get("nouns_have_capitals")))
            if not all(0 <= n < MAX_COUNT for n in (words.n_words - 1, words.n_once, *counts.values())):
                raise ValueError
            return words
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            raise CheckpointError(f"{path}: damaged.{COPY_AGAIN}") from None

    @cached_property
    def known(self) -> set[str]:
        """The words in small letters."""
        return {word.lower() for word in self.counts}

    @cached_property
    def lines(self) -> str:
        """The known words, each on a line, of which the model of letters is."""
        return "\n" + "\n".join(sorted(self.known)) + "\n"

    @cached_property
    def letters(self) -> list[str]:
        """The letters of the words, the most frequent ones."""
        counts = Counter(self.lines)
        del counts["\n"]
        return sorted(counts, key=lambda letter: (-counts[letter], letter))[:ALPHABET]

    @cached_property
    def following(self) -> dict[str, tuple[int, dict[str, int]]]:
        """For some sequences of letters of words the number of letters after them, and how often each is there."""
        return {}

    def after(self, letters: str) -> tuple[int, dict[str, int]]:
        """See `following`."""
        if letters not in self.following:
            counts: Counter[str] = Counter()
            position = self.lines.find(letters)
            while 0 <= position < len(self.lines) - len(letters):
                counts[self.lines[position + len(letters)]] += 1
                position = self.lines.find(letters, position + 1)
            self.following[letters] = counts.total(), counts
        return self.following[letters]

    @property
    def new_words(self) -> float:
        """Expected fraction of new words in a text."""
        return max((self.n_once + 1) / (self.n_words + 1), NEW_WORDS)

    def probability_of_letters(self, word: str) -> float:
        """Probability of a new word among all new words."""
        line = f"\n{word}\n"
        product = 1.0
        for i in range(1, len(line)):
            p = 1 / (len(self.letters) + 1)
            for n in range(min(ORDER - 1, i) + 1):
                total, counts = self.after(line[i - n : i])
                if not total:
                    break
                p = (counts.get(line[i], 0) + len(counts) * p) / (total + len(counts))
            product *= p
        return product

    def forms(self, word: str) -> Iterator[tuple[str, int, bool]]:
        """The words of which a word may be a form with a typing error, with the number of errors of this kind, and
        whether the error is in the first letter."""
        n = len(word)
        for i in range(n - 1):
            yield word[:i] + word[i + 1] + word[i] + word[i + 2 :], n - 1, i == 0
        for i in range(n + 1):
            for letter in self.letters:
                yield word[:i] + letter + word[i:], n + 1, i == 0
        for i in range(n):
            yield word[:i] + word[i + 1 :], n * len(self.letters), i == 0
            for letter in self.letters:
                yield word[:i] + letter + word[i + 1 :], n * len(self.letters), i == 0

    def meant(self, word: str, new_words: float) -> str | None:
        """The known word that a word most probably is; None: it is a new word.

        Args:
            new_words: probability of new words.
        """
        small = word.lower()
        if not MIN_LETTERS <= len(word) <= MAX_LETTERS or not is_regular(word):
            return None
        best, probability = "", 0.0
        for form, n_errors, is_first in self.forms(small):
            found = form[:1].upper() + form[1:] if word[0] != small[0] else form
            if (count := self.counts.get(found, 0)) >= MIN_COUNT:
                p = count / self.n_words * (TYPING_ERRORS / N_KINDS / n_errors) * (FIRST_LETTER if is_first else 1)
                if p > probability:
                    best, probability = found, p
        return best if best and probability > new_words * self.probability_of_letters(small) else None

    def readings(self, text: str, spans: Sequence[tuple[int, int]] = ()) -> list[Reading]:
        """The words of a text that are taken for others, the last one first.

        Args:
            spans: start and end of parts of the text that stay.
        """
        words = [(match.start(2), match[2]) for match in WORD.finditer(text)]
        unknown = [(start, word) for start, word in words if word.lower() not in self.known]
        others = len(unknown) - 1, len(words) - 1
        new_words = (EXPECTED_IN * self.new_words + others[0]) / (EXPECTED_IN + others[1])
        found = []
        for start, word in unknown:
            if any(a < start + len(word) and start < b for a, b in spans):
                continue
            is_name = word[0] != word[0].lower() and not self.nouns_have_capitals
            if is_name and not SENTENCE_BEGIN.search(text[max(0, start - MAX_BEFORE) : start]):
                continue
            if meant := self.meant(word, new_words):
                found.append(Reading(start, word, meant))
        return found[::-1]
