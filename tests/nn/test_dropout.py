import torch

from glassformer.nn.dropout import Dropout

SHAPE = (97, 101, 31)


def test_dropout_drops_its_share_and_keeps_the_mean():
    y = Dropout(0.3)(torch.ones(SHAPE))
    dropped = (y == 0).float().mean().item()
    assert abs(dropped - round(0.3 * 256) / 256) < 0.003
    assert abs(y.mean().item() - 1) < 0.005


def test_dropout_passes_the_gradient_where_it_passed_the_value():
    x = torch.ones(SHAPE, requires_grad=True)
    y = Dropout(0.5)(x)
    y.sum().backward()
    torch.testing.assert_close(x.grad, y.detach())


def test_dropout_drops_each_place_independently():
    dropped = (Dropout(0.5)(torch.ones(1 << 18)) == 0).float().view(-1, 8) - 0.5
    correlations = dropped.T @ dropped / len(dropped) / 0.25
    assert (correlations - torch.eye(8)).abs().max() < 0.03  # eight elements share one random word


def test_dropout_does_nothing_out_of_training():
    x = torch.randn(SHAPE)
    assert Dropout(0.5).eval()(x) is x


def test_dropout_repeats_with_the_random_state():
    state = torch.get_rng_state()
    first = Dropout(0.5)(torch.ones(SHAPE))
    torch.set_rng_state(state)
    assert torch.equal(first, Dropout(0.5)(torch.ones(SHAPE)))
