"""Cross-entropy of targets over a vocabulary, with the projection to the logits."""

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.nn import cpu_training
from glassformer.nn.ops.gpu import prefers_triton
from glassformer.nn.ops.operation import Implementation, Operation
from glassformer.nn.ops.softmax import softmax_statistics

CHUNK_BYTES = {"cpu": 1 << 25, "cuda": 1 << 31}
"""Size of the logits that are in memory at a time, by device: on a CPU about that of the last-level cache; on a GPU
more, because many small products leave it idle."""

COLUMN_MULTIPLE = 16
"""On a GPU, logits are computed for a multiple of this number of tokens: other products are several times slower."""


def torch_linear_cross_entropy(
    hidden: Float[Tensor, "tokens d_model"],
    weight: Float[Tensor, "vocab d_model"],
    targets: Int[Tensor, " tokens"],
    *,
    bias: Float[Tensor, " vocab"] | None = None,
    label_smoothing: float = 0.0,
    token_weights: Float[Tensor, " tokens"] | None = None,
) -> Float[Tensor, ""]:
    """Cross-entropy of the targets with logits = hidden @ weight^T + bias, summed, in nats.

    Args:
        hidden: hidden state that each target is predicted from.
        weight: projection to the vocabulary.
        targets: ids of the target tokens.
        bias: bias of the logits; default: 0.
        label_smoothing: label smoothing epsilon, 0 to 1.
        token_weights: weight of the loss of each target; default: 1.

    Source: Szegedy et al. 2016, section 7, as in Vaswani et al. 2017, section 5.4.
    """
    logits = F.linear(hidden, weight, bias).float()
    losses = F.cross_entropy(logits, targets, label_smoothing=label_smoothing, reduction="none")
    return (losses if token_weights is None else losses * token_weights).sum()


class Products:
    """The matrix products of the loss, by PyTorch."""

    def __init__(self, h: Tensor, w: Tensor, n_rows: int) -> None:
        """
        Args:
            h: all hidden states.
            w: projection to the vocabulary, of the same type.
            n_rows: largest number of rows of a chunk.
        """
        self.w, self.vocab_size = w, w.size(0)

    def logits(self, h: Tensor, bias: Tensor | None) -> Tensor:
        """Logits of the hidden states of a chunk. There may be more columns than tokens."""
        logits = h @ self.w.t()
        if bias is not None:
            logits[:, : self.vocab_size] += bias
        return logits

    def add_gradients(self, probs: Tensor, h: Tensor, d_hidden: Tensor, d_weight: Tensor) -> None:
        """Set the gradient of the hidden states of a chunk, and add to that of the projection, from its
        probabilities."""
        d_hidden.copy_(probs @ self.w)
        d_weight += (probs.t() @ h)[: self.vocab_size]


class PaddedProducts(Products):
    """The products for a multiple of COLUMN_MULTIPLE tokens."""

    def __init__(self, h: Tensor, w: Tensor, n_rows: int) -> None:
        super().__init__(h, w, n_rows)
        self.w = F.pad(w, (0, 0, 0, -self.vocab_size % COLUMN_MULTIPLE))


class KernelProducts(Products):
    """The products by the kernels in C."""

    def __init__(self, h: Tensor, w: Tensor, n_rows: int) -> None:
        super().__init__(h, w, n_rows)
        self.buffer = h.new_empty(n_rows, self.vocab_size)

    def logits(self, h: Tensor, bias: Tensor | None) -> Tensor:
        biases = [] if bias is None else [bias]
        return cpu_training.product(h, [self.w], self.buffer[: len(h)], transpose_b=True, bias=biases)

    def add_gradients(self, probs: Tensor, h: Tensor, d_hidden: Tensor, d_weight: Tensor) -> None:
        cpu_training.product(probs, [self.w], d_hidden)
        cpu_training.product(probs, [h], d_weight, transpose_a=True, add=True)


class FusedLinearCrossEntropy(torch.autograd.Function):
    """Fused linear cross-entropy: projection to the vocabulary, softmax and label-smoothed cross-entropy in chunks.

    With p the softmax and smoothing e over V tokens, the gradient of the logits is
    p - (1 - e) * onehot(target) - e / V. Only p is a dense matrix: the other two terms are added directly to the
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
        products_type: type[Products],
    ) -> Tensor:
        dtype = product_dtype(hidden)
        h, w = hidden.to(dtype), weight.to(dtype)
        vocab_size = w.size(0)
        w_sum = weight.sum(0, dtype=torch.float32)
        b_sum = 0.0 if bias is None else bias.sum(dtype=torch.float32)
        # Smoothed target distribution: `off` for every token, plus `on` for the target.
        on, off = 1 - smoothing, smoothing / vocab_size

        hidden_dtype = hidden.dtype
        need_grad = hidden.requires_grad or weight.requires_grad
        grad_hidden = torch.empty_like(hidden, dtype=torch.float32)
        wide = hidden.float()
        logits_sum = wide @ w_sum + b_sum
        if token_weights is not None:
            wide = wide * token_weights[:, None]
        grad_weight = (-off * wide.sum(0)).expand_as(weight).contiguous()
        grad_bias = None if bias is None else torch.zeros_like(bias, dtype=torch.float32)
        loss = torch.zeros((), dtype=torch.float32, device=hidden.device)
        chunk_bytes = CHUNK_BYTES.get(hidden.device.type, CHUNK_BYTES["cpu"])
        max_rows = max(1, chunk_bytes // (vocab_size * h.element_size()))
        n_chunks = max(1, -(-len(h) // max_rows))
        n_rows = max(1, -(-len(h) // n_chunks))  # chunks of equal size
        products = products_type(h, w, n_rows)
        for start in range(0, len(h), n_rows):
            rows = slice(start, start + n_rows)
            logits = products.logits(h[rows], bias)
            probs, lse, at_target = softmax_statistics(logits, targets[rows], vocab_size)
            losses = lse - on * at_target - off * logits_sum[rows]
            loss += (losses if token_weights is None else losses * token_weights[rows]).sum()
            if need_grad:
                weighted = h[rows] if token_weights is None else h[rows] * token_weights[rows, None].to(dtype)
                products.add_gradients(probs, weighted, grad_hidden[rows], grad_weight)
                if grad_bias is not None:
                    probs = probs[:, :vocab_size]
                    grad_bias += probs.float().sum(0) if token_weights is None else token_weights[rows] @ probs.float()
        if need_grad:
            grad_hidden -= on * weight.index_select(0, targets) + off * w_sum
            if token_weights is not None:
                grad_hidden *= token_weights[:, None]
            grad_weight.index_add_(0, targets, wide, alpha=-on)
            if grad_bias is not None:
                target_weights = torch.ones_like(wide[:, 0]) if token_weights is None else token_weights
                grad_bias -= off * target_weights.sum()
                grad_bias.index_add_(0, targets, target_weights, alpha=-on)
            ctx.save_for_backward(grad_hidden, grad_weight, grad_bias)
            ctx.dtypes = hidden_dtype, weight.dtype
        return loss

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        grad_hidden, grad_weight, grad_bias = ctx.saved_tensors
        hidden_dtype, weight_dtype = ctx.dtypes
        grad_bias = None if grad_bias is None else (grad_bias * grad_output).to(weight_dtype)
        grad_hidden = (grad_hidden * grad_output).to(hidden_dtype)
        grad_weight = (grad_weight * grad_output).to(weight_dtype)
        return grad_hidden, grad_weight, grad_bias, None, None, None, None


def product_dtype(hidden: Tensor) -> torch.dtype:
    """The type of the factors of the matrix products."""
    device = hidden.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype


def fused_linear_cross_entropy(
    products: type[Products],
    hidden: Float[Tensor, "tokens d_model"],
    weight: Float[Tensor, "vocab d_model"],
    targets: Int[Tensor, " tokens"],
    *,
    bias: Float[Tensor, " vocab"] | None = None,
    label_smoothing: float = 0.0,
    token_weights: Float[Tensor, " tokens"] | None = None,
) -> Float[Tensor, ""]:
    """The same in chunks of logits, with these products."""
    return FusedLinearCrossEntropy.apply(hidden, weight, bias, targets, label_smoothing, token_weights, products)


linear_cross_entropy = Operation(
    torch_linear_cross_entropy,
    Implementation(
        "padded",
        partial(fused_linear_cross_entropy, PaddedProducts),
        prefers=lambda hidden, *_, **__: prefers_triton(hidden.device, product_dtype(hidden)),
    ),
    Implementation(
        "kernels",
        partial(fused_linear_cross_entropy, KernelProducts),
        lambda hidden, *_, **__: cpu_training.supports(hidden) and cpu_training.has_product(product_dtype(hidden)),
    ),
    Implementation("chunks", partial(fused_linear_cross_entropy, Products)),
    name="linear_cross_entropy",
)
"""Cross-entropy of targets over a vocabulary. All implementations but the reference compute it in chunks of logits."""
