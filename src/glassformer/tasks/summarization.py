"""Summarization with a decoder-only model: the text is the prompt, the summary its continuation."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from glassformer.corpora.corpus import read_pairs
from glassformer.corpora.example import Example, with_both_sides
from glassformer.corpora.read_options import DETECT, ReadOptions
from glassformer.decode_config import DecodeConfig
from glassformer.metrics import Score
from glassformer.metrics.registry import scores
from glassformer.tasks.base import Log, stored_number
from glassformer.tasks.causal_lm import DecoderTask
from glassformer.tasks.texts import Warn, map_nonblank, python_warning

MAX_SUMMARY = 128
"""Default maximum length of a summary in tokens, unless longer ones were trained; positions that a long text must
leave free."""


class Summarizer(DecoderTask[Example]):
    """Language model on sequences ARTICLE <EOS> SUMMARY <EOS>.

    In the loss, targets up to and including the first <EOS> have the weight `prompt_loss_weight`, later ones 1.

    Source: Liu et al. 2018; the weighting as in docs/reference.md, section 6.
    """

    name = "summarization"
    pipelines = ("summarization", "text2text-generation")
    head_task = "causal-lm"
    source_has_end_token = True
    example_type = Example
    examples_name = "pairs"
    output_type = "summaries"
    # Beam search finds summaries of higher probability but lower quality. The n-gram size allows names of several
    # tokens to be repeated.
    decoding_defaults: ClassVar = {"beam": 1, "no_repeat_ngram_size": 6}
    stored_attributes = ("trained_source_len", "trained_target_len")
    trained_source_len: tuple[str, ...] = ()
    """Number of tokens of the longest text of the training set that was not cut."""
    trained_target_len: tuple[str, ...] = ()
    """Number of tokens of the longest summary of the training set, with its end token."""

    @classmethod
    def read(
        cls, src: Sequence[Path], tgt: Sequence[Path], options: ReadOptions = DETECT, log: Log | None = None
    ) -> Iterator[Example]:
        pairs = read_pairs(src, tgt, format=options.format, keys=options.keys, log=log)
        return with_both_sides(pairs, log)

    @classmethod
    def texts(cls, example: Example) -> Sequence[str]:
        return example.src, example.tgt

    def prompt(self, text: str) -> list[int]:
        return [*self.tokenizer.encode(text), self.tokenizer.eos_id]

    @property
    def max_source_len(self) -> int:
        """Number of tokens of a source text that is kept if it is too long."""
        return max(1, self.config.max_len - self.max_new_tokens(DecodeConfig()) - 1)

    @property
    def longest_trained_source(self) -> int:
        """`trained_source_len` as a number that leaves a position for a summary; 0 if it is not known."""
        return min(stored_number(self.trained_source_len), self.config.max_len - 2)

    @property
    def longest_trained_output(self) -> int:  # type: ignore[override]
        return stored_number(self.trained_target_len)

    def max_new_tokens(self, options: DecodeConfig) -> int:
        wanted = options.max_length or max(MAX_SUMMARY, self.longest_trained_output, (options.min_length or 0) + 1)
        return min(wanted, self.config.max_len // 2)

    def truncate_prompt(self, ids: list[int], max_new_tokens: int, warn: Callable[[str], None]) -> list[int]:
        """Keep the beginning of a text, and the final <EOS>. A text that is no longer than those of the training, which
        fitted together with their summaries, is not cut."""
        if len(ids) - 1 <= self.longest_trained_source:
            return ids
        capacity = max(1, self.config.max_len - max_new_tokens - 1)
        if len(ids) - 1 > capacity:
            warn(f"longer than the maximum source length of {capacity} tokens: its end was cut off")
        return [*ids[:-1][:capacity], ids[-1]]

    def run(
        self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = python_warning
    ) -> list[str]:
        return map_nonblank(
            lines,
            lambda nonblank, warn: [" ".join(text.split()) for text in self.complete(nonblank, options, warn)],
            warn,
        )

    def evaluate(
        self, examples: Sequence[Example], options: DecodeConfig | None = None
    ) -> tuple[list[str], list[Score]]:
        summaries = self.complete([e.src for e in examples], options)
        return summaries, scores("summaries", summaries, self.references(examples))

    @classmethod
    def references(cls, examples: Sequence[Example]) -> list[list[str]]:
        return [[example.tgt] for example in examples]
