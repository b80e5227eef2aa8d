"""Too little memory: updates that run out of it, and models that do not fit."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from glassformer import cgroups
from glassformer.errors import UserError
from glassformer.memory import available_bytes, is_out_of_memory, proc_bytes
from glassformer.models.families import FAMILIES
from glassformer.models.transformer import Transformer, TransformerConfig
from glassformer.nn.dropout import Dropout
from glassformer.training import memory
from glassformer.training.distributed import Processes
from glassformer.training.memory import (
    check_model_fits,
    state_bytes,
)
from glassformer.training.optimizer import optimizer_tensors
from glassformer.training.options import stored_options
from glassformer.training.signals import StopSignal
from glassformer.training.trainer import Trainer
from tests.training.test_trainer import N_PAIRS, tokenizer, trainer, weights

__all__ = ["tokenizer", "trainer"]

LENGTH = 16
"""Length of the longest pair, with the end token, as the fixture draws it."""


def limit_memory(trainer, monkeypatch, n_tokens: int) -> list[int]:
    """Let the backward pass of batches of more tokens run out of memory. Returns the sizes that are tried."""
    tried, add_gradients = [], trainer.step.add_gradients

    def limited(batch):
        tried.append(max(batch.src.numel(), batch.tgt_in.numel()))
        add_gradients(batch)
        if tried[-1] > n_tokens:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")

    monkeypatch.setattr(trainer.step, "add_gradients", limited)
    return tried


def updated(trainer, lr=1e-3) -> dict[str, torch.Tensor]:
    """The weights after two updates of all pairs."""
    for _ in range(2):
        trainer.updates([np.arange(N_PAIRS)], lr, StopSignal())
    return weights(trainer)


@pytest.fixture
def messages(trainer, monkeypatch) -> list[str]:
    lines = []
    monkeypatch.setattr(trainer.step, "log", lines.append)
    return lines


@pytest.mark.slow
@pytest.mark.parametrize("graphs", [False, True])
def test_an_update_that_ran_out_of_memory_is_repeated_in_parts_with_the_same_result(
    trainer, monkeypatch, messages, graphs
):
    before, longest = weights(trainer), int(trainer.sampler.lengths.max())
    if graphs:
        trainer.step.use_graphs()
    expected = updated(trainer)
    trainer.model.load_state_dict(before)
    trainer.step.optimizer.state.clear()
    tried = limit_memory(trainer, monkeypatch, n_tokens=7 * longest)
    actual = updated(trainer)
    for name, weight in expected.items():
        if not name.endswith("k_proj.bias"):  # no gradient but rounding errors, which Adam scales up
            torch.testing.assert_close(actual[name], weight, rtol=1e-4, atol=1e-5, msg=name)
    # 23 rows, 11, and from then on at most 5; the second update begins with 5.
    assert len([n for n in tried if n > 7 * longest]) == 2
    assert max(tried[-5:]) <= 5 * longest
    assert len(messages) == 2
    assert "Out of memory with micro-batches of" in messages[0]
    if graphs:
        n_rows = {shapes[0][1][0] for _, shapes in trainer.step.graphs.graphs if shapes}
        assert max(n_rows) <= 5  # those of the larger micro-batches are deleted


@pytest.mark.slow
def test_a_repeated_update_has_the_random_numbers_of_one_with_small_micro_batches_from_the_start(
    trainer, monkeypatch, messages
):
    for module in trainer.model.modules():
        if isinstance(module, Dropout):
            module.p = 0.1
    before, state = weights(trainer), torch.get_rng_state()
    n_tokens = 3 * int(trainer.sampler.lengths.max())
    limit_memory(trainer, monkeypatch, n_tokens)
    cut = updated(trainer)
    trainer.model.load_state_dict(before)
    trainer.step.optimizer.state.clear()
    torch.set_rng_state(state)
    expected = updated(trainer)
    torch.testing.assert_close(cut, expected, rtol=0, atol=0)


@pytest.mark.slow
def test_the_smaller_limit_is_stored_for_the_resumed_run(trainer, monkeypatch, messages):
    limit_memory(trainer, monkeypatch, 7 * int(trainer.sampler.lengths.max()))
    updated(trainer)
    assert stored_options(trainer.config).micro_batch_tokens == trainer.micro_batches.max_tokens


@pytest.mark.slow
def test_a_single_example_that_does_not_fit_is_an_error_that_says_what_to_do(trainer, monkeypatch, messages):
    limit_memory(trainer, monkeypatch, 0)
    before = weights(trainer)
    with pytest.raises(UserError, match=r"step 1: out of memory with a single example of \d+ tokens") as error:
        updated(trainer)
    for advice in ("--activation-checkpointing", "--precision bf16", "--max-len", "--preset"):
        assert advice in str(error.value)
    torch.testing.assert_close(weights(trainer), before, rtol=0, atol=0)


def test_of_several_processes_one_that_runs_out_of_memory_ends_the_run_with_advice(trainer, monkeypatch):
    trainer.updates.processes = SimpleNamespace(
        size=2, part=Processes(0, 2).part, gather=lambda numbers: np.array([numbers, numbers])
    )
    limit_memory(trainer, monkeypatch, 0)
    with pytest.raises(UserError, match=r"Run the same command with --micro-batch-tokens \d+: it continues"):
        updated(trainer)


def test_an_update_of_the_weights_is_not_repeated(trainer, monkeypatch):
    def fail():
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(trainer.step.optimizer, "step", fail)
    with pytest.raises(UserError, match="the state of the optimizer does not fit"):
        updated(trainer)


def test_errors_for_memory_are_recognized():
    cpu = RuntimeError("[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you")
    in_capture = RuntimeError("CUDA error: operation failed due to a previous error during capture")
    in_capture.__context__ = torch.OutOfMemoryError("CUDA out of memory.")
    for error in (cpu, in_capture, torch.OutOfMemoryError("?")):
        assert is_out_of_memory(error)
    assert not is_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    assert not is_out_of_memory(None)


def test_the_allocator_of_the_cpu_raises_such_an_error():
    with pytest.raises(RuntimeError) as error:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert is_out_of_memory(error.value)


def test_available_memory_is_known_on_linux_and_below_the_limit_of_a_container(monkeypatch, tmp_path):
    total = proc_bytes(Path("/proc/meminfo"), "MemTotal")
    assert 0 < available_bytes("cpu") < total
    monkeypatch.setattr(cgroups, "free_bytes", lambda: 4096)
    assert available_bytes("cpu") == 4096
    monkeypatch.setattr(cgroups, "free_bytes", lambda: None)
    assert 0 < available_bytes("cpu") < total
    monkeypatch.setattr(Path, "read_text", lambda path: "max\n")
    assert available_bytes("cpu") is None
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (100, 1000))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 30)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 7)
    assert available_bytes("cuda") == 123


@pytest.mark.parametrize("ema", [None, 0.9])
@pytest.mark.parametrize("optimizer", ["adam", "adafactor"])
def test_the_state_of_a_training_has_the_computed_size(trainer, monkeypatch, optimizer, ema):
    excluded = {"beta1": None, "beta2": None, "eps": None} if optimizer == "adafactor" else {}
    config = trainer.config.model_copy(
        update={"optimizer": optimizer, "ema": ema, "weight_decay": 0.0, "average_checkpoints": 1, **excluded}
    )
    trainer = Trainer(trainer.objective, trainer.data, config, None)
    trainer.make_update(StopSignal())
    kept = [*trainer.step.parameters.values(), *(p.grad for p in trainer.step.parameters.values())]
    kept += [
        *trainer.averages.ema.values(),
        *optimizer_tensors(trainer.step.optimizer, trainer.step.parameters).values(),
    ]
    size = sum(x.numel() * x.element_size() for x in kept)
    weight_bytes = sum(p.numel() * 4 for p in trainer.step.parameters.values())
    # Adafactor keeps a row and a column of each matrix, which are not small here.
    tolerance = 0.25 if optimizer == "adafactor" else 0.001
    assert state_bytes(config, weight_bytes, Processes()) == pytest.approx(size, rel=tolerance)


def test_the_state_of_several_processes_is_replicated_or_sharded(trainer):
    sharded = trainer.config.model_copy(update={"shard": True, "average_checkpoints": 1})
    replicated = sharded.model_copy(update={"shard": False})
    assert state_bytes(replicated, 10, Processes(0, 4)) == 50  # weights, gradients, those exchanged, Adam's two states
    assert state_bytes(sharded, 10, Processes(0, 4)) == 20  # a quarter of four, and the whole weights


@pytest.mark.parametrize(("device", "place"), [("cpu", "this machine"), ("cuda", "the GPU")])
def test_a_device_that_is_too_small_for_the_model_is_an_error_before_memory_is_allocated(
    trainer, monkeypatch, device, place
):
    monkeypatch.setattr(memory, "available_bytes", lambda device: 3 << 30)
    sizes = TransformerConfig(vocab_size=37_000, d_model=1 << 14, n_heads=16, d_ff=1 << 16)
    with pytest.raises(UserError) as error:
        check_model_fits(trainer.config, Transformer, sizes, torch.device(device), Processes())
    n_parameters = 37_000 * 2**14 + 6 * (4 + 8) * 2**28 + 6 * (8 + 8) * 2**28
    found = re.search(rf"\((.*) M parameters\) need (.*) GiB; 3.0 GiB of the memory of {place} are", str(error.value))
    assert float(found[1].replace(",", "")) == pytest.approx(n_parameters / 1e6, rel=1e-3)
    assert float(found[2].replace(",", "")) == pytest.approx(5 * 4 * n_parameters / 2**30, rel=1e-3)
    check_model_fits(trainer.config, Transformer, TransformerConfig(vocab_size=7), torch.device(device), Processes())


@pytest.mark.parametrize("family", FAMILIES)
def test_checking_the_memory_draws_no_random_numbers(trainer, monkeypatch, family):
    monkeypatch.setattr(memory, "available_bytes", lambda device: 1 << 60)
    sizes = FAMILIES[family].config_class.resolve({"vocab_size": 7, "pad_id": 0, "bos_id": 1, "eos_id": 2})
    before = torch.get_rng_state()
    check_model_fits(trainer.config, FAMILIES[family], sizes, torch.device("cpu"), Processes())
    assert torch.equal(before, torch.get_rng_state())
