import copy
import gc
import json
import os
import signal
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from glassformer.checkpoint import read_tensors, save_folder
from glassformer.data.dataset import Dataset
from glassformer.learning.translation import TranslationObjective
from glassformer.models.transformer import TransformerConfig
from glassformer.presets import ADAM
from glassformer.tasks.translation import Translator
from glassformer.tokens.tokenizer import Tokenizer
from glassformer.train_config import TrainConfig
from glassformer.training import options
from glassformer.training.compiler import compilation_s
from glassformer.training.distributed import Processes
from glassformer.training.final import finish
from glassformer.training.scan import CorpusInfo
from glassformer.training.signals import Stopped, StopSignal, stop_on_signal
from glassformer.training.trainer import Trainer

N_PAIRS = 23


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(["a b c"] * 7, vocab_size=263)


@pytest.fixture
def trainer(tmp_path, tokenizer) -> Trainer:
    """A small model without dropout, with pairs of random ids of different lengths."""
    lengths = torch.randint(1, 17, (N_PAIRS, 2)).tolist()
    pairs = [tuple(torch.randint(3, tokenizer.vocab_size, (n,)).tolist() for n in sides) for sides in lengths]
    sizes = TransformerConfig(
        vocab_size=tokenizer.vocab_size, d_model=22, n_heads=2, d_ff=31, n_encoder_layers=2, n_decoder_layers=2,
        dropout=0,
    )  # fmt: skip
    config = TrainConfig(
        src=("a",), out=tmp_path, steps=7, batch_tokens=10_007, lr=1e-3, warmup_ratio=0, precision="fp32", device="cpu",
        **ADAM,
    )  # fmt: skip
    data = SimpleNamespace(
        train=Dataset.write(tmp_path / "data", pairs, TranslationObjective.fields, tokenizer.vocab_size),
        dev=["pair"] * 20,
        in_domain=None,
    )
    return Trainer(TranslationObjective(Translator.build(sizes, tokenizer)), data, config, reporter=None)


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in trainer.step.parameters.items()}


def gradients(trainer: Trainer) -> dict[str, torch.Tensor]:
    return {name: p.grad.clone() for name, p in trainer.step.parameters.items()}


def test_a_batch_is_split_into_parts_within_the_limit_without_loss(trainer, monkeypatch):
    monkeypatch.setattr(trainer.micro_batches, "max_tokens", 53)
    parts = trainer.micro_batches(np.arange(N_PAIRS))
    assert len(parts) > 3
    assert all(max(part.src.numel(), part.tgt_in.numel()) <= 53 for part in parts)
    assert sum(len(part.src) for part in parts) == N_PAIRS


def test_a_pair_longer_than_the_limit_is_a_separate_part(trainer, monkeypatch):
    monkeypatch.setattr(trainer.micro_batches, "max_tokens", 2)
    assert [len(part.src) for part in trainer.micro_batches(np.arange(N_PAIRS))] == [1] * N_PAIRS


@pytest.mark.parametrize("micro_tokens", [1, 53, 101])
def test_gradient_and_loss_do_not_depend_on_how_a_batch_is_split(trainer, monkeypatch, micro_tokens):
    full = trainer.step(trainer.micro_batches(np.arange(N_PAIRS)), 0.0)
    expected = gradients(trainer)
    monkeypatch.setattr(trainer.micro_batches, "max_tokens", micro_tokens)
    split = trainer.step(trainer.micro_batches(np.arange(N_PAIRS)), 0.0)
    assert split[2] == full[2]
    torch.testing.assert_close(split[0], full[0], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(gradients(trainer), expected, rtol=1e-5, atol=1e-6)


def test_an_update_of_several_batches_equals_that_of_one_batch_of_their_rows(trainer, monkeypatch):
    monkeypatch.setattr(trainer, "config", trainer.config.model_copy(update={"accumulate": 3}))
    trainer.sampler.batch_tokens = 101
    trainer.sampler.batches = trainer.sampler.plan(0)
    monkeypatch.setattr(trainer, "learning_rate", lambda *_: 0.0)
    trainer.make_update(StopSignal())
    assert trainer.sampler.position == 3
    loss, actual = trainer.step.loss.clone(), gradients(trainer)
    monkeypatch.setattr(trainer.micro_batches, "max_tokens", 10_007)
    (whole,) = trainer.micro_batches(np.concatenate(trainer.sampler.batches[:3]))
    expected_loss, _, expected_targets = trainer.step([whole], 0.0)
    assert trainer.progress.n_tokens == expected_targets
    torch.testing.assert_close(loss, expected_loss, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(actual, gradients(trainer), rtol=1e-6, atol=1e-6)


def test_parts_and_fillers_of_several_processes_sum_to_the_whole_batch(trainer):
    """Each of two processes computes its part, scaled so that the average over the processes is the whole."""
    expected_loss, _, n_targets = trainer.step(trainer.micro_batches(np.arange(N_PAIRS)), 0.0)
    expected_loss, expected = expected_loss.clone(), gradients(trainer)
    trainer.step.processes = Processes(0, 2)
    trainer.step.processes.average_ = lambda tensor: None
    parts = [np.arange(N_PAIRS - 1), np.arange(N_PAIRS - 1, N_PAIRS)]
    fillers = [[], trainer.micro_batches(np.arange(3))]
    losses, sums = 0, dict.fromkeys(expected, 0)
    for part, filler in zip(parts, fillers, strict=True):
        loss, _, _ = trainer.step(trainer.micro_batches(part), 0.0, filler, n_targets)
        losses = losses + loss / 2
        sums = {name: sums[name] + gradient / 2 for name, gradient in gradients(trainer).items()}
    torch.testing.assert_close(losses, expected_loss, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(sums, expected, rtol=1e-5, atol=1e-6)


def test_the_loss_is_a_mean_over_target_tokens_and_the_norm_is_that_of_its_gradient(trainer):
    (batch,) = trainer.micro_batches(np.arange(N_PAIRS))
    summed = trainer.objective.loss(batch, label_smoothing=trainer.config.label_smoothing or 0.0)
    loss, grad_norm, n_tokens = trainer.step([batch], 0.0)
    assert n_tokens == batch.n_targets
    torch.testing.assert_close(loss, summed.detach() / n_tokens)
    assert grad_norm == pytest.approx(torch.cat([g.flatten() for g in gradients(trainer).values()]).norm().item())


def test_the_first_update_changes_each_weight_by_the_rate_times_the_sign_of_its_gradient(trainer):
    """The first step of Adam is the negative sign of the gradient times the learning rate."""
    before = weights(trainer)
    trainer.step(trainer.micro_batches(np.arange(N_PAIRS)), 1e-3)
    for name, gradient in gradients(trainer).items():
        moved = trainer.step.parameters[name].detach() - before[name]
        clear = gradient.abs() > 1e-5  # below, epsilon and rounding are visible
        torch.testing.assert_close(moved[clear], -1e-3 * gradient.sign()[clear], rtol=1e-2, atol=1e-6)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_an_update_with_a_loss_that_is_not_finite_is_skipped(trainer, monkeypatch, value):
    loss = trainer.objective.loss
    monkeypatch.setattr(trainer.objective, "loss", lambda *args, **options: loss(*args, **options) * value)
    before = weights(trainer)
    trainer.step(trainer.micro_batches(np.arange(N_PAIRS)), 1e-3)
    assert trainer.step.skipped == 1
    torch.testing.assert_close(weights(trainer), before, rtol=0, atol=0)


def test_updates_decrease_the_loss(trainer):
    batches = trainer.micro_batches(np.arange(N_PAIRS))
    losses = [trainer.step(batches, 1e-2)[0].item() for _ in range(11)]
    assert losses[-1] < 0.8 * losses[0]


def test_the_moving_average_of_the_weights_is_short_at_first_and_then_as_long_as_its_decay(trainer, monkeypatch):
    trainer.averages.decay = 0.5
    batches = trainer.micro_batches(np.arange(N_PAIRS))
    expected = {}
    for step in range(1, 18):
        trainer.step(batches, 1e-2)
        trainer.progress.step = step
        trainer.averages.move(trainer.step.parameters, trainer.progress.step)
        decay = min(0.5, (1 + step) / (10 + step))
        for name, weight in weights(trainer).items():
            expected[name] = decay * expected.get(name, weight.double()) + (1 - decay) * weight.double()
    assert decay == 0.5
    assert trainer.averages.ema.keys() == weights(trainer).keys()
    for name, average in trainer.averages.ema.items():
        torch.testing.assert_close(average.double(), expected[name], rtol=1e-6, atol=1e-6)
        assert not torch.equal(average, weights(trainer)[name])


def test_a_checkpoint_restores_the_moving_average(trainer, monkeypatch):
    trainer.averages.decay = 0.9
    batches = trainer.micro_batches(np.arange(N_PAIRS))
    for _ in range(2):
        trainer.step(batches, 1e-2)
        trainer.averages.move(trainer.step.parameters, trainer.progress.step)
    expected = {name: average.clone() for name, average in trainer.averages.ema.items()}
    trainer.save()
    trainer.checkpoints.wait()
    trainer.averages.ema = {}
    trainer.load(trainer.config.out / "checkpoints" / "step-0")
    torch.testing.assert_close(trainer.averages.ema, expected, rtol=0, atol=0)
    assert not trainer.averages.sums


CANDIDATES = (
    "the last checkpoint",
    "the average of 2 checkpoints",
    "the exponential moving average",
    "the mean of the average of 2 checkpoints and the model it began with",
)


@pytest.mark.parametrize("best", CANDIDATES)
def test_the_final_model_is_the_candidate_with_the_best_score(trainer, monkeypatch, best):
    last = weights(trainer)
    candidates = [{name: weight + i for name, weight in last.items()} for i in range(4)]
    base = copy.deepcopy(trainer.task.model)
    base.load_state_dict({name: 2 * candidates[3][name] - candidates[1][name] for name in last})
    trainer.averages.sums = {name: 2 * weight for name, weight in candidates[1].items()}
    trainer.progress.n_averaged = 2
    trainer.averages.ema = candidates[2]

    def metrics() -> dict[str, float]:
        """A score of 1 for the weights that are best."""
        name, weight = next(iter(trainer.step.parameters.items()))
        i = round((weight.detach() - last[name]).mean().item())
        return {trainer.objective.metric: float(CANDIDATES[i] == best)}

    monkeypatch.setattr(trainer.validator, "metrics", metrics)
    trainer.progress.last_score = trainer.progress.best_score = metrics()[trainer.objective.metric]
    trainer.data.n_examples, trainer.data.dev, trainer.data.label_counts = N_PAIRS, [], {}
    messages = []
    finish(trainer, SimpleNamespace(log=messages.append), base)
    assert messages[0].startswith("Without confidence")
    assert f"Saved {best} to" in messages[1]
    saved = read_tensors(trainer.config.out / "model.safetensors")
    expected = candidates[CANDIDATES.index(best)]
    torch.testing.assert_close({name: saved[name] for name in expected}, expected)


def test_a_damaged_best_checkpoint_is_named_and_the_final_model_chosen_without_it(trainer, monkeypatch):
    trainer.progress.step, trainer.progress.best_step = 2, 1
    best = trainer.config.out / "best" / "step-1"
    save_folder(best, {"model.safetensors": weights(trainer)})
    weights_file = best / "model.safetensors"
    data = bytearray(weights_file.read_bytes())
    data[-1] ^= 1
    weights_file.write_bytes(data)
    monkeypatch.setattr(trainer.validator, "metrics", lambda: {trainer.objective.metric: 0.5})
    trainer.progress.last_score = 0.5
    trainer.progress.best_score = 0.9
    trainer.data.n_examples, trainer.data.dev, trainer.data.label_counts = N_PAIRS, [], {}
    messages = []
    finish(trainer, SimpleNamespace(log=messages.append))
    assert "best/step-1/model.safetensors: damaged" in messages[0]
    assert "among the other checkpoints" in messages[0]
    assert "Saved the last checkpoint to" in messages[-1]


def test_the_used_budget_is_proportional_to_the_steps(trainer):
    assert [trainer.budget_used(step) for step in (0, 7, 8)] == [0, 1, 1]


def test_validation_uses_the_updated_weights(trainer):
    """Inference caches packed weights; an update must invalidate the cache."""
    batch = trainer.micro_batches(np.arange(N_PAIRS))[0]
    logits = lambda: trainer.model.logits(trainer.model(batch.src, batch.tgt_in))
    trainer.model.eval()
    with torch.inference_mode():
        logits()
    trainer.step([batch], 0.01)
    trainer.model.eval()
    with torch.inference_mode():
        actual = logits()
    with torch.no_grad():
        weight = trainer.model.embedding.weight.clone()  # a new tensor, of which no packed weight is cached
        expected = torch.nn.functional.linear(trainer.model(batch.src, batch.tgt_in), weight)
    torch.testing.assert_close(actual, expected)


def test_a_signal_interrupts_a_validation_which_is_then_due_again(trainer, monkeypatch):
    def interrupted(examples, n_decoded=None):
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("the validation was not interrupted")

    monkeypatch.setattr(trainer.objective, "validate", interrupted)
    trainer.progress.validation_due = True
    with pytest.raises(Stopped) as stopped, stop_on_signal() as stop:
        trainer.validate_and_save(stop)
    assert stopped.value.signum == signal.SIGINT
    saved = trainer.config.out / "checkpoints" / "step-0" / "progress.json"
    assert json.loads(saved.read_text())["validation_due"]


@pytest.mark.parametrize(
    ("fraction", "elapsed_s", "lengths", "decides", "compiles"),
    [
        (0.01, 9, 1, False, False),  # too early
        (0.06, 10, 1, True, True),  # 190 s remain: 38 s saved
        (0.08, 10, 1, True, False),  # 142 s remain
        (0.06, 10, 7, True, False),  # more shapes
        (0.02, 10, 7, True, True),
    ],
)
def test_compilation_by_default_begins_if_it_saves_more_time_than_it_takes(
    trainer, monkeypatch, fraction, elapsed_s, lengths, decides, compiles
):
    messages = []
    monkeypatch.setattr(trainer.step, "log", messages.append)
    monkeypatch.setattr(trainer.step, "compile", lambda: messages.append("compiled"))
    trainer.step.use_graphs()
    trainer.sampler.lengths = np.arange(N_PAIRS) % lengths
    trainer.progress.fraction = 0.2 + fraction * 0.8
    monkeypatch.setattr(trainer, "elapsed_s", lambda: 1000.0 + elapsed_s)
    trainer.decide_compilation(0.2, 1000.0)
    assert trainer.may_compile != decides
    assert len(messages) == 2 * compiles
    if compiles:
        assert f"about {compilation_s(lengths):.0f} s" in messages[0]


@pytest.mark.parametrize(("deterministic", "expected"), [(False, "auto"), (True, "off")])
def test_only_trainings_on_a_gpu_that_may_differ_in_rounding_decide_on_compilation(
    monkeypatch, deterministic, expected
):
    corpus = CorpusInfo(SimpleNamespace(vocab_size=263, unk_id=None), (), 100)

    def resolved(device):
        config = TrainConfig(src=("a",), out="b", deterministic=deterministic)
        monkeypatch.setattr(options, "pick_device", lambda name: torch.device(device))
        return options.resolve_options(config, TranslationObjective, corpus, None).compile

    assert resolved("cuda") == expected
    assert resolved("cpu") == "off"


@pytest.mark.parametrize(("n_frozen", "calls"), [(0, ["freeze", "unfreeze"]), (9, [])])
def test_objects_are_frozen_during_a_training_unless_the_program_has_done_it(trainer, monkeypatch, n_frozen, calls):
    found = []
    monkeypatch.setattr(gc, "get_freeze_count", lambda: n_frozen)
    for name in ("freeze", "unfreeze"):
        monkeypatch.setattr(gc, name, lambda name=name: found.append(name))

    def stopped(*arguments):
        raise Stopped(signal.SIGINT, "")

    monkeypatch.setattr(trainer, "run_steps", stopped)
    with pytest.raises(Stopped):
        trainer.run(StopSignal())
    assert found == calls
