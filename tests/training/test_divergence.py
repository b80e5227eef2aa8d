"""A training whose loss is not finite or explodes."""

import json
from pathlib import Path

import pytest
import torch

from glassformer.checkpoint import read_tensors
from glassformer.corpora.demo.pairs import split_pairs
from glassformer.errors import UserError
from glassformer.train_config import TrainConfig
from glassformer.training.divergence import MAX_RETURNS, N_RECORDS, DivergenceState, largest
from glassformer.training.run import train
from glassformer.training.step import TrainingStep

STEPS = 260


def added(state: DivergenceState, losses, n_skipped=0) -> DivergenceState:
    for loss in losses:
        state.add(loss, n_skipped, 10)
    return state


@pytest.mark.parametrize(
    ("first", "lowest", "last", "diverged"),
    [(9, 2, 5.4, False), (9, 2, 5.6, True), (1.2, 1, 1.9, False), (1.2, 1, 2.1, True)],
)
def test_a_loss_has_exploded_if_it_has_doubled_and_less_than_half_of_what_was_learned_is_left(
    first, lowest, last, diverged
):
    state = added(DivergenceState(), [first, *[lowest] * N_RECORDS, *[last] * N_RECORDS])
    assert bool(state.divergence) == diverged


def test_a_few_records_with_a_large_loss_are_no_divergence():
    state = added(DivergenceState(), [9, *[2] * N_RECORDS])
    added(state, [1e30] * (N_RECORDS // 2 - 1))
    assert not state.divergence
    added(state, [1e30])
    assert state.divergence == "the loss has risen from 2 to 5e+29"


def test_more_than_half_of_the_updates_of_a_record_skipped_is_a_divergence():
    assert not added(DivergenceState(), [2.0], n_skipped=5).divergence
    state = added(DivergenceState(), [2.0, 2.0], n_skipped=6)
    assert state.n_skipped == 12
    assert "6 of 10 updates" in state.divergence
    assert added(DivergenceState(), [None], n_skipped=10).divergence


def test_the_largest_values_say_what_is_not_finite():
    tensors = {"a": torch.tensor([-3.0, 2]), "b": torch.tensor([1, float("nan")]), "c": torch.tensor([-float("inf")])}
    assert largest(tensors) == {"a": 3.0, "b": "nan", "c": "inf"}


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> TrainConfig:
    folder = tmp_path_factory.mktemp("corpus")
    pairs, _ = split_pairs(100, 1, seed=7)
    (folder / "pairs.tsv").write_text("".join(f"{english}\t{french}\n" for english, french in pairs))
    return TrainConfig(
        src=(folder / "pairs.tsv",), languages=("en", "fr"), out=folder, preset="tiny", d_model=8, n_heads=1, d_ff=8,
        n_layers=1, vocab_size=300, batch_tokens=200, threads=1, steps=STEPS, validate_every=25, optimizer="adam",
        lr=1e-3,
    )  # fmt: skip


class Killed(BaseException):
    pass


@pytest.fixture
def corrupted(config, monkeypatch):
    """Trains in a folder; after each step a function of the step corrupts the training."""
    update = TrainingStep.update

    def run(out: Path, corrupt, **options):
        def corrupted_update(self):
            corrupt(self)
            update(self)

        monkeypatch.setattr(TrainingStep, "update", corrupted_update)
        train(config.model_copy(update={"out": out, **options}), quiet=True)

    return run


def rows(out: Path) -> list[dict]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def log(out: Path) -> str:
    return (out / "train.log").read_text()


def bad_loss(*steps):
    """Corrupts the loss of steps, counted from 0."""

    def corrupt(step):
        if step.n_steps in steps:
            step.loss *= float("nan")

    return corrupt


def bad_weights(at: int, done: list):
    """Makes the weights of a step large, once."""

    def corrupt(step):
        if step.n_steps == at and not done:
            done.append(at)
            with torch.no_grad():
                for parameter in step.parameters.values():
                    parameter += 30 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(3))

    return corrupt


def killing(corrupt, at: int):
    """Ends the training in a step, once."""
    killed = []

    def corrupt_or_kill(step):
        if step.n_steps == at and not killed:
            killed.append(at)
            raise Killed
        corrupt(step)

    return corrupt_or_kill


@pytest.mark.slow
def test_skipped_updates_are_counted_and_reported(corrupted, tmp_path):
    """Also one that no record has: records end at multiples of 10."""
    corrupted(tmp_path, bad_loss(12, 14, 40, 52), steps=53)
    skipped = {row["step"]: row["skipped"] for row in rows(tmp_path) if "skipped" in row}
    assert skipped == {20: 2, 50: 1}
    assert "warning: 2 updates were skipped so far" in log(tmp_path)
    assert json.loads((tmp_path / "training.json").read_text())["skipped"] == 4
    assert "Trained 53 steps, of which 4 were skipped, in" in log(tmp_path)
    assert all(row["loss"] < 10 for row in rows(tmp_path) if "loss" in row)


@pytest.mark.slow
def test_a_killed_run_with_skipped_updates_ends_with_the_same_weights(corrupted, tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    corrupt = bad_loss(12, 17, 40)
    corrupted(whole, corrupt, steps=50, save_every=7)
    with pytest.raises(Killed):
        corrupted(broken, killing(corrupt, 18), steps=50, save_every=7)
    corrupted(broken, corrupt, steps=50, save_every=7)
    assert (whole / "model.safetensors").read_bytes() == (broken / "model.safetensors").read_bytes()
    strip = ("tokens_per_s", "elapsed_s")
    kept = [[{k: v for k, v in row.items() if k not in strip} for row in rows(out)] for out in (whole, broken)]
    assert kept[0] == kept[1]


@pytest.mark.slow
def test_a_training_that_explodes_goes_on_from_its_best_weights_with_half_the_rate(corrupted, tmp_path):
    """The same with a run that is killed between the explosion and the return."""
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    corrupted(whole, bad_weights(60, []), save_every=11, validate_every=50, steps=150)
    assert "warning: step 111: the training diverged: the loss has risen" in log(whole)
    assert "goes on from the best weights, of step 50, with half the learning rate (1 of at most 3" in log(whole)
    rates = {row["step"]: row["lr"] for row in rows(whole) if "lr" in row}
    assert rates[120] < 0.6 * rates[110]
    losses = {row["step"]: row["loss"] for row in rows(whole) if "loss" in row}
    assert losses[110] > 10 > losses[130]
    assert json.loads((whole / "training.json").read_text())["returns"] == 1
    done = []
    with pytest.raises(Killed):
        corrupted(broken, killing(bad_weights(60, done), 108), save_every=11, validate_every=50, steps=150)
    corrupted(broken, bad_weights(60, done), save_every=11, validate_every=50, steps=150)
    assert (whole / "model.safetensors").read_bytes() == (broken / "model.safetensors").read_bytes()


def test_a_dev_loss_that_is_not_finite_returns_to_the_best_weights(corrupted, tmp_path):
    def corrupt(step):
        if step.n_steps == 49:
            with torch.no_grad():
                step.model.embedding.weight *= float("inf")

    corrupted(tmp_path, corrupt, steps=80)
    assert "warning: step 50: the training diverged" in log(tmp_path)
    assert "the best weights, of step 25, with half the learning rate" in log(tmp_path)
    weights = read_tensors(tmp_path / "model.safetensors")
    assert all(weight.isfinite().all() for weight in weights.values())


@pytest.mark.slow
def test_a_training_that_diverges_again_and_again_ends_with_the_evidence(corrupted, tmp_path):
    with pytest.raises(UserError, match=r"step \d+: the training diverged: .*\n.*best.step-50\.\n.*lower --lr than"):
        corrupted(tmp_path, bad_loss(*range(30, STEPS)))
    assert log(tmp_path).count("with half the learning rate") == MAX_RETURNS
    evidence = json.loads((tmp_path / "divergence.json").read_text())
    assert evidence["returns"] == MAX_RETURNS
    assert evidence["skipped"] == evidence["step"] - 30
    assert evidence["largest_gradients"].keys() == evidence["largest_weights"].keys()
    assert all(0 < value < 100 for value in evidence["largest_weights"].values())


def test_a_training_of_no_finite_update_is_an_error(corrupted, tmp_path):
    with pytest.raises(UserError, match="not finite in any update"):
        corrupted(tmp_path, bad_loss(*range(5)), steps=5)
