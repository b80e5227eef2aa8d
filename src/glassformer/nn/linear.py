"""The linear map whose rows do not know one another."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

N_ROWS = 4
"""Matrix libraries use other kernels, with another order of summation, for a handful of rows."""


def project(
    x: Float[Tensor, "*batch d_in"], weight: Float[Tensor, "d_out d_in"], bias: Float[Tensor, " d_out"] | None = None
) -> Float[Tensor, "*batch d_out"]:
    """x W^T + b, where each row's result is the same bits whatever rows stand beside it (fp32, no gradient).

    Few rows are filled up to a multiple of N_ROWS: that is what makes one sentence decode as it does in a batch.
    """
    n_rows = x.numel() // x.size(-1)
    if n_rows >= 4 * N_ROWS or n_rows % N_ROWS == 0 or torch.is_grad_enabled():
        return F.linear(x, weight, bias)
    rows = F.pad(x.reshape(n_rows, -1), (0, 0, 0, -n_rows % N_ROWS))
    return F.linear(rows, weight, bias)[:n_rows].reshape(*x.shape[:-1], -1)


class Linear(nn.Linear):
    """`nn.Linear` through `project`."""

    def forward(self, x: Float[Tensor, "*batch d_in"]) -> Float[Tensor, "*batch d_out"]:
        return project(x, self.weight, self.bias)
