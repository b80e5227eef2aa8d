"""Base class of decoder-only Transformers."""

from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from glassformer.model_config import Kind
from glassformer.models.base import Model
from glassformer.models.decoding import TransformerState
from glassformer.models.initialization import initial_std, scale_branches_
from glassformer.nn.attention import Rotary
from glassformer.nn.linear import batch_invariant_linear
from glassformer.nn.masks import causal_mask
from glassformer.nn.positions import position_ids


class DecoderOnly(Model):
    """Base class of decoder-only Transformers. Subclasses define `embed`, `decoder` (a list of blocks) and
    `decoder_norm`, and `output_weight` if it is not the embedding.
    """

    kind: ClassVar[Kind] = "decoder"
    output_bias: ClassVar[None] = None
    pad_to_multiple_of: ClassVar[int] = 1
    """Prompts of a batch have the same length, without padding between a prompt and its continuation."""
    embedding: nn.Embedding
    decoder: Any
    decoder_norm: Any

    def embed(
        self, ids: Int[Tensor, "batch length"], positions: Int[Tensor, "... length"]
    ) -> Float[Tensor, "batch length d_model"]:
        """Input of the first block."""
        raise NotImplementedError

    def rotary(self, positions: Int[Tensor, "... length"]) -> Rotary | None:
        """Rotary position embedding of the tokens, in models that have one."""
        return None

    def reset_parameters(self) -> None:
        """Initialize matrices from a normal distribution, smaller ones at the end of residual branches."""
        std = initial_std(self.config.d_model)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=std)
            elif name.endswith(".bias"):
                nn.init.zeros_(p)
        scale_branches_(self)

    def final_norm(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        return self.decoder_norm(x)

    def forward(
        self, ids: Int[Tensor, "batch length"], segments: Int[Tensor, "batch length"] | None = None
    ) -> Float[Tensor, "batch length d_model"]:
        """Output of the last layer at every position; `logits` projects it to the vocabulary.

        Args:
            segments: for several texts packed into one sequence, the index of each token's text. A token attends only
                to its own text, and positions are counted from the start of that text.
        """
        if segments is None:
            return self.run_blocks(ids, position_ids(ids))
        same = segments[:, :, None] == segments[:, None]
        positions = same.tril(-1).sum(-1)
        return self.run_blocks(ids, positions, (same & causal_mask(ids.size(1), device=ids.device))[:, None])

    def run_blocks(
        self,
        ids: Int[Tensor, "batch length"],
        positions: Int[Tensor, "... length"],
        mask: Bool[Tensor, "batch 1 length length"] | None = None,
        state: TransformerState | None = None,
    ) -> Float[Tensor, "batch length d_model"]:
        """Output of the last layer for all positions, or with a state for those that follow the cached ones."""
        x, rotary = self.embed(ids, positions), self.rotary(positions)
        for i, layer in enumerate(self.decoder):
            x = layer(x, mask, rotary=rotary, cache=state.caches[i] if state else None)
        return self.decoder_norm(x)

    @property
    def output_weight(self) -> Tensor:
        """Weight of the projection to the vocabulary."""
        return self.embedding.weight

    def logits(self, hidden: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab"]:
        return batch_invariant_linear(hidden, self.output_weight)

    def start(self, src: Int[Tensor, "sentences src"], n_hypotheses: int = 1) -> tuple[TransformerState, Tensor]:
        """Process prompts of equal length and create the decoder state for `n_hypotheses` continuations of each."""
        state = TransformerState(len(self.decoder))
        if src.size(1) > 1:
            self.run_blocks(src[:, :-1], position_ids(src[:, :-1]), state=state)
            state.select(torch.arange(len(src), device=src.device).repeat_interleave(n_hypotheses))
        return state, src[:, -1].repeat_interleave(n_hypotheses)

    def step(self, ids: Int[Tensor, " rows"], state: TransformerState) -> Float[Tensor, "rows vocab"]:
        """Logits of the next token, given `ids`, the last token of each hypothesis. Updates the state."""
        ids = ids[:, None]
        return self.logits(self.run_blocks(ids, position_ids(ids, state.length), state=state)[:, 0])
