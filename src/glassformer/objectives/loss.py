"""Cross-entropy of source-target pairs."""

from typing import Any

from jaxtyping import Float
from torch import Tensor

from glassformer.data.pairs import PairBatch
from glassformer.nn.ops.loss import linear_cross_entropy


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
