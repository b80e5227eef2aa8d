"""Averages of the weights of a training, which may be better than its last weights."""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.optim.swa_utils import get_ema_multi_avg_fn

from glassformer.training.parallel import sharded_like, whole
from glassformer.training.schedule import ema_decay

Parameters = Mapping[str, Tensor]


class Averages:
    """The sum of the weights of some steps, and the exponential moving average of all."""

    def __init__(self, decay: float | None) -> None:
        """
        Args:
            decay: of the exponential moving average. None: there is none.
        """
        self.decay = decay
        self.sums: dict[str, Tensor] = {}
        self.ema: dict[str, Tensor] = {}

    def add(self, parameters: Parameters) -> None:
        """Add the current weights to the sum."""
        with torch.no_grad():
            for name, parameter in parameters.items():
                if name in self.sums:
                    self.sums[name] += parameter
                else:
                    self.sums[name] = parameter.detach().clone()

    def move(self, parameters: Parameters, step: int) -> None:
        """Move the exponential moving average towards the weights after so many steps. It begins as a copy."""
        if self.decay is None:
            return
        if not self.ema:
            self.ema = {name: parameter.detach().clone() for name, parameter in parameters.items()}
        update = get_ema_multi_avg_fn(ema_decay(step, self.decay))
        update(list(self.ema.values()), list(parameters.values()), None)

    def gather(self) -> None:
        """Give every process all of the averages, if each had a part. All processes must call this."""
        self.sums, self.ema = ({name: whole(value) for name, value in part.items()} for part in (self.sums, self.ema))

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint contains of the averages. All processes must call this."""
        tensors = {f"average.{name}": whole(value) for name, value in self.sums.items()}
        return tensors | {f"ema.{name}": whole(value) for name, value in self.ema.items()}

    def load(self, tensors: Parameters, parameters: Parameters) -> None:
        """Restore what `tensors` returned, among other tensors."""
        self.sums, self.ema = (
            {
                name: sharded_like(parameter, tensors[f"{kind}.{name}"].to(parameter.device))
                for name, parameter in parameters.items()
                if f"{kind}.{name}" in tensors
            }
            for kind in ("average", "ema")
        )
