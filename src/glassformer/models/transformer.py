"""The original encoder-decoder Transformer."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.config import TransformerConfig
from glassformer.errors import CheckpointError
from glassformer.models.base import LENGTH_STEP
from glassformer.nn.attention import KeyValueCache
from glassformer.nn.dropout import Dropout
from glassformer.nn.linear import project
from glassformer.nn.masks import padding_mask
from glassformer.nn.positions import sinusoids
from glassformer.nn.stack import DecoderLayer, EncoderLayer, KeysValues


def n_positions(config: TransformerConfig) -> int:
    """Positions that may be asked for: the longest sentence, its end, and the padding behind it."""
    return config.max_len + 1 + LENGTH_STEP


class DecoderState:
    """What decoding remembers: of each sentence its keys and values, of each hypothesis its past."""

    def __init__(self, memory: list[KeysValues], mask: Tensor, caches: list[KeyValueCache]) -> None:
        self.memory, self.mask, self.caches = memory, mask, caches
        self.length = 0

    def select(self, rows: Int[Tensor, " rows"], sentences: Int[Tensor, " sentences"] | None = None) -> None:
        """Keep these hypotheses, in this order, and of the sentences only these (None: all)."""
        for cache in self.caches:
            cache.select(rows)
        if sentences is not None:
            self.memory = [(k[sentences], v[sentences]) for k, v in self.memory]
            self.mask = self.mask[sentences]


class Transformer(nn.Module):
    """Encoder-decoder with one matrix for both embeddings and the projection to the vocabulary.

    Source: Vaswani et al. 2017; Press & Wolf 2017 for the shared matrix.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = c = config
        sizes = (c.d_model, c.n_heads, c.d_ff, c.dropout)
        self.embedding = nn.Embedding(c.vocab_size, c.d_model, padding_idx=c.pad_id)
        self.dropout = Dropout(c.dropout)
        self.encoder: Any = nn.ModuleList(EncoderLayer(*sizes, pre_norm=c.pre_norm) for _ in range(c.n_encoder_layers))
        self.decoder: Any = nn.ModuleList(DecoderLayer(*sizes, pre_norm=c.pre_norm) for _ in range(c.n_decoder_layers))
        # Post-norm layers end in a norm of their own.
        self.encoder_norm = nn.LayerNorm(c.d_model) if c.pre_norm else nn.Identity()
        self.decoder_norm = nn.LayerNorm(c.d_model) if c.pre_norm else nn.Identity()
        self.positions: Tensor
        self.register_buffer("positions", sinusoids(n_positions(c), c.d_model), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot-uniform matrices and embeddings of standard deviation d_model^-0.5, so that scaled they are 1."""
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)
        nn.init.normal_(self.embedding.weight, std=self.config.d_model**-0.5)
        with torch.no_grad():
            self.embedding.weight[self.config.pad_id] = 0

    @classmethod
    def from_tensors(cls, config: TransformerConfig, tensors: dict[str, Tensor]) -> "Transformer":
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
        model.positions = sinusoids(n_positions(config), config.d_model)
        return model

    def embed(self, ids: Int[Tensor, "batch length"], start: int = 0) -> Float[Tensor, "batch length d_model"]:
        x = self.embedding(ids) * self.config.d_model**0.5
        return self.dropout(x + self.positions[start : start + ids.size(1)])  # type: ignore[no-any-return]

    def encode(self, src: Int[Tensor, "batch src"]) -> Float[Tensor, "batch src d_model"]:
        """The encoder's output, called memory."""
        mask = padding_mask(src, self.config.pad_id)
        x = self.embed(src)
        for layer in self.encoder:
            x = layer(x, mask)
        return self.encoder_norm(x)  # type: ignore[no-any-return]

    def forward(
        self, src: Int[Tensor, "batch src"], tgt_in: Int[Tensor, "batch tgt"]
    ) -> Float[Tensor, "batch tgt d_model"]:
        """The decoder's output at every target position: `logits` makes words of it.

        Target padding needs no mask: it stands behind the words, and no position looks ahead.
        """
        memory, mask = self.encode(src), padding_mask(src, self.config.pad_id)
        x = self.embed(tgt_in)
        for layer in self.decoder:
            x = layer(x, layer.cross_attention.keys_values(memory), mask)
        return self.decoder_norm(x)  # type: ignore[no-any-return]

    def logits(self, hidden: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab"]:
        return project(hidden, self.embedding.weight)

    def start(self, src: Int[Tensor, "sentences src"], n_hypotheses: int = 1) -> DecoderState:
        """Read the sentences and get ready to decode `n_hypotheses` of each."""
        memory = self.encode(src)
        return DecoderState(
            [layer.cross_attention.keys_values(memory) for layer in self.decoder],
            padding_mask(src, self.config.pad_id),
            [KeyValueCache() for _ in self.decoder],
        )

    def step(self, ids: Int[Tensor, " rows"], state: DecoderState) -> Float[Tensor, "rows vocab"]:
        """Logits of the token after `ids`, the last token of each hypothesis; the state moves on by one."""
        x = self.embed(ids[:, None], state.length)
        for layer, memory, cache in zip(self.decoder, state.memory, state.caches, strict=True):
            x = layer(x, memory, state.mask, cache)
        state.length += 1
        return self.logits(self.decoder_norm(x)[:, 0])
