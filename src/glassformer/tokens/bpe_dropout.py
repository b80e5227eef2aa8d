"""BPE-dropout: other segmentations of the words of a text, for training."""

import json
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from glassformer.errors import ConfigError
from glassformer.tokens.tokenizer import Tokenizer

N_SAMPLES = 32
"""Segmentations drawn for a word; each occurrence of the word has one of these."""

MAX_TOKENS = 16
"""Tokens of a word, of which longer ones are divided: sentences of scripts without spaces. Their segmentations are not
kept, since they do not occur again, and the time to draw one grows with the square of the length."""

MAX_WORDS = 100_000
"""Number of words whose segmentations are kept in memory."""


class BpeDropout:
    """Segments words like a BPE tokenizer, which leaves out each possible merge with a probability, anew at each step.

    The segmentations of a word depend on the seed and the word only, not on the words before it.

    Source: Provilkov et al. 2020, algorithm 1.
    """

    def __init__(self, tokenizer: Tokenizer, p: float, seed: int = 0) -> None:
        """
        Args:
            p: probability with which a merge is left out.

        Raises:
            ConfigError: the tokenizer has no merges.
        """
        model = json.loads(tokenizer.backend.to_str())["model"]
        if model["type"] != "BPE" or not model["merges"]:
            raise ConfigError(
                "--bpe-dropout: the tokenizer is not of type bpe.\n  Use --tokenizer bpe, or leave it out."
            )
        vocab: dict[str, int] = model["vocab"]
        self.p, self.seed = p, seed
        self.merges: dict[tuple[int, int], tuple[int, int]] = {}
        """Rank and result of the merge of two tokens."""
        pairs = (merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"])
        for rank, (left, right) in enumerate(pairs):
            self.merges[vocab[left], vocab[right]] = rank, vocab[left + right]
        special = tokenizer.backend.get_added_tokens_decoder()
        self.symbols = {
            i: [vocab[character] for character in token]
            for token, i in vocab.items()
            if i not in special and all(character in vocab for character in token)
        }
        """The tokens of the characters of a token."""
        self.begins_word = [tokenizer.starts_word(i) for i in range(tokenizer.vocab_size)]
        self.samples: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        """Segmentations of the words so far."""

    def words(self, ids: Sequence[int]) -> list[tuple[int, ...]]:
        """The tokens of each word of a text; a word begins with a space."""
        starts = [i for i, token in enumerate(ids) if i and self.begins_word[token]]
        return [tuple(ids[start:end]) for start, end in pairwise([0, *starts, len(ids)])]

    def sampled(self, ids: Sequence[int], rng: np.random.Generator) -> list[int]:
        """Another segmentation of a text.

        Args:
            ids: its tokens.
        """
        words = self.words(ids)
        choices = rng.integers(N_SAMPLES, size=len(words)).tolist()
        tokens: list[int] = []
        for word, i in zip(words, choices, strict=True):
            if len(word) <= MAX_TOKENS:
                tokens += self.segmentations(word)[i]
            else:
                for start in range(0, len(word), MAX_TOKENS):
                    tokens += self.draw(word[start : start + MAX_TOKENS], 1, rng)[0]
        return tokens

    def segmentations(self, word: tuple[int, ...]) -> list[tuple[int, ...]]:
        """N_SAMPLES segmentations of a word."""
        if (found := self.samples.get(word)) is None:
            if len(self.samples) >= MAX_WORDS:
                self.samples.clear()
            rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([self.seed, *word])))
            drawn = self.draw(word, N_SAMPLES, rng)
            distinct = {segmentation: segmentation for segmentation in drawn}
            found = self.samples[word] = [distinct[segmentation] for segmentation in drawn]
        return found

    def draw(self, word: tuple[int, ...], n_samples: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
        """Random segmentations of a word."""
        symbols = [symbol for token in word for symbol in self.symbols.get(token, (token,))]
        # One random number for each possible merge of each step.
        n = len(symbols)
        kept = (rng.random((n_samples, n * (n - 1) // 2)) >= self.p).tolist()
        return [self.segment(symbols, row) for row in kept]

    def segment(self, symbols: Sequence[int], kept: Sequence[bool]) -> tuple[int, ...]:
        """Merge symbols, at each step the pair of the lowest rank of those that are not left out.

        Args:
            kept: for each pair of each step, whether it is not left out.
        """
        merges, tokens, draw = self.merges, list(symbols), 0
        while len(tokens) > 1:
            best: tuple[int, int] | None = None
            at = -1
            for i, pair in enumerate(pairwise(tokens)):
                merge = merges.get(pair)
                if merge and kept[draw + i] and (best is None or merge < best):
                    best, at = merge, i
            draw += len(tokens) - 1
            if best is None:
                break
            tokens[at : at + 2] = [best[1]]
        return tuple(tokens)
