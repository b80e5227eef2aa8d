"""Summaries by a decoder alone: the text is a prompt, its summary what follows."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from glassformer.config import DecodeConfig, TrainConfig
from glassformer.corpora.corpus import Example, read_pairs
from glassformer.corpora.read_options import DETECT, ReadOptions
from glassformer.data.batch import pad
from glassformer.data.dataset import IDS, INTS, Dataset, Row
from glassformer.metrics import Score
from glassformer.metrics.score import MetricFn, mean_from, mean_statistics
from glassformer.metrics.summary import KINDS, rouge, summary_scores
from glassformer.tasks.base import Log, check_texts, map_nonblank, no_op
from glassformer.tasks.causal_lm import CausalLMBatch, DecoderTask

MAX_SUMMARY = 128
"""Tokens of a summary that are kept free when a long text is cut."""


class Summarizer(DecoderTask):
    """ARTICLE <EOS> SUMMARY <EOS>, learned as a language model whose prompt counts less.

    Of the loss each target up to and including the first <EOS> counts `prompt_loss_weight`, each after it 1.

    Source: Liu et al. 2018; the weighting as in reference.md, section 6.
    """

    name = "summarization"
    example_type = Example
    examples_name = "pairs"
    fields = {"ids": IDS, "n_prompt": INTS}
    metric = "loss"
    larger_is_better = False
    add_prefix_space = False
    prompt_loss_weight = 0.0
    # A beam finds likelier summaries, and worse ones; a name of several pieces may be said again.
    decoding_defaults: ClassVar = {"beam": 1, "no_repeat_ngram_size": 6}

    def configure(self, config: TrainConfig) -> None:
        self.prompt_loss_weight = config.prompt_loss_weight or 0.0

    @classmethod
    def read(
        cls, src: Sequence[Path], tgt: Sequence[Path], options: ReadOptions = DETECT, log: Log | None = None
    ) -> Iterator[Example]:
        return (
            e for e in read_pairs(src, tgt, format=options.format, keys=options.keys) if e.src.strip() and e.tgt.strip()
        )

    @classmethod
    def texts(cls, example: Example) -> Sequence[str]:
        return example.src, example.tgt

    def prompt(self, text: str) -> list[int]:
        return [*self.tokenizer.encode(text), self.tokenizer.eos_id]

    def encode(self, examples: Sequence[Example]) -> tuple[list[Row], list[Example]]:
        """Of a text too long for the model the end is cut, as `run` will cut it."""
        t, rows, too_long = self.tokenizer, [], []
        sources = t.encode_batch([e.src for e in examples])
        targets = t.encode_batch([e.tgt for e in examples])
        for example, src, tgt in zip(examples, sources, targets, strict=True):
            room = self.model.config.max_len - len(tgt) - 1
            if room < 2 or len(tgt) >= self.max_new_tokens(DecodeConfig()):
                too_long.append(example)
                continue
            prompt = [*src[: min(room - 1, self.room)], t.eos_id]
            rows.append(([*prompt, *tgt, t.eos_id], [len(prompt)]))
        return rows, too_long  # type: ignore[return-value]

    def needed_max_len(self, example: Example) -> int:
        """A summary may take half of the model's maximum length; the text is truncated."""
        return 2 * len(self.tokenizer.encode(example.tgt)) + 4

    @property
    def room(self) -> int:
        """Tokens of a text that are read."""
        return max(1, self.model.config.max_len - self.max_new_tokens(DecodeConfig()) - 1)

    def max_new_tokens(self, options: DecodeConfig) -> int:
        return min(options.max_length or MAX_SUMMARY, self.model.config.max_len // 2)

    def truncate_prompt(self, ids: list[int], max_new_tokens: int, warn: Callable[[str], None]) -> list[int]:
        """The beginning of a text, and the <EOS> that asks for its summary."""
        room = max(1, self.model.config.max_len - max_new_tokens - 1)
        if len(ids) - 1 > room:
            warn(f"longer than the {room} tokens that leave room for a summary: its end was not read")
        return [*ids[:-1][:room], ids[-1]]

    def lengths(self, data: Dataset) -> NDArray[np.int64]:
        return data.fields["ids"].lengths

    def batch(self, rows: Sequence[Any]) -> CausalLMBatch:
        pad_id = self.tokenizer.pad_id
        longest = max(len(ids) for ids, _ in rows) - 1
        weights = torch.zeros(len(rows), longest)
        for row, (ids, (n_prompt,)) in zip(weights, rows, strict=True):
            row[: n_prompt - 1] = self.prompt_loss_weight
            row[n_prompt - 1 : len(ids) - 1] = 1.0
        return CausalLMBatch(
            n_targets=float(weights.sum()),
            ids=pad([ids[:-1] for ids, _ in rows], pad_id),
            targets=pad([ids[1:] for ids, _ in rows], pad_id),
            weights=weights,
        )

    def __call__(self, texts: str | Sequence[str], *extra: Any, **options: Any) -> str | list[str]:
        """The summary of a text, or of each of a list.

        Args:
            options: those of `DecodeConfig`; with `temperature` summaries are drawn, and `seed` repeats them.
        """
        results = self.complete(
            check_texts(self, texts, *extra), DecodeConfig.resolve(options, environment={}) if options else None
        )
        return results[0] if isinstance(texts, str) else results

    def run(self, lines: Sequence[str], options: Any = None, *, warn: Callable[[int, str], None] = no_op) -> list[str]:
        return map_nonblank(
            lines, lambda there, warn: [" ".join(text.split()) for text in self.complete(there, options, warn)], warn
        )

    def scores(self, examples: Sequence[Example], options: Any = None) -> tuple[list[str], list[Score]]:
        found = self.complete([e.src for e in examples], options)
        return found, summary_scores(found, [[e.tgt] for e in examples])

    @classmethod
    def bootstrap_statistics(
        cls, outputs: Sequence[str], examples: Sequence[Example]
    ) -> dict[str, tuple[NDArray[np.float64], MetricFn]]:
        columns = rouge(outputs, [[example.tgt] for example in examples]).T.tolist()
        return {name: (mean_statistics(row), mean_from) for name, row in zip(KINDS.values(), columns, strict=True)}

    def validate(self, examples: Sequence[Example]) -> dict[str, float]:
        rows, _ = self.encode(examples)
        total, n = 0.0, 0
        for (ids, prompt), (nll, _) in zip(rows, self.negative_log_probs(rows), strict=True):  # type: ignore[misc]
            n_prompt = int(prompt[0])
            total += float(nll[n_prompt - 1 : len(ids) - 1].sum())
            n += len(ids) - n_prompt
        return {"loss": total / max(1, n)}
