"""Memory-efficient cross-entropy over a vocabulary, computed in chunks of logits."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.data.pairs import PairBatch
from glassformer.nn import cpu_training
from glassformer.nn.kernels import has_kernels

CHUNK_BYTES = {"cpu": 1 << 25, "cuda": 1 << 31}
"""Size of the logits that are in memory at a time, by device: on a CPU about that of the last-level cache; on a GPU
more, because many small products leave it idle."""

COLUMN_MULTIPLE = 16
"""On a GPU, logits are computed for a multiple of this number of tokens: other products are several times slower."""


def softmax_statistics(
    logits: Float[Tensor, "rows columns"], targets: Int[Tensor, " rows"], vocab_size: int
) -> tuple[Float[Tensor, "rows columns"], Float[Tensor, " rows"], Float[Tensor, " rows"]]:
    """Softmax, log-sum-exp and logit of the target of each row. Makes no 32-bit copy of 16-bit logits.

    With kernels, the probabilities overwrite the logits. On a GPU, there may be more columns than tokens: their
    probability is 0.
    """
    if has_kernels(logits):
        from glassformer.nn.softmax_kernel import softmax_statistics_

        return softmax_statistics_(logits, targets, vocab_size)
    if cpu_training.uses_kernels(logits):
        at_target = logits.gather(1, targets[:, None])[:, 0].float()
        return logits, cpu_training.softmax_(logits), at_target
    # The log-sum-exp follows from the largest logit and its probability.
    probs = logits.softmax(-1, dtype=logits.dtype)  # without dtype, autocast on a GPU would compute in 32 bits
    lse = logits.amax(-1).float() - probs.amax(-1).float().log()
    return probs, lse, logits.gather(1, targets[:, None])[:, 0].float()


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
    ) -> Tensor:
        dtype = (
            torch.get_autocast_dtype(hidden.device.type)
            if torch.is_autocast_enabled(hidden.device.type)
            else hidden.dtype
        )
        h, w = hidden.to(dtype), weight.to(dtype)
        vocab_size = w.size(0)
        uses_product = cpu_training.uses_kernels(h) and not has_kernels(h) and cpu_training.supports_product(dtype)
        if has_kernels(h):
            w = F.pad(w, (0, 0, 0, -vocab_size % COLUMN_MULTIPLE))
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
        buffer = h.new_empty(n_rows, vocab_size) if uses_product else h
        for start in range(0, len(h), n_rows):
            rows = slice(start, start + n_rows)
            if uses_product:
                logits = buffer[: len(h[rows])]
                cpu_training.product(h[rows], [w], logits, transpose_b=True, bias=[] if bias is None else [bias])
            else:
                logits = h[rows] @ w.t()
                if bias is not None:
                    logits[:, :vocab_size] += bias
            probs, lse, at_target = softmax_statistics(logits, targets[rows], vocab_size)
            losses = lse - on * at_target - off * logits_sum[rows]
            loss += (losses if token_weights is None else losses * token_weights[rows]).sum()
            if need_grad:
                weighted = h[rows] if token_weights is None else h[rows] * token_weights[rows, None].to(dtype)
                if uses_product:
                    cpu_training.product(probs, [w], grad_hidden[rows])
                    cpu_training.product(probs, [weighted], grad_weight, transpose_a=True, add=True)
                else:
                    grad_hidden[rows] = probs @ w
                    grad_weight += (probs.t() @ weighted)[:vocab_size]
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
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor, Tensor | None, None, None, None]:
        grad_hidden, grad_weight, grad_bias = ctx.saved_tensors
        hidden_dtype, weight_dtype = ctx.dtypes
        grad_bias = None if grad_bias is None else (grad_bias * grad_output).to(weight_dtype)
        grad_hidden = (grad_hidden * grad_output).to(hidden_dtype)
        grad_weight = (grad_weight * grad_output).to(weight_dtype)
        return grad_hidden, grad_weight, grad_bias, None, None, None


def linear_cross_entropy(
    hidden: Float[Tensor, "tokens d_model"],
    weight: Float[Tensor, "vocab d_model"],
    targets: Int[Tensor, " tokens"],
    *,
    bias: Float[Tensor, " vocab"] | None = None,
    label_smoothing: float = 0.0,
    token_weights: Float[Tensor, " tokens"] | None = None,
) -> Float[Tensor, ""]:
    """Fused linear cross-entropy of the targets with logits = hidden @ weight^T + bias, summed, in nats.

    Args:
        hidden: hidden state that each target is predicted from.
        weight: projection to the vocabulary.
        targets: ids of the target tokens.
        bias: bias of the logits; default: 0.
        label_smoothing: label smoothing epsilon, 0 to 1.
        token_weights: weight of the loss of each target; default: 1.

    Source: Szegedy et al. 2016, section 7, as in Vaswani et al. 2017, section 5.4.
    """
    return FusedLinearCrossEntropy.apply(hidden, weight, bias, targets, label_smoothing, token_weights)  # type: ignore[no-untyped-call]


def pair_cross_entropy(model: Any, batch: PairBatch, *, label_smoothing: float = 0.0) -> Float[Tensor, ""]:
    """`linear_cross_entropy` of the targets of source-target pairs.

    Args:
        model: an encoder-decoder.
    """
    # Not all encoder-decoders take packed sequences.
    spans = () if batch.src_spans is None else (batch.src_spans, batch.tgt_spans)
    hidden = model(batch.src, batch.tgt_in, *spans).flatten(0, 1)
    return linear_cross_entropy(
        hidden.index_select(0, batch.target_positions),
        model.output_weight,
        batch.tgt_out.flatten().index_select(0, batch.target_positions),
        label_smoothing=label_smoothing,
        bias=model.output_bias,
        token_weights=batch.target_weights,
    )
