import math

import torch

from glassformer.models import transformer
from glassformer.models.transformer import Transformer, TransformerConfig
from glassformer.nn.positions import sinusoids

D_MODEL = 512


def test_sinusoids_follow_the_papers_formula():
    table = sinusoids(53, 14)
    for pos, i in [(0, 0), (1, 0), (7, 3), (52, 6)]:
        angle = pos / 10000 ** (2 * i / 14)
        assert math.isclose(table[pos, 2 * i], math.sin(angle), abs_tol=1e-6)
        assert math.isclose(table[pos, 2 * i + 1], math.cos(angle), abs_tol=1e-6)


def test_cosine_of_positions_2_and_10_is_the_papers_not_the_doubled_exponents():
    table = sinusoids(11, D_MODEL).double()
    cosine = torch.nn.functional.cosine_similarity(table[2], table[10], dim=0)
    assert math.isclose(cosine, 0.7225201, abs_tol=1e-6)  # the tutorial's trap gives 0.8600013


def test_rotary_positions_of_a_translator_are_relative(monkeypatch):
    torch.manual_seed(0)
    sizes = {"vocab_size": 31, "d_model": 24, "n_heads": 2, "d_ff": 9, "n_encoder_layers": 2, "n_decoder_layers": 2}
    src, tgt = torch.randint(3, 31, (2, 7)), torch.randint(3, 31, (2, 5))
    positions_of = transformer.positions_of
    for rotary in (True, False):
        model = Transformer(TransformerConfig(**sizes, rotary=rotary)).eval()
        before = model(src, tgt)
        assert not torch.allclose(model(src.flip(1), tgt), before, atol=1e-3)
        with monkeypatch.context() as shifted:
            shifted.setattr(transformer, "positions_of", lambda ids, spans: positions_of(ids, spans) + 9)
            assert torch.allclose(model(src, tgt), before, atol=1e-5) == rotary
