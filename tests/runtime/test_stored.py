"""Folders in int8 give the outputs of the model in int8, bit for bit, and nothing else."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import glassformer as gf
from glassformer.checkpoint import read_tensors, save_folder
from glassformer.cli.export import export
from glassformer.decode_config import DecodeConfig
from glassformer.errors import CheckpointError, ConfigError, UserError
from glassformer.kernels.library import load
from glassformer.kernels.quantize import pack, quantize_weight, unpack
from glassformer.models.bert import Bert, BertConfig
from glassformer.models.families import family_of
from glassformer.recording.graphs import graph_of
from glassformer.recording.precision import in_precision, runtime_of
from glassformer.runtime.stored import WEIGHTS_FILE, StoredModel
from glassformer.tasks.classification import Classifier
from glassformer.tasks.masked_lm import MaskedLM
from glassformer.tasks.translation import Translator
from glassformer.tokens.tokenizer import Tokenizer
from tests.runtime.models import MODELS, model_of, transformer
from tests.tokens.options import tokenizer_options

LINES = ["the black cat sat on a couch", "a dog slept", "the cat and the dog"]


@given(st.integers(1, 150), st.integers(1, 150), st.integers(0, 99))
def test_unpacked_tables_are_the_quantized_weight(n, k, seed):
    weight = np.random.default_rng(seed).normal(size=(n, k)).astype(np.float32)
    quantized, scale = quantize_weight(weight)
    np.testing.assert_array_equal(unpack(pack(quantized, scale, None)[0], n, k), quantized)


def bert(**config):
    sizes = {"vocab_size": 331, "d_model": 48, "n_heads": 3, "d_ff": 101, "n_layers": 2, "max_len": 23}
    model = Bert(BertConfig(**sizes, **config)).eval()
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.3)
    return model


@pytest.mark.parametrize("kernels", ["C", "PyTorch"])
@pytest.mark.parametrize("name", MODELS)
def test_logits_of_a_folder_in_int8_are_those_of_the_model_in_int8(name, kernels, monkeypatch, tmp_path):
    model = model_of(name)
    if kernels == "PyTorch":
        for module in ("runtime.stored", "recording.precision"):
            monkeypatch.setattr(f"glassformer.{module}.load_or_warn", lambda: None)
    expected = in_precision(model, "int8")
    save_folder(tmp_path / "int8", {WEIGHTS_FILE: expected.tables.to_store()})
    family = family_of(model)
    stored = StoredModel(tmp_path / "int8", family, model.config, graph_of(family, model.config), is_int8=True)
    loaded = stored.in_precision("fp32")
    src = [[7, 9, 4, 11], [8, 3, 12, 13]]
    (state, last), (expected_state, _) = loaded.start(src), expected.start(src)
    for _ in range(3):
        logits = loaded.logits(last, state)
        assert np.array_equal(logits, expected.logits(last, expected_state))
        last = logits.argmax(-1)


@pytest.mark.parametrize("is_quantized", [True, False], ids=["int8", "fp32"])
@pytest.mark.parametrize("name", MODELS)
def test_a_stored_model_computes_what_the_module_computes(name, is_quantized, tmp_path):
    model = model_of(name)
    family = family_of(model)
    graph = graph_of(family, model.config)
    save_folder(tmp_path / "model", {WEIGHTS_FILE: model.state_dict()})
    stored = StoredModel(tmp_path / "model", family, model.config, graph, is_int8=False)
    kernels = load()[0]
    if kernels is None:
        pytest.skip("no C compiler")
    found, expected = (
        stored.programs(kernels, is_quantized=is_quantized),
        runtime_of(model, kernels, is_quantized=is_quantized),
    )
    texts = [[7, 9, 4, 11], [8, 3, 12, 13]]
    (state, last), (expected_state, _) = found.start(texts, 2), expected.start(texts, 2)
    assert np.array_equal(found.logits(last, state), expected.logits(last, expected_state))


def task_of(kind):
    tokenizer = Tokenizer.train(LINES * 5, vocab_size=300, **tokenizer_options(kind.name))
    if kind is Translator:
        return Translator(transformer(), tokenizer)
    labels = ("no", "yes") if kind is Classifier else ()
    return kind(bert(n_labels=len(labels), **kind.head_config), tokenizer, "cpu", labels)


def test_a_translator_exported_in_int8_translates_the_same(tmp_path, capsys):
    task = task_of(Translator)
    task.save(tmp_path / "fp32")
    export(tmp_path / "fp32", out=tmp_path / "int8", to="int8")
    assert "loaded in" in capsys.readouterr().out
    options = DecodeConfig(precision="int8", max_length=9)
    expected = task.records(LINES, options)
    loaded = gf.load(tmp_path / "int8")
    assert loaded.records(LINES, options) == expected
    assert loaded.records(LINES, DecodeConfig(max_length=9)) == expected
    loaded.save(tmp_path / "again", precision="int8")
    assert gf.load(tmp_path / "again").records(LINES, options) == expected
    tables = [t for name, t in read_tensors(tmp_path / "int8" / "model.safetensors").items()]
    assert all(t.data_ptr() % 64 == 0 for t in tables)


def test_a_classifier_exported_in_int8_has_the_same_scores(tmp_path):
    task = task_of(Classifier)
    task.save(tmp_path / "int8", precision="int8")
    loaded = gf.load(tmp_path / "int8")
    task.precision = "int8"
    assert loaded.records(LINES) == task.records(LINES)


@pytest.mark.filterwarnings("ignore:at least one text")
def test_what_needs_the_weights_is_refused(tmp_path):
    task = task_of(Translator)
    task.save(tmp_path / "int8", precision="int8")
    loaded = gf.load(tmp_path / "int8")
    text = tmp_path / "text"
    text.write_text("\n".join(LINES * 9))
    for use in (
        lambda: gf.inspect(loaded, LINES[0]),
        lambda: loaded.save(tmp_path / "fp32"),
        lambda: export(tmp_path / "int8", out=tmp_path / "hf"),
        lambda: loaded.model,
        lambda: gf.train(text, text, out=tmp_path / "tuned", init_from=tmp_path / "int8", steps=1),
    ):
        with pytest.raises(UserError, match="exported in int8"):
            use()
    with pytest.raises(ConfigError, match="precision bf16"):
        loaded.translate(LINES, DecodeConfig(precision="bf16"))
    assert loaded.run(LINES[:1])
    for ours, exact in zip(loaded.score(LINES, LINES), task.score(LINES, LINES), strict=True):
        assert ours == pytest.approx(exact, abs=0.5)  # weights are rounded


def test_a_masked_language_model_is_not_exported(tmp_path):
    with pytest.raises(UserError, match="masked language model"):
        task_of(MaskedLM).save(tmp_path / "int8", precision="int8")
    assert not (tmp_path / "int8").exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda tensors: tensors.pop("int8.3"),
        lambda tensors: tensors.update({"int8.3": tensors["int8.3"][:-16]}),
        lambda tensors: tensors.update({"int8.3": tensors["int8.3"].astype(np.int32)}),
        lambda tensors: tensors.update({"int8.999": np.zeros(16, np.float32)}),
        lambda tensors: tensors.pop("classifier.weight"),
        lambda tensors: tensors.update({"classifier.bias": np.zeros(3, np.float32)}),
    ],
)
def test_a_folder_whose_tables_do_not_match_its_config_is_refused(tmp_path, damage):
    contents = dict(task_of(Classifier).contents(precision="int8"))
    tensors = dict(contents["model.safetensors"])
    damage(tensors)
    save_folder(tmp_path / "int8", contents | {"model.safetensors": tensors})
    with pytest.raises(CheckpointError, match=r"(?s)model.safetensors: .*(int8.3|tables|classifier)"):
        gf.load(tmp_path / "int8")


def test_a_config_of_another_size_is_refused(tmp_path):
    contents = dict(task_of(Translator).contents(precision="int8"))
    config = json.loads(contents["config.json"]) | {"d_ff": 200}
    save_folder(tmp_path / "int8", contents | {"config.json": json.dumps(config)})
    with pytest.raises(CheckpointError, match="another configuration"):
        gf.load(tmp_path / "int8")


def test_the_error_of_programs_with_too_few_tokens_names_the_folder(tmp_path):
    contents = dict(task_of(Translator).contents())
    programs = contents["programs.json"].replace('"by": "position"', '"by": "token"')
    save_folder(tmp_path / "model", contents | {"programs.json": programs})
    with pytest.raises(CheckpointError, match=r"model: .*programs\.json has fewer"):
        gf.load(tmp_path / "model").run(["a cat"])
