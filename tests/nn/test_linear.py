import pytest
import torch

from glassformer.nn.linear import Linear


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
