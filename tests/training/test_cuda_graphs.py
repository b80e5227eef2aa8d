"""Batches of fixed shapes in place, as CUDA graphs use them. On a CPU the same code runs without a graph."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch

from glassformer.data.batch import PairBatch, length_buckets, make_batch
from glassformer.training import cuda_graphs
from glassformer.training.cuda_graphs import CudaGraphs
from tests.training.test_trainer import N_PAIRS, gradients, tokenizer, trainer, weights

__all__ = ["tokenizer", "trainer"]

PAD = 0


def pairs(n: int, seed: int = 0) -> list[tuple[list[int], list[int]]]:
    rng = np.random.default_rng(seed)
    return [
        (rng.integers(3, 29, rng.integers(1, 9)).tolist(), rng.integers(3, 29, rng.integers(1, 9)).tolist())
        for _ in range(n)
    ]


@pytest.mark.parametrize("seed", range(50))
def test_length_buckets_have_the_least_padding(seed):
    lengths = np.random.default_rng(seed).integers(1, 12, 1 + seed % 29)
    values = np.unique(lengths)
    actual = length_buckets(lengths)
    assert (actual >= lengths).all()
    n_buckets = len(np.unique(actual))

    def padded(n):
        edges = (np.array([*chosen, values[-1]]) for chosen in combinations(values[:-1], n - 1))
        return min(edge[np.searchsorted(edge, lengths)].sum() for edge in edges)

    assert actual.sum() == padded(n_buckets)
    assert n_buckets == 1 or padded(n_buckets - 1) > 1.05 * lengths.sum()


def test_a_padded_batch_has_the_loss_and_gradients_of_the_batch(trainer):
    (batch,) = trainer.micro_batches(np.arange(N_PAIRS))
    loss = trainer.step([batch], 0.0)[0].clone()
    expected = gradients(trainer)
    trainer.step.optimizer.zero_grad()
    padded = batch.pad_to(N_PAIRS + 5, 31, trainer.task.tokenizer.pad_id)
    assert padded.src.shape == padded.tgt_in.shape == padded.tgt_out.shape == (N_PAIRS + 5, 31)
    assert len(padded.target_positions) % ((N_PAIRS + 5) * 31 // 16) == 0
    torch.testing.assert_close(trainer.step([padded], 0.0)[0], loss, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(gradients(trainer), expected, rtol=1e-5, atol=1e-6)


def test_training_with_graphs_equals_training_without(trainer):
    batches = [trainer.micro_batches(np.arange(start, N_PAIRS, 3)) for start in (0, 1, 2)] * 4
    before = weights(trainer)
    losses = [trainer.step(parts, 1e-3)[0].item() for parts in batches]
    expected = weights(trainer)

    trainer.model.load_state_dict(before)
    trainer.step.optimizer.state.clear()
    trainer.step.use_graphs()
    padded = [[part.pad_to(8, 17, trainer.task.tokenizer.pad_id) for part in parts] for parts in batches]
    assert [trainer.step(parts, 1e-3)[0].item() for parts in padded] == pytest.approx(losses, rel=1e-5)
    for name, weight in weights(trainer).items():
        if not name.endswith("k_proj.bias"):  # no gradient but rounding errors, which Adam scales up
            torch.testing.assert_close(weight, expected[name], rtol=1e-4, atol=1e-4, msg=name)
    assert len(trainer.step.graphs.graphs) >= 1


def test_only_frequent_shapes_have_graphs_and_each_call_has_its_own_values(monkeypatch):
    monkeypatch.setattr(cuda_graphs, "MAX_GRAPHS", 1)
    calls = []
    run = CudaGraphs(lambda parts: calls.append((parts[0], parts[0].src.clone())), torch.device("cpu"))
    batches = [make_batch(pairs(3, seed), pad_id=PAD, bos_id=1, eos_id=2).pad_to(4, 9, PAD) for seed in range(7)]
    batches = [replace(b, target_positions=b.target_positions[:1], target_weights=None) for b in batches]
    for batch in batches:
        run([batch])
    assert [src.tolist() for _, src in calls] == [b.src.tolist() for b in batches]
    in_place = [batch for batch, _ in calls[cuda_graphs.N_WARM_UPS :]]
    assert all(batch is in_place[0] for batch in in_place)
    other = make_batch(pairs(3), pad_id=PAD, bos_id=1, eos_id=2).pad_to(5, 9, PAD)
    for _ in range(5):
        run([other])
    assert len(run.graphs) == 1
    assert isinstance(calls[-1][0], PairBatch)
