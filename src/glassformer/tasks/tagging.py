"""Token classification: a tag for each word, for named entities or parts of speech."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import overload

import numpy as np

from glassformer.corpora.read_options import DETECT, ReadOptions
from glassformer.corpora.tagged import Tagged, read_tagged
from glassformer.decode_config import DecodeConfig
from glassformer.generate.scores import log_softmax
from glassformer.metrics import Score
from glassformer.metrics.registry import scores
from glassformer.runtime.graph import Floats
from glassformer.tasks.base import Log, Record
from glassformer.tasks.encoder import EncoderTask
from glassformer.tasks.texts import Warn, check_texts, python_warning


class TaggingRecord(Record):
    """JSON record of a tagged line: `output` has the tags, separated by spaces."""

    words: list[str]
    tags: list[str]
    probabilities: list[float]
    """Probability of each tag."""


def beside_words(words: Sequence[str], tags: Sequence[str]) -> str:
    """Words with their tags, separated by a slash: `Ann/B-PER slept/O`."""
    return " ".join(f"{word}/{tag}" for word, tag in zip(words, tags, strict=True))


class Tagger(EncoderTask[Tagged]):
    """Predicts a tag for each word of a sentence, from the encoder output at the word's first subword.

    Source: Devlin et al. 2018, section 5.3.
    """

    name = "tagging"
    pipeline_tag = "token-classification"
    pipelines = ("token-classification",)
    example_type = Tagged
    examples_name = "sentences"
    read_options = ("keys",)
    output_type = "tags"
    head_config = {"head": "tokens"}
    has_classes = True

    @classmethod
    def read(
        cls, src: Sequence[Path], tgt: Sequence[Path], options: ReadOptions = DETECT, log: Log | None = None
    ) -> Iterator[Tagged]:
        return read_tagged(src, keys=options.keys)

    @classmethod
    def texts(cls, example: Tagged) -> Sequence[str]:
        return (" ".join(example.words),)

    @property
    def limit(self) -> int:
        """Maximum number of subwords in a window."""
        return self.config.max_len - 2

    def subword_ids(self, words: Sequence[str]) -> list[list[int]]:
        """Subword ids of each word, truncated to `limit` per word."""
        return [ids[: self.limit] for ids in self.tokenizer.encode_words(words)]

    def word_windows(self, subwords: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
        """Windows [start, end) of words: one for the whole sentence, or overlapping ones for a long sentence.

        Each window holds as many words as fit; up to a quarter of its tokens are also in the next one. The windows
        together have at most about twice the tokens of the sentence, however long its longest word is.
        """
        windows: list[tuple[int, int]] = []
        limit, start = self.limit, 0
        while True:
            n_tokens, end = 0, start
            while end < len(subwords) and (n_tokens + len(subwords[end]) <= limit or end == start):
                n_tokens += len(subwords[end])
                end += 1
            windows.append((start, end))
            if end == len(subwords):
                break
            # The next window must have space for at least one word that is not in this one.
            max_shared, n_shared, next_start = min(limit // 4, limit - len(subwords[end])), 0, end
            while next_start - 1 > start and n_shared + len(subwords[next_start - 1]) <= max_shared:
                next_start -= 1
                n_shared += len(subwords[next_start])
            start = next_start
        return windows

    def log_probs(self, sentences: Sequence[Sequence[str]]) -> list[Floats]:
        """Natural log-probabilities [words, tags] of each sentence.

        In the overlap of two windows, the first half of the words is taken from the earlier window, the second half
        from the later.
        """
        rows: list[list[int]] = []
        origins: list[tuple[int, int, int, list[int]]] = []  # sentence, its words [start, end), their first subwords
        results = [np.empty((len(words), len(self.labels)), np.float32) for words in sentences]
        for sentence_index, words in enumerate(sentences):
            if not words:
                continue
            subwords = self.subword_ids(words)
            windows = self.word_windows(subwords)
            for i, (start, end) in enumerate(windows):
                ids = [subword for word in subwords[start:end] for subword in word]
                first_subwords = np.cumsum([1, *map(len, subwords[start:end])])[:-1].tolist()
                # Each half of an overlap is taken from the window in which its words have more context.
                skip = (windows[i - 1][1] - start) // 2 if i else 0
                stop = end
                if end < len(words):
                    next_start = windows[i + 1][0]
                    stop = next_start + (end - next_start) // 2
                rows.append(ids)
                origins.append((sentence_index, start + skip, stop, first_subwords[skip : stop - start]))
        encoder = self.encoder
        for indices, hidden in self.hidden([(row, []) for row in rows]):
            for index, states in zip(indices, hidden, strict=True):
                sentence_index, start, end, first_subwords = origins[index]
                results[sentence_index][start:end] = log_softmax(encoder.outputs(states[first_subwords]))
        return results

    def tags(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """The most probable tag of each word."""
        return [[self.labels[i] for i in row.argmax(-1).tolist()] for row in self.log_probs(sentences)]

    @overload
    def __call__(self, sentences: str, *extra: object) -> list[tuple[str, str]]: ...
    @overload
    def __call__(self, sentences: list[str], *extra: object) -> list[list[tuple[str, str]]]: ...
    def __call__(
        self, sentences: str | list[str], *extra: object
    ) -> list[tuple[str, str]] | list[list[tuple[str, str]]]:
        """Tag the words of a sentence, or of each sentence of a list. Words are separated by spaces.

        Returns:
            A list of (word, tag) for each sentence.

        Raises:
            TypeError: neither a text nor a list of texts.
        """
        words = [sentence.split() for sentence in check_texts(self, sentences, *extra)]
        tagged = [list(zip(*pair, strict=True)) for pair in zip(words, self.tags(words), strict=True)]
        return tagged[0] if isinstance(sentences, str) else tagged

    def run(
        self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = python_warning
    ) -> list[str]:
        """Each word with its tag, separated by a slash: `Ann/B-PER slept/O`."""
        words = [line.split() for line in lines]
        return [beside_words(*pair) for pair in zip(words, self.tags(words), strict=True)]

    def records(
        self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = python_warning
    ) -> list[TaggingRecord]:
        """For each line its words, their tags and the probabilities of the tags."""
        words = [line.split() for line in lines]
        records: list[TaggingRecord] = []
        for line, tokens, row in zip(lines, words, self.log_probs(words), strict=True):
            tags = [self.labels[i] for i in row.argmax(-1).tolist()]
            probabilities = np.exp(row.max(-1)).tolist()
            records.append(
                {
                    "input": line,
                    "output": beside_words(tokens, tags),
                    "words": tokens,
                    "tags": tags,
                    "probabilities": probabilities,
                }
            )
        return records

    def evaluate(
        self, examples: Sequence[Tagged], options: DecodeConfig | None = None
    ) -> tuple[list[str], list[Score]]:
        predicted = self.tags([example.words for example in examples])
        return [" ".join(tags) for tags in predicted], scores("tags", predicted, self.references(examples))

    @classmethod
    def references(cls, examples: Sequence[Tagged]) -> list[list[str]]:
        return [list(example.tags) for example in examples]

    @classmethod
    def parse_outputs(cls, outputs: Sequence[str]) -> list[list[str]]:
        return [output.split() for output in outputs]
