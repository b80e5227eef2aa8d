"""Exported models give the outputs of the original; an export that does not is refused."""

import sys

import numpy as np
import pytest
import torch

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("ctranslate2")

from glassformer import checkpoint
from glassformer.decode_config import DecodeConfig
from glassformer.errors import ConfigError, UserError
from glassformer.generate.request import Sources
from glassformer.generate.shortlist import Shortlist
from glassformer.interop import export, onnx_graph
from glassformer.interop.ctranslate2 import vocabulary
from glassformer.interop.export import export_verified
from glassformer.interop.onnx import outputs_of
from glassformer.interop.verification import Agreement, compare, random_sources
from glassformer.tasks.base import AnyTask
from glassformer.tasks.registry import load
from tests.interop.ours import make
from tests.interop.theirs import LINES
from tests.journeys.conftest import glassformer

TARGETS = ["ctranslate2", "onnx"]
PRUNED = {"pruned_heads": {"encoder.0.self_attention": 3, "decoder.1.self_attention": 5}}
EVEN = {"d_model": 24, "n_heads": 2}
GATED = {"activation": "gated_gelu"}
MODELS = {
    "transformer": ("translation", "transformer", {}),
    "transformer pre-norm": ("translation", "transformer", {"pre_norm": True, "activation": "silu"}),
    "transformer rotary": ("translation", "transformer", {"pre_norm": True, "rotary": True, **EVEN}),
    "transformer gated": ("translation", "transformer", {"activation": "gated_silu"}),
    "gpt2 gated": ("causal-lm", "gpt2", {"activation": "gated_gelu"}),
    "bert gated": ("feature-extraction", "bert", {"activation": "gated_silu"}),
    "marian": ("translation", "transformer", {"sinusoid_layout": "concat", "output_bias": True}),
    "pruned": ("translation", "transformer", {"pre_norm": True, **PRUNED}),
    "summaries": ("summarization", "gpt2", {}),
    "t5": ("translation", "t5", {"d_head": 2, "n_buckets": 8, "max_distance": 11}),
    "t5 1.1": (
        "translation",
        "t5",
        {"max_len": 29, "d_head": 3, "scale_output": False, "tie_embeddings": False, **GATED},
    ),
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
    "regression": ("regression", "bert", {}),
}


def folder_of(case, tmp_path):
    name, family, sizes = MODELS[case]
    task = make(name, family, **{"max_len": 13, **sizes})
    if name == "regression":
        task.labels = ("-3.0", "5.0")
    checkpoint.save_folder(tmp_path / "ours", task.contents())
    return tmp_path / "ours"


@pytest.mark.parametrize(
    ("to", "case"), [(to, case) for to in TARGETS for case in MODELS if (to, case) != ("ctranslate2", "pruned")]
)
def test_exported_models_give_the_outputs_of_the_original(to, case, tmp_path, monkeypatch):
    found = []
    monkeypatch.setattr(Agreement, "check", lambda self: found.append(self))
    export_verified(folder_of(case, tmp_path), tmp_path / "out", to)
    (agreement,) = found
    assert agreement.n_tokens >= 9
    assert agreement.n_equal == agreement.n_tokens
    assert agreement.difference < 1e-3
    assert agreement.bleu in (None, 100)


@pytest.fixture(autouse=True)
def few_sources(monkeypatch):
    monkeypatch.setattr("glassformer.interop.verification.RANDOM_SOURCES", 9)


def corrupt(folder, values: torch.Tensor) -> None:
    """Add 1 to one number of the files of a folder: the first of the given weights."""
    data = values.detach().numpy().tobytes()
    path = next(path for path in sorted(folder.iterdir()) if data in path.read_bytes())
    at = path.read_bytes().find(data)
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
    done = glassformer("export", folder, "--out", tmp_path / "out", "--to", to)
    assert done.returncode == 1
    assert "the exported model is not equivalent to the original; nothing was written.\n" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["ours"]


@pytest.mark.parametrize("to", TARGETS)
def test_families_and_variants_that_the_target_does_not_have_are_named(to, tmp_path):
    for name, family, sizes, message in [
        (
            "translation",
            "rnn",
            {},
            "a rnn: .* Supported families: transformer, t5, gpt2, llama, bert",
        ),
        ("translation", "transformer", {"attention": "additive"}, "additive attention"),
        ("skip-gram", "skipgram", {}, "a skipgram: "),
        *([("translation", "transformer", PRUNED, "pruned attention heads")] if to == "ctranslate2" else []),
    ]:
        checkpoint.save_folder(tmp_path / "ours", make(name, family, **sizes).contents())
        with pytest.raises(UserError, match=message):
            export_verified(tmp_path / "ours", tmp_path / "out", to)
        assert [path.name for path in tmp_path.iterdir()] == ["ours"]


@pytest.mark.parametrize("to", TARGETS)
def test_a_missing_package_is_one_error_with_the_command(to, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, f"glassformer.interop.{to}", raising=False)
    monkeypatch.setitem(sys.modules, to, None)
    with pytest.raises(UserError, match=rf"needs the package {to}.*\n.*pip install 'glassformer\[export\]'"):
        export_verified(tmp_path / "ours", tmp_path / "out", to)


def test_an_existing_folder_and_a_file_without_text_are_refused(tmp_path):
    folder = folder_of("gpt2", tmp_path)
    with pytest.raises(ConfigError, match="not empty"):
        export_verified(folder, folder, "ctranslate2")
    (tmp_path / "blank.txt").write_text("\n \n")
    with pytest.raises(UserError, match=r"blank.txt: no text for the comparison"):
        export_verified(folder, tmp_path / "out", "ctranslate2", tmp_path / "blank.txt")


@pytest.mark.parametrize("to", TARGETS)
@pytest.mark.parametrize(("case", "limit"), [("transformer", 13), ("summaries", 7), ("classification", 13)])
def test_lines_of_a_file_are_compared_and_long_ones_truncated(case, limit, to, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(export, "compare", lambda *args: seen.extend(args[2]) or compare(*args))
    (tmp_path / "lines.txt").write_text("\n".join([*LINES[:7], "", "a cat " * 50]), encoding="utf-8")
    described = export_verified(folder_of(case, tmp_path), tmp_path / "out", to, tmp_path / "lines.txt")
    assert f"{len(seen)} lines of {tmp_path / 'lines.txt'}" in described
    assert max(len(source.ids) for source in seen) <= limit


@pytest.mark.parametrize("to", TARGETS)
def test_prompts_of_the_maximum_length_leave_room_for_what_is_compared(to, tmp_path):
    checkpoint.save_folder(tmp_path / "ours", make("causal-lm", "gpt2", max_len=83).contents())
    (tmp_path / "lines.txt").write_text(("a cat " * 90 + "\n") * 9, encoding="utf-8")
    described = export_verified(tmp_path / "ours", tmp_path / "out", to, tmp_path / "lines.txt")
    assert "100.00% of 288 tokens equal" in described


def test_lines_for_a_format_that_is_not_compared_are_refused(tmp_path):
    done = glassformer("export", tmp_path, "--out", tmp_path / "out", "--src", "lines.txt")
    assert done.returncode == 2
    assert done.stderr.startswith("error: --src: a folder for huggingface is not compared.")


def test_each_limit_is_checked_and_nan_exceeds_it():
    with pytest.raises(UserError, match="not equivalent"):
        Agreement(1, 1, float("nan")).check()
    Agreement(1000, 995, 0.001, 99.96).check()
    for values in ((994, 0.0, 100.0), (1000, 0.0, 99.94), (1000, 0.0011, 100.0)):
        with pytest.raises(UserError, match="not equivalent"):
            Agreement(1000, *values).check()


GENERATORS = [case for case, (_, family, _) in MODELS.items() if family != "bert"]


def onnx_of(case, tmp_path):
    """A task, and its model in ONNX Runtime."""
    task = load(folder_of(case, tmp_path), device="cpu")
    target = export.import_target("onnx")
    target.save(task, tmp_path)
    for path in tmp_path.glob("*.onnx"):
        onnx.checker.check_model(onnx.load(path), full_check=True)
    return task, target.load(tmp_path, task)


# Untrained post-norm models give many hypotheses the same score.
@pytest.mark.parametrize("case", [case for case in GENERATORS if case not in ("transformer", "marian")])
def test_beam_search_and_sampling_in_onnx_runtime_give_the_hypotheses_of_the_original(case, tmp_path):
    task, exported = onnx_of(case, tmp_path)
    sources = [source.ids for source in random_sources(task)]
    for options in (DecodeConfig(beam=3, nbest=2, max_length=7), DecodeConfig(temperature=0.8, seed=3, max_length=7)):
        engines = task.engine(options), task.engine(options, exported)
        ours, theirs = (engine.decode(Sources(sources, options)) for engine in engines)
        for expected, found in zip(ours, theirs, strict=True):
            assert [h.ids for h in found] == [h.ids for h in expected]
            assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=1e-4)


@pytest.mark.parametrize("case", GENERATORS)
def test_padding_changes_no_output_of_onnx_runtime(case, tmp_path):
    task, exported = onnx_of(case, tmp_path)
    pad_id = task.config.pad_id
    long, short = (sorted((source.ids for source in random_sources(task)), key=len)[i] for i in (-1, 3))
    n = len(long) - len(short)
    if task.kind == "decoder":  # prompts are padded on the left
        ids, mask = np.array([long, [pad_id] * n + short]), np.array([[1] * len(long), [0] * n + [1] * len(short)])
        positions = (mask.cumsum(1) - 1).clip(0)
        past = {k: v.repeat(2, 0) for k, v in exported.initial_state(ids[:1]).inputs.items()}
        logits = outputs_of(
            exported.model, {"input_ids": ids, "attention_mask": mask, "position_ids": positions, **past}
        )["logits"]
        expected = exported.decode(ids[1:, n:], exported.initial_state(ids[1:]))[0]
        np.testing.assert_allclose(logits[1, n:], expected, atol=1e-4)
    else:
        tgt = np.array([[task.tokenizer.bos_id, 7, 9]])
        padded = exported.initial_state(np.array([long, short + [pad_id] * n]))
        logits = exported.decode(tgt.repeat(2, 0), padded)[1]
        expected = exported.decode(tgt, exported.initial_state(np.array([short])))[0]
        torch.testing.assert_close(logits, expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("case", [case for case, (_, family, _) in MODELS.items() if family == "bert"])
def test_padding_changes_no_output_of_an_encoder_in_onnx_runtime(case, tmp_path):
    task, exported = onnx_of(case, tmp_path)
    long, short = (max(random_sources(task), key=lambda source: sign * len(source.ids)) for sign in (1, -1))
    n = len(long.ids) - len(short.ids)
    rows = {
        "input_ids": [long.ids, short.ids + [task.config.pad_id] * n],
        "attention_mask": [[1] * len(long.ids), [1] * len(short.ids) + [0] * n],
        "token_type_ids": [long.token_type_ids, short.token_type_ids + [0] * n],
    }
    found = outputs_of(exported.model, {x.name: np.array(rows[x.name]) for x in exported.model.get_inputs()})
    for name, expected in exported.outputs(short.ids, short.token_type_ids).items():
        np.testing.assert_allclose(found[name][1][: len(expected)], expected, atol=1e-4)


def test_large_weights_are_in_a_file_beside_the_graph(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_graph, "MAX_BYTES", 1000)
    export_verified(folder_of("gpt2", tmp_path), tmp_path / "out", "onnx")
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "out").iterdir()}
    assert sizes["model.onnx"] < 50_000 < sizes["model.onnx.data"]


def test_weights_have_the_names_of_the_model_and_tied_ones_are_stored_once(tmp_path):
    task, _ = onnx_of("gpt2", tmp_path)
    stored = {x.name: x for x in onnx.load(tmp_path / "model.onnx").graph.initializer}
    for name, weight in task.model.named_parameters():
        found = onnx.numpy_helper.to_array(stored[name] if name in stored else stored[f"{name}.T"])
        np.testing.assert_array_equal(found if name in stored else found.T, weight.detach().numpy())
    sizes = [np.prod(x.dims) for x in stored.values()]
    assert sum(sizes) < 1.01 * sum(p.numel() for p in task.model.parameters())


def test_a_vocabulary_shortlist_is_exported_to_ctranslate2(tmp_path):
    import ctranslate2

    task = make("translation", "transformer", max_len=13)
    rng = np.random.default_rng(1)
    lists = rng.integers(5, task.config.vocab_size, (task.config.vocab_size, 2), np.int32)
    begins = np.arange(0, 2 * len(lists) + 1, 2, dtype=np.int32)
    task.shortlist = Shortlist(np.array([task.tokenizer.eos_id, 7], np.int32), begins, lists.ravel())
    checkpoint.save_folder(tmp_path / "ours", task.contents())
    assert "vocabulary shortlist (use_vmap=True)" in export_verified(tmp_path / "ours", tmp_path / "out", "ctranslate2")
    names = vocabulary(task)
    source = [*task.tokenizer.encode(LINES[0])[:5], task.tokenizer.eos_id]
    peer = ctranslate2.Translator(str(tmp_path / "out"), inter_threads=1, intra_threads=1)
    allowed = {names[i] for i in task.shortlist.tokens(source)}
    fixed = {names[task.tokenizer.bos_id], names[task.tokenizer.pad_id]}  # on every list of CTranslate2
    for use_vmap in (True, False):
        (result,) = peer.translate_batch([[names[i] for i in source]], use_vmap=use_vmap, max_decoding_length=9)
        assert (set(result.hypotheses[0]) <= allowed | fixed) == use_vmap
