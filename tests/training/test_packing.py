"""Packed sequences: the loss and gradients are those of padded ones, in any shape, by one or several processes."""

import numpy as np
import pytest
import torch

from glassformer.data.pairs import pack_pairs
from glassformer.data.sampler import PackingSampler, pack_by_tokens
from glassformer.learning.translation import TranslationObjective
from glassformer.models.transformer import Transformer, TransformerConfig
from glassformer.nn.attention import Attention
from glassformer.nn.packing import MAX_LENGTH, Packing, packed_position_ids
from glassformer.presets import ADAM
from glassformer.tasks.translation import Translator
from glassformer.tokens.tokenizer import Tokenizer
from glassformer.train_config import TrainConfig
from glassformer.training import micro_batches as micro_batches_module
from glassformer.training.distributed import Processes
from glassformer.training.micro_batches import MicroBatches, make_sampler
from glassformer.training.step import TrainingStep
from tests.training.test_cuda_graphs import NoSynchronization
from tests.training.test_trainer import N_PAIRS, gradients, tokenizer, trainer

__all__ = ["tokenizer", "trainer"]


def random_pairs(lengths, vocab_size=41, seed=0):
    rng = np.random.default_rng(seed)
    return [tuple(rng.integers(3, vocab_size, n).tolist() for n in sides) for sides in lengths]


def packed(pairs, n_tokens=53, n_sequences=31, longest=17):
    return pack_pairs(pairs, n_tokens, n_sequences, longest, pad_id=0, bos_id=1, eos_id=2)


def test_a_packed_batch_has_the_loss_and_gradients_of_a_padded_one(trainer):
    (batch,) = trainer.micro_batches(np.arange(N_PAIRS))
    loss = trainer.step([batch], 0.0)[0].clone()
    expected = gradients(trainer)
    trainer.step.optimizer.zero_grad()
    pack = trainer.objective.packed_batch(trainer.data.train.rows(np.arange(N_PAIRS)), 251, N_PAIRS + 19, 17)
    assert pack.src.shape == pack.tgt_in.shape == pack.tgt_out.shape == (1, 251)
    torch.testing.assert_close(trainer.step([pack], 0.0)[0], loss, rtol=1e-6, atol=1e-6)
    actual = gradients(trainer)
    for name, gradient in expected.items():
        torch.testing.assert_close(actual[name], gradient, rtol=1e-5, atol=1e-6, msg=name)


@pytest.mark.parametrize("options", [{}, {"pre_norm": True}, {"pre_norm": True, "rotary": True}])
def test_packed_sequences_have_the_hidden_states_of_each_sequence_alone(options):
    torch.manual_seed(0)
    sizes = TransformerConfig(
        vocab_size=41, d_model=24, n_heads=2, d_ff=31, n_encoder_layers=2, n_decoder_layers=2, **options
    )
    model = Transformer(sizes).eval()
    pairs = random_pairs([(5, 3), (2, 11), (7, 7), (1, 0)])
    batch = packed(pairs)
    hidden = model(batch.src, batch.tgt_in, batch.src_spans, batch.tgt_spans)[0]
    assert hidden.isfinite().all()
    found = 0
    for start, length in batch.tgt_spans.T.tolist():
        ids = batch.tgt_in[0, start : start + length].tolist()
        for src, tgt in pairs:
            if ids == [1, *tgt]:
                expected = model(torch.tensor([[*src, 2]]), torch.tensor([ids]))[0]
                torch.testing.assert_close(hidden[start : start + length], expected, rtol=1e-5, atol=1e-5)
                found += 1
    assert found == len(pairs)


@pytest.mark.parametrize(
    ("n_tokens", "n_sequences", "longest", "free"), [(19, 5, 7, 0), (20, 4, 7, 1), (67, 30, 3, 48), (33, 4, 14, 14)]
)
def test_the_spans_cover_all_positions_the_longest_first(n_tokens, n_sequences, longest, free):
    pairs = random_pairs([(5, 3), (2, 6), (9, 7)])
    batch = packed(pairs, n_tokens, n_sequences, longest)
    for spans, ids in ((batch.src_spans, batch.src), (batch.tgt_spans, batch.tgt_out)):
        starts, lengths = spans
        assert len(starts) == n_sequences
        assert torch.equal(starts, (lengths.cumsum(0) - lengths).int())
        assert lengths.sum() == n_tokens
        assert packed_position_ids(spans, n_tokens).tolist() == [i for n in lengths.tolist() for i in range(n)]
        assert (ids != 0).sum() == n_tokens - free
    largest = torch.stack([batch.src_spans[1], batch.tgt_spans[1]]).amax(0)
    assert torch.equal(largest, largest.sort(descending=True).values)
    assert batch.target_weights.sum() == batch.n_targets == 19


@pytest.mark.parametrize(("n_tokens", "n_sequences", "longest"), [(18, 9, 17), (53, 2, 17), (54, 5, 17)])
def test_rows_that_do_not_fit_are_refused(n_tokens, n_sequences, longest):
    with pytest.raises(ValueError, match="cannot be packed"):
        packed(random_pairs([(5, 3), (2, 6), (9, 7)]), n_tokens, n_sequences, longest)


@pytest.mark.parametrize("seed", range(20))
def test_batches_are_filled_in_order_as_far_as_the_limits_allow(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 13, (101, 2))
    order = rng.permutation(101)
    batches = pack_by_tokens(order, lengths, 37, 7)
    assert np.array_equal(np.concatenate(batches), order)
    for batch, following in zip(batches, [*batches[1:], None], strict=True):
        assert lengths[batch].sum(0).max() <= 37
        assert len(batch) <= 7
        if following is not None:
            more = np.append(batch, following[0])
            assert len(more) > 7 or lengths[more].sum(0).max() > 37


def test_an_example_longer_than_a_batch_is_a_batch_by_itself():
    lengths = np.array([[3, 3], [50, 2], [3, 3]])
    assert [batch.tolist() for batch in pack_by_tokens(np.arange(3), lengths, 37, 7)] == [[0], [1], [2]]


def test_an_epoch_has_each_example_once_and_depends_on_seed_and_epoch_only():
    sides = np.random.default_rng(0).integers(2, 61, (503, 2))
    make = lambda: PackingSampler(sides, sides.max(1), 307, 5, longest=47)
    sampler, again = make(), make()
    epoch = [next(sampler) for _ in range(len(sampler.batches))]
    assert sorted(np.concatenate(epoch).tolist()) == list(range(503))
    for batch in epoch:
        assert len(set(sampler.is_packed[batch])) == 1
        if sampler.is_packed[batch[0]]:
            assert sides[batch].sum(0).max() <= 307
    packed_batches = [batch for batch in epoch if sampler.is_packed[batch[0]]]
    full = np.mean([sides[batch].sum(0).max() / 307 for batch in packed_batches])
    assert full > 0.85  # examples have about a tenth of a batch
    again.load_state_dict({"seed": 5, "epoch": 1, "position": 3})
    for _ in range(3):
        next(sampler)
    assert np.array_equal(next(sampler), next(again))


@pytest.fixture
def packs(monkeypatch):
    """Let training steps with graphs pack on a CPU, where attention is computed with a mask."""
    monkeypatch.setattr(TrainingStep, "packs", property(lambda step: step.graphs is not None))
    monkeypatch.setattr(micro_batches_module, "MAX_LENGTH", 11)


def micro_batches(trainer, batch_tokens, max_tokens=10_000, processes=None) -> MicroBatches:
    trainer.step.use_graphs()
    trainer.step.processes = processes or Processes()
    data = trainer.data.train
    sampler = make_sampler(trainer.step, data, data.lengths, batch_tokens, 0)
    return MicroBatches(trainer.step, data, sampler, max_tokens)


def test_batches_have_one_shape_and_those_of_long_examples_few(trainer, packs):
    made = micro_batches(trainer, 90)
    shapes = {
        tuple(x.shape for x in batch.tensors().values())
        for indices in made.sampler.plan(0)
        for batch in made(indices)
        if batch.src_spans is not None
    }
    assert len(shapes) == 1
    assert 1 < made.sampler.n_shapes < 8
    assert any(batch.src_spans is None for indices in made.sampler.plan(0) for batch in made(indices))


@pytest.mark.parametrize("max_tokens", [1, 11, 40, 64, 150])
def test_a_batch_is_packed_into_parts_within_the_limit_without_loss(trainer, packs, max_tokens):
    made = micro_batches(trainer, 150, max_tokens)
    for indices in made.sampler.plan(0):
        parts = made.split(indices)
        assert sorted(np.concatenate(parts).tolist()) == sorted(indices.tolist())
        if made.is_packed(indices):
            limit, _ = made.packed_size()
            assert limit <= max(max_tokens, 11) + micro_batches_module.TOKEN_MULTIPLE
            assert all(made.sampler.sides[part].sum(0).max() <= limit for part in parts)
            assert made.divisible_tokens(indices) in (0, limit)
            assert sum(batch.n_targets for batch in made(indices)) == made.sampler.sides[indices, 1].sum()


@pytest.mark.parametrize("size", [2, 4])
def test_each_process_packs_its_part_into_one_micro_batch(trainer, packs, size):
    processes = [Processes(rank=rank, size=size) for rank in range(size)]
    made = micro_batches(trainer, 150, processes=processes[0])
    for indices in made.sampler.plan(0):
        if made.is_packed(indices):
            parts = [made.split(own) for p in processes if len(own := p.part(indices))]
            assert [len(part) for part in parts] == [1] * len(parts)


@pytest.mark.parametrize(("size", "max_tokens"), [(1, 10_000), (2, 10_000), (4, 10_000), (2, 40)])
def test_padded_parts_of_processes_have_the_rows_of_a_part_only(trainer, size, max_tokens):
    processes = [Processes(rank=rank, size=size) for rank in range(size)]
    made = micro_batches(trainer, 150, max_tokens, processes=processes[0])
    for indices in made.sampler.plan(0):
        for own in (own for p in processes if len(own := p.part(indices))):
            length = int(made.sampler.lengths[own].max())
            for batch in made(own):
                assert batch.src.shape == (max(1, min(max_tokens // length, -(-(150 // length) // size))), length)
            assert sum(batch.n_targets for batch in made(own)) == trainer.data.train.side_lengths[own, 1].sum()


def test_training_on_packed_batches_equals_training_on_the_same_batches_with_padding(trainer, packs, monkeypatch):
    made = micro_batches(trainer, 90)
    indices = [batch for batch in made.sampler.plan(0) if made.is_packed(batch)][:4]
    before = {name: value.clone() for name, value in trainer.model.state_dict().items()}
    losses = [trainer.step(made(batch), 1e-3)[0].item() for batch in indices * 3]
    assert len(trainer.step.graphs.graphs) == 1
    trainer.model.load_state_dict(before)
    trainer.step.optimizer.state.clear()
    trainer.step.graphs = None
    monkeypatch.setattr(made, "is_packed", lambda indices: False)
    expected = [trainer.step(made(batch), 1e-3)[0].item() for batch in indices * 3]
    assert losses == pytest.approx(expected, rel=1e-5)


def test_a_step_on_packed_batches_does_not_wait_for_the_device(trainer, packs):
    made = micro_batches(trainer, 90)
    parts = next(made(batch) for batch in made.sampler.plan(0) if made.is_packed(batch))
    trainer.step(parts, 1e-3)
    with NoSynchronization():
        trainer.step(parts, 1e-3)


KERNEL_PAIRS = [(5, 3), (2, 40), (70, 9), (33, 33), (1, 1), (120, 127)]


@pytest.mark.parametrize(("side_q", "side_k", "causal"), [(0, 0, False), (1, 1, True), (1, 0, False)])
def test_the_kernel_for_packed_sequences_has_the_output_and_gradients_of_a_mask(side_q, side_k, causal):
    kernel = pytest.importorskip("glassformer.nn.short_attention")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    batch = packed(random_pairs(KERNEL_PAIRS), 397, 19, MAX_LENGTH)
    spans = [batch.src_spans.to(device), batch.tgt_spans.to(device)]
    packing = Packing(spans[side_q], spans[side_k])
    attention = Attention(2 * 16, 2).to(device)
    inputs = [torch.randn(1, 397, 32, device=device, requires_grad=True) for _ in range(3)]
    q, k, v = map(attention.split_heads, inputs)
    assert kernel.supports(q, k, packing)
    expected = attention.eager_attention(q, k, v, packing.mask(397, 397), causal, None)
    d_output = torch.randn_like(expected)
    # Queries of padding that have no keys: the mask lets them attend to all, the kernel to none.
    n_keys = packing.keys[1].repeat_interleave(packing.queries[1].long())
    expected = expected * (n_keys > 0)[:, None]
    d_output = d_output * (n_keys > 0)[:, None]
    expected_gradients = torch.autograd.grad(expected, inputs, d_output)
    output = kernel.short_attention(*map(attention.split_heads, inputs), packing, causal, attention.scale)
    torch.testing.assert_close(output, expected, rtol=1e-5, atol=1e-5)
    actual = torch.autograd.grad(output, inputs, d_output)
    torch.testing.assert_close(actual, expected_gradients, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("is_packed", [False, True])
def test_the_compiler_can_trace_the_kernel(is_packed):
    kernel = pytest.importorskip("glassformer.nn.short_attention")
    batch = packed(random_pairs([(5, 3), (2, 9)]), 31, 7, 16)
    shape = (1, 31, 2, 16) if is_packed else (2, 7, 2, 16)
    inputs = [torch.randn(shape).transpose(1, 2).requires_grad_() for _ in range(3)]
    mask = None if is_packed else torch.ones(2, 1, 1, 7, dtype=torch.bool)
    spans = (batch.tgt_spans, batch.src_spans) if is_packed else (None, None)
    torch.library.opcheck(kernel.short_attention_op, (*inputs, mask, *spans, not is_packed, 0.25))


def test_only_sequences_that_the_kernel_takes_are_packed():
    tokenizer = Tokenizer.train(["a b c"] * 7, vocab_size=263)
    sizes = dict(vocab_size=tokenizer.vocab_size, d_ff=31, n_encoder_layers=1, n_decoder_layers=1)
    can_pack = {
        (d_model, attention): Transformer(
            TransformerConfig(d_model=d_model, n_heads=2, attention=attention, **sizes)
        ).can_pack
        for d_model, attention in ((32, "dot"), (32, "additive"), (22, "dot"))
    }
    assert can_pack == {(32, "dot"): True, (32, "additive"): False, (22, "dot"): False}
    task = Translator(Transformer(TransformerConfig(d_model=32, n_heads=2, **sizes)), tokenizer)
    step = TrainingStep(TranslationObjective(task), TrainConfig(src=("a",), out="b", precision="bf16", **ADAM), print)
    step.use_graphs()
    assert not step.packs  # a CPU has no kernel for packed sequences
