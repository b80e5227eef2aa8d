"""What search and objectives ask of a model, and what all models have. They know no model class."""

from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from glassformer.errors import CheckpointError
from glassformer.model_config import ModelConfig
from glassformer.nn.attention import Attention, KeyValueCache
from glassformer.nn.block import KeysValues
from glassformer.nn.linear import invalidate_packed_weight
from glassformer.nn.masks import padding_mask
from glassformer.nn.positions import sinusoids

PAD_TO_MULTIPLE_OF = 8
"""Sources are padded to a multiple of this: a function of the sentence alone, so neighbours change no bit of it."""

REFERENCE_D_MODEL = 768
"""Width of the smallest BERT and GPT-2 that were published."""


def initial_std(d_model: int) -> float:
    """Standard deviation of BERT's and GPT-2's first weights: the published 0.02 from the published width on.

    A narrower model starts with larger ones, so that its sums are as large; with 0.02 it learns slowly at first.
    """
    return 0.02 * max(1.0, REFERENCE_D_MODEL / d_model) ** 0.5


def init_sinusoidal_(positions: nn.Embedding) -> None:
    """Give learned places of a narrower model the original Transformer's as first values, about three times as large
    as words: what is near is alike from the start, and need not be learned from little text.
    """
    if positions.embedding_dim < REFERENCE_D_MODEL:
        with torch.no_grad():
            waves = sinusoids(positions.num_embeddings, positions.embedding_dim)
            positions.weight.copy_(4 * initial_std(positions.embedding_dim) * waves)


@runtime_checkable
class State(Protocol):
    """What a model remembers of hypotheses that are being decoded."""

    def select(self, rows: Int[Tensor, " rows"], sentences: Int[Tensor, " sentences"] | None = None) -> None:
        """Keep these hypotheses, in this order, and of the sentences only these (None: all)."""


@runtime_checkable
class Decodable(Protocol):
    """A model that reads sources and then says one token after the other."""

    pad_to_multiple_of: ClassVar[int]
    """Sources of a batch are padded to a multiple of this, and all of them to the same."""

    def start(self, src: Int[Tensor, "sentences src"], n_hypotheses: int = 1) -> tuple[Any, Int[Tensor, " rows"]]:
        """Read the sources; get ready for `n_hypotheses` of each, side by side.

        Returns:
            The state, and the token that each hypothesis goes on from.
        """

    def step(self, ids: Int[Tensor, " rows"], state: Any) -> Float[Tensor, "rows vocab"]:
        """Logits of what follows, given the last token of each hypothesis."""


class DecoderState:
    """What decoding remembers: of each sentence its keys and values, of each hypothesis its past."""

    def __init__(
        self, n_layers: int, memory: list[KeysValues] | None = None, mask: Bool[Tensor, "batch 1 1 m"] | None = None
    ) -> None:
        self.caches = [KeyValueCache() for _ in range(n_layers)]
        self.memory: list[KeysValues] | list[None] = memory or [None] * n_layers
        self.mask = mask

    @property
    def length(self) -> int:
        """Positions decoded so far."""
        return self.caches[0].length

    def select(self, rows: Int[Tensor, " rows"], sentences: Int[Tensor, " sentences"] | None = None) -> None:
        """Keep these hypotheses, in this order, and of the sentences only these (None: all)."""
        for cache in self.caches:
            cache.select(rows)
        if sentences is not None and self.mask is not None:
            self.memory = [(k[sentences], v[sentences]) for k, v in self.memory]  # type: ignore[misc]
            self.mask = self.mask[sentences]


class Model(nn.Module):
    """A model that its sizes and its weights say everything about."""

    config: Any

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()

    def train(self, mode: bool = True) -> Any:
        for parameter in self.parameters():
            invalidate_packed_weight(parameter)
        return super().train(mode)

    def prune_heads(self) -> None:
        """Take out of attentions the heads that they have no more.

        Raises:
            CheckpointError: there is no such attention, or it had no so many heads.
        """
        attentions = {name for name, module in self.named_modules() if isinstance(module, Attention)}
        for name, n_heads in self.config.pruned_heads.items():
            if name not in attentions or not 1 <= n_heads <= self.config.n_heads:
                raise CheckpointError(
                    f"pruned_heads in config.json: {name!r}: {n_heads} is nothing that this model can have."
                )
            parent, _, own = name.rpartition(".")
            setattr(self.get_submodule(parent), own, self.get_submodule(name).with_n_heads(n_heads))  # type: ignore[operator]

    def reset_buffers(self) -> None:
        """Compute what is no weight and yet a tensor."""

    @classmethod
    def from_state_dict(cls, config: Any, tensors: dict[str, Tensor]) -> Any:
        """The model with these weights, taken as they are.

        Raises:
            CheckpointError: a tensor is missing, left over, of another shape than the sizes say, or not finite.
        """
        with torch.device("meta"):
            model = cls(config)
        wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
        given = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        if wanted != given:
            names = sorted(name for name in wanted.keys() | given.keys() if wanted.get(name) != given.get(name))
            rows = [f"  {name}: {given.get(name, 'missing')}, wanted {wanted.get(name, 'none')}" for name in names]
            raise CheckpointError("the weights do not fit the sizes in config.json:\n" + "\n".join(rows[:10]))
        for name, tensor in tensors.items():
            if not tensor.is_floating_point() or not tensor.isfinite().all():
                raise CheckpointError(f"the weight {name} holds values that are not finite numbers.")
        model.load_state_dict({name: tensor.float() for name, tensor in tensors.items()}, assign=True)
        model.reset_buffers()
        return model


class EncoderDecoder(Model):
    """A Transformer that reads a source before it says anything: `encode` and a `decoder` of layers are its own."""

    pad_to_multiple_of: ClassVar[int] = PAD_TO_MULTIPLE_OF
    encode: Any
    decoder: Any

    def start(self, src: Int[Tensor, "sentences src"], n_hypotheses: int = 1) -> tuple[DecoderState, Tensor]:
        """Read the sources and get ready to decode `n_hypotheses` of each, from the start token on."""
        memory = self.encode(src)
        state = DecoderState(
            len(self.decoder),
            [layer.cross_attention.keys_values(memory) for layer in self.decoder],
            padding_mask(src, self.config.pad_id),
        )
        return state, src.new_full((len(src) * n_hypotheses,), self.config.bos_id)
