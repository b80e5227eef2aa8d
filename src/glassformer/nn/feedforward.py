"""The position-wise feed-forward sub-layer."""

from collections.abc import Callable

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.nn.linear import Linear, linear_relu

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "gated_gelu": lambda x: F.gelu(x, approximate="tanh"),
    "gated_silu": F.silu,
}


class FeedForward(nn.Module):
    """FFN(x) = activation(x W1 + b1) W2 + b2. Gated variant: (activation(x W1) * x V) W2.

    Source: Vaswani et al. 2017, equation 2; Shazeer 2020 for the gated variants: GEGLU (T5 v1.1) and SwiGLU (Llama).
    """

    def __init__(self, d_model: int, d_ff: int, activation: str = "relu", *, bias: bool = True) -> None:
        super().__init__()
        self.up = Linear(d_model, d_ff, bias=bias)
        self.gate = Linear(d_model, d_ff, bias=bias) if activation.startswith("gated") else None
        self.down = Linear(d_ff, d_model, bias=bias)
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Float[Tensor, "batch length d_model"]) -> Float[Tensor, "batch length d_model"]:
        if self.gate is not None:
            return self.down(self.activation(self.gate(x)) * self.up(x))
        if self.activation is F.relu:
            return self.down(linear_relu(x, self.up))
        return self.down(self.activation(self.up(x)))
