"""Exported models give the outputs of the original; an export that does not is refused."""

import sys

import pytest
import torch

from glassformer import checkpoint
from glassformer.errors import ConfigError, UserError
from glassformer.interop import export
from glassformer.interop.export import export_verified
from glassformer.interop.verification import Agreement
from glassformer.tasks.base import AnyTask
from tests.interop.ours import make
from tests.interop.theirs import LINES

TARGETS = ["ctranslate2"]
GATED = {"activation": "gated_gelu"}
MODELS = {
    "transformer": ("translation", "transformer", {}),
    "transformer pre-norm": ("translation", "transformer", {"pre_norm": True, "activation": "silu"}),
    "marian": ("translation", "transformer", {"sinusoid_layout": "concat", "output_bias": True}),
    "summaries": ("summarization", "gpt2", {}),
    "t5": ("translation", "t5", {"d_head": 2, "n_buckets": 8, "max_distance": 11}),
    "t5 1.1": ("translation", "t5", {"d_head": 3, "scale_output": False, "tie_embeddings": False, **GATED}),
    "gpt2": ("causal-lm", "gpt2", {}),
    "llama": ("causal-lm", "llama", {"n_heads": 6, "n_kv_heads": 2, "d_model": 24, "qkv_bias": True}),
    "llama tied": ("causal-lm", "llama", {"n_heads": 3, "d_head": 8, "tie_embeddings": True}),
    "classification": ("classification", "bert", {}),
    "roberta": ("classification", "bert", {"n_token_types": 1, "position_offset": 2, "pad_id": 0}),
    "distilbert": ("tagging", "bert", {"n_token_types": 0, "pooler_activation": "relu"}),
    "pre-norm": ("masked-lm", "bert", {"pre_norm": True, "activation": "gelu_tanh"}),
    "pretraining": ("bert-pretraining", "bert", {}),
    "questions": ("question-answering", "bert", {}),
    "mean": ("classification", "bert", {"pooling": "mean"}),
    "features": ("feature-extraction", "bert", {"pooler": False}),
}


def folder_of(case, tmp_path):
    name, family, sizes = MODELS[case]
    task = make(name, family, **sizes)
    checkpoint.save_folder(tmp_path / "ours", task.contents())
    return tmp_path / "ours"


@pytest.mark.parametrize("to", TARGETS)
@pytest.mark.parametrize("case", MODELS)
def test_exported_models_give_the_outputs_of_the_original(to, case, tmp_path, monkeypatch):
    found = []
    monkeypatch.setattr(Agreement, "check", lambda self: found.append(self))
    export_verified(folder_of(case, tmp_path), tmp_path / "out", to)
    (agreement,) = found
    assert agreement.n_tokens > 50
    assert agreement.n_equal == agreement.n_tokens
    assert agreement.difference < 1e-3
    assert agreement.bleu in (None, 100)


@pytest.fixture(autouse=True)
def few_sources(monkeypatch):
    monkeypatch.setattr("glassformer.interop.verification.RANDOM_SOURCES", 9)


def corrupt(folder, values: torch.Tensor) -> None:
    """Add 1 to one number of the files of a folder: the first of the given weights."""
    data = values.detach().numpy().tobytes()
    ((path, at),) = [(path, path.read_bytes().find(data)) for path in folder.iterdir() if data in path.read_bytes()]
    with path.open("r+b") as file:
        file.seek(at)
        file.write((values[0].detach() + 1).numpy().tobytes())


CORRUPTED = {
    "transformer pre-norm": [
        "decoder.1.feedforward.up.bias", "encoder.0.self_attention.v_proj.bias",
        "decoder.0.cross_attn_residual.norm.weight", "embedding.weight",
    ],
    "gpt2": ["decoder.0.feedforward.down.bias", "position_embedding.weight", "decoder_norm.weight"],
    "classification": ["encoder.1.self_attention.out_proj.bias", "token_type_embedding.weight", "embedding_norm.bias"],
}  # fmt: skip


@pytest.mark.parametrize("to", TARGETS)
@pytest.mark.parametrize(("case", "name"), [(case, name) for case in CORRUPTED for name in CORRUPTED[case]])
def test_an_export_with_one_wrong_number_is_refused(case, name, to, tmp_path, monkeypatch):
    target = export.import_target(to)

    def save(task: AnyTask, folder, save=target.save) -> str:
        result = save(task, folder)
        weight = task.model.get_parameter(name)
        corrupt(folder, weight[task.tokenizer.eos_id] if name == "embedding.weight" else weight.flatten()[:20])
        return result

    folder = folder_of(case, tmp_path)
    monkeypatch.setattr(target, "save", save)
    with pytest.raises(UserError, match="not equivalent to the original; nothing was written") as error:
        export_verified(folder, tmp_path / "out", to)
    assert error.value.exit_code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["ours"]


@pytest.mark.parametrize("to", TARGETS)
def test_families_and_variants_that_the_target_does_not_have_are_named(to, tmp_path):
    for name, family, sizes, message in [
        (
            "translation",
            "rnn",
            {},
            "a rnn: .* Families that it has: transformer, t5, gpt2, llama, bert",
        ),
        ("translation", "transformer", {"attention": "additive"}, "additive attention"),
        ("translation", "transformer", {"pruned_heads": {"encoder.0.self_attention": 3}}, "pruned attention heads"),
    ]:
        checkpoint.save_folder(tmp_path / "ours", make(name, family, **sizes).contents())
        with pytest.raises(UserError, match=message):
            export_verified(tmp_path / "ours", tmp_path / "out", to)
        assert [path.name for path in tmp_path.iterdir()] == ["ours"]


@pytest.mark.parametrize("to", TARGETS)
def test_a_missing_package_is_one_error_with_the_command(to, tmp_path, monkeypatch):
    package = {"ctranslate2": "ctranslate2"}[to]
    monkeypatch.delitem(sys.modules, f"glassformer.interop.{to}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError, match=rf"needs the package {package}.*\n.*pip install 'glassformer\[export\]'"):
        export_verified(tmp_path / "ours", tmp_path / "out", to)


def test_an_existing_folder_and_a_file_without_text_are_refused(tmp_path):
    folder = folder_of("gpt2", tmp_path)
    with pytest.raises(ConfigError, match="not empty"):
        export_verified(folder, folder, "ctranslate2")
    (tmp_path / "blank.txt").write_text("\n \n")
    with pytest.raises(UserError, match=r"blank.txt: no text for the comparison"):
        export_verified(folder, tmp_path / "out", "ctranslate2", tmp_path / "blank.txt")


@pytest.mark.parametrize(("case", "limit"), [("transformer", 29), ("summaries", 28), ("classification", 29)])
def test_lines_of_a_file_are_compared_and_long_ones_truncated(case, limit, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(export, "compare", lambda task, _, sources: seen.extend(sources) or Agreement(1, 1, 1, 0.0))
    (tmp_path / "lines.txt").write_text("\n".join([*LINES[:7], "", "a cat " * 50]), encoding="utf-8")
    described = export_verified(folder_of(case, tmp_path), tmp_path / "out", "ctranslate2", tmp_path / "lines.txt")
    assert f"{len(seen)} lines of {tmp_path / 'lines.txt'}" in described
    assert max(len(source.ids) for source in seen) <= limit


def test_each_limit_is_checked_and_nan_exceeds_it():
    with pytest.raises(UserError, match="not equivalent"):
        Agreement(1, 1, 1, float("nan")).check()
    Agreement(1, 1000, 995, 0.001, 99.96).check()
    for values in ((994, 0.0, 100.0), (1000, 0.0, 99.94), (1000, 0.0011, 100.0)):
        with pytest.raises(UserError, match="not equivalent"):
            Agreement(1, 1000, *values).check()
