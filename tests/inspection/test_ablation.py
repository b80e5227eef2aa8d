"""Disabling a part has the defined effect and is reverted; pruning has the same effect permanently."""

import pytest
import torch

from glassformer import checkpoint
from glassformer.corpora.example import Example
from glassformer.errors import ConfigError, UserError
from glassformer.inspection.ablation import (
    COMPONENT_KINDS,
    AblationResult,
    Component,
    ablate,
    components,
    disabled_components,
    find_component,
    objective_in_fp32,
    prune,
)
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
def test_disabling_a_head_equals_zeroing_its_output(name, family):
    for disabled_part in components(make(name, family).model, "heads"):
        task, other = make(name, family), make(name, family)
        before = output(task)
        with disabled_components(task.model, [disabled_part]):
            disabled = output(task)

        def zero_head(module, args, head=disabled_part.head):
            heads = args[0].unflatten(-1, (2, -1)).clone()
            heads[..., head, :] = 0
            return heads.flatten(-2)

        other.model.get_submodule(disabled_part.name).out_proj.register_forward_pre_hook(zero_head)
        torch.testing.assert_close(disabled, output(other), rtol=1e-5, atol=1e-5)
        assert not torch.allclose(disabled, before, atol=1e-4)
        assert torch.equal(output(task), before)


@pytest.mark.parametrize(("name", "family"), CASES)
def test_a_disabled_sub_layer_adds_zero(name, family):
    for disabled_part in components(make(name, family).model, "sublayers"):
        task, other = make(name, family), make(name, family)
        with disabled_components(task.model, [disabled_part]):
            disabled = output(task)
        module = other.model.get_submodule(disabled_part.name)
        last = module.out_proj if hasattr(module, "out_proj") else module.down
        last.register_forward_hook(lambda module, args, output: torch.zeros_like(output))
        torch.testing.assert_close(disabled, output(other), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("name", "family"), CASES)
def test_disabling_a_layer_equals_removing_it(name, family):
    for disabled_part in components(make(name, family).model, "layers"):
        task, other = make(name, family), make(name, family)
        with disabled_components(task.model, [disabled_part]):
            disabled = output(task)
        stack, _, n = disabled_part.name.partition(".")
        setattr(
            other.model,
            stack,
            torch.nn.ModuleList([x for i, x in enumerate(getattr(other.model, stack)) if i != int(n)]),
        )
        torch.testing.assert_close(disabled, output(other), rtol=1e-5, atol=1e-5)
        if task.name == "translation":
            with disabled_components(task.model, [disabled_part]):
                translation = task("The black cat sat.", max_length=8)
            assert translation == other("The black cat sat.", max_length=8)


@pytest.mark.parametrize("precision", ["auto", "fp32"])
@pytest.mark.parametrize("kind", COMPONENT_KINDS)
def test_translations_are_those_without_the_component(kind, precision):
    task, other = (make("translation", "transformer") for _ in range(2))
    disabled = components(task.model, kind)[:3]
    options = dict(precision=precision, max_length=8, nbest=2)  # with nbest, the result has scores
    before = task("The black cat sat.", **options)  # programs of the model are compiled and kept
    with disabled_components(task.model, disabled):
        translation = task("The black cat sat.", **options)
    with disabled_components(other.model, disabled):
        assert translation == other("The black cat sat.", **options)
    assert translation["score"] != pytest.approx(before["score"], rel=1e-5)
    assert task("The black cat sat.", **options) == before


def test_a_model_in_int8_cannot_be_changed(tmp_path):
    task = make("classification", "bert")
    task.save(tmp_path / "int8", precision="int8")
    stored = load(tmp_path / "int8", device="cpu")
    with pytest.raises(UserError, match="exported in int8"):
        components(stored.model, "layers")
    layer = components(task.model, "layers")[0]
    task.precision = "int8"
    with disabled_components(task.model, [layer]), pytest.raises(ConfigError, match="int8 cannot be recorded"):
        task("The black cat")


@pytest.mark.parametrize("kind", COMPONENT_KINDS)
def test_all_is_decoded_in_fp32_also_where_a_validation_is_not(kind, monkeypatch):
    task, used = make("translation", "transformer"), []
    decodable = type(task).decodable
    monkeypatch.setattr(type(task), "validation_precision", "int8")
    monkeypatch.setattr(type(task), "decodable", lambda self, name: used.append(name) or decodable(self, name))
    ablate(task, EXAMPLES, kind)
    assert set(used) == {"fp32"}


@pytest.mark.parametrize("kind", COMPONENT_KINDS)
def test_results_are_metrics_without_each_part_by_descending_importance(kind):
    task = make("translation", "transformer")
    baseline, results = ablate(task, EXAMPLES, kind)
    assert baseline == objective_in_fp32(task).validate(EXAMPLES)
    assert len(results) == {"heads": 16, "sublayers": 13, "layers": 5}[kind]
    assert [result.change["loss"] for result in results] == sorted(
        (result.change["loss"] for result in results), reverse=True
    )
    for result in results[:3]:
        with disabled_components(task.model, [result.component]):
            assert objective_in_fp32(task).validate(EXAMPLES) == result.metrics
        assert result.change["loss"] == pytest.approx(result.metrics["loss"] - baseline["loss"])


@pytest.mark.parametrize(
    ("name", "family", "sizes"),
    [("translation", "transformer", {}), ("translation", "transformer", {"attention": "additive"}),
     ("causal-lm", "gpt2", {}), ("causal-lm", "llama", {"qkv_bias": True, "n_kv_heads": None}),
     ("masked-lm", "bert", {})],
)  # fmt: skip
def test_pruning_equals_disabling(name, family, sizes, tmp_path):
    task = make(name, family, **sizes)
    heads = components(task.model, "heads")
    results = [
        type("L", (), {"component": head, "change": {"loss": float(i)}, "metrics": {}})()
        for i, head in enumerate(heads)
    ]
    n = 3 if family == "transformer" else 1
    n_before = sum(p.numel() for p in task.model.parameters())
    with disabled_components(task.model, [heads[0], heads[2], heads[4]] if n == 3 else [heads[0]]):
        expected = output(task)
    removed = prune(task, results, n)
    assert removed == ([heads[0], heads[2], heads[4]] if n == 3 else [heads[0]])
    torch.testing.assert_close(output(task), expected, rtol=1e-5, atol=1e-5)
    assert sum(p.numel() for p in task.model.parameters()) < n_before
    checkpoint.save_folder(tmp_path / "pruned", task.contents())
    reloaded = load(tmp_path / "pruned", device="cpu")
    assert torch.equal(output(reloaded), output(task))
    assert reloaded(text_for(name)) == task(text_for(name))


def test_heads_that_cannot_be_removed_are_errors():
    task = make("translation", "transformer")
    results = [AblationResult(head, {}, {"loss": 0.0}) for head in components(task.model, "heads")]
    with pytest.raises(ConfigError, match="--prune 9: only 8 heads can be removed"):
        prune(task, results, 9)
    with pytest.raises(ConfigError, match="heads of a t5 cannot be removed"):
        prune(make("translation", "t5"), results, 1)
    with pytest.raises(ConfigError, match="a rnn has no layers"):
        components(make("translation", "rnn").model, "layers")
    with pytest.raises(ConfigError, match=r"no component 'encoder\.7'; available: .*2\.cross_attention head 2"):
        find_component(task.model, "encoder.7")
    assert find_component(task.model, "decoder.2.cross_attention head 2") == Component("decoder.2.cross_attention", 1)


def test_a_pruned_model_cannot_be_exported(tmp_path):
    from glassformer.errors import UserError
    from glassformer.interop.huggingface import export_folder

    task = make("causal-lm", "gpt2")
    results = [
        type("L", (), {"component": head, "change": {"loss": 0.0}, "metrics": {}})()
        for head in components(task.model, "heads")
    ]
    prune(task, results, 1)
    checkpoint.save_folder(tmp_path / "pruned", task.contents())
    with pytest.raises(UserError, match="pruned attention heads"):
        export_folder(tmp_path / "pruned", tmp_path / "out")
