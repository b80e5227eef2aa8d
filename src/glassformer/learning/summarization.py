"""Objective of summarization with a decoder-only model."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from glassformer.corpora.example import Example
from glassformer.data.batch import flat_positions, pad
from glassformer.data.dataset import IDS, INTS, Dataset
from glassformer.data.ragged import Row
from glassformer.learning.causal_lm import CausalLMBatch, DecoderObjective
from glassformer.tasks.summarization import Summarizer
from glassformer.tokens.tokenizer import Tokenizer
from glassformer.train_config import TrainConfig


class SummarizationObjective(DecoderObjective[Example]):
    """Cross-entropy of sequences ARTICLE <EOS> SUMMARY <EOS>.

    Targets up to and including the first <EOS> have the weight `prompt_loss_weight`, later ones 1.

    Source: Liu et al. 2018; the weighting as in docs/reference.md, section 6.
    """

    task_type = Summarizer
    task: Summarizer
    fields = {"ids": IDS, "n_prompt": INTS}
    metric = "loss"
    add_prefix_space = False
    options = (*DecoderObjective.options, "prompt_loss_weight")
    prompt_loss_weight = 0.0

    def configure(self, config: TrainConfig) -> None:
        self.prompt_loss_weight = config.prompt_loss_weight or 0.0

    def encode(self, examples: Sequence[Example]) -> tuple[list[Row], list[Example]]:
        """Encode examples. The end of a text that does not fit together with its summary is cut off, as in `run`."""
        t = self.tokenizer
        rows: list[Row] = []
        too_long = []
        sources = t.encode_batch([e.src for e in examples])
        targets = t.encode_batch([e.tgt for e in examples])
        for example, src, tgt in zip(examples, sources, targets, strict=True):
            capacity = self.model.config.max_len - len(tgt) - 1
            if capacity < 2 or len(tgt) >= self.model.config.max_len // 2:
                too_long.append(example)
                continue
            if len(src) > capacity - 1:
                src = src[: min(capacity - 1, self.task.max_source_len)]
                self.n_truncated += 1
            prompt = [*src, t.eos_id]
            rows.append(([*prompt, *tgt, t.eos_id], [len(prompt)]))
        return rows, too_long

    @property
    def too_long(self) -> str:
        return f"with a summary of more than {max(0, self.model.config.max_len // 2 - 1)} tokens"

    def fit_statistics(self, data: Dataset) -> None:
        # Texts that were cut are not longer than `max_source_len`, which is kept of any text.
        n_prompt = data.fields["n_prompt"].values
        self.task.trained_source_len = (str(int(n_prompt.max()) - 1),)
        self.task.trained_target_len = (str(int((data.fields["ids"].lengths - n_prompt).max())),)

    @classmethod
    def wanted_max_len(cls, tokenizer: Tokenizer, example: Example) -> int:
        return len(tokenizer.encode(example.src)) + len(tokenizer.encode(example.tgt)) + 2

    def needed_max_len(self, example: Example) -> int:
        """A summary may take half of the model's maximum length; the text is truncated."""
        return 2 * len(self.tokenizer.encode(example.tgt)) + 4

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

    def validate(self, examples: Sequence[Example]) -> dict[str, float]:
        rows, _ = self.encode(examples)

        def losses(part: list[Row]) -> list[float]:
            return [
                float(nll[int(prompt[0]) - 1 :].sum())
                for (ids, prompt), nll in zip(part, self.task.negative_log_probs([ids for ids, _ in part]), strict=True)
            ]

        n = sum(len(ids) - int(prompt[0]) for ids, prompt in rows)
        return {"loss": sum(self.map_parts(losses, rows)) / n}
