"""Skip-gram: vectors of words from the words around them."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.models.base import Model
from glassformer.sizes import SkipGramConfig


class SkipGram(Model):
    """A vector for each word as it stands, and one for each word as it stands beside others.

    Source: Mikolov et al. 2013 (1310.4546), section 2.2.
    """

    def __init__(self, config: SkipGramConfig) -> None:
        super().__init__(config)
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.context = nn.Embedding(config.vocab_size, config.d_model)
        nn.init.uniform_(self.embedding.weight, -0.5 / config.d_model, 0.5 / config.d_model)
        nn.init.zeros_(self.context.weight)

    def forward(
        self,
        words: Int[Tensor, " pairs"],
        beside: Int[Tensor, " pairs"],
        others: Int[Tensor, "pairs negatives"],
    ) -> Float[Tensor, ""]:
        """Summed loss: -log s(v_word . u_beside) - sum over others of log s(-v_word . u_other), s the logistic."""
        v = self.embedding(words)
        near = (v * self.context(beside)).sum(-1)
        far = torch.bmm(self.context(others), v[:, :, None])[:, :, 0]
        return -(F.logsigmoid(near.float()).sum() + F.logsigmoid(-far.float()).sum())
