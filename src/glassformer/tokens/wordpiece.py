"""WordPiece: training by likelihood gain, and BERT's tokenizer."""

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
MAX_WORD_CHARACTERS = 100  # a longer word is encoded as one [UNK], as in BERT
TIE_TOLERANCE = 1e-12  # relative to N log N: smaller differences between gains are rounding errors

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
    """Learn a WordPiece vocabulary: from single characters, repeatedly make the merge that increases likelihood most.

    With c_u the count of token u and N the sum of all counts, the log-likelihood of the segmented words under the best
    unigram model is L = sum_u c_u log c_u - N log N. Merging two adjacent tokens a and b n times subtracts n from c_a
    and from c_b, adds n to c_ab and subtracts n from N; the gain is the exact change of L. Among equal gains, the pair
    that is first by code points of a, then of b, is merged, so that the result does not depend on the order of words.

    Words of more than 100 characters or with a character outside the alphabet are encoded as unknown, and are ignored
    in training.

    Args:
        word_counts: number of occurrences of each word, from `count_words`.
        vocab_size: maximum vocabulary size, including special tokens; less if no merge is left with enough gain.
        special_tokens: first entries of the vocabulary.
        max_characters: maximum size of the alphabet; the rarest characters are left out.
        min_gain: minimum gain in L of a merge, in nats over the whole text.

    Returns:
        Special tokens, then characters, then continuation characters (##), each by code point, then merged tokens in
        the order of merging. A character that only occurs as a separate word (punctuation, CJK) has no continuation.

    Raises:
        ConfigError: there are more special tokens and characters than `vocab_size`.
        ValueError: a word is empty or begins with a special token or "##"; a count is less than 1.

    Source: Schuster & Nakajima 2012; Wu et al. 2016, section 4.1.
    """
    for word, count in word_counts.items():
        if not word or count < 1 or word.startswith((CONTINUATION, *special_tokens)):
            raise ValueError(f"word {word!r} with count {count}: not a valid result of count_words.")
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
            f"vocab_size {vocab_size} is too small for WordPiece: {len(special_tokens)} special tokens and "
            f"{len(alphabet)} single characters are needed.\n"
            f"  Set it to at least {len(vocab)}, or reduce max_characters."
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
    """Words segmented into tokens, with the counts of tokens and pairs, updated after every merge.

    A merge always creates a new token: wherever the text of a token occurs with both ends at token boundaries, the
    same merges have been applied to the same text, so it is segmented in the same way and is formed by the same merge.
    """

    def __init__(self, word_counts: Mapping[str, int]) -> None:
        self.word_counts = list(word_counts.values())
        segmented = [[word[0], *(CONTINUATION + character for character in word[1:])] for word in word_counts]
        ids = {token: i for i, token in enumerate(dict.fromkeys(token for tokens in segmented for token in tokens))}
        self.tokens = list(ids)
        self.words = [[ids[token] for token in tokens] for tokens in segmented]
        n_merges = sum(len(tokens) - 1 for tokens in segmented)  # upper bound
        self.token_counts: Ints = np.zeros(len(ids) + n_merges, np.int64)
        self.slots: dict[Pair, int] = {}  # pair -> column of `pairs`
        self.pairs: Ints = np.zeros((3, 1024), np.int64)  # rows: left token, right token, count
        self.words_with: defaultdict[Pair, set[int]] = defaultdict(set)  # includes former occurrences
        changes: Counter[Pair] = Counter()
        for word, tokens in enumerate(self.words):
            for token in tokens:
                self.token_counts[token] += self.word_counts[word]
            for pair in _mergeable(tokens):
                changes[pair] += self.word_counts[word]
                self.words_with[pair].add(word)
        self._change(changes)
        self.n = int(self.token_counts.sum())
        self.floor = max(self.n // 2, 1)  # no pair occurs more often

    def best(self, min_gain: float) -> Pair | None:
        """The pair with the highest gain, None if it is less than `min_gain`.

        Not every gain is computed. Merging n times gains at most N log N - (N-n) log (N-n) - n log n, which is the gain
        if a and b occur nowhere else. This bound increases with n up to N/2, so pairs that are rarer than a floor can
        be skipped once the best gain exceeds the bound just below the floor.
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
        left, right = min(equals, key=lambda pair: [self.tokens[token] for token in pair])
        return left, right

    def _gains(self, left: Ints, right: Ints, n: Ints) -> Floats:
        """Gain in L of merging each pair n times."""
        same = left == right
        a, b = self.token_counts[left], self.token_counts[right]
        from_a = _x_log_x(a) - _x_log_x(a - n - n * same)
        from_b = np.where(same, 0, _x_log_x(b) - _x_log_x(b - n))
        return _x_log_x(n) - (from_a + from_b) + (_x_log_x(self.n) - _x_log_x(self.n - n))

    def merge(self, left: int, right: int) -> str:
        """Merge all occurrences of a pair and return the new token."""
        merged = len(self.tokens)
        self.tokens.append(self.tokens[left] + self.tokens[right].removeprefix(CONTINUATION))
        n = self.pairs[2, self.slots[left, right]].item()
        for token, change in (left, -n), (right, -n), (merged, n):
            self.token_counts[token] += change
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
        return self.tokens[merged]

    def _change(self, changes: Mapping[Pair, int]) -> None:
        """Add changes to the counts of pairs; new pairs are added."""
        for pair, change in changes.items():
            slot = self.slots.setdefault(pair, len(self.slots))
            if slot == self.pairs.shape[1]:
                self.pairs = np.concatenate([self.pairs, np.zeros_like(self.pairs)], axis=1)
            self.pairs[:2, slot] = pair
            self.pairs[2, slot] += change


def _x_log_x(x: int | Ints) -> Floats:
    return np.multiply(x, np.log(np.maximum(x, 1)))


def _mergeable(tokens: list[int]) -> Iterator[Pair]:
    """Adjacent pairs, counted as often as they can be merged: a a a a contains (a, a) twice, not three times."""
    last = None
    for pair in pairwise(tokens):
        last = None if pair == last else pair
        if last:
            yield last


def _merge(tokens: list[int], left: int, right: int, merged: int) -> list[int]:
    new: list[int] = []
    for token in tokens:
        if token == right and new and new[-1] == left:
            new[-1] = merged
        else:
            new.append(token)
    return new


def _normalizer(lowercase: bool, strip_accents: bool) -> normalizers.Normalizer:
    return normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=strip_accents, lowercase=lowercase
    )


def count_words(texts: Iterable[str], *, lowercase: bool, strip_accents: bool) -> Counter[str]:
    """Count words, split as by `wordpiece_tokenizer` with the same options.

    As in BERT: control characters are removed, text is split at spaces and punctuation, each CJK character is a word.
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
    """BERT's tokenizer with a given vocabulary: greedy longest match, `[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`.

    Token type ids are 1 for B and the [SEP] after it, else 0. A word that cannot be segmented is encoded as one `unk`.

    Args:
        vocab: tokens in the order of their ids, from `train_wordpiece`.
        lowercase: convert text to lower case.
        strip_accents: remove accents.
        special_tokens: entries of `vocab` that decoding can skip.
        unk: token for unknown words.
        cls: first token of an input.
        sep: token after each text.

    Raises:
        ValueError: a special token is not in `vocab`, or `vocab` contains duplicates.
    """
    ids = {token: i for i, token in enumerate(vocab)}
    missing = {*special_tokens, unk, cls, sep} - ids.keys()
    if missing or len(ids) < len(vocab):
        raise ValueError(f"vocab: {len(vocab) - len(ids)} duplicate tokens, missing special tokens: {sorted(missing)}.")
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
