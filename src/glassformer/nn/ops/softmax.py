"""Softmax of the logits of a vocabulary."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.nn import cpu_training
from glassformer.nn.ops.gpu import prefers_triton, runs_triton
from glassformer.nn.ops.operation import Implementation, Operation

Statistics = tuple[Float[Tensor, "rows columns"], Float[Tensor, " rows"], Float[Tensor, " rows"]]


def torch_softmax(logits: Float[Tensor, "rows columns"], targets: Int[Tensor, " rows"], vocab_size: int) -> Statistics:
    """Softmax, log-sum-exp and logit of the target of each row. Makes no 32-bit copy of 16-bit logits.

    The probabilities may overwrite the logits. There may be more columns than tokens: their probability is 0.
    """
    if logits.size(1) > vocab_size:
        logits[:, vocab_size:] = -torch.inf
    # The log-sum-exp follows from the largest logit and its probability.
    probs = logits.softmax(-1, dtype=logits.dtype)  # without dtype, autocast on a GPU would compute in 32 bits
    lse = logits.amax(-1).float() - probs.amax(-1).float().log()
    return probs, lse, logits.gather(1, targets[:, None])[:, 0].float()


def kernel_softmax(logits: Float[Tensor, "rows columns"], targets: Int[Tensor, " rows"], vocab_size: int) -> Statistics:
    """The same by the kernel in C, in place."""
    at_target = logits.gather(1, targets[:, None])[:, 0].float()
    return logits, cpu_training.softmax_(logits), at_target


def triton_softmax(logits: Float[Tensor, "rows columns"], targets: Int[Tensor, " rows"], vocab_size: int) -> Statistics:
    """The same by the Triton kernel, in place."""
    from glassformer.nn.softmax_kernel import softmax_statistics_

    return softmax_statistics_(logits, targets, vocab_size)


softmax_statistics = Operation(
    torch_softmax,
    Implementation(
        "triton",
        triton_softmax,
        lambda logits, *_: runs_triton(logits.device, logits.dtype),
        prefers=lambda logits, *_: prefers_triton(logits.device, logits.dtype),
    ),
    Implementation(
        "kernels",
        kernel_softmax,
        lambda logits, targets, vocab_size: (
            cpu_training.supports(logits) and logits.is_contiguous() and logits.size(1) == vocab_size
        ),
    ),
    name="softmax_statistics",
)
"""Probabilities, log-sum-exp and logit of the target of each row."""
