"""Initial weights."""

import torch

from glassformer.model_config import TransformerConfig
from glassformer.models.transformer import Transformer


def initial(pre_norm):
    torch.manual_seed(0)
    sizes = {"vocab_size": 40, "d_model": 16, "n_heads": 2, "d_ff": 32, "n_encoder_layers": 2, "n_decoder_layers": 3}
    return dict(Transformer(TransformerConfig(**sizes, pre_norm=pre_norm)).named_parameters())


def test_branches_of_pre_norm_layers_begin_smaller_and_all_else_as_published():
    post_norm, pre_norm = initial(False), initial(True)
    n_smaller = 0
    for name, weights in post_norm.items():
        factor = 1.0
        if name.endswith(("attention.out_proj.weight", "feedforward.down.weight")):
            factor = (2 * 2) ** -0.5 if name.startswith("encoder.") else (3 * 3) ** -0.5
            n_smaller += 1
        assert torch.allclose(pre_norm[name], factor * weights, rtol=1e-6, atol=0), name
    assert n_smaller == 2 * 2 + 3 * 3
