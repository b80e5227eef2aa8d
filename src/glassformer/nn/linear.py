"""Linear layer whose result for a row does not depend on the other rows."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from glassformer.nn.overridable import overridable

ROW_MULTIPLE = 4
"""Inputs with few rows are padded to a multiple of this: for fewer rows, matrix libraries select kernels that sum in
another order."""

PACKED_WEIGHTS = WeakTensorKeyDictionary()
"""Cache of weights in oneDNN's packed layout: weight -> (source tensor, its version, packed tensor)."""


@overridable
def batch_invariant_linear(
    x: Float[Tensor, "*batch d_in"], weight: Float[Tensor, "d_out d_in"], bias: Float[Tensor, " d_out"] | None = None
) -> Float[Tensor, "*batch d_out"]:
    """x W^T + b, bit-identical for each row whatever other rows are in the batch (fp32, without gradients).

    Inputs with few rows are padded to a multiple of ROW_MULTIPLE, so that a sentence decoded alone gives the
    same result as in a batch.
    """
    if torch.is_grad_enabled():
        if weight.device.type == "cpu":
            invalidate_packed_weight(weight)
        return F.linear(x, weight, bias)
    n_rows = x.numel() // x.size(-1)
    if n_rows >= 4 * ROW_MULTIPLE or n_rows % ROW_MULTIPLE == 0:
        return packed_linear(x, weight, bias)
    rows = F.pad(x.reshape(n_rows, -1), (0, 0, 0, -n_rows % ROW_MULTIPLE))
    return packed_linear(rows, weight, bias)[:n_rows].reshape(*x.shape[:-1], -1)


def invalidate_packed_weight(weight: Tensor) -> None:
    """Remove a weight from the cache of packed weights. Fused optimizers change weights without a new version."""
    PACKED_WEIGHTS.pop(weight, None)  # type: ignore[no-untyped-call]


def packed_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`F.linear`; on a CPU with the weight packed for oneDNN once instead of at every call."""
    if x.device.type != "cpu" or not x.dtype == weight.dtype != torch.float64 or not torch._C._has_mkldnn:
        return F.linear(x, weight, bias)
    source, version, packed = PACKED_WEIGHTS.get(weight) or (None, None, None)  # type: ignore[no-untyped-call]
    if source is None or (source.data_ptr(), version) != (weight.data_ptr(), weight._version):
        packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach())
        PACKED_WEIGHTS[weight] = (weight.detach(), weight._version, packed)
    return torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")


def linear_layers(x: Float[Tensor, "*batch d_in"], *layers: "Linear") -> tuple[Float[Tensor, "*batch d_out"], ...]:
    """Outputs of several linear layers of the same input. In training on a GPU, they are one matrix product."""
    if not (x.is_cuda and torch.is_grad_enabled()):
        return tuple(layer(x) for layer in layers)
    biases = tuple(layer.bias for layer in layers if layer.bias is not None)
    outputs = F.linear(x, torch.cat(tuple(layer.weight for layer in layers)), torch.cat(biases) if biases else None)
    return torch.split(outputs, [layer.out_features for layer in layers], dim=-1)


class Linear(nn.Linear):
    """`nn.Linear` computed by `batch_invariant_linear`."""

    def forward(self, x: Float[Tensor, "*batch d_in"]) -> Float[Tensor, "*batch d_out"]:
        return batch_invariant_linear(x, self.weight, self.bias)
