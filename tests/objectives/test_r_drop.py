"""R-Drop against its formula: both passes, cross-entropy and Kullback-Leibler divergences by PyTorch's functions."""

import pytest
import torch
import torch.nn.functional as F

from glassformer.data.pairs import make_batch, pack_pairs
from glassformer.models.transformer import Transformer, TransformerConfig
from glassformer.nn.ops import loss as module
from glassformer.objectives.loss import pair_cross_entropy

ROWS = [([5, 6, 7, 8], [9, 10, 11]), ([12, 13], [14, 15, 16, 17, 18]), ([19], [20])]
IDS = {"pad_id": 0, "bos_id": 1, "eos_id": 2}


@pytest.fixture
def model():
    torch.manual_seed(1)
    sizes = {"vocab_size": 37, "d_model": 32, "n_heads": 2, "d_ff": 48, "n_encoder_layers": 2, "n_decoder_layers": 2}
    return Transformer(TransformerConfig(**sizes, max_len=20, dropout=0.3)).train()


@pytest.fixture(params=["padded", "packed"])
def batch(request):
    return make_batch(ROWS, **IDS) if request.param == "padded" else pack_pairs(ROWS, 24, 8, 8, **IDS)


def plain(model, batch, alpha, smoothing):
    """Liang et al. 2021, equation 4, divided by 2."""
    spans = () if batch.src_spans is None else (batch.src_spans, batch.tgt_spans)
    passes = [model(batch.src, batch.tgt_in, *spans).flatten(0, 1)[batch.target_positions] for _ in range(2)]
    targets = batch.tgt_out.flatten()[batch.target_positions]
    logits = [F.linear(hidden, model.output_weight, model.output_bias) for hidden in passes]
    losses = [F.cross_entropy(x, targets, label_smoothing=smoothing, reduction="none") for x in logits]
    p, q = (x.log_softmax(-1) for x in logits)
    divergences = [F.kl_div(a, b, reduction="none", log_target=True).sum(-1) for a, b in ((q, p), (p, q))]
    total = sum(losses) / 2 + alpha / 4 * sum(divergences)
    return (total if batch.target_weights is None else total * batch.target_weights).sum()


@pytest.mark.parametrize("chunk_bytes", [1 << 25, 4 * 37 * 3])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_loss_and_gradients(model, batch, smoothing, chunk_bytes, monkeypatch):
    monkeypatch.setitem(module.CHUNK_BYTES, "cpu", chunk_bytes)
    results = []
    for loss_of in (
        lambda: plain(model, batch, 5.0, smoothing),
        lambda: pair_cross_entropy(model, batch, label_smoothing=smoothing, r_drop=5.0),
    ):
        torch.manual_seed(3)  # the same dropout
        loss = loss_of()
        results.append((loss.detach(), *torch.autograd.grad(loss, list(model.parameters()))))
    for wanted, found in zip(*results, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_without_dropout_the_passes_are_equal(model, batch):
    model.eval()
    both = pair_cross_entropy(model, batch, label_smoothing=0.1, r_drop=5.0)
    torch.testing.assert_close(both, pair_cross_entropy(model, batch, label_smoothing=0.1))


def test_the_passes_have_dropout_of_their_own(model, batch):
    losses = []
    for alpha in (1e-9, 5.0):
        torch.manual_seed(3)
        losses.append(pair_cross_entropy(model, batch, r_drop=alpha).item())
    assert losses[1] > losses[0] + 0.1
