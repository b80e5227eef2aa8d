"""The linear map whose rows do not know one another."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

ROW_MULTIPLE = 4
"""Matrix libraries use other kernels, with another order of summation, for a handful of rows."""

PACKED_WEIGHTS = WeakTensorKeyDictionary()
"""Weights as oneDNN wants them, beside the tensor they were made from and its version."""


def batch_invariant_linear(
    x: Float[Tensor, "*batch d_in"], weight: Float[Tensor, "d_out d_in"], bias: Float[Tensor, " d_out"] | None = None
) -> Float[Tensor, "*batch d_out"]:
    """x W^T + b, where each row's result is the same bits whatever rows stand beside it (fp32, no gradient).

    Few rows are filled up to a multiple of N_ROWS: that is what makes one sentence decode as it does in a batch.
    """
    if torch.is_grad_enabled():
        invalidate_packed_weight(weight)
        return F.linear(x, weight, bias)
    n_rows = x.numel() // x.size(-1)
    if n_rows >= 4 * ROW_MULTIPLE or n_rows % ROW_MULTIPLE == 0:
        return packed_linear(x, weight, bias)
    rows = F.pad(x.reshape(n_rows, -1), (0, 0, 0, -n_rows % ROW_MULTIPLE))
    return packed_linear(rows, weight, bias)[:n_rows].reshape(*x.shape[:-1], -1)


def invalidate_packed_weight(weight: Tensor) -> None:
    """Drop what was made of a weight that is being trained: fused optimizers change it without a new version."""
    PACKED_WEIGHTS.pop(weight, None)  # type: ignore[no-untyped-call]


def packed_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`F.linear`, on a CPU with the weight rearranged once for the matrix library and not at every call."""
    if x.device.type != "cpu" or not x.dtype == weight.dtype != torch.float64 or not torch._C._has_mkldnn:
        return F.linear(x, weight, bias)
    made_from, version, packed = PACKED_WEIGHTS.get(weight) or (None, None, None)  # type: ignore[no-untyped-call]
    if made_from is None or (made_from.data_ptr(), version) != (weight.data_ptr(), weight._version):
        packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach())
        PACKED_WEIGHTS[weight] = (weight.detach(), weight._version, packed)
    return torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")  # type: ignore[no-any-return]


class Linear(nn.Linear):
    """`nn.Linear` through `batch_invariant_linear`."""

    def forward(self, x: Float[Tensor, "*batch d_in"]) -> Float[Tensor, "*batch d_out"]:
        return batch_invariant_linear(x, self.weight, self.bias)
