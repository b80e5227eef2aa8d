import os
import subprocess
import sys

import pytest
import torch

from glassformer.train_config import TrainConfig
from glassformer.training import environment


@pytest.mark.parametrize(
    ("device", "deterministic", "expected"), [("cpu", False, True), ("cuda", False, False), ("cuda", True, True)]
)
def test_algorithms_are_deterministic_on_a_cpu_and_where_asked(monkeypatch, device, deterministic, expected):
    monkeypatch.setattr(environment, "pick_device", torch.device)
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    threads = torch.get_num_threads()
    config = TrainConfig(src=("a",), out="b", threads=threads, device=device, deterministic=deterministic)
    torch.use_deterministic_algorithms(False)
    try:
        with torch.random.fork_rng(devices=[]):
            environment.configure_torch(config)
        assert torch.get_deterministic_debug_mode() == 2 * expected  # 2: what is not deterministic is an error
    finally:
        torch.use_deterministic_algorithms(False)
    assert ("CUBLAS_WORKSPACE_CONFIG" in os.environ) == (device == "cuda" and expected)
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)


UPDATE = """
import sys, torch
from glassformer.train_config import TrainConfig
from glassformer.training.environment import configure_torch
from glassformer.training.optimizer import OPTIMIZERS, make_optimizer

options = {"beta1": 0.9, "beta2": 0.98, "eps": 1e-9, "weight_decay": 0.01}
for name in OPTIMIZERS:
    config = TrainConfig(src=("a",), out="b", threads=1, device="cpu", optimizer=name, **options)
    configure_torch(config)
    layer = torch.nn.Linear(3, 2)
    optimizer = make_optimizer(layer, config)
    for group in optimizer.param_groups:
        group["lr"] = 0.1
    before = layer.weight.clone()
    layer(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    optimizer.load_state_dict(optimizer.state_dict())
    assert not torch.equal(before, layer.weight), name
assert "torch._dynamo" not in sys.modules
"""


def test_training_on_a_cpu_does_not_import_the_compiler():
    subprocess.run([sys.executable, "-c", UPDATE], check=True)
