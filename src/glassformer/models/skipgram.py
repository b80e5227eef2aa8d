"""Skip-gram with negative sampling: word vectors learned from context words."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.model_config import SkipGramConfig
from glassformer.models.base import Model


class SkipGram(Model):
    """Two embeddings per word: one as center word, one as context word.

    Source: Mikolov et al. 2013 (1310.4546), section 2.2.
    """

    config_class = SkipGramConfig
    kind = "word-vectors"
    has_blocks = False

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
        """Summed loss: -log s(v_center . u_context) - sum over negatives of log s(-v_center . u_negative), s = sigmoid.

        Args:
            center_ids: center word of each pair.
            context_ids: a word within the window around the center word.
            negative_ids: words drawn as negative examples.
        """
        v = self.embedding(center_ids)
        positive = (v * self.context_embedding(context_ids)).sum(-1)
        negative = torch.bmm(self.context_embedding(negative_ids), v[:, :, None])[:, :, 0]
        return -(F.logsigmoid(positive.float()).sum() + F.logsigmoid(-negative.float()).sum())
