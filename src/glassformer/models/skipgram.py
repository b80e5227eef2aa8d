"""Skip-gram: vectors of words from the words around them."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.model_config import SkipGramConfig
from glassformer.models.base import Model


class SkipGram(Model):
    """A vector for each word as it stands, and one for each word as it stands beside others.

    Source: Mikolov et al. 2013 (1310.4546), section 2.2.
    """

    def __init__(self, config: SkipGramConfig) -> None:
        super().__init__(config)
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.context_embedding = nn.Embedding(config.vocab_size, config.d_model)
        nn.init.uniform_(self.embedding.weight, -0.5 / config.d_model, 0.5 / config.d_model)
        nn.init.zeros_(self.context_embedding.weight)

    def forward(
        self,
        center_ids: Int[Tensor, " pairs"],
        context_ids: Int[Tensor, " pairs"],
        negative_ids: Int[Tensor, "pairs negatives"],
    ) -> Float[Tensor, ""]:
        """Summed loss: -log s(v_word . u_beside) - sum over others of log s(-v_word . u_other), s the logistic."""
        v = self.embedding(center_ids)
        near = (v * self.context_embedding(context_ids)).sum(-1)
        far = torch.bmm(self.context_embedding(negative_ids), v[:, :, None])[:, :, 0]
        return -(F.logsigmoid(near.float()).sum() + F.logsigmoid(-far.float()).sum())
