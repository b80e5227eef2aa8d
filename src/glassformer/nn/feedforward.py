"""The position-wise feed-forward sub-layer."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.nn.linear import Linear


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W1 + b1) W2 + b2.

    Source: Vaswani et al. 2017, equation 2.
    """

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.up = Linear(d_model, d_ff)
        self.down = Linear(d_ff, d_model)

    def forward(self, x: Float[Tensor, "batch length d_model"]) -> Float[Tensor, "batch length d_model"]:
        return self.down(F.relu(self.up(x)))
