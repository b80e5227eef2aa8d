"""Base class of all models."""

from typing import Any, ClassVar, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from glassformer.errors import CheckpointError
from glassformer.model_config import Kind, ModelConfig
from glassformer.nn.attention import Attention
from glassformer.nn.ops.linear import invalidate_packed_weights

ModelT = TypeVar("ModelT", bound="Model")


class WithoutWeights(TorchFunctionMode):
    """Mode in which modules are created without memory for their weights and without random numbers.

    `torch.device("meta")` does the same, but its functions import PyTorch's compiler, which takes a second.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.empty:
            return func(*args, **kwargs | {"device": "meta"})
        if getattr(func, "__module__", None) == nn.init.__name__ or func in (Tensor.normal_, Tensor.uniform_):
            return next(iter((*args, *kwargs.values())))  # the tensor
        return func(*args, **kwargs)


class Model(nn.Module):
    """Base class of all models: a config and a state dict define a model completely."""

    kind: ClassVar[Kind]
    config_class: ClassVar[type[ModelConfig]]
    has_position_limit: ClassVar[bool] = True
    """The model cannot process more than `config.max_len` positions. T5 can: its position biases are relative."""
    capturable: ClassVar[bool] = True
    """The forward pass does not wait for the GPU, so a CUDA graph can hold it."""
    has_blocks: ClassVar[bool] = True
    """The layers are Transformer blocks."""
    config: Any

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()

    def train(self: ModelT, mode: bool = True) -> ModelT:
        for parameter in self.parameters():
            invalidate_packed_weights(parameter)
        return super().train(mode)

    def prune_heads(self) -> None:
        """Give the attention modules listed in `config.pruned_heads` the number of heads that is recorded there.

        Called by constructors, before weights are loaded. `inspection.ablation.prune` selects heads and removes them.

        Raises:
            CheckpointError: a listed module does not exist, or its number of heads is out of range.
        """
        attentions = {name for name, module in self.named_modules() if isinstance(module, Attention)}
        for name, n_heads in self.config.pruned_heads.items():
            if name not in attentions or not 1 <= n_heads <= self.config.n_heads:
                raise CheckpointError(
                    f"Invalid `pruned_heads` in config.json: {name!r}: {n_heads}. Expected the name of an attention"
                    f" module and a number of heads from 1 to {self.config.n_heads}."
                )
            parent, _, attribute = name.rpartition(".")
            setattr(self.get_submodule(parent), attribute, self.get_submodule(name).with_n_heads(n_heads))  # type: ignore[operator]

    @property
    def embedding_scale(self) -> float:
        """Factor by which token embeddings are multiplied."""
        return 1.0

    def position_vectors(self, n_positions: int, side: str = "source") -> Float[Tensor, "positions d_model"] | None:
        """Vectors added to the embeddings of the first `n_positions` tokens; None in models that add none.

        Args:
            side: "target" for those of the decoder of an encoder-decoder.
        """
        return None

    @property
    def can_pack(self) -> bool:
        """The forward pass takes packed sequences, and GPUs have a kernel for their attention."""
        return False

    @property
    def pruning_obstacle(self) -> str | None:
        """Why attention heads cannot be removed; None if they can."""
        return None

    def final_norm(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Apply the final normalization, if there is one, to a layer output: the input of the output projection."""
        return x

    def reset_buffers(self) -> None:
        """Compute the buffers that are not saved with the weights."""

    @classmethod
    def from_state_dict(cls: type[ModelT], config: ModelConfig, tensors: dict[str, Tensor]) -> ModelT:
        """Create a model from a config and a state dict. The weights are converted to fp32.

        Raises:
            CheckpointError: a tensor is missing, unexpected, of a shape that does not match the config, or not finite.
        """
        with WithoutWeights():
            model = cls(config)
        expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
        actual = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        if expected != actual:
            names = sorted(name for name in expected.keys() | actual.keys() if expected.get(name) != actual.get(name))
            lines = [
                f"  {name}: {actual.get(name, 'missing')}, expected {expected.get(name, 'none')}" for name in names
            ]
            raise CheckpointError("the weights do not match the sizes in config.json:\n" + "\n".join(lines[:10]))
        for name, tensor in tensors.items():
            # The sum is fast and not finite if an element is not; it can also be too large for the data type.
            if not tensor.is_floating_point() or not (tensor.sum().isfinite() or tensor.isfinite().all()):
                raise CheckpointError(f"the weight {name} contains values that are not finite.")
        model.load_state_dict({name: tensor.float() for name, tensor in tensors.items()}, assign=True)
        model.reset_buffers()
        return model
