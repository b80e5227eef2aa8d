"""BERT: a Transformer encoder with heads for pretraining and classification."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.model_config import BertConfig
from glassformer.models.base import Model
from glassformer.models.initialization import init_sinusoidal_, initial_std
from glassformer.nn.block import BlockConfig, TransformerBlock
from glassformer.nn.dropout import Dropout
from glassformer.nn.feedforward import ACTIVATIONS
from glassformer.nn.linear import Linear, batch_invariant_linear
from glassformer.nn.masks import padding_mask
from glassformer.nn.positions import position_ids

NO_CLASSIFIER = "the model has no head for labels: head_config of the task, or n_labels, is missing"


class Bert(Model):
    """Bidirectional Transformer encoder over the sum of token, position and token type embeddings, with a head.

    Also used for RoBERTa, whose positions start at 2, and DistilBERT, which has no token types.

    Source: Devlin et al. 2018.
    """

    config_class = BertConfig
    kind = "encoder"

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.config = c = config
        block_config = BlockConfig(
            c.d_model, c.n_heads, c.d_ff, c.dropout, c.pre_norm, activation=c.activation, norm_eps=c.norm_eps
        )
        self.embedding = nn.Embedding(c.vocab_size, c.d_model, padding_idx=c.pad_id)
        self.position_embedding = nn.Embedding(c.position_offset + c.max_len, c.d_model)
        self.token_type_embedding = nn.Embedding(c.n_token_types, c.d_model) if c.n_token_types else None
        self.embedding_norm = nn.LayerNorm(c.d_model, eps=c.norm_eps)
        self.dropout = Dropout(c.dropout)
        self.encoder: Any = nn.ModuleList(TransformerBlock(block_config) for _ in range(c.n_layers))
        self.encoder_norm = nn.LayerNorm(c.d_model, eps=c.norm_eps) if c.pre_norm else nn.Identity()
        self.pooler = Linear(c.d_model, c.d_model) if c.pooler else None
        if c.head == "mlm":
            self.mlm_transform = Linear(c.d_model, c.d_model)
            self.mlm_transform_norm = nn.LayerNorm(c.d_model, eps=c.norm_eps)
            self.mlm_bias = nn.Parameter(torch.zeros(c.vocab_size))
        self.classifier = Linear(c.d_model, c.n_labels) if c.n_labels else None
        self.prune_heads()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize matrices from a truncated normal distribution and biases with 0.

        Learned position embeddings of small models (d_model < 768) start from sinusoids.
        """
        std = initial_std(self.config.d_model)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                nn.init.trunc_normal_(p, std=std, a=-2 * std, b=2 * std)
            elif name.endswith(".bias") and "norm" not in name:
                nn.init.zeros_(p)
        init_sinusoidal_(self.position_embedding)
        with torch.no_grad():
            self.embedding.weight[self.config.pad_id] = 0

    def position_vectors(self, n_positions: int, side: str = "source") -> Float[Tensor, "positions d_model"]:
        return self.position_embedding.weight[self.config.position_offset :][:n_positions]

    def final_norm(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        return self.encoder_norm(x)

    def forward(
        self, ids: Int[Tensor, "batch length"], token_type_ids: Int[Tensor, "batch length"] | None = None
    ) -> Float[Tensor, "batch length d_model"]:
        """Output of the last layer at every position.

        Args:
            token_type_ids: 0 for the first text of a pair, 1 for the second; default: all 0.
        """
        c = self.config
        # Batches are padded to a multiple of 8, possibly beyond max_len.
        positions = position_ids(ids).clamp(max=c.max_len - 1) + c.position_offset
        x = self.embedding(ids) + self.position_embedding(positions)
        if self.token_type_embedding is not None:  # RoBERTa has one token type: 1 becomes 0.
            x = x + self.token_type_embedding(
                torch.zeros_like(ids) if token_type_ids is None else token_type_ids.clamp(max=c.n_token_types - 1)
            )
        x = self.dropout(self.embedding_norm(x))
        mask = padding_mask(ids, c.pad_id)
        for layer in self.encoder:
            x = layer(x, mask)
        return self.encoder_norm(x)

    def mlm_head(self, hidden: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Dense layer, activation and norm before the vocabulary projection.

        transformers: BertPredictionHeadTransform. The projection uses the tied embeddings and `mlm_bias`.
        """
        return self.mlm_transform_norm(ACTIVATIONS[self.config.activation](self.mlm_transform(hidden)))

    def mlm_logits(self, hidden: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab"]:
        """Vocabulary logits for masked-token prediction."""
        return batch_invariant_linear(self.mlm_head(hidden), self.embedding.weight, self.mlm_bias)

    def pool(
        self, hidden: Float[Tensor, "batch length d_model"], ids: Int[Tensor, "batch length"]
    ) -> Float[Tensor, "batch d_model"]:
        """Pool each sequence to one vector: its first token, or the mean over its tokens without padding."""
        if self.config.pooling == "first":
            x = hidden[:, 0]
        else:
            nonpad = (ids != self.config.pad_id)[..., None].to(hidden.dtype)
            x = (hidden * nonpad).sum(1) / nonpad.sum(1)
        return self.pooled(x)

    def pooled(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """The pooler, if there is one, of the representation of a sequence."""
        if self.pooler is None:
            return x
        x = self.pooler(x)
        return x.relu() if self.config.pooler_activation == "relu" else x.tanh()

    def head(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch outputs"]:
        """Outputs of the head for the output of a token; for a sequence, for that of its first token or the mean."""
        if self.config.head == "mlm":
            return self.mlm_logits(x)
        assert self.classifier is not None, NO_CLASSIFIER
        return self.classifier(self.dropout(self.pooled(x) if self.config.head == "sequence" else x))

    def next_head(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch labels"]:
        """Outputs of the head for next-sentence prediction, for the output of the first token."""
        assert self.classifier is not None, NO_CLASSIFIER
        return self.classifier(self.dropout(self.pooled(x)))

    def label_logits(
        self, hidden: Float[Tensor, "batch length d_model"], ids: Int[Tensor, "batch length"]
    ) -> Float[Tensor, "..."]:
        """Label logits: [batch, labels] for sequences; [batch, length, labels] for tokens and spans.

        With head "mlm", the classifier is the next-sentence prediction head.
        """
        assert self.classifier is not None, NO_CLASSIFIER
        x = self.pool(hidden, ids) if self.config.head in ("sequence", "mlm") else hidden
        return self.classifier(self.dropout(x))
