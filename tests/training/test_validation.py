from types import SimpleNamespace

import pytest

from glassformer.config import TrainConfig
from glassformer.tasks.translation import evenly_spaced
from glassformer.training import validation as module
from glassformer.training.signals import StopSignal
from glassformer.training.validation import ValidationState, Validator


@pytest.fixture
def validator(tmp_path):
    """A dev set of 1,000 pairs and a task that records the arguments of the calls of its `validate`."""
    calls = []

    def validate(examples, n_decoded=None):
        calls.append((len(examples), n_decoded))
        return {"bleu": 1.0, "loss": 1.0}

    task = SimpleNamespace(
        validate=validate, calls=calls, metric="bleu", rows_are_examples=True, validation_decodes=True,
        model=SimpleNamespace(eval=lambda: None), contents=dict,
    )  # fmt: skip
    config = TrainConfig(src=("a",), out=tmp_path, lr=1e-3)
    reporter = SimpleNamespace(validation=lambda *_: None)
    return Validator(task, ["pair"] * 1000, config, reporter, ValidationState(), lambda: 0.0)


@pytest.mark.parametrize("n_examples", [11_000, 40_000, 10**7])
def test_a_validation_costs_at_most_its_fraction_of_the_training_since_the_last(validator, n_examples):
    validator.state.n_examples_since_validation = n_examples
    validator.validate(StopSignal())
    ((n_loss, n_decoded),) = validator.task.calls
    assert n_loss == 1000
    assert 16 <= n_decoded <= 1000
    cost = module.LOSS_COST * n_loss + module.DECODE_COST * n_decoded
    assert cost <= module.MAX_VALIDATION_COST * n_examples
    assert n_decoded == 1000 or cost + module.DECODE_COST > module.MAX_VALIDATION_COST * n_examples
    assert validator.state.n_examples_since_validation == 0


def test_a_validation_that_costs_too_much_is_skipped_except_for_the_last(validator):
    validator.state.n_examples_since_validation = 9_000
    assert not validator.is_due(0.05, 0.1)
    validator.state.n_examples_since_validation = 11_100
    assert validator.is_due(0.05, 0.1)
    validator.state.n_examples_since_validation = 1
    assert validator.is_due(0.95, 1.0)


def test_all_validations_of_a_run_decode_the_same_examples(validator):
    for n_examples in (20_000, 90_000):
        validator.state.n_examples_since_validation = n_examples
        validator.validate(StopSignal())
    assert validator.task.calls[0] == validator.task.calls[1]


def test_the_best_weights_are_kept(validator):
    """The scores rise, fall and tie; of two equal scores the later is kept."""
    for step, score in enumerate((1.0, 3.0, 2.0, 3.0, 1.0), start=1):
        validator.state.step = step
        validator.task.validate = lambda examples, n_decoded, score=score: {"bleu": score}
        validator.validate(StopSignal())
        validator.delete_old_best()
    assert [folder.name for folder in (validator.config.out / "best").iterdir()] == ["step-4"]
    assert (validator.state.best_score, validator.state.last_score) == (3.0, 1.0)


def test_evenly_spaced_examples_are_in_order_and_cover_all_items():
    assert list(evenly_spaced(range(10), 5)) == [0, 2, 4, 6, 8]
    assert list(evenly_spaced(range(7), 3)) == [0, 2, 4]
    assert list(evenly_spaced(range(3), 5)) == list(evenly_spaced(range(3), None)) == [0, 1, 2]
