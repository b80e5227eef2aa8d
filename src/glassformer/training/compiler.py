"""Compilation with torch.compile of the parts of a training step that take the most time on a GPU."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from glassformer.nn.block import TransformerBlock

MAX_VERSIONS = 64
"""Maximum number of compiled versions of a block. Beyond it, blocks run without compilation."""


FIRST_SHAPE_S, SHAPE_S = 26.0, 3.7
"""Time of compilation in seconds for the first shape of a batch, and for each further one. Measured on an H100 with the
preset base (benchmarks/results/train_speed_gpu.json): seconds to step 10 of batches of one length, compiled and eager,
and of batches of about 7 lengths in these steps."""

GAIN = 0.2
"""Fraction of the time that compilation saves. Same measurement: 22%."""


def compilation_s(n_shapes: int) -> float:
    """Estimated time of compilation in seconds for batches of so many shapes, on a GPU."""
    return FIRST_SHAPE_S + SHAPE_S * (n_shapes - 1)


class Compiled:
    """Compiled forward passes of the Transformer blocks of a model.

    Only training uses them, inside `active`: decoding, validation and recording of activations run without. Blocks are
    compiled one by one, because compiling a whole step takes longer and the result is no faster.
    """

    def __init__(self, model: nn.Module, **options: Any) -> None:
        """
        Args:
            options: passed to `torch.compile`.
        """
        if "backend" not in options and "triton.mix_order_reduction" in torch._inductor.config.get_config_copy():
            # Slower for rows as short as d_model.
            options["options"] = {"triton.mix_order_reduction": False}
        # All blocks share one code object, whose versions by shape and by use (encoder, decoder) count together.
        torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, MAX_VERSIONS)
        self.methods = [
            (module, name, torch.compile(getattr(module, name), **options))
            for block in model.modules()
            if isinstance(block, TransformerBlock)
            # The keys and values of cross-attention are computed before the block.
            for module, name in [(block, "forward"), *cross_projections(block)]
        ]
        self.errors = torch._dynamo.exc.TorchDynamoException
        """Base class of the errors of the compiler."""

    @contextmanager
    def active(self) -> Iterator[None]:
        """Use the compiled functions inside the `with` block."""
        try:
            for module, name, method in self.methods:
                vars(module)[name] = method
            yield
        finally:
            for module, name, _ in self.methods:
                vars(module).pop(name, None)


def cross_projections(block: TransformerBlock) -> list[tuple[nn.Module, str]]:
    """The method that computes keys and values of cross-attention, if the block has it."""
    return [(block.cross_attention, "keys_values")] if hasattr(block, "cross_attention") else []
