"""The largest batch that fits in memory, from the memory that trial steps need."""

import numpy as np
from numpy.typing import NDArray

from glassformer.data.dataset import Dataset
from glassformer.errors import UserError
from glassformer.memory import available_bytes, is_out_of_memory
from glassformer.training.memory import (
    MemoryMeter,
    n_kept,
    single_example_message,
)
from glassformer.training.parallel import n_bytes
from glassformer.training.step import TrainingStep

TRIAL_TOKENS = 8192
"""Number of tokens of the largest trial batch, or that of two examples if these are longer."""

MARGIN = 0.15
"""Fraction of the available memory that stays free: for validation, and for gaps between tensors."""


def find_batch_tokens(step: TrainingStep, data: Dataset, lengths: NDArray[np.int64]) -> int:
    """Maximum number of tokens, padding included, of a batch of this process whose update fits in memory.

    Measures the memory for the gradients of 1, 2, 4, … of the longest examples, where attention needs the most memory
    per token. It is a linear function of their number, so the last two measurements determine it for all numbers. The
    weights stay as they are; random numbers are drawn. All processes must call this.

    Args:
        lengths: padded length of each example.

    Raises:
        UserError: the longest example does not fit.
        ConfigError: memory cannot be measured.
    """
    longest, order = int(lengths.max()), np.argsort(lengths)[::-1]
    meter, available = MemoryMeter(step.device), available_bytes(str(step.device))
    assert available is not None
    room = (1 - MARGIN) * available / (step.processes.local_size if step.device.type == "cpu" else 1)
    room -= n_kept(step.config) * sum(map(n_bytes, step.parameters.values()))
    if step.graphs:
        room /= 2  # their memory is apart from that of steps without a graph
    at_start = meter.restart()
    n_rows, used, n_fitting = 1, 0, 1.0
    while n_rows <= min(n_fitting, max(2, TRIAL_TOKENS // longest)):
        batch = step.objective.batch(data.rows(np.resize(order, n_rows)))
        if step.graphs:
            batch = batch.pad_to(n_rows, longest, step.objective.tokenizer.pad_id)
        meter.restart()
        try:
            step.try_gradients(batch)
        except RuntimeError as error:
            if not is_out_of_memory(error) or step.processes.size > 1:
                raise
            step.release()
            n_fitting = n_rows // 2
            break
        before, used = used, meter.peak_bytes() - at_start
        if n_rows == 1:
            n_fitting = 2.0 if used <= room else 0.0
        else:
            n_fitting = n_rows + (room - used) / (max(used - before, 1) / (n_rows / 2))
        n_fitting = step.processes.gather([n_fitting])[:, 0].min()
        n_rows *= 2
    if n_fitting < 1:
        raise UserError(single_example_message(longest, step.config))
    n_examples = -(-len(lengths) // step.processes.size)
    return int(min(n_fitting, n_examples)) * longest
