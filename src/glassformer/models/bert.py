"""BERT: the encoder, and what is asked of it."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.models.base import Model, begin_as_waves, initial_std
from glassformer.nn.dropout import Dropout
from glassformer.nn.feedforward import ACTIVATIONS
from glassformer.nn.linear import Linear, project
from glassformer.nn.masks import padding_mask
from glassformer.nn.stack import Layer, LayerConfig
from glassformer.sizes import BertConfig


class Bert(Model):
    """Words, places and types summed; a stack of layers that see both ways; a head.

    Source: Devlin et al. 2018. RoBERTa counts places from 2 and DistilBERT has no types: the same module.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.config = c = config
        layer = LayerConfig(
            c.d_model, c.n_heads, c.d_ff, c.dropout, c.pre_norm, activation=c.activation, norm_eps=c.norm_eps
        )
        self.embedding = nn.Embedding(c.vocab_size, c.d_model, padding_idx=c.pad_id)
        self.positions = nn.Embedding(c.first_position + c.max_len, c.d_model)
        self.types = nn.Embedding(c.n_types, c.d_model) if c.n_types else None
        self.embedding_norm = nn.LayerNorm(c.d_model, eps=c.norm_eps)
        self.dropout = Dropout(c.dropout)
        self.encoder: Any = nn.ModuleList(Layer(layer) for _ in range(c.n_layers))
        self.encoder_norm = nn.LayerNorm(c.d_model, eps=c.norm_eps) if c.pre_norm else nn.Identity()
        self.pooler = Linear(c.d_model, c.d_model) if c.pooler else None
        if c.head == "words":
            self.transform = Linear(c.d_model, c.d_model)
            self.transform_norm = nn.LayerNorm(c.d_model, eps=c.norm_eps)
            self.word_bias = nn.Parameter(torch.zeros(c.vocab_size))
        self.labels = Linear(c.d_model, c.n_labels) if c.n_labels else None
        self.leave_heads()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Truncated normal matrices."""
        std = initial_std(self.config.d_model)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                nn.init.trunc_normal_(p, std=std, a=-2 * std, b=2 * std)
            elif name.endswith(".bias") and "norm" not in name:
                nn.init.zeros_(p)
        begin_as_waves(self.positions)
        with torch.no_grad():
            self.embedding.weight[self.config.pad_id] = 0

    def forward(
        self, ids: Int[Tensor, "batch length"], types: Int[Tensor, "batch length"] | None = None
    ) -> Float[Tensor, "batch length d_model"]:
        """The last layer's output at every place.

        Args:
            types: 0 for the first text of a pair, 1 for the second; default: all 0.
        """
        c = self.config
        # Padding may stand behind the last place, and RoBERTa has one type for both texts of a pair.
        places = torch.arange(ids.size(1), device=ids.device).clamp(max=c.max_len - 1) + c.first_position
        x = self.embedding(ids) + self.positions(places)
        if self.types is not None:
            x = x + self.types(torch.zeros_like(ids) if types is None else types.clamp(max=c.n_types - 1))
        x = self.dropout(self.embedding_norm(x))
        mask = padding_mask(ids, c.pad_id)
        for layer in self.encoder:
            x = layer(x, mask)
        return self.encoder_norm(x)  # type: ignore[no-any-return]

    def words(self, hidden: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """What the tied embeddings, with `word_bias`, make logits of."""
        return self.transform_norm(ACTIVATIONS[self.config.activation](self.transform(hidden)))  # type: ignore[no-any-return]

    def word_logits(self, hidden: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab"]:
        """Of masked places."""
        return project(self.words(hidden), self.embedding.weight, self.word_bias)

    def pooled(
        self, hidden: Float[Tensor, "batch length d_model"], ids: Int[Tensor, "batch length"]
    ) -> Float[Tensor, "batch d_model"]:
        """One vector a sequence: of its first token, or the mean over its tokens."""
        if self.config.pooling == "first":
            x = hidden[:, 0]
        else:
            there = (ids != self.config.pad_id)[..., None].to(hidden.dtype)
            x = (hidden * there).sum(1) / there.sum(1)
        if self.pooler is None:
            return x
        x = self.pooler(x)
        return x.relu() if self.config.pooler_activation == "relu" else x.tanh()

    def label_logits(
        self, hidden: Float[Tensor, "batch length d_model"], ids: Int[Tensor, "batch length"]
    ) -> Float[Tensor, "..."]:
        """[batch, labels] of sequences; [batch, length, labels] of tokens and spans."""
        assert self.labels is not None
        x = self.pooled(hidden, ids) if self.config.head in ("sequence", "words") else hidden
        return self.labels(self.dropout(x))  # type: ignore[no-any-return]
