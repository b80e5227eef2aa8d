"""Summarization with a decoder-only model: the text is the prompt, the summary its continuation."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from glassformer.config import DecodeConfig, TrainConfig
from glassformer.corpora.corpus import Example, read_pairs
from glassformer.corpora.read_options import DETECT, ReadOptions
from glassformer.data.batch import flat_positions, pad
from glassformer.data.dataset import IDS, INTS, Dataset
from glassformer.data.ragged import Row
from glassformer.metrics import Score
from glassformer.metrics.registry import scores
from glassformer.tasks.base import Log
from glassformer.tasks.causal_lm import CausalLMBatch, DecoderTask
from glassformer.tasks.texts import Warn, map_nonblank, no_op
from glassformer.tokens.tokenizer import Tokenizer

MAX_SUMMARY = 128
"""Default maximum length of a summary in tokens; positions that a long text must leave free."""


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
    fields = {"ids": IDS, "n_prompt": INTS}
    metric = "loss"
    output_type = "summaries"
    add_prefix_space = False
    prompt_loss_weight = 0.0
    # Beam search finds summaries of higher probability but lower quality. The n-gram size allows names of several
    # tokens to be repeated.
    decoding_defaults: ClassVar = {"beam": 1, "no_repeat_ngram_size": 6}
    stored_attributes = ("trained_source_len",)
    trained_source_len: tuple[str, ...] = ()
    """Number of tokens of the longest text of the training set that was not cut."""

    def configure(self, config: TrainConfig) -> None:
        self.prompt_loss_weight = config.prompt_loss_weight or 0.0

    @classmethod
    def read(
        cls, src: Sequence[Path], tgt: Sequence[Path], options: ReadOptions = DETECT, log: Log | None = None
    ) -> Iterator[Example]:
        pairs = read_pairs(src, tgt, format=options.format, keys=options.keys, log=log)
        return (e for e in pairs if e.src.strip() and e.tgt.strip())

    @classmethod
    def texts(cls, example: Example) -> Sequence[str]:
        return example.src, example.tgt

    def prompt(self, text: str) -> list[int]:
        return [*self.tokenizer.encode(text), self.tokenizer.eos_id]

    def encode(self, examples: Sequence[Example]) -> tuple[list[Row], list[Example]]:
        """Encode examples. The end of a text that does not fit together with its summary is cut off, as in `run`."""
        t = self.tokenizer
        rows: list[Row] = []
        too_long = []
        sources = t.encode_batch([e.src for e in examples])
        targets = t.encode_batch([e.tgt for e in examples])
        for example, src, tgt in zip(examples, sources, targets, strict=True):
            capacity = self.model.config.max_len - len(tgt) - 1
            if capacity < 2 or len(tgt) >= self.max_new_tokens(DecodeConfig()):
                too_long.append(example)
                continue
            if len(src) > capacity - 1:
                src = src[: min(capacity - 1, self.max_source_len)]
                self.n_truncated += 1
            prompt = [*src, t.eos_id]
            rows.append(([*prompt, *tgt, t.eos_id], [len(prompt)]))
        return rows, too_long

    def fit_statistics(self, data: Dataset) -> None:
        # Texts that were cut are not longer than `max_source_len`, which is kept of any text.
        self.trained_source_len = (str(int(data.fields["n_prompt"].values.max()) - 1),)

    @classmethod
    def wanted_max_len(cls, tokenizer: Tokenizer, example: Example) -> int:
        return len(tokenizer.encode(example.src)) + len(tokenizer.encode(example.tgt)) + 2

    def needed_max_len(self, example: Example) -> int:
        """A summary may take half of the model's maximum length; the text is truncated."""
        return 2 * len(self.tokenizer.encode(example.tgt)) + 4

    @property
    def max_source_len(self) -> int:
        """Number of tokens of a source text that is kept if it is too long."""
        return max(1, self.model.config.max_len - self.max_new_tokens(DecodeConfig()) - 1)

    @property
    def longest_trained_source(self) -> int:
        """`trained_source_len` as a number that leaves a position for a summary; 0 if it is not known."""
        known = [int(text) for text in self.trained_source_len if text.isdecimal()]
        return min(max(known, default=0), self.model.config.max_len - 2)

    def max_new_tokens(self, options: DecodeConfig) -> int:
        return min(options.max_length or MAX_SUMMARY, self.model.config.max_len // 2)

    def truncate_prompt(self, ids: list[int], max_new_tokens: int, warn: Callable[[str], None]) -> list[int]:
        """Keep the beginning of a text, and the final <EOS>. A text that is no longer than those of the training, which
        fitted together with their summaries, is not cut."""
        if len(ids) - 1 <= self.longest_trained_source:
            return ids
        capacity = max(1, self.model.config.max_len - max_new_tokens - 1)
        if len(ids) - 1 > capacity:
            warn(f"longer than the maximum source length of {capacity} tokens: its end was cut off")
        return [*ids[:-1][:capacity], ids[-1]]

    def lengths(self, data: Dataset) -> NDArray[np.int64]:
        return data.fields["ids"].lengths

    def batch(self, rows: Sequence[Row]) -> CausalLMBatch:
        pad_id = self.tokenizer.pad_id
        max_len = max(len(ids) for ids, _ in rows) - 1
        weights = torch.zeros(len(rows), max_len)
        for row_weights, (ids, (n_prompt,)) in zip(weights, rows, strict=True):
            row_weights[: n_prompt - 1] = self.prompt_loss_weight
            row_weights[n_prompt - 1 : len(ids) - 1] = 1.0
        return CausalLMBatch(
            n_targets=float(weights.sum()),
            ids=pad([ids[:-1] for ids, _ in rows], pad_id),
            targets=pad([ids[1:] for ids, _ in rows], pad_id),
            weights=weights,
            target_positions=flat_positions(weights > 0),
        )

    def run(self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = no_op) -> list[str]:
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

    def validate(self, examples: Sequence[Example]) -> dict[str, float]:
        rows, _ = self.encode(examples)

        def losses(part: list[Row]) -> list[float]:
            return [
                float(nll[int(prompt[0]) - 1 : len(ids) - 1].sum())
                for (ids, prompt), (nll, _) in zip(part, self.negative_log_probs(part), strict=True)
            ]

        n = sum(len(ids) - int(prompt[0]) for ids, prompt in rows)
        return {"loss": sum(self.map_parts(losses, rows)) / max(1, n)}
