"""Linear layer whose result for a row does not depend on the other rows."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.nn.ops.linear import linear
from glassformer.nn.overridable import overridable


@overridable
def batch_invariant_linear(
    x: Float[Tensor, "*batch d_in"], weight: Float[Tensor, "d_out d_in"], bias: Float[Tensor, " d_out"] | None = None
) -> Float[Tensor, "*batch d_out"]:
    """x W^T + b, bit-identical for each row whatever other rows are in the batch (fp32, without gradients)."""
    return linear(x, (weight,), () if bias is None else (bias,))[0]


class Linear(nn.Linear):
    """`nn.Linear` computed by `batch_invariant_linear`."""

    def forward(self, x: Float[Tensor, "*batch d_in"]) -> Float[Tensor, "*batch d_out"]:
        return batch_invariant_linear(x, self.weight, self.bias)


def linear_relu(x: Float[Tensor, "*batch d_in"], layer: Linear) -> Float[Tensor, "*batch d_out"]:
    """A linear layer followed by ReLU. In training, one function may compute both."""
    if torch.is_grad_enabled() and layer.training:
        return linear(x, (layer.weight,), () if layer.bias is None else (layer.bias,), relu=True)[0]
    return F.relu(layer(x))


def linear_layers(x: Float[Tensor, "*batch d_in"], *layers: Linear) -> tuple[Float[Tensor, "*batch d_out"], ...]:
    """Outputs of several linear layers of the same input. In training, they may be one matrix product."""
    if torch.is_grad_enabled() and (layers[0].training or x.is_cuda):
        biases = tuple(layer.bias for layer in layers if layer.bias is not None)
        return linear(x, tuple(layer.weight for layer in layers), biases)
    return tuple(layer(x) for layer in layers)
