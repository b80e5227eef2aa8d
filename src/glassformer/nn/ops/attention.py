"""Dot-product attention of several heads."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from glassformer.kernels.training import MAX_D_HEAD, MAX_LENGTH
from glassformer.nn import cpu_training
from glassformer.nn.masks import causal_mask
from glassformer.nn.ops.gpu import prefers_triton, runs_triton
from glassformer.nn.ops.linear import ROW_MULTIPLE
from glassformer.nn.ops.operation import Implementation, Operation
from glassformer.nn.packing import Packing

EAGER_MAX_QUERIES = 64
"""Without gradients, plain matrix products are faster than SDPA up to this number of queries."""

EAGER_MAX_LENGTH = {torch.float32: 128, torch.bfloat16: 384}
"""In training on a CPU, plain matrix products are faster than SDPA up to this sequence length, by dtype. They need
O(length^2) memory."""


def eager_attention(
    q: Float[Tensor, "batch heads q d_head"],
    k: Float[Tensor, "batch heads k d_head"],
    v: Float[Tensor, "batch heads k d_head"],
    mask: Bool[Tensor, "#batch #heads #q #k"] | Packing | None,
    causal: bool,
    position_bias: Float[Tensor, "1 heads #q k"] | None,
    scale: float,
    training: bool,
) -> Float[Tensor, "batch heads q d_head"]:
    """softmax(q k^T * scale + position_bias) v of each head, over the keys that the mask allows.

    Args:
        mask: True where a query may attend. Each query needs at least one key.
        causal: the queries are at the last key positions and attend to no later ones.
        training: the attention is part of a model that is trained.
    """
    mask = whole_mask(mask, q, k, causal)
    return masked_softmax(q * scale @ k.transpose(-1, -2), mask, position_bias).type_as(k) @ v


def masked_softmax(
    scores: Float[Tensor, "batch heads q k"],
    mask: Bool[Tensor, "#batch #heads #q #k"] | None,
    position_bias: Float[Tensor, "1 heads #q k"] | None,
) -> Float[Tensor, "batch heads q k"]:
    """Attention weights: softmax of the scores. Each row sums to 1; masked keys have weight 0."""
    if not torch.is_grad_enabled():
        scores = scores.float()
    if position_bias is not None:
        scores = scores + position_bias
    if mask is not None:
        # Addition stores no tensor for the backward pass; masked_fill would.
        scores = scores + torch.zeros_like(mask, dtype=scores.dtype).masked_fill_(~mask, -torch.inf)
    return scores.softmax(-1)


def sdpa(
    q: Float[Tensor, "batch heads q d_head"],
    k: Float[Tensor, "batch heads k d_head"],
    v: Float[Tensor, "batch heads k d_head"],
    mask: Bool[Tensor, "#batch #heads #q #k"] | Packing | None,
    causal: bool,
    position_bias: Float[Tensor, "1 heads #q k"] | None,
    scale: float,
    training: bool,
) -> Float[Tensor, "batch heads q d_head"]:
    """Attention by PyTorch's `scaled_dot_product_attention`."""
    mask = whole_mask(mask, q, k)
    n_queries, n_keys = q.size(2), k.size(2)
    if causal and (n_queries < n_keys or mask is not None or position_bias is not None):
        mask, causal = combine_causal_mask(mask, n_queries, n_keys, q.device), False
    attn_mask = mask if position_bias is None else float_mask(position_bias, mask)
    # On a CPU, SDPA processes blocks of 32 queries, and rounding differs in a last block of 1 to 3 queries: pad it.
    # Not in training, where rounding may depend on the batch, nor with a mask row per query, which would have to be
    # padded too. Without gradients, it is selected for more than EAGER_MAX_QUERIES queries only.
    pads_queries = not torch.is_grad_enabled() and (attn_mask is None or attn_mask.size(-2) == 1)
    n_padding = -n_queries % ROW_MULTIPLE if pads_queries else 0
    return F.scaled_dot_product_attention(
        F.pad(q, (0, 0, 0, n_padding)) if n_padding else q,
        k,
        v,
        attn_mask=attn_mask,
        is_causal=causal,
        scale=scale,
    )[:, :, :n_queries]


def prefers_sdpa(q: Tensor, k: Tensor, *_: object) -> bool:
    """Whether SDPA is faster than plain matrix products for these shapes."""
    if not torch.is_grad_enabled():
        return q.size(2) > EAGER_MAX_QUERIES
    return q.device.type != "cpu" or max(q.size(2), k.size(2)) > EAGER_MAX_LENGTH.get(q.dtype, 0)


def kernel_attention(
    q: Float[Tensor, "batch heads q d_head"],
    k: Float[Tensor, "batch heads k d_head"],
    v: Float[Tensor, "batch heads k d_head"],
    mask: Bool[Tensor, "#batch 1 1 #k"] | Packing | None,
    causal: bool,
    position_bias: Float[Tensor, "1 heads #q k"] | None,
    scale: float,
    training: bool,
) -> Float[Tensor, "batch heads q d_head"]:
    """Attention of short sequences by the kernels in C."""
    assert not isinstance(mask, Packing)
    return cpu_training.short_attention(q, k, v, mask, causal, scale)


def kernel_supports(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | Packing | None, causal: bool, position_bias: object, *_: object
) -> bool:
    """Whether the kernels in C support attention of these shapes: lengths, head size, a mask of keys only."""
    return (
        position_bias is None
        and cpu_training.supports(q)
        and max(q.size(2), k.size(2)) <= MAX_LENGTH
        and q.size(3) <= MAX_D_HEAD
        and q.size(3) % cpu_training.COLUMN_MULTIPLE == 0
        and q.dtype == k.dtype == v.dtype
        and not isinstance(mask, Packing)
        and (mask is None or mask.shape[1:3] == (1, 1))
    )


def triton_attention(
    q: Float[Tensor, "batch heads q d_head"],
    k: Float[Tensor, "batch heads k d_head"],
    v: Float[Tensor, "batch heads k d_head"],
    mask: Bool[Tensor, "#batch 1 1 #k"] | Packing | None,
    causal: bool,
    position_bias: Float[Tensor, "1 heads #q k"] | None,
    scale: float,
    training: bool,
) -> Float[Tensor, "batch heads q d_head"]:
    """Attention of short or packed sequences by the Triton kernel."""
    from glassformer.nn.short_attention import short_attention

    return short_attention(q, k, v, mask, causal, scale)


def triton_supports(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | Packing | None, causal: bool, position_bias: object, *_: object
) -> bool:
    """Whether the Triton kernel supports attention of these shapes."""
    if position_bias is not None or not runs_triton(q.device, q.dtype):
        return False
    from glassformer.nn.short_attention import supports

    return supports(q, k, mask)


attention = Operation(
    eager_attention,
    Implementation(
        "triton", triton_attention, triton_supports,
        prefers=lambda q, *_: prefers_triton(q.device, q.dtype) and torch.is_grad_enabled(),
    ),
    Implementation(
        "kernels", kernel_attention, kernel_supports,
        prefers=lambda q, k, v, mask, causal, position_bias, scale, training: training,
    ),
    Implementation("sdpa", sdpa, prefers=prefers_sdpa),
    name="attention",
)  # fmt: skip
"""Attention output of each head."""


def whole_mask(mask: Tensor | Packing | None, q: Tensor, k: Tensor, causal: bool = False) -> Tensor | None:
    """The mask, also of packed sequences and with the causal mask, as one tensor."""
    whole = mask.mask(q.size(2), k.size(2)) if isinstance(mask, Packing) else mask
    return combine_causal_mask(whole, q.size(2), k.size(2), q.device) if causal else whole


def combine_causal_mask(
    mask: Bool[Tensor, "#batch #heads #q #k"] | None, n_queries: int, n_keys: int, device: torch.device
) -> Bool[Tensor, "#batch #heads q k"]:
    """Combine a mask with the causal mask."""
    causal = causal_mask(n_queries, n_keys, device)[None, None]
    return causal if mask is None else mask & causal


def float_mask(
    position_bias: Float[Tensor, "1 heads #q k"], mask: Bool[Tensor, "#batch #heads #q #k"] | None
) -> Float[Tensor, "#batch heads #q k"]:
    """Combine position bias and mask into the additive float mask of SDPA."""
    return position_bias if mask is None else position_bias.masked_fill(~mask, -torch.inf)
