"""Switching a part off is what it says, leaves nothing behind, and pruning is switching off for good."""

import pytest
import torch

from glassformer import checkpoint
from glassformer.corpora.corpus import Example
from glassformer.errors import ConfigError
from glassformer.inspection.ablation import KINDS, AblationResult, Part, ablate, part, parts, prune, switched_off
from glassformer.tasks.registry import load
from tests.inspection.models import make, text_for

PAIRS = [("The black cat sat.", "Der Hund schlief."), ("on the rug", "auf dem Teppich"), ("the couch", "naïve café")]
EXAMPLES = [Example(src, tgt, "x", i) for i, (src, tgt) in enumerate(PAIRS, 1)]
CASES = [("translation", "transformer"), ("causal-lm", "gpt2"), ("masked-lm", "bert"), ("translation", "t5")]


def output(task):
    src = torch.tensor([task.tokenizer.encode("The black cat sat on the rug.")])
    with torch.no_grad():
        return task.model(src, src) if task.name == "translation" else task.model(src)


@pytest.mark.parametrize(("name", "family"), CASES)
def test_a_head_off_is_its_slice_of_the_output_projection_zeroed(name, family):
    for one in parts(make(name, family).model, "heads"):
        task, other = make(name, family), make(name, family)
        before = output(task)
        with switched_off(task.model, [one]):
            found = output(task)
        with torch.no_grad():
            weight = other.model.get_submodule(one.name).out_proj.weight
            weight.unflatten(1, (2, -1))[:, one.head] = 0
        torch.testing.assert_close(found, output(other), rtol=1e-5, atol=1e-5)
        assert not torch.allclose(found, before, atol=1e-4)
        assert torch.equal(output(task), before)


@pytest.mark.parametrize(("name", "family"), CASES)
def test_a_sub_layer_off_adds_nothing(name, family):
    for one in parts(make(name, family).model, "sublayers"):
        task, other = make(name, family), make(name, family)
        with switched_off(task.model, [one]):
            found = output(task)
        module = other.model.get_submodule(one.name)
        with torch.no_grad():
            for p in (module.out_proj if hasattr(module, "out_proj") else module.down).parameters():
                p.zero_()
        torch.testing.assert_close(found, output(other), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("name", "family"), CASES)
def test_a_layer_off_is_the_model_without_it(name, family):
    for one in parts(make(name, family).model, "layers"):
        task, other = make(name, family), make(name, family)
        with switched_off(task.model, [one]):
            found = output(task)
        stack, _, n = one.name.partition(".")
        setattr(
            other.model,
            stack,
            torch.nn.ModuleList([x for i, x in enumerate(getattr(other.model, stack)) if i != int(n)]),
        )
        torch.testing.assert_close(found, output(other), rtol=1e-5, atol=1e-5)
        if task.name == "translation":
            with switched_off(task.model, [one]):
                said = task("The black cat sat.", max_length=8)
            assert said == other("The black cat sat.", max_length=8)


@pytest.mark.parametrize("kind", KINDS)
def test_losses_are_those_without_each_part_most_missed_first(kind):
    task = make("translation", "transformer")
    whole, losses = ablate(task, EXAMPLES, kind)
    assert whole == task.validate(EXAMPLES)
    assert len(losses) == {"heads": 16, "sublayers": 13, "layers": 5}[kind]
    assert [loss.change["loss"] for loss in losses] == sorted((loss.change["loss"] for loss in losses), reverse=True)
    for loss in losses[:3]:
        with switched_off(task.model, [loss.part]):
            assert task.validate(EXAMPLES) == loss.metrics
        assert loss.change["loss"] == pytest.approx(loss.metrics["loss"] - whole["loss"])


@pytest.mark.parametrize(
    ("name", "family", "sizes"),
    [("translation", "transformer", {}), ("translation", "transformer", {"attention": "additive"}),
     ("causal-lm", "gpt2", {}), ("masked-lm", "bert", {})],
)  # fmt: skip
def test_pruning_is_switching_off_for_good(name, family, sizes, tmp_path):
    task = make(name, family, **sizes)
    found = parts(task.model, "heads")
    losses = [
        type("L", (), {"part": one, "change": {"loss": float(i)}, "metrics": {}})() for i, one in enumerate(found)
    ]
    n = 3 if family == "transformer" else 1
    n_before = sum(p.numel() for p in task.model.parameters())
    with switched_off(task.model, [found[0], found[2], found[4]] if n == 3 else [found[0]]):
        expected = output(task)
    gone = prune(task, losses, n)
    assert gone == ([found[0], found[2], found[4]] if n == 3 else [found[0]])
    torch.testing.assert_close(output(task), expected, rtol=1e-5, atol=1e-5)
    assert sum(p.numel() for p in task.model.parameters()) < n_before
    checkpoint.save_folder(tmp_path / "pruned", task.contents())
    again = load(tmp_path / "pruned", device="cpu")
    assert torch.equal(output(again), output(task))
    assert again(text_for(name)) == task(text_for(name))


def test_what_cannot_be_taken_out_is_said():
    task = make("translation", "transformer")
    losses = [AblationResult(one, {}, {"loss": 0.0}) for one in parts(task.model, "heads")]
    with pytest.raises(ConfigError, match="--prune 9: 8 heads can be spared"):
        prune(task, losses, 9)
    with pytest.raises(ConfigError, match="heads of a t5 cannot be taken out"):
        prune(make("translation", "t5"), losses, 1)
    with pytest.raises(ConfigError, match="a rnn has no layers"):
        parts(make("translation", "rnn").model, "layers")
    with pytest.raises(ConfigError, match=r"no part 'encoder\.7'; there are: .*decoder\.2\.cross_attention head 2"):
        part(task.model, "encoder.7")
    assert part(task.model, "decoder.2.cross_attention head 2") == Part("decoder.2.cross_attention", 1)


def test_a_pruned_model_is_not_exported(tmp_path):
    from glassformer.errors import UserError
    from glassformer.interop.huggingface import export_folder

    task = make("causal-lm", "gpt2")
    losses = [
        type("L", (), {"part": one, "change": {"loss": 0.0}, "metrics": {}})() for one in parts(task.model, "heads")
    ]
    prune(task, losses, 1)
    checkpoint.save_folder(tmp_path / "pruned", task.contents())
    with pytest.raises(UserError, match="pruned attention heads"):
        export_folder(tmp_path / "pruned", tmp_path / "out")
