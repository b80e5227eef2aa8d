"""Memory-efficient cross-entropy over a vocabulary, computed in chunks of logits."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

CHUNK_ELEMENTS = 1 << 22
"""Number of logits in memory at a time, about the size of a CPU's last-level cache."""


class ProjectedCrossEntropy(torch.autograd.Function):
    """Fused projection to the vocabulary, softmax and label-smoothed cross-entropy, computed in chunks.

    With p the softmax and smoothing e over V words, the gradient of the logits is
    p - (1 - e) onehot(target) - e / V. Only p is a dense matrix: the other two terms are added directly to the
    gradients of hidden, weight and bias. All gradients are computed in the forward pass.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
        token_weights: Tensor | None,
    ) -> Tensor:
        dtype = (
            torch.get_autocast_dtype(hidden.device.type)
            if torch.is_autocast_enabled(hidden.device.type)
            else hidden.dtype
        )
        h, w = hidden.to(dtype), weight.to(dtype)
        vocab_size = w.size(0)
        w_sum = weight.sum(0, dtype=torch.float32)
        b_sum = 0.0 if bias is None else bias.sum(dtype=torch.float32)
        on, off = 1 - smoothing, smoothing / vocab_size  # smoothed target: `off` for each word, and `on` for the target

        hidden_dtype = hidden.dtype
        need_grad = hidden.requires_grad or weight.requires_grad
        d_hidden = torch.empty_like(hidden, dtype=torch.float32)
        d_weight = torch.zeros_like(weight, dtype=torch.float32)
        d_bias = None if bias is None else torch.zeros_like(bias, dtype=torch.float32)
        loss = torch.zeros((), dtype=torch.float32, device=hidden.device)
        n_rows = max(1, CHUNK_ELEMENTS // vocab_size)
        for start in range(0, h.size(0), n_rows):
            rows = slice(start, start + n_rows)
            logits = h[rows] @ w.t()
            if bias is not None:
                logits += bias
            probs = logits.softmax(-1)
            max_logits, argmax = logits.max(-1)
            lse = max_logits.float() - probs.gather(1, argmax[:, None])[:, 0].float().log()
            at_target = logits.gather(1, targets[rows, None])[:, 0].float()
            logits_sum = hidden[rows].float() @ w_sum + b_sum
            losses = lse - on * at_target - off * logits_sum
            loss += (losses if token_weights is None else losses * token_weights[rows]).sum()
            if need_grad:
                d_hidden[rows] = probs @ w
                d_weight += probs.t() @ (
                    h[rows] if token_weights is None else h[rows] * token_weights[rows, None].to(dtype)
                )
                if d_bias is not None:
                    d_bias += probs.float().sum(0) if token_weights is None else token_weights[rows] @ probs.float()
        if need_grad:
            d_hidden -= on * weight.index_select(0, targets) + off * w_sum
            hidden = hidden.float()
            if token_weights is not None:
                d_hidden *= token_weights[:, None]
                hidden = hidden * token_weights[:, None]
            d_weight -= off * hidden.sum(0)
            d_weight.index_add_(0, targets, hidden, alpha=-on)
            if d_bias is not None:
                target_weights = torch.ones_like(hidden[:, 0]) if token_weights is None else token_weights
                d_bias -= off * target_weights.sum()
                d_bias.index_add_(0, targets, target_weights, alpha=-on)
            ctx.save_for_backward(d_hidden, d_weight, d_bias)
            ctx.dtypes = hidden_dtype, weight.dtype
        return loss

    @staticmethod
    def backward(  # type: ignore[override]
        ctx: Any, grad: Tensor
    ) -> tuple[Tensor, Tensor, Tensor | None, None, None, None]:
        d_hidden, d_weight, d_bias = ctx.saved_tensors
        hidden_dtype, weight_dtype = ctx.dtypes
        d_bias = None if d_bias is None else (d_bias * grad).to(weight_dtype)
        return (d_hidden * grad).to(hidden_dtype), (d_weight * grad).to(weight_dtype), d_bias, None, None, None


def projected_cross_entropy(
    hidden: Float[Tensor, "tokens d_model"],
    weight: Float[Tensor, "vocab d_model"],
    targets: Int[Tensor, " tokens"],
    *,
    bias: Float[Tensor, " vocab"] | None = None,
    label_smoothing: float = 0.0,
    token_weights: Float[Tensor, " tokens"] | None = None,
) -> Float[Tensor, ""]:
    """Summed cross-entropy of the targets with logits hidden W^T + b, in nats.

    Args:
        hidden: hidden state of each target.
        weight: projection to the vocabulary, W.
        targets: ids of the target tokens.
        bias: b; default: 0.
        label_smoothing: label smoothing epsilon, 0 to 1.
        token_weights: weight of the loss of each target; default: 1.

    Source: Szegedy et al. 2016, section 7, as in Vaswani et al. 2017, section 5.4.
    """
    return ProjectedCrossEntropy.apply(hidden, weight, bias, targets, label_smoothing, token_weights)  # type: ignore[no-any-return, no-untyped-call]
