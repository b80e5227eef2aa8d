"""Floating-point operations (FLOP) of the matrix products of a training step."""

from collections.abc import Mapping

from torch import Tensor, nn

from glassformer.data.batch import Batch
from glassformer.models.base import Model
from glassformer.nn.attention import Attention
from glassformer.nn.block import TransformerBlock


def product_flop(model: Model, batch: Batch, lengths: Mapping[str, Tensor]) -> float:
    """Floating-point operations of the matrix products of a training step, without padding.

    Counts 2 operations for each multiplication of a weight in a Transformer block or in the projection to the
    vocabulary, and of queries, keys and values in attention; causal attention as half. The backward pass has twice as
    many as the forward pass. 0 for models without Transformer blocks.

    Args:
        lengths: number of tokens of each row, by side.
    """
    blocks = [module for module in model.modules() if isinstance(module, TransformerBlock)]
    if not blocks or not lengths:
        return 0.0
    sides = list(lengths.values())
    source, target = sides[0], sides[-1]
    total = 0.0
    for block in blocks:
        is_decoder = hasattr(block, "cross_attention")
        own = target if is_decoder else source
        n_weights = n_matrix_weights(block)
        total += attention_flop(block.self_attention, own, own) / (2 if block.causal else 1)
        if is_decoder:
            cross = block.cross_attention
            n_of_memory = n_matrix_weights(cross.k_proj) + n_matrix_weights(cross.v_proj)
            n_weights -= n_of_memory
            total += 2 * n_of_memory * float(source.sum()) + attention_flop(cross, target, source)
        total += 2 * n_weights * float(own.sum())
    positions, weights = getattr(batch, "target_positions", ()), getattr(batch, "target_weights", None)
    n_predictions = len(positions) if weights is None else int((weights > 0).sum())
    return 3 * (total + 2 * model.config.vocab_size * model.config.d_model * n_predictions)


def n_matrix_weights(module: nn.Module) -> int:
    """Number of weights in the matrices of a module."""
    return sum(p.numel() for p in module.parameters() if p.dim() == 2)


def attention_flop(attention: Attention, n_queries: Tensor, n_keys: Tensor) -> float:
    """Floating-point operations of the two products of attention in the forward pass.

    Args:
        n_queries: number of queries of each row.
        n_keys: number of keys of each row.
    """
    return 4 * attention.n_heads * attention.d_head * float((n_queries * n_keys).sum())
