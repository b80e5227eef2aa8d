"""Base class of all models, and the protocols that decoding requires of a model."""

from typing import Any, ClassVar, Literal, Protocol, TypeVar, runtime_checkable

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
"""Sources are padded to a multiple of this number of tokens. Only sources of one padded length are decoded together, so
that the result does not depend on the other sentences of the batch."""

REFERENCE_D_MODEL = 768
"""d_model of the smallest published BERT and GPT-2."""


def initial_std(d_model: int) -> float:
    """Standard deviation of the initial weights of BERT and GPT-2: the published 0.02 for d_model >= 768.

    Narrower models get a larger value, so that sums over d_model terms have the same variance. With 0.02 they train
    slowly at first.
    """
    return 0.02 * max(1.0, REFERENCE_D_MODEL / d_model) ** 0.5


def init_sinusoidal_(positions: nn.Embedding) -> None:
    """Initialize learned position embeddings of a model with d_model < 768 in place with scaled sinusoids.

    The sinusoids are about three times as large as the token embeddings. Nearby positions have similar embeddings from
    the start, which need not be learned from little text.
    """
    if positions.embedding_dim < REFERENCE_D_MODEL:
        with torch.no_grad():
            encoding = sinusoids(positions.num_embeddings, positions.embedding_dim)
            positions.weight.copy_(4 * initial_std(positions.embedding_dim) * encoding)


@runtime_checkable
class State(Protocol):
    """Decoder state of the hypotheses of a batch."""

    def select(self, rows: Int[Tensor, " rows"], sentences: Int[Tensor, " sentences"] | None = None) -> None:
        """Reorder: row i becomes the former row `rows[i]`; rows may repeat. Keep only `sentences` (None: all)."""


@runtime_checkable
class Decodable(Protocol):
    """A model that generates text token by token from source sequences or prompts."""

    pad_to_multiple_of: ClassVar[int]
    """All sources of a batch are padded to the same length, a multiple of this."""

    def start(self, src: Int[Tensor, "sentences src"], n_hypotheses: int = 1) -> tuple[State, Int[Tensor, " rows"]]:
        """Encode the sources and create the decoder state for `n_hypotheses` adjacent hypotheses of each.

        Returns:
            The state, and the first input token of each hypothesis.
        """

    def step(self, ids: Int[Tensor, " rows"], state: Any) -> Float[Tensor, "rows vocab"]:
        """Logits of the next token, given the last token of each hypothesis. Updates the state."""


class DecoderState:
    """Decoder state: cross-attention keys and values per sentence, self-attention cache per hypothesis."""

    def __init__(
        self,
        n_layers: int,
        cross_keys_values: list[KeysValues] | None = None,
        cross_mask: Bool[Tensor, "batch 1 1 src"] | None = None,
    ) -> None:
        """
        Args:
            n_layers: number of decoder layers.
            cross_keys_values: keys and values of the encoder output, for each layer. None: a decoder-only model.
            cross_mask: True where cross-attention may attend.
        """
        self.caches = [KeyValueCache() for _ in range(n_layers)]
        self.cross_keys_values: list[KeysValues] | list[None] = cross_keys_values or [None] * n_layers
        self.cross_mask = cross_mask

    @property
    def length(self) -> int:
        """Number of positions decoded so far."""
        return self.caches[0].length

    def select(self, rows: Int[Tensor, " rows"], sentences: Int[Tensor, " sentences"] | None = None) -> None:
        """Reorder: row i becomes the former row `rows[i]`; rows may repeat. Keep only `sentences` (None: all)."""
        for cache in self.caches:
            cache.select(rows)
        if sentences is not None and self.cross_mask is not None:
            self.cross_keys_values = [(k[sentences], v[sentences]) for k, v in self.cross_keys_values]  # type: ignore[misc]
            self.cross_mask = self.cross_mask[sentences]


Kind = Literal["encoder", "decoder", "encoder-decoder", "word-vectors"]
"""Type of a model family. Encoders read a text; decoders continue a text, with causal attention;
encoder-decoders generate a text from a source text; word vectors have no layers."""


ModelT = TypeVar("ModelT", bound="Model")


class Model(nn.Module):
    """Base class of all models: a config and a state dict define a model completely."""

    kind: ClassVar[Kind]
    config_class: ClassVar[type[ModelConfig]]
    has_position_limit: ClassVar[bool] = True
    """The model cannot process more than `config.max_len` positions. T5 can: its position biases are relative."""
    config: Any

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()

    def train(self: ModelT, mode: bool = True) -> ModelT:
        for parameter in self.parameters():
            invalidate_packed_weight(parameter)
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

    def position_vectors(self, n_positions: int) -> Float[Tensor, "positions d_model"] | None:
        """Vectors added to the embeddings of the first `n_positions` tokens; None in models that add none."""
        return None

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
        with torch.device("meta"):
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
            if not tensor.is_floating_point() or not tensor.isfinite().all():
                raise CheckpointError(f"the weight {name} contains values that are not finite.")
        model.load_state_dict({name: tensor.float() for name, tensor in tensors.items()}, assign=True)
        model.reset_buffers()
        return model


class EncoderDecoder(Model):
    """Base class of encoder-decoder Transformers. Subclasses define `encode` and `decoder`, a list of blocks."""

    kind: ClassVar[Kind] = "encoder-decoder"
    pad_to_multiple_of: ClassVar[int] = PAD_TO_MULTIPLE_OF
    encode: Any
    decoder: Any
    decoder_norm: Any

    def final_norm(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        return self.decoder_norm(x)

    def start(self, src: Int[Tensor, "sentences src"], n_hypotheses: int = 1) -> tuple[DecoderState, Tensor]:
        """Encode the sources and create the decoder state for `n_hypotheses` of each; the first input is `bos_id`."""
        memory = self.encode(src)
        state = DecoderState(
            len(self.decoder),
            [layer.cross_attention.keys_values(memory) for layer in self.decoder],
            padding_mask(src, self.config.pad_id),
        )
        return state, src.new_full((len(src) * n_hypotheses,), self.config.bos_id)
