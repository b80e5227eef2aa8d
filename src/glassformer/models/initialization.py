"""Initialization of weights: the published standard deviation, larger in narrower models; residual branches, smaller in
deeper models; sinusoidal positions.
"""

import torch
from torch import nn

from glassformer.nn.positions import sinusoids

BRANCH_ENDS = ("out_proj.weight", "down.weight")
"""Ends of the names of the matrices with which residual branches end."""

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


def scale_branches_(layers: nn.Module) -> None:
    """Divide the matrices with which residual branches end by the square root of their number, in place.

    The sum of all branches is then about as large in deep models as in shallow ones.

    Source: Radford et al. 2019 (GPT-2), section 2.3.
    """
    ends = [p for name, p in layers.named_parameters() if name.endswith(BRANCH_ENDS)]
    with torch.no_grad():
        for p in ends:
            p.mul_(len(ends) ** -0.5)
