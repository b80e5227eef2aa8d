"""The weights of a new model: residual branches that begin with zeros."""

import pytest
import torch

import glassformer as gf
from glassformer.model_config import TransformerConfig
from glassformer.models.initialization import BRANCH_ENDS, zero_branches_
from glassformer.models.transformer import Transformer
from glassformer.train_config import TrainConfig
from glassformer.training.run import train
from tests.training.test_model_fields import options, text

__all__ = ["text"]

NO_STEPS = {"steps": 1, "optimizer": "adam", "lr": 1e-9}


def ends_of_branches(folder):
    weights = gf.load(folder, device="cpu").model.named_parameters()
    return [p.abs().max().item() for name, p in weights if name.endswith(BRANCH_ENDS)]


@pytest.mark.parametrize("is_pre_norm", [True, False])
def test_branches_of_pre_norm_translators_begin_with_zeros(text, tmp_path, is_pre_norm):
    train(options(text, tmp_path / "model", "transformer", pre_norm=is_pre_norm, **NO_STEPS))
    ends = ends_of_branches(tmp_path / "model")
    assert len(ends) == 2 + 3  # an encoder layer has two branches, a decoder layer three
    assert all((end < 1e-6) == is_pre_norm for end in ends)


def test_a_model_that_goes_on_keeps_its_branches(text, tmp_path):
    train(options(text, tmp_path / "first", "transformer", lr=1e-2, steps=2))
    given = {"src": [text], "format": "tsv", "device": "cpu", "init_from": tmp_path / "first", **NO_STEPS}
    train(TrainConfig.resolve({**given, "out": tmp_path / "second"}))
    first, second = ends_of_branches(tmp_path / "first"), ends_of_branches(tmp_path / "second")
    assert second == pytest.approx(first, abs=1e-6)
    assert min(first) > 1e-4


def test_layers_then_return_their_input():
    config = TransformerConfig(
        vocab_size=40, d_model=16, n_heads=2, d_ff=32, n_encoder_layers=2, n_decoder_layers=2, pre_norm=True, dropout=0
    )
    model = Transformer(config).eval()
    ids = torch.tensor([[5, 9, 7, 2]])
    before = model.encode(ids)
    zero_branches_(model)
    expected = model.encoder_norm(model.embed(ids))
    assert torch.equal(model.encode(ids), expected)
    assert not torch.allclose(before, expected, atol=0.1)
