"""Cross-entropy of source-target pairs."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.data.pairs import PairBatch
from glassformer.nn.ops.loss import linear_cross_entropy


def pair_cross_entropy(
    model: Any, batch: PairBatch, *, label_smoothing: float = 0.0, r_drop: float = 0.0
) -> Float[Tensor, ""]:
    """`linear_cross_entropy` of the targets of source-target pairs.

    Args:
        model: an encoder-decoder.
        r_drop: coefficient alpha of R-Drop, Liang et al. 2021, equation 4: each pair is computed twice, each time with
            dropout of its own. The loss is the mean cross-entropy of both, + alpha / 4 times KL(p, q) + KL(q, p) of
            their distributions. 0: computed once.
    """
    # Not all encoder-decoders take packed sequences.
    spans = () if batch.src_spans is None else (batch.src_spans, batch.tgt_spans)
    passes = [
        model(batch.src, batch.tgt_in, *spans).flatten(0, 1).index_select(0, batch.target_positions)
        for _ in range(2 if r_drop else 1)
    ]
    targets, weights = batch.tgt_out.flatten().index_select(0, batch.target_positions), batch.target_weights
    if r_drop:
        hidden, targets = torch.stack(passes, 1).flatten(0, 1), targets.repeat_interleave(2)
        weights = None if weights is None else weights.repeat_interleave(2)
    else:
        (hidden,) = passes
    loss = linear_cross_entropy(
        hidden,
        model.output_weight,
        targets,
        label_smoothing=label_smoothing,
        bias=model.output_bias,
        token_weights=weights,
        divergence=r_drop / 2,
    )
    return loss / len(passes)
