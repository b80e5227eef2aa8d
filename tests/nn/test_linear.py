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
