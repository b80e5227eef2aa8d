import pytest
import torch
import torch.nn.functional as F

from glassformer.kernels import training as t
from glassformer.kernels.library import load
from glassformer.models.transformer import Transformer, TransformerConfig
from glassformer.nn import cpu_training as c
from glassformer.nn.block import BlockConfig, Residual, TransformerBlock
from glassformer.nn.ops.loss import linear_cross_entropy
from glassformer.nn.ops.rotation import torch_rotation
from glassformer.nn.positions import rotary_embedding

pytestmark = pytest.mark.skipif(c.library() is None, reason="the package was installed without a C compiler")

TOLERANCE = {torch.float32: {"rtol": 1e-4, "atol": 2e-5}, torch.bfloat16: {"rtol": 3e-2, "atol": 3e-2}}


@pytest.fixture(params=sorted(load()[0].supported) if load()[0] else [], autouse=True)
def variant(request):
    kernels = c.library()
    fastest = kernels.variant
    kernels.select(request.param)
    yield
    kernels.select(fastest)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("queries", "keys", "d_head"), [(1, 1, 16), (5, 7, 32), (18, 18, 48), (33, 128, 64), (128, 128, 128)]
)
def test_attention_and_its_gradients_match_pytorch(queries, keys, d_head, causal, dtype):
    generator = torch.Generator().manual_seed(queries * keys)
    draw = lambda n: torch.randn(2, n, 3, d_head, generator=generator).to(dtype).transpose(1, 2).requires_grad_()
    q, k, v = draw(queries), draw(keys), draw(keys)
    mask = torch.rand(2, 1, 1, keys, generator=generator) < 0.7
    mask[..., 0] = True
    whole = mask & torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries) if causal else mask
    d_out = torch.randn(2, 3, queries, d_head, generator=generator).to(dtype)
    ours = c.short_attention(q, k, v, mask, causal, 0.2)
    expected = F.scaled_dot_product_attention(q.float(), k.float(), v.float(), attn_mask=whole, scale=0.2)
    torch.testing.assert_close(ours.float(), expected, **TOLERANCE[dtype])
    ours_grads = torch.autograd.grad(ours, (q, k, v), d_out)
    for grad, expected_grad in zip(ours_grads, torch.autograd.grad(expected, (q, k, v), d_out.float()), strict=True):
        torch.testing.assert_close(grad, expected_grad, **TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("positions", [torch.arange(7), torch.tensor([range(7), range(200, 207)])], ids=["all", "each"])
def test_rotation_and_its_gradient_match_pytorch(positions, dtype):
    x = torch.randn(2, 7, 3, 64).to(dtype).transpose(1, 2).requires_grad_()
    angles, d_out = rotary_embedding(positions, 64), torch.randn(2, 3, 7, 64).to(dtype)
    ours, expected = c.rotate(x, *angles), torch_rotation(x.float(), *angles)
    torch.testing.assert_close(ours.float(), expected, **TOLERANCE[dtype])
    (grad,), (other,) = (torch.autograd.grad(y, x, d_out.to(y.dtype)) for y in (ours, expected))
    torch.testing.assert_close(grad, other, **TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("pre_norm", [False, True])
def test_a_residual_connection_without_dropout_matches_pytorch(pre_norm, dtype):
    layer = Residual(BlockConfig(48, 3, 7, 0.0, pre_norm=pre_norm)).train()
    torch.nn.init.normal_(layer.norm.weight)
    torch.nn.init.normal_(layer.norm.bias)
    x, z = (torch.randn(3, 5, 48).to(dtype).requires_grad_() for _ in range(2))
    d_out = torch.randn(3, 5, 48).to(dtype)
    norm = None if pre_norm else layer.norm
    parameters = [] if pre_norm else [*layer.norm.parameters()]
    ours = c.residual(x, z, norm, 0.0)
    expected = x.float() + z.float() if pre_norm else layer.norm(x.float() + z.float())
    torch.testing.assert_close(ours.float(), expected, **TOLERANCE[dtype])
    ours_grads = torch.autograd.grad(ours, [x, z, *parameters], d_out)
    for grad, other in zip(ours_grads, torch.autograd.grad(expected, [x, z, *parameters], d_out.float()), strict=True):
        torch.testing.assert_close(grad, other, **TOLERANCE[dtype])


def test_dropout_has_the_given_rate_and_the_same_elements_in_the_gradient():
    x, z = torch.zeros(1000, 64), torch.ones(1000, 64, requires_grad=True)
    torch.manual_seed(1)
    out = c.residual(x, z, None, 0.3)
    (grad,) = torch.autograd.grad(out.sum(), z)
    assert torch.equal(out, grad)
    dropped = out == 0
    torch.testing.assert_close(out[~dropped], torch.full_like(out[~dropped], 1 / 0.7))
    assert abs(float(dropped.float().mean()) - 0.3) < 4 * (0.21 / 64000) ** 0.5
    assert dropped.float().mean(0).std() < 2 * (0.21 / 1000) ** 0.5  # of each feature
    torch.manual_seed(1)
    assert torch.equal(out, c.residual(x, z, None, 0.3))
    assert not torch.equal(out, c.residual(x, z, None, 0.3))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("vocab", [1, 15, 16, 37, 8000])
def test_softmax_matches_pytorch(vocab, dtype):
    logits = (10 * torch.randn(7, vocab)).to(dtype)
    expected, lse = logits.float().softmax(-1), logits.float().logsumexp(-1)
    ours = c.softmax_(logits)
    torch.testing.assert_close(ours, lse)
    torch.testing.assert_close(logits.float(), expected, rtol=1e-2 if dtype == torch.bfloat16 else 1e-5, atol=1e-6)


def test_a_value_that_is_not_finite_stays_so():
    x = torch.full((1, 16), torch.nan, dtype=torch.bfloat16, requires_grad=True)
    assert c.residual(x, torch.zeros_like(x), None, 0.0).isnan().all()
    logits = torch.full((1, 16), torch.nan)
    assert c.softmax_(logits).isnan().all()


def test_modules_use_the_kernels_in_training_only(monkeypatch):
    calls = []
    monkeypatch.setattr(c, "run", lambda kernel, arguments: calls.append(kernel))
    block, x = TransformerBlock(BlockConfig(64, 2, 7, 0.1)), torch.randn(2, 5, 64)
    rotary = rotary_embedding(torch.arange(5), 32)
    block(x, rotary=rotary)
    expected = [t.ROTATION, t.ROTATION, t.ATTENTION, t.RESIDUAL, t.RESIDUAL]
    assert [kernel for kernel in calls if kernel != t.PRODUCT] == expected
    assert (t.PRODUCT in calls) == c.has_product(torch.float32)
    calls.clear()
    with torch.no_grad():
        block.eval()(x, rotary=rotary)
    assert not calls


@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("pre_norm", [False, True])
def test_a_model_has_the_same_gradients_with_and_without_the_kernels(pre_norm, rotary, monkeypatch):
    sizes = {"vocab_size": 37, "d_model": 64, "n_heads": 2, "d_ff": 48, "n_encoder_layers": 2, "n_decoder_layers": 2}
    model = Transformer(TransformerConfig(**sizes, dropout=0.0, pre_norm=pre_norm, rotary=rotary)).train()
    generator = torch.Generator().manual_seed(1)
    src, tgt = (torch.randint(3, 37, (5, n), generator=generator) for n in (7, 11))
    src[1, 4:] = model.config.pad_id

    def gradients():
        hidden = model(src, tgt).flatten(0, 1)
        loss = linear_cross_entropy(hidden, model.output_weight, tgt.flatten(), label_smoothing=0.1)
        return [loss, *torch.autograd.grad(loss, [*model.parameters()])]

    ours = gradients()
    monkeypatch.setattr(c, "library", lambda: None)
    for a, b in zip(ours, gradients(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
