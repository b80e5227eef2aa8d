"""Base class of encoder-decoder Transformers."""

from typing import Any, ClassVar

from jaxtyping import Float, Int
from torch import Tensor

from glassformer.generate.protocol import PAD_TO_MULTIPLE_OF
from glassformer.model_config import Kind
from glassformer.models.base import Model
from glassformer.models.decoding import TransformerState
from glassformer.nn.masks import padding_mask


class EncoderDecoder(Model):
    """Base class of encoder-decoder Transformers. Subclasses define `encode` and `decoder`, a list of blocks."""

    kind: ClassVar[Kind] = "encoder-decoder"
    pad_to_multiple_of: ClassVar[int] = PAD_TO_MULTIPLE_OF
    encode: Any
    decoder: Any
    decoder_norm: Any

    def final_norm(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        return self.decoder_norm(x)

    def start(self, src: Int[Tensor, "sentences src"], n_hypotheses: int = 1) -> tuple[TransformerState, Tensor]:
        """Encode the sources and create the decoder state for `n_hypotheses` of each; the first input is `bos_id`."""
        memory = self.encode(src)
        state = TransformerState(
            len(self.decoder),
            [layer.cross_attention.keys_values(memory) for layer in self.decoder],
            padding_mask(src, self.config.pad_id),
        )
        return state, src.new_full((len(src) * n_hypotheses,), self.config.bos_id)
