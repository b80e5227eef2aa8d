import pytest
import torch

from glassformer.nn.dropout import Dropout, hash_dropout

SHAPE = (97, 101, 31)
IMPLEMENTATIONS = [lambda x, p: Dropout(p)(x), hash_dropout]


@pytest.mark.parametrize("dropout", IMPLEMENTATIONS)
def test_dropout_drops_its_share_and_keeps_the_mean(dropout):
    y = dropout(torch.ones(SHAPE), 0.3)
    dropped = (y == 0).float().mean().item()
    assert abs(dropped - round(0.3 * 256) / 256) < 0.003
    assert abs(y.mean().item() - 1) < 0.005


@pytest.mark.parametrize("dropout", IMPLEMENTATIONS)
def test_dropout_passes_the_gradient_where_it_passed_the_value(dropout):
    x = torch.ones(SHAPE, requires_grad=True)
    y = dropout(x, 0.5)
    y.sum().backward()
    torch.testing.assert_close(x.grad, y.detach())


@pytest.mark.parametrize("dropout", IMPLEMENTATIONS)
def test_dropout_drops_each_element_independently(dropout):
    dropped = (dropout(torch.ones(1 << 18), 0.5) == 0).float().view(-1, 8) - 0.5
    correlations = dropped.T @ dropped / len(dropped) / 0.25
    assert (correlations - torch.eye(8)).abs().max() < 0.03  # eight elements share one random word


def test_dropout_does_nothing_out_of_training():
    x = torch.randn(SHAPE)
    assert Dropout(0.5).eval()(x) is x


@pytest.mark.parametrize("dropout", IMPLEMENTATIONS)
def test_dropout_repeats_with_the_random_state_only(dropout):
    state = torch.get_rng_state()
    first, second = dropout(torch.ones(SHAPE), 0.5), dropout(torch.ones(SHAPE), 0.5)
    assert abs((first == second).float().mean() - 0.5) < 0.005
    torch.set_rng_state(state)
    assert torch.equal(first, dropout(torch.ones(SHAPE), 0.5))
