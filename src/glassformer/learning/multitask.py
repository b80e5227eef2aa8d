"""Objective of multitask text-to-text models, and the mixture of their tasks."""

from collections.abc import Mapping, Sequence

import numpy as np

from glassformer.decode_config import DecodeConfig
from glassformer.learning.translation import TextToTextObjective
from glassformer.tasks.multitask import Multitask, PromptedExample
from glassformer.tasks.texts import evenly_spaced


class MultitaskObjective(TextToTextObjective[PromptedExample]):
    """Objective of a mixture of text-to-text tasks."""

    task_type = Multitask
    task: Multitask
    metric = "exact"
    validation_decodes = True
    options = (*TextToTextObjective.options, "mixing_limit", "mixing_temperature")

    @classmethod
    def group(cls, example: PromptedExample) -> str:
        return example.task

    def validate(self, examples: Sequence[PromptedExample], n_decoded: int | None = None) -> dict[str, float]:
        """Fraction of exact matches, averaged over tasks, and the loss per target token in nats.

        Args:
            n_decoded: decode this many of the examples, evenly spaced; the loss is that of all. Default: all.
        """
        decoded = evenly_spaced(examples, n_decoded)
        precision = self.decoding_precision or self.task.validation_precision
        options = DecodeConfig(beam=1, batch_tokens=4096, precision=precision)
        outputs = self.map_parts(lambda examples: self.task.best_outputs(examples, options), decoded)
        correct: dict[str, list[bool]] = {}
        for output, example in zip(outputs, decoded, strict=True):
            correct.setdefault(example.task, []).append(output == example.tgt)
        return {
            "exact": float(np.mean([np.mean(values) for values in correct.values()])),
            "loss": self.reference_loss(examples),
        }


def repetition_factors(
    counts: Mapping[str, int], limit: int | None = None, temperature: float = 1.0
) -> dict[str, float]:
    """How often the examples of each task are repeated in an epoch, at least once.

    The factors mix the tasks in proportion to min(n, limit)^(1/temperature).

    Args:
        counts: number of examples n of each task.
        limit: maximum number of examples that a task counts as.
        temperature: 1 mixes in proportion to size; larger values mix more evenly.

    Source: Raffel et al. 2019, section 3.5.2.
    """
    factors = {task: min(n, limit or n) ** (1 / temperature) / n for task, n in counts.items()}
    smallest = min(factors.values())
    return {task: factor / smallest for task, factor in factors.items()}
