"""Cross-entropy over a vocabulary, without the logits of a whole batch in memory."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

CHUNK_ELEMENTS = 1 << 22
"""Logits held at a time: about what a processor's last-level cache keeps."""


class ProjectedCrossEntropy(torch.autograd.Function):
    """Projection, softmax and label-smoothed cross-entropy in one, chunk by chunk.

    With p the softmax and smoothing e over V words, the gradient of the logits is
    p - (1 - e) onehot(target) - e / V. Only p is as wide as the vocabulary: the other two terms are added to
    the gradients of hidden, weight and bias without ever being spread out. All are made on the way forward.
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
        on, off = 1 - smoothing, smoothing / vocab_size

        dtype_of_hidden = hidden.dtype
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
            top, best = logits.max(-1)
            lse = top.float() - probs.gather(1, best[:, None])[:, 0].float().log()
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
                each = torch.ones_like(hidden[:, 0]) if token_weights is None else token_weights
                d_bias -= off * each.sum()
                d_bias.index_add_(0, targets, each, alpha=-on)
            ctx.save_for_backward(d_hidden, d_weight, d_bias)
            ctx.dtypes = dtype_of_hidden, weight.dtype
        return loss

    @staticmethod
    def backward(  # type: ignore[override]
        ctx: Any, grad: Tensor
    ) -> tuple[Tensor, Tensor, Tensor | None, None, None, None]:
        d_hidden, d_weight, d_bias = ctx.saved_tensors
        of_hidden, of_weight = ctx.dtypes
        d_bias = None if d_bias is None else (d_bias * grad).to(of_weight)
        return (d_hidden * grad).to(of_hidden), (d_weight * grad).to(of_weight), d_bias, None, None, None


def projected_cross_entropy(
    hidden: Float[Tensor, "tokens d_model"],
    weight: Float[Tensor, "vocab d_model"],
    targets: Int[Tensor, " tokens"],
    *,
    bias: Float[Tensor, " vocab"] | None = None,
    label_smoothing: float = 0.0,
    token_weights: Float[Tensor, " tokens"] | None = None,
) -> Float[Tensor, ""]:
    """Summed loss of predicting each target from hidden W^T + b, in nats.

    Args:
        label_smoothing: the share of probability spread evenly over the vocabulary, 0 to 1.
        importance: what each target's loss is multiplied by; default: 1.

    Source: Szegedy et al. 2016, section 7, as in Vaswani et al. 2017, section 5.4.
    """
    return ProjectedCrossEntropy.apply(hidden, weight, bias, targets, label_smoothing, token_weights)  # type: ignore[no-any-return, no-untyped-call]
