"""Statistics of every tensor, and flags for numerical problems."""

import pytest
import torch

from glassformer.inspection.inputs import prepare_inputs
from glassformer.inspection.trace import tensor_statistics, trace
from tests.inspection.models import CASES, make, text_for


@pytest.mark.parametrize(("name", "family"), CASES)
def test_every_step_has_statistics(name, family):
    steps = trace(prepare_inputs(make(name, family), text_for(name), "Der Hund" if name == "translation" else None))
    names = [step.name for step in steps]
    assert len(set(names)) == len(names)
    assert (
        name == "feature-extraction"
        or name == "question-answering"
        or "logits" in names
        or any(n.startswith("logits") for n in names)
    )
    for step in steps:
        assert len(step.shape) == len(step.axes)
        assert step.min <= step.mean <= step.max
        assert not {"nan", "infinite"} & set(step.flags)


def test_statistics_match_torch():
    x = torch.randn(2, 3, 5).relu()
    step = tensor_statistics("x", x, ("batch", "position", "feature"))
    assert (step.shape, step.flags) == ((2, 3, 5), ())
    assert step.mean == pytest.approx(float(x.mean()))
    assert step.std == pytest.approx(float(x.std(correction=0)))
    assert (step.min, step.max) == (float(x.min()), float(x.max()))
    assert step.zeros == pytest.approx(int((x == 0).sum()) / 30)


def test_numerical_problems_are_flagged():
    x = torch.randn(2, 3)
    x[0, 0], x[1, 1] = torch.nan, torch.inf
    assert tensor_statistics("x", x, ("a", "b")).flags == ("nan", "infinite")
    all_nan = tensor_statistics("x", torch.full((3, 2), torch.nan), ("a", "b"))
    assert (all_nan.flags, all_nan.mean, all_nan.max) == (("nan",), None, None)
    saturated = (0.999 * torch.eye(4) + 0.00025)[None, None]
    assert (
        tensor_statistics("x.weights", torch.eye(4)[None, None], ("a", "b", "c", "d")).flags == ()
    )  # one key per query
    assert tensor_statistics("encoder.0.self_attention.weights", saturated, ("a", "b", "c", "d")).flags == (
        "saturated",
    )
    assert tensor_statistics("x", saturated, ("a", "b", "c", "d")).flags == ()
    assert tensor_statistics("x", torch.zeros(2, 2), ("a", "b")).flags == ("dead",)


def test_the_first_nan_tensor_is_flagged():
    task = make("translation", "transformer")
    with torch.no_grad():
        task.model.decoder[1].feedforward.up.weight[0, 0] = torch.nan
    steps = trace(prepare_inputs(task, "The black cat", "Der Hund"))
    first = next(step.name for step in steps if "nan" in step.flags)
    assert first.startswith("decoder.1.feedforward")
