import os

import pytest
import torch

from glassformer.train_config import TrainConfig
from glassformer.training import environment


@pytest.mark.parametrize(
    ("device", "deterministic", "expected"), [("cpu", False, True), ("cuda", False, False), ("cuda", True, True)]
)
def test_algorithms_are_deterministic_on_a_cpu_and_where_asked(monkeypatch, device, deterministic, expected):
    calls = []
    monkeypatch.setattr(torch, "use_deterministic_algorithms", calls.append)
    monkeypatch.setattr(environment, "pick_device", torch.device)
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    threads = torch.get_num_threads()
    config = TrainConfig(src=("a",), out="b", threads=threads, device=device, deterministic=deterministic)
    with torch.random.fork_rng(devices=[]):
        environment.configure_torch(config)
    assert calls == [True] * expected
    assert ("CUBLAS_WORKSPACE_CONFIG" in os.environ) == (device == "cuda" and expected)
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
