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


PairStatistics = tuple[
    Float[Tensor, "rows columns"], Float[Tensor, " rows"], Float[Tensor, " rows"], Float[Tensor, " pairs"]
]


def torch_pair_statistics(
    logits: Float[Tensor, "rows columns"], targets: Int[Tensor, " rows"], vocab_size: int, weight: float
) -> PairStatistics:
    """Of pairs of rows 2 i, 2 i + 1 with softmax p, q: gradients, log-sum-exp and logit of the target of each row, and
    the divergence KL(p, q) + KL(q, p).

    The gradients, with regard to the logits, are those of both log-sum-exps + weight * divergence. They may overwrite
    the logits. There may be more columns than tokens: their gradients are 0.
    """
    wide = logits[:, :vocab_size].float()
    lse = wide.logsumexp(-1)
    probs = (wide - lse[:, None]).exp()
    (x, y), (p, q) = wide.view(-1, 2, vocab_size).unbind(1), probs.view(-1, 2, vocab_size).unbind(1)
    difference = x - y
    mean_p, mean_q = (p * difference).sum(-1, keepdim=True), (q * difference).sum(-1, keepdim=True)
    grad_x = p + weight * (p * (difference - mean_p) + p - q)
    grad_y = q + weight * (q * (mean_q - difference) + q - p)
    gradients = torch.zeros_like(logits)
    gradients[:, :vocab_size] = torch.stack((grad_x, grad_y), 1).flatten(0, 1)
    return gradients, lse, logits.gather(1, targets[:, None])[:, 0].float(), (mean_p - mean_q)[:, 0]


def kernel_pair_statistics(
    logits: Float[Tensor, "rows columns"], targets: Int[Tensor, " rows"], vocab_size: int, weight: float
) -> PairStatistics:
    """The same by the kernel in C, in place."""
    at_target = logits.gather(1, targets[:, None])[:, 0].float()
    lse, divergence = cpu_training.softmax_of_pairs_(logits, weight)
    return logits, lse, at_target, divergence


pair_statistics = Operation(
    torch_pair_statistics,
    Implementation(
        "kernels",
        kernel_pair_statistics,
        lambda logits, targets, vocab_size, weight: (
            cpu_training.supports(logits) and logits.is_contiguous() and logits.size(1) == vocab_size
        ),
    ),
    name="pair_statistics",
)
"""Gradients, log-sum-exp, logit of the target and divergence of pairs of rows."""
