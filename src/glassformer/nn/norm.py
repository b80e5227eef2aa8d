"""Root mean square normalization."""

from jaxtyping import Float
from torch import Tensor, nn


class RMSNorm(nn.RMSNorm):
    """`nn.RMSNorm`, in the precision of its weight: PyTorch has no fast function for a 16-bit input and an fp32 weight.

    Source: Zhang & Sennrich 2019.
    """

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        return super().forward(x.type_as(self.weight))
