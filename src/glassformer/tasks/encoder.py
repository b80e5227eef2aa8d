"""Base class of tasks with an encoder: input format of texts and pairs of texts."""

from collections.abc import Iterator, Sequence

import numpy as np

from glassformer.decode_config import Precision
from glassformer.generate.batches import batches_by_length
from glassformer.runtime.encoder import RuntimeEncoder
from glassformer.runtime.graph import Floats
from glassformer.tasks.base import ExampleT, Task
from glassformer.tasks.texts import Text, Warn

Texts = list[str] | list[tuple[str, str]] | list[Text]
"""A list of texts, of pairs, or of both."""

BATCH_TOKENS = 4096
"""Maximum number of tokens per batch at inference, including padding."""


class EncoderTask(Task[ExampleT]):
    """Base class of encoder tasks: input format of texts and pairs of texts."""

    kind = "encoder"
    precision: Precision = "fp32"
    """Arithmetic of the encoder at inference, which can be changed at any time: `task.precision = "int8"`."""

    @property
    def n_separators(self) -> int:
        """Number of separators between the texts of a pair. RoBERTa, recognized by its position offset, has two."""
        return 2 if self.config.position_offset else 1

    @property
    def n_specials(self) -> int:
        """Number of special tokens of a pair."""
        return 2 + self.n_separators

    def add_special_tokens(self, first: Sequence[int], second: Sequence[int]) -> tuple[list[int], list[int]]:
        """[CLS] first [SEP], or [CLS] first [SEP] second [SEP]: token ids and token type ids."""
        t = self.tokenizer
        if not second:
            return [t.bos_id, *first, t.eos_id], [0] * (len(first) + 2)
        prefix = [t.bos_id, *first, *[t.eos_id] * self.n_separators]
        return [*prefix, *second, t.eos_id], [0] * len(prefix) + [1] * (len(second) + 1)

    @property
    def max_len(self) -> int:
        """Maximum number of tokens of a text or a pair, with the special tokens."""
        return int(self.config.max_len)

    def capacity(self, *, is_pair: bool) -> int:
        """Maximum number of tokens of a text, or of both texts of a pair, without the special tokens."""
        return self.max_len - (self.n_specials if is_pair else 2)

    def truncate_pair(self, first: list[int], second: list[int]) -> tuple[list[int], list[int]]:
        """Truncate a text or a pair in place to the maximum length, the longer text first."""
        n_excess = len(first) + len(second) - self.capacity(is_pair=bool(second))
        while n_excess > 0:
            longer = first if len(first) >= len(second) else second
            n = min(n_excess, max(1, abs(len(first) - len(second))))
            del longer[-n:]
            n_excess -= n
        return first, second

    def encode_texts(self, texts: Sequence[Text]) -> list[tuple[list[int], list[int]]]:
        """Token ids of the first and the second text, without special tokens."""
        pairs = [(text, "") if isinstance(text, str) else text for text in texts]
        first = self.tokenizer.encode_batch([pair[0] for pair in pairs])
        second = self.tokenizer.encode_batch([pair[1] for pair in pairs])
        return [(a, b if pair[1] else []) for a, b, pair in zip(first, second, pairs, strict=True)]

    def encode_truncated(self, texts: Sequence[Text], warn: Warn) -> list[tuple[list[int], list[int]]]:
        """`encode_texts`, truncated to the maximum length. `warn` is called for each truncated text."""
        rows = self.encode_texts(texts)
        for i, (first, second) in enumerate(rows):
            limit = self.capacity(is_pair=bool(second))
            if len(first) + len(second) > limit:
                warn(i, f"longer than the maximum length of {limit} tokens: its end was cut off")
                self.truncate_pair(first, second)
        return rows

    @property
    def encoder(self) -> RuntimeEncoder:
        """The encoder in its precision."""
        encoder: RuntimeEncoder = self.source.in_precision(self.precision)
        return encoder

    def hidden(self, rows: Sequence[tuple[list[int], list[int]]]) -> Iterator[tuple[list[int], list[Floats]]]:
        """Run the encoder on rows without special tokens. Yields what `run_encoder` yields."""
        yield from self.run_encoder([self.add_special_tokens(*row) for row in rows])

    def run_encoder(
        self, inputs: Sequence[tuple[Sequence[int], Sequence[int]]]
    ) -> Iterator[tuple[list[int], list[Floats]]]:
        """Run the encoder on token ids with token type ids, in batches of similar length.

        Yields:
            The indices of the inputs in the batch, and the encoder output of each: [tokens, d_model].
        """
        encoder = self.encoder
        for indices in batches_by_length([len(ids) for ids, _ in inputs], BATCH_TOKENS):
            texts, types = ([inputs[i][side] for i in indices] for side in (0, 1))
            yield indices, encoder(texts, types)

    @property
    def takes_first(self) -> bool:
        """Whether the encoder output of the first token represents a text, and not the mean."""
        return bool(self.config.pooling == "first")

    def pooled(self, states: Sequence[Floats]) -> Floats:
        """The representation of each text, [texts, d_model]: the encoder output of its first token, or the mean."""
        takes_first = self.takes_first
        return np.stack([of_text[0] if takes_first else of_text.mean(0) for of_text in states])


def text_of_line(line: str) -> Text:
    """The text of a line, or a pair of texts separated by a tab."""
    first, tab, second = line.partition("\t")
    return (first, second) if tab else line
