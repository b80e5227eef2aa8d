"""Initialization of weights: the published standard deviation, larger in narrower models; sinusoidal positions;
residual branches that begin with zeros.
"""

import torch
from torch import nn

from glassformer.nn.positions import sinusoids

BRANCH_ENDS = ("out_proj.weight", "down.weight")
"""Ends of the names of the weights of the last layers of residual branches."""
BIASES_OF_ENDS = ("out_proj.bias", "down.bias")

REFERENCE_D_MODEL = 768
"""d_model of the smallest published BERT and GPT-2."""


def initial_std(d_model: int) -> float:
    """Standard deviation of the initial weights of BERT and GPT-2: the published 0.02 for d_model >= 768.

    Narrower models get a larger value, so that sums over d_model terms have the same variance. With 0.02 they train
    slowly at first.
    """
    return 0.02 * max(1.0, REFERENCE_D_MODEL / d_model) ** 0.5


def init_sinusoidal_(positions: nn.Embedding) -> None:
    """Initialize learned position embeddings of a model with d_model < 768 in place with scaled sinusoids.

    The sinusoids are about three times as large as the token embeddings. Nearby positions have similar embeddings from
    the start, which need not be learned from little text.
    """
    if positions.embedding_dim < REFERENCE_D_MODEL:
        with torch.no_grad():
            encoding = sinusoids(positions.num_embeddings, positions.embedding_dim)
            positions.weight.copy_(4 * initial_std(positions.embedding_dim) * encoding)


def zero_branches_(model: nn.Module) -> None:
    """Set the last layers of residual branches to zero, in place.

    Each layer returns its input then, and gradients reach all layers alike; a branch begins to add to its input as it
    learns. Multi30k, six minutes on one core: +0.7 BLEU (docs/results.md).

    Source: Zhang et al. 2019 (Fixup), section 3.
    """
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith((*BRANCH_ENDS, *BIASES_OF_ENDS)):
                p.zero_()
