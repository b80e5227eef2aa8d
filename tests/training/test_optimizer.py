"""Optimizers against PyTorch's and transformers' own, and the state that a continued run restores."""

import pytest
import torch
from torch import nn

import glassformer as gf
from glassformer.errors import ConfigError
from glassformer.nn.linear import Linear
from glassformer.train_config import TrainConfig
from glassformer.training.optimizer import (
    N_ITERATIONS,
    OPTIMIZERS,
    load_optimizer_tensors,
    make_optimizer,
    optimizer_tensors,
)
from glassformer.training.options import known_names

N_STEPS = 100
BETAS, EPS, WEIGHT_DECAY, LR = (0.85, 0.97), 1e-7, 0.1, 1e-2


class Net(nn.Module):
    """An embedding, a matrix, a bias and a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 7)
        self.norm = nn.LayerNorm(7)
        self.linear = Linear(7, 5)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.linear(self.norm(self.embedding(ids)))


def config(optimizer: str) -> TrainConfig:
    adam = (
        {"beta1": BETAS[0], "beta2": BETAS[1], "eps": EPS}
        if optimizer.startswith("adam") or optimizer == "muon"
        else {}
    )
    return TrainConfig(src=("a",), out="b", optimizer=optimizer, weight_decay=WEIGHT_DECAY, **adam)


def net() -> Net:
    torch.manual_seed(7)
    return Net()


def steps(model: nn.Module, optimizer: torch.optim.Optimizer, n_steps: int = N_STEPS, start: int = 0) -> None:
    """Make updates whose gradients depend on the weights and on the step."""
    for step in range(start, start + n_steps):
        ids = torch.randint(11, (13,), generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        model(ids).square().mean().backward()
        for group in optimizer.param_groups:
            group["lr"] = LR
        optimizer.step()


def decayed_and_not(model: nn.Module, weight_decay: float = WEIGHT_DECAY) -> list[dict]:
    """The parameter groups that PyTorch's and transformers' optimizers get here."""
    others = [model.embedding.weight, model.norm.weight, model.norm.bias, model.linear.bias]
    return [
        {"params": [model.linear.weight], "weight_decay": weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]


def transformers_adafactor(groups: list[dict]) -> torch.optim.Optimizer:
    adafactor = pytest.importorskip("transformers").optimization.Adafactor
    return adafactor(groups, scale_parameter=True, relative_step=False, warmup_init=False, lr=LR)


class PlainMuon(torch.optim.AdamW):
    """Muon as its authors describe it, for one matrix, in float64; AdamW for the rest."""

    def __init__(self, model: nn.Module) -> None:
        matrix, others = decayed_and_not(model)
        super().__init__(others["params"], betas=BETAS, eps=EPS, weight_decay=0.0)
        (self.matrix,), self.momentum = matrix["params"], torch.zeros(5, 7, dtype=torch.float64)

    def step(self, closure=None):
        super().step()
        gradient = self.matrix.grad.double()
        self.momentum = 0.95 * self.momentum + gradient
        x = gradient + 0.95 * self.momentum
        x = x / x.norm()
        for _ in range(N_ITERATIONS):
            a = x @ x.T
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        with torch.no_grad():
            self.matrix.mul_(1 - LR * WEIGHT_DECAY).sub_((LR * 0.2 * 7**0.5 * x).float())
        self.matrix.grad = None


def torch_muon_step(matrix: torch.Tensor, gradients: list[torch.Tensor], weight_decay: float) -> torch.Tensor:
    """A matrix after updates by PyTorch's Muon, which computes in bf16."""
    parameter = nn.Parameter(matrix.clone())
    optimizer = torch.optim.Muon(
        [parameter], lr=LR, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw", ns_steps=N_ITERATIONS
    )
    for gradient in gradients:
        parameter.grad = gradient.clone()
        optimizer.step()
    return parameter.detach()


REFERENCES = {
    "muon": PlainMuon,
    "adam": lambda model: torch.optim.Adam(decayed_and_not(model), betas=BETAS, eps=EPS),
    "adamw": lambda model: torch.optim.AdamW(decayed_and_not(model), betas=BETAS, eps=EPS),
    # The weight decay of transformers' Adafactor is multiplied by the size of the weights.
    "adafactor": lambda model: transformers_adafactor(decayed_and_not(model, 0.0)),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_100_updates_match_the_reference(name):
    ours, theirs = net(), net()
    options = config(name)
    if name == "adafactor":
        options = options.model_copy(update={"weight_decay": 0.0})
    steps(ours, make_optimizer(ours, options))
    steps(theirs, REFERENCES[name](theirs))
    for (parameter, value), expected in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(value, expected, rtol=0, atol=1e-6, msg=parameter)
        assert (value - net().get_parameter(parameter)).abs().max() > 1e-4  # it did learn


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_weight_decay_shrinks_matrices_only(name):
    model = net()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    optimizer = make_optimizer(model, config(name))
    for group in optimizer.param_groups:
        group["lr"] = LR
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    changed = {key for key, value in model.state_dict().items() if not torch.equal(value, before[key])}
    assert changed == {"linear.weight"}
    assert model.linear.weight.norm() < before["linear.weight"].norm()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_restored_state_continues_bit_for_bit(name):
    whole = net()
    optimizer = make_optimizer(whole, config(name))
    steps(whole, optimizer, 5)
    weights = {key: value.clone() for key, value in whole.state_dict().items()}
    state = {key: value.clone() for key, value in optimizer_tensors(optimizer, dict(whole.named_parameters())).items()}
    steps(whole, optimizer, 5, start=5)

    resumed = net()
    resumed.load_state_dict(weights)
    optimizer = make_optimizer(resumed, config(name))
    load_optimizer_tensors(optimizer, dict(resumed.named_parameters()), state)
    steps(resumed, optimizer, 5, start=5)
    for value, expected in zip(resumed.parameters(), whole.parameters(), strict=True):
        assert torch.equal(value, expected)


def test_unknown_names_are_reported_together(tmp_path):
    with pytest.raises(ConfigError) as error:
        gf.train(tmp_path / "a", out=tmp_path / "run", optimizer="sgd", schedule="step", steps=0)
    assert "optimizer: 'sgd' is unknown; known: adam, adamw, adafactor" in str(error.value)
    assert "schedule: 'step' is unknown; known: inverse-sqrt, linear, cosine, constant" in str(error.value)
    assert "steps: 0: input should be greater than or equal to 1" in str(error.value)
    assert not (tmp_path / "run").exists()


def test_a_name_that_is_not_a_text_is_an_error_of_its_option(tmp_path):
    with pytest.raises(ConfigError, match=r"family: .*valid string"):
        gf.train(tmp_path / "a", out=tmp_path / "run", family=["t5"])


@pytest.mark.parametrize(
    ("options", "excluded"),
    [
        ({"optimizer": "adafactor", "beta1": 0.9, "eps": 1e-8}, ["beta1", "eps"]),
        ({"optimizer": "adafactor", "shard": True}, ["shard"]),
        ({"schedule": "cosine", "decay_ratio": 0.1}, ["decay_ratio"]),
        ({"optimizer": "adafactor", "eps": 1e-8, "schedule": "linear", "decay_ratio": 0.1}, ["eps", "decay_ratio"]),
    ],
)
def test_options_that_a_row_does_not_have_are_named_together(options, excluded):
    with pytest.raises(ConfigError) as error:
        TrainConfig.resolve({"src": ("a",), "out": "b", **options}, known=known_names())
    lines = str(error.value).split("\n")[1:]
    assert sorted(line.split(":")[0].strip() for line in lines) == sorted(excluded)
    assert all("cannot be combined with" in line for line in lines)


def test_an_option_that_a_row_does_not_have_can_be_off():
    TrainConfig.resolve({"src": ("a",), "out": "b", "schedule": "linear", "decay_ratio": 0.0}, known=known_names())


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="PyTorch has Muon from 2.9 on")
@pytest.mark.parametrize("shape", [(64, 32), (32, 64)])
def test_muon_is_that_of_pytorch(shape):
    matrix, gradients = torch.randn(shape), [torch.randn(shape) for _ in range(5)]
    module = nn.Linear(shape[1], shape[0], bias=False)
    module.weight.data.copy_(matrix)
    optimizer = make_optimizer(module, config("muon"))
    for group in optimizer.param_groups:
        group["lr"] = LR
    for gradient in gradients:
        module.weight.grad = gradient.clone()
        optimizer.step()
    expected = torch_muon_step(matrix, gradients, WEIGHT_DECAY)
    assert (module.weight - expected).norm() < 0.02 * (expected - matrix).norm()


def test_muon_makes_an_update_whose_root_mean_square_is_that_of_adam():
    module = nn.Linear(128, 512, bias=False)
    before = module.weight.detach().clone()
    optimizer = make_optimizer(module, config("muon").model_copy(update={"weight_decay": 0.0}))
    optimizer.param_groups[0]["lr"] = LR
    module.weight.grad = torch.randn_like(module.weight)
    optimizer.step()
    assert 0.15 * LR < (module.weight - before).square().mean().sqrt() < 0.25 * LR


def test_muon_leaves_the_weights_where_a_gradient_is_not_finite():
    model = net()
    optimizer = make_optimizer(model, config("muon"))
    before = model.linear.weight.detach().clone()
    model.linear.weight.grad = torch.full_like(before, torch.nan)
    optimizer.found_inf = torch.ones(())
    optimizer.step()
    assert torch.equal(model.linear.weight, before)
    del optimizer.found_inf
    model.linear.weight.grad = torch.ones_like(before)
    optimizer.step()
    assert model.linear.weight.isfinite().all()
    assert not torch.equal(model.linear.weight, before)
