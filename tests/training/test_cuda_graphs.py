"""Batches of fixed shapes in place, as CUDA graphs use them. On a CPU the same code runs without a graph."""

from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import cast

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from glassformer.data.pairs import PairBatch, make_batch
from glassformer.data.sampler import length_buckets
from glassformer.learning.registry import objective_class
from glassformer.learning.span_corruption import SpanCorruptionObjective
from glassformer.learning.translation import TranslationObjective
from glassformer.models.bert import Bert, BertConfig
from glassformer.models.gpt2 import Gpt2, Gpt2Config
from glassformer.models.llama import Llama, LlamaConfig
from glassformer.models.t5 import T5, T5Config
from glassformer.presets import ADAM
from glassformer.tasks.causal_lm import LanguageModel
from glassformer.tasks.masked_lm import MaskedLM
from glassformer.tasks.span_corruption import SENTINELS, SpanCorruption
from glassformer.tasks.translation import Translator
from glassformer.tokens.tokenizer import Tokenizer
from glassformer.train_config import TrainConfig
from glassformer.training import cuda_graphs
from glassformer.training.cuda_graphs import CudaGraphs
from glassformer.training.optimizer import load_optimizer_tensors, optimizer_tensors
from glassformer.training.progress import Reporter
from glassformer.training.step import TrainingStep
from glassformer.training.step_log import StepLog
from tests.training.test_trainer import N_PAIRS, gradients, tokenizer, trainer, weights

__all__ = ["tokenizer", "trainer"]

PAD = 0


def pairs(n: int, seed: int = 0, vocab_size: int = 29) -> list[tuple[list[int], list[int]]]:
    rng = np.random.default_rng(seed)
    return [
        (
            rng.integers(3, vocab_size, rng.integers(1, 9)).tolist(),
            rng.integers(3, vocab_size, rng.integers(1, 9)).tolist(),
        )
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


@pytest.mark.parametrize("longest", [511, 513, 1025, 5000])
def test_no_length_is_rounded_up_beyond_the_longest(longest):
    """The longest may be the maximum length of a model, which has no further position embeddings."""
    lengths = np.random.default_rng(0).integers(1, longest + 1, 5000)
    lengths[7] = longest
    assert length_buckets(lengths).max() == longest
    assert (length_buckets(np.full(3, longest)) == longest).all()


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


def restarted(trainer, before) -> None:
    """Begin the training again, with CUDA graphs."""
    trainer.model.load_state_dict(before)
    trainer.step.optimizer.state.clear()
    trainer.step.use_graphs()


def assert_same_weights(actual, expected) -> None:
    for name, weight in actual.items():
        if not name.endswith("k_proj.bias"):  # no gradient but rounding errors, which Adam scales up
            torch.testing.assert_close(weight, expected[name], rtol=1e-4, atol=1e-4, msg=name)


@pytest.mark.parametrize("n_parts", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_training_with_graphs_equals_training_without(trainer, n_parts):
    batches = [trainer.micro_batches(np.arange(start, N_PAIRS, 3)) * n_parts for start in (0, 1, 2)] * 4
    before = weights(trainer)
    losses = [trainer.step(parts, 1e-3)[0].item() for parts in batches]
    expected = weights(trainer)
    restarted(trainer, before)
    padded = [[part.pad_to(8, 17, trainer.task.tokenizer.pad_id) for part in parts] for parts in batches]
    assert [trainer.step(parts, 1e-3)[0].item() for parts in padded] == pytest.approx(losses, rel=1e-5)
    assert_same_weights(weights(trainer), expected)
    assert len(trainer.step.graphs.graphs) >= 1


def test_batches_of_several_parts_have_a_graph_for_each_shape_of_a_part_and_one_for_the_update(trainer, monkeypatch):
    """Steps of one part in between have graphs of their own, and delete the gradients."""
    pad_id, calls, capture = trainer.task.tokenizer.pad_id, [], CudaGraphs.capture

    def checked(graphs, function, *batches):
        """A graph that refers to the gradients at the time of its capture."""
        calls.append(function.__name__)
        static, run = capture(graphs, function, *batches)
        captured = [p.grad for p in trainer.step.parameters.values()]

        def run_with_the_same_gradients():
            assert all(p.grad is g for p, g in zip(trainer.step.parameters.values(), captured, strict=True))
            run()

        return static, run_with_the_same_gradients

    monkeypatch.setattr(CudaGraphs, "capture", checked)
    (short,) = trainer.micro_batches(trainer.sampler.lengths.argsort()[:8])
    (long,) = trainer.micro_batches(trainer.sampler.lengths.argsort()[8:])
    long, short = (
        replace(batch, target_positions=batch.target_positions[:n], target_weights=torch.ones(n), n_targets=n)
        for batch, n in ((long.pad_to(15, 17, pad_id), 20), (short.pad_to(8, 17, pad_id), 10))
    )
    steps = [[long, short, short], [short, long], [long], [long, long], [long], [long, short], [long], [short] * 4]
    before = weights(trainer)
    losses = [trainer.step(parts, 1e-3)[0].item() for parts in steps]
    expected = weights(trainer)
    restarted(trainer, before)
    assert [trainer.step(parts, 1e-3)[0].item() for parts in steps] == pytest.approx(losses, rel=1e-5)
    assert_same_weights(weights(trainer), expected)
    assert sorted(calls) == ["add_gradients", "add_gradients", "run_whole", "update"]
    assert all(p.grad is None for p in trainer.step.parameters.values())


def test_weights_that_the_task_does_not_use_stay_as_they_are_with_graphs_of_parts(trainer):
    unused = torch.nn.Parameter(torch.ones(3))
    trainer.step.parameters["unused"] = unused
    trainer.step.optimizer.add_param_group({"params": [unused], "weight_decay": 0.5})
    trainer.step.use_graphs()
    parts = trainer.micro_batches(np.arange(N_PAIRS)) * 2
    for _ in range(4):
        trainer.step(parts, 1e-3)
    assert torch.equal(unused.detach(), torch.ones(3))
    assert unused not in trainer.step.optimizer.state


def test_the_learning_rate_changes_after_the_state_of_the_optimizer_was_loaded(trainer):
    trainer.step.use_graphs()
    parts = trainer.micro_batches(np.arange(N_PAIRS))
    trainer.step(parts, 1e-3)
    optimizer, parameters = trainer.step.optimizer, trainer.step.parameters
    load_optimizer_tensors(optimizer, parameters, optimizer_tensors(optimizer, parameters))
    for lr in (0.0, 1e-3):
        before = weights(trainer)
        trainer.step(parts, lr)
        changed = any((weight != before[name]).any() for name, weight in weights(trainer).items())
        assert changed == (lr > 0)


def test_only_frequent_shapes_have_graphs_and_each_call_has_its_own_values(monkeypatch):
    monkeypatch.setattr(cuda_graphs, "MAX_GRAPHS", 1)
    calls = []
    run = partial(CudaGraphs(torch.device("cpu")), lambda batch: calls.append((batch, batch.src.clone())))
    batches = [make_batch(pairs(3, seed), pad_id=PAD, bos_id=1, eos_id=2).pad_to(4, 9, PAD) for seed in range(7)]
    batches = [replace(b, target_positions=b.target_positions[:1], target_weights=None) for b in batches]
    for batch in batches:
        run(batch)
    assert [src.tolist() for _, src in calls] == [b.src.tolist() for b in batches]
    in_place = [batch for batch, _ in calls[cuda_graphs.N_WARM_UPS :]]
    assert all(batch is in_place[0] for batch in in_place)
    other = make_batch(pairs(3), pad_id=PAD, bos_id=1, eos_id=2).pad_to(5, 9, PAD)
    for _ in range(5):
        run(other)
    assert len(run.func.graphs) == 1
    assert isinstance(calls[-1][0], PairBatch)


def test_a_non_finite_loss_skips_the_update(trainer):
    trainer.step.use_graphs()
    (batch,) = trainer.micro_batches(np.arange(N_PAIRS))
    for _ in range(3):
        trainer.step([batch], 1e-3)
    before = weights(trainer)
    trainer.step([replace(batch, n_targets=0)], 1e-3)  # the loss per target is infinite
    torch.testing.assert_close(weights(trainer), before, rtol=0, atol=0)
    assert trainer.step.skipped == 1
    trainer.step([batch], 1e-3)
    assert trainer.step.skipped == 0
    assert any(not torch.equal(weight, before[name]) for name, weight in weights(trainer).items())


class NoSynchronization(TorchDispatchMode):
    """Fails at operations for which a program must wait for a GPU: their results, or the shapes of these, are values
    that only the GPU knows, or they begin on the CPU (`torch.tensor`)."""

    aten = torch.ops.aten
    forbidden = (
        aten._local_scalar_dense.default, aten.nonzero.default, aten.masked_select.default, aten.lift_fresh.default,
    )  # fmt: skip

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        indices = args[1] if func is self.aten.index.Tensor else []
        assert func not in self.forbidden, f"{func} waits for the GPU"
        assert not any(i is not None and i.dtype == torch.bool for i in indices), "a boolean index waits for the GPU"
        return func(*args, **(kwargs or {}))


def text_objective(task_type, model_type, config_type):
    objective_type = objective_class(task_type.name)
    tokenizer = Tokenizer.train(["a b c"] * 7, vocab_size=263, extra_special_tokens=objective_type.extra_special_tokens)
    config = config_type(
        vocab_size=tokenizer.vocab_size, d_model=24, n_heads=4, d_ff=31, n_layers=2, max_len=16, **task_type.head_config
    )
    return objective_type(task_type(model_type(config), tokenizer))


TEXT_OBJECTIVES = [
    lambda: text_objective(LanguageModel, Gpt2, Gpt2Config),
    lambda: text_objective(LanguageModel, Llama, LlamaConfig),
    lambda: text_objective(MaskedLM, Bert, BertConfig),
]


@pytest.mark.parametrize("make", TEXT_OBJECTIVES)
def test_a_padded_batch_of_texts_has_the_loss_of_the_batch(make):
    objective = make()
    objective.model.eval()
    rows = [(torch.randint(5, objective.tokenizer.vocab_size, (n,)).tolist(),) for n in (5, 14, 9)]
    batch = objective.batch(rows)
    padded = batch.pad_to(5, 16, objective.tokenizer.pad_id)
    assert len(padded.ids) == 5
    assert len(padded.target_positions) > len(batch.target_positions)
    torch.testing.assert_close(objective.loss(padded), objective.loss(batch))


def batch_of_texts(make):
    objective = make()
    texts = torch.randint(5, objective.tokenizer.vocab_size, (6, 14)).tolist()
    return objective, objective.batch([(ids,) for ids in texts])


def packed_texts():
    """A window with several texts, each with its own attention mask and positions."""
    objective = TEXT_OBJECTIVES[0]()
    t = objective.tokenizer
    window = [t.bos_id, 5, 6, t.eos_id, t.bos_id, 7, 8, 9, t.eos_id]
    batch = objective.batch([(window,)] * 3)
    assert batch.segments is not None
    return objective, batch


def pairs_for_t5():
    tokenizer = Tokenizer.train(["a b c"] * 7, vocab_size=263)
    sizes = dict(d_model=24, n_heads=4, d_head=6, d_ff=31, n_encoder_layers=1, n_decoder_layers=1)
    objective = TranslationObjective(Translator(T5(T5Config(vocab_size=tokenizer.vocab_size, **sizes)), tokenizer))
    return objective, objective.batch(pairs(6, vocab_size=tokenizer.vocab_size))


def corrupted_spans():
    tokenizer = Tokenizer.train(["a b c"] * 7, vocab_size=363, extra_special_tokens=SENTINELS)
    sizes = dict(d_model=24, n_heads=4, d_head=6, d_ff=31, n_encoder_layers=1, n_decoder_layers=1)
    task = SpanCorruption(T5(T5Config(vocab_size=tokenizer.vocab_size, **sizes)), tokenizer)
    objective = SpanCorruptionObjective(task)
    return objective, objective.batch([(list(range(5, 5 + n)),) for n in (2, 15, 9, 12)])


@pytest.mark.parametrize("length", range(2, 67))
def test_corrupted_texts_of_any_length_fit_into_the_shape_for_the_longest(length):
    objective, _ = corrupted_spans()
    rows = [(list(range(5, 5 + n)),) for n in {2, max(2, length // 2), max(2, length - 1), length}]
    batch = objective.batch(rows)
    padded = batch.pad_to(5, length + 1, objective.tokenizer.pad_id)
    assert padded.src.size(1) == batch.src.size(1)
    assert padded.tgt_out.size(1) == batch.tgt_out.size(1)
    objective.model.eval()
    torch.testing.assert_close(objective.loss(padded), objective.loss(batch))


@pytest.mark.parametrize(
    "make", [*(partial(batch_of_texts, make) for make in TEXT_OBJECTIVES), packed_texts, pairs_for_t5, corrupted_spans]
)
def test_a_step_does_not_wait_for_the_device(make):
    objective, batch = make()
    step = TrainingStep(objective, TrainConfig(src=("a",), out="b", precision="bf16", max_grad_norm=1.0, **ADAM), print)
    step.use_graphs()
    batches = [batch.pad_to(7, 16, objective.tokenizer.pad_id)] * 2
    log = StepLog(step, cast(Reporter, None), lambda: 0.0, lambda loss, n_skipped: None)
    step(batches, 1e-3)  # the optimizer makes its state
    with NoSynchronization():
        step(batches, 1e-3)
        log.restart(0.0, 0)
        log.add(7)


def test_a_step_on_pairs_does_not_wait_for_the_device(trainer):
    trainer.step.use_graphs()
    parts = trainer.micro_batches(np.arange(N_PAIRS))
    trainer.step(parts, 1e-3)
    with NoSynchronization():
        trainer.step(parts, 1e-3)
    with pytest.raises(AssertionError, match="waits for the GPU"), NoSynchronization():
        trainer.step.skipped.item()
