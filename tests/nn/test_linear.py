import pytest
import torch

from glassformer.nn.linear import Linear, linear_relu


@pytest.mark.parametrize(("d_in", "d_out"), [(128, 384), (512, 33), (33, 512)])
def test_a_row_has_the_same_bits_whatever_stands_beside_it(d_in, d_out):
    linear, x = Linear(d_in, d_out), torch.randn(131, d_in)
    with torch.inference_mode():
        whole = linear(x)
        for n in [*range(1, 70), 96, 128, 130]:
            assert torch.equal(linear(x[:n]), whole[:n]), f"{n} rows"


def optimizer_step(layer: Linear) -> None:
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.5, fused=True)
    layer(torch.randn(3, 7)).sum().backward()
    optimizer.step()


def load(layer: Linear) -> None:
    layer.load_state_dict({name: torch.randn_like(value) for name, value in layer.state_dict().items()})


def in_place(layer: Linear) -> None:
    with torch.no_grad():
        layer.weight[1] = 5.0


def narrower(layer: Linear) -> None:
    layer.bfloat16().float()


@pytest.mark.parametrize("change", [optimizer_step, load, in_place, narrower])
def test_a_changed_weight_is_packed_anew(change):
    layer, x = Linear(7, 11), torch.randn(13, 7)
    with torch.no_grad():
        layer(x)
    change(layer)
    with torch.no_grad():
        torch.testing.assert_close(layer(x), torch.nn.functional.linear(x, layer.weight, layer.bias))


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_bf16_training_on_a_cpu_matches_pytorch(relu, bias):
    x = torch.randn(2, 3, 5, requires_grad=True)
    ours = Linear(5, 7, bias=bias)
    theirs = torch.nn.Linear(5, 7, bias=bias)
    theirs.load_state_dict(ours.state_dict())
    results = []
    with torch.autocast("cpu", torch.bfloat16):
        for layer in (ours, theirs):
            y = linear_relu(x, layer) if relu and layer is ours else layer(x).relu() if relu else layer(x)
            assert y.dtype == torch.bfloat16
            gradients = torch.autograd.grad((y.float() ** 2).sum(), [x, *layer.parameters()])
            results.append([y.float(), *gradients])
    for a, b in zip(*results, strict=True):
        assert a.dtype == b.dtype
        torch.testing.assert_close(a, b, rtol=2e-2, atol=2e-2)
