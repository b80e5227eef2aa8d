"""WordPiece: the units that make the training words most likely, over text read as BERT reads it."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from glassformer.errors import ConfigError
from glassformer.tokens.tokenizer import well_formed

PAD, UNK, CLS, SEP, MASK = BERT_SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CONTINUATION = "##"
MAX_WORD_CHARACTERS = 100  # a longer word is unknown as a whole, as in BERT
TIE_TOLERANCE = 1e-12  # of N log N: gains closer than that differ by rounding alone

Pair = tuple[int, int]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def train_wordpiece(
    word_counts: Mapping[str, int],
    vocab_size: int,
    *,
    special_tokens: Sequence[str] = BERT_SPECIALS,
    max_characters: int = 1000,
    min_gain: float = 0.0,
) -> list[str]:
    """Units learned from words: the characters, then again and again the merge that most raises the likelihood.

    With c_u the count of unit u and N their sum, the log-likelihood of the words cut into units, under the unigram
    model that fits them best, is L = sum_u c_u log c_u - N log N. Two adjacent units a and b that are merged n times
    leave c_a and c_b by n each, add n to c_ab and take n from N; the gain is the exact change of L. Among equal gains
    the pair first by code points of a, then of b, is merged, so that the same counts give the same units in any order.

    Words over 100 characters or with a character left out of the alphabet are unknown to the encoder as a whole, and
    nothing is learned from them.

    Args:
        word_counts: how often each word occurs, from `count_words`.
        vocab_size: units wanted, special tokens among them; fewer when words or gains run out.
        max_characters: most characters in the alphabet; the rarest are left out.
        min_gain: least gain in L of a merge, in nats over the whole text.

    Returns:
        Special tokens, then characters, then characters as continuations, each by code point, then merged units in the
        order of merging. A character met only as a word of its own (punctuation, CJK) has no continuation.

    Raises:
        ConfigError: the special tokens and characters alone are more than `vocab_size`.
        ValueError: a word is empty or begins with a special token or "##"; a count is below 1.

    Source: Schuster & Nakajima 2012; Wu et al. 2016, section 4.1.
    """
    for word, count in word_counts.items():
        if not word or count < 1 or word.startswith((CONTINUATION, *special_tokens)):
            raise ValueError(f"word {word!r} with count {count}: no word that count_words gives.")
    characters = _alphabet(word_counts, max_characters)
    words = {
        word: count
        for word, count in word_counts.items()
        if len(word) <= MAX_WORD_CHARACTERS and characters.issuperset(word)
    }
    inside = {character for word in words if len(word) > 1 for character in word}
    alphabet = [*sorted(characters), *(CONTINUATION + character for character in sorted(inside))]
    vocab = [*special_tokens, *alphabet]
    if len(vocab) > vocab_size:
        raise ConfigError(
            f"{vocab_size} WordPiece units are too few: {len(special_tokens)} special tokens and {len(alphabet)} "
            f"single characters come first.\n  Ask for {len(vocab)} or more, or leave out more characters."
        )
    segmentation = _Segmentation(words)
    while len(vocab) < vocab_size and (pair := segmentation.best(min_gain)):
        vocab.append(segmentation.merge(*pair))
    return vocab


def _alphabet(word_counts: Mapping[str, int], max_characters: int) -> set[str]:
    counts: Counter[str] = Counter()
    for word, count in word_counts.items():
        for character in word:
            counts[character] += count
    return set(sorted(counts, key=lambda character: (-counts[character], character))[:max_characters])


class _Segmentation:
    """Words cut into units, with the counts that gains are made of, kept true from merge to merge.

    A merge always makes a unit that was not there before. For wherever a unit's text stands with its ends between
    units, the same merges have met the same text since the first: it is cut alike, so one pair makes it, at one time.
    """

    def __init__(self, word_counts: Mapping[str, int]) -> None:
        self.word_counts = list(word_counts.values())
        cut = [[word[0], *(CONTINUATION + character for character in word[1:])] for word in word_counts]
        ids = {unit: i for i, unit in enumerate(dict.fromkeys(unit for units in cut for unit in units))}
        self.units = list(ids)
        self.words = [[ids[unit] for unit in units] for units in cut]
        n_merges = sum(len(units) - 1 for units in cut)  # at most
        self.unit_counts: Ints = np.zeros(len(ids) + n_merges, np.int64)
        self.slots: dict[Pair, int] = {}  # columns of `pairs`
        self.pairs: Ints = np.zeros((3, 1024), np.int64)  # left unit, right unit, count
        self.words_with: defaultdict[Pair, set[int]] = defaultdict(set)  # also some that no longer hold the pair
        changes: Counter[Pair] = Counter()
        for word, units in enumerate(self.words):
            for unit in units:
                self.unit_counts[unit] += self.word_counts[word]
            for pair in _mergeable(units):
                changes[pair] += self.word_counts[word]
                self.words_with[pair].add(word)
        self._change(changes)
        self.n = int(self.unit_counts.sum())
        self.floor = max(self.n // 2, 1)  # no pair occurs more often than that

    def best(self, min_gain: float) -> Pair | None:
        """The pair to merge next, None if no gain reaches `min_gain`.

        Not every gain is computed. Merging n times gains at most N log N - (N-n) log (N-n) - n log n, the gain when a
        and b occur nowhere else. This rises with n up to N/2, so pairs rarer than a floor are passed over once the
        best gain found exceeds the bound just below the floor.
        """
        equal = TIE_TOLERANCE * _x_log_x(self.n)
        pairs = self.pairs[:, : len(self.slots)]
        while True:
            candidates = pairs[:, pairs[2] >= self.floor]
            gains = self._gains(*candidates)
            best = gains.max(initial=-math.inf)
            rarer = self.floor - 1
            bound = _x_log_x(self.n) - _x_log_x(self.n - rarer) - _x_log_x(rarer)
            if rarer == 0 or bound < best - equal:
                break
            self.floor -= math.ceil(self.floor / 8)
        if not gains.size or best < min_gain - equal:
            return None
        equals = candidates[:2, gains >= best - equal].T.tolist()
        left, right = min(equals, key=lambda pair: [self.units[unit] for unit in pair])
        return left, right

    def _gains(self, left: Ints, right: Ints, n: Ints) -> Floats:
        """What each pair would add to L, merged n times."""
        same = left == right
        a, b = self.unit_counts[left], self.unit_counts[right]
        from_a = _x_log_x(a) - _x_log_x(a - n - n * same)
        from_b = np.where(same, 0, _x_log_x(b) - _x_log_x(b - n))
        return _x_log_x(n) - (from_a + from_b) + (_x_log_x(self.n) - _x_log_x(self.n - n))

    def merge(self, left: int, right: int) -> str:
        """Merge the pair wherever it occurs and return the unit it becomes."""
        merged = len(self.units)
        self.units.append(self.units[left] + self.units[right].removeprefix(CONTINUATION))
        n = self.pairs[2, self.slots[left, right]].item()
        for unit, change in (left, -n), (right, -n), (merged, n):
            self.unit_counts[unit] += change
        self.n -= n
        changes: Counter[Pair] = Counter()
        for word in self.words_with.pop((left, right)):
            old, count = self.words[word], self.word_counts[word]
            new = self.words[word] = _merge(old, left, right, merged)
            if len(new) < len(old):
                for pair in _mergeable(old):
                    changes[pair] -= count
                for pair in _mergeable(new):
                    changes[pair] += count
                    self.words_with[pair].add(word)
        self._change(changes)
        assert self.pairs[2, self.slots[left, right]] == 0
        return self.units[merged]

    def _change(self, changes: Mapping[Pair, int]) -> None:
        """Add to the counts of pairs, new ones among them."""
        for pair, change in changes.items():
            slot = self.slots.setdefault(pair, len(self.slots))
            if slot == self.pairs.shape[1]:
                self.pairs = np.concatenate([self.pairs, np.zeros_like(self.pairs)], axis=1)
            self.pairs[:2, slot] = pair
            self.pairs[2, slot] += change


def _x_log_x(x: int | Ints) -> Floats:
    return np.multiply(x, np.log(np.maximum(x, 1)))


def _mergeable(units: list[int]) -> Iterator[Pair]:
    """Adjacent pairs as often as they can be merged: a a a a holds (a, a) twice, not three times."""
    last = None
    for pair in pairwise(units):
        last = None if pair == last else pair
        if last:
            yield last


def _merge(units: list[int], left: int, right: int, merged: int) -> list[int]:
    new: list[int] = []
    for unit in units:
        if unit == right and new and new[-1] == left:
            new[-1] = merged
        else:
            new.append(unit)
    return new


def _normalizer(lowercase: bool, strip_accents: bool) -> normalizers.Normalizer:
    return normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=strip_accents, lowercase=lowercase
    )


def count_words(texts: Iterable[str], *, lowercase: bool, strip_accents: bool) -> Counter[str]:
    """How often each word occurs, the words as `wordpiece_tokenizer` with the same options sees them.

    BERT's reading: control characters go, spaces and punctuation separate, every CJK character is a word.
    """
    normalizer, pre_tokenizer = _normalizer(lowercase, strip_accents), pre_tokenizers.BertPreTokenizer()
    counts: Counter[str] = Counter()
    for text in texts:
        words = pre_tokenizer.pre_tokenize_str(normalizer.normalize_str(well_formed(text)))
        counts.update(word for word, _ in words)
    return counts


def wordpiece_tokenizer(
    vocab: Sequence[str],
    *,
    lowercase: bool,
    strip_accents: bool,
    special_tokens: Sequence[str] = BERT_SPECIALS,
    unk: str = UNK,
    cls: str = CLS,
    sep: str = SEP,
) -> tokenizers.Tokenizer:
    """BERT's tokenizer over a vocabulary: longest match first, `[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`.

    Type ids are 1 for B and the [SEP] after it, else 0. A word that no units make up is one `unk`.

    Args:
        vocab: units in the order of their ids, from `train_wordpiece`.
        special_tokens: those of `vocab` that are no text: decoding can leave them out.

    Raises:
        ValueError: a special token is not in `vocab`, or a unit is there twice.
    """
    ids = {unit: i for i, unit in enumerate(vocab)}
    missing = {*special_tokens, unk, cls, sep} - ids.keys()
    if missing or len(ids) < len(vocab):
        raise ValueError(f"{len(vocab) - len(ids)} units twice, special tokens missing: {sorted(missing)}.")
    model = models.WordPiece(
        ids, unk_token=unk, max_input_chars_per_word=MAX_WORD_CHARACTERS, continuing_subword_prefix=CONTINUATION
    )
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = _normalizer(lowercase, strip_accents)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing((sep, ids[sep]), (cls, ids[cls]))
    tokenizer.decoder = decoders.WordPiece(prefix=CONTINUATION)
    tokenizer.add_special_tokens(list(special_tokens))
    return tokenizer
