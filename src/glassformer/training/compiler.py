"""Compilation with torch.compile of the parts of a training step that take the most time on a GPU."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from glassformer.nn.block import TransformerBlock
from glassformer.objectives import loss

MAX_VERSIONS = 64
"""Maximum number of compiled versions of a block. Beyond it, blocks run without compilation."""


class Compiled:
    """Compiled forward passes of the Transformer blocks of a model, and the compiled softmax of the loss.

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
        self.forwards = {
            module: torch.compile(module.forward, **options)
            for module in model.modules()
            if isinstance(module, TransformerBlock)
        }
        self.softmax_statistics = torch.compile(loss.softmax_statistics_to_compile, **options)
        self.errors = torch._dynamo.exc.TorchDynamoException
        """Base class of the errors of the compiler."""

    @contextmanager
    def active(self) -> Iterator[None]:
        """Use the compiled functions inside the `with` block."""
        eager = loss.softmax_statistics
        try:
            loss.softmax_statistics = self.softmax_statistics
            for block, forward in self.forwards.items():
                vars(block)["forward"] = forward
            yield
        finally:
            loss.softmax_statistics = eager
            for block in self.forwards:
                vars(block).pop("forward", None)
