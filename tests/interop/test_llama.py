"""Llama, Mistral and Qwen2, imported and exported again: same outputs and same tokens as transformers."""

import json

import pytest
import tokenizers
import torch

transformers = pytest.importorskip("transformers")

from glassformer.errors import CheckpointError, ConfigError
from glassformer.generate.search import beam_search
from glassformer.interop.huggingface import export_folder, import_folder
from glassformer.limits import MAX_TOKENS
from glassformer.models.decoding import decodable
from glassformer.models.llama import LlamaConfig
from glassformer.tasks.registry import load
from tests.interop.theirs import LINES, ragged, random_model, up_to, write_byte_level

SPECIAL = ["<pad>", "<s>", "</s>"]
PAD, BOS, EOS = 0, 1, 2
MAX_LEN = 11
SIZES = dict(
    hidden_size=24, intermediate_size=31, num_hidden_layers=3, num_attention_heads=6, max_position_embeddings=64,
    pad_token_id=PAD, bos_token_id=BOS, eos_token_id=EOS,
)  # fmt: skip
LAYOUTS = {
    "Llama": dict(num_key_value_heads=2, rope_parameters={"rope_type": "default", "rope_theta": 500.0}),
    "Llama-all-heads": dict(num_key_value_heads=6, head_dim=10, rms_norm_eps=1e-5),
    "Llama-tied": dict(num_key_value_heads=1, tie_word_embeddings=True),
    "Mistral": dict(num_key_value_heads=3, sliding_window=None, head_dim=6),
    "Mistral-window": dict(num_key_value_heads=3, sliding_window=37),
    "Qwen2": dict(num_key_value_heads=2),
    "Qwen2-tied": dict(num_key_value_heads=2, tie_word_embeddings=True),
}


def write_tokenizer(folder):
    """Write a byte-level tokenizer.json; return the vocabulary size."""
    n = write_byte_level(folder, SPECIAL)
    backend = tokenizers.ByteLevelBPETokenizer.from_file(str(folder / "vocab.json"), str(folder / "merges.txt"))
    roles = dict(zip(("pad_token", "bos_token", "eos_token"), SPECIAL, strict=True))
    transformers.PreTrainedTokenizerFast(tokenizer_object=backend._tokenizer, **roles).save_pretrained(folder)
    return n


@pytest.fixture(scope="module", params=LAYOUTS)
def folders(request, tmp_path_factory):
    """A transformers folder, its import, and the export of the import."""
    name = request.param.partition("-")[0]
    root = tmp_path_factory.mktemp(request.param)
    n = write_tokenizer(root / "theirs")
    config = getattr(transformers, f"{name}Config")(vocab_size=n + 3, **SIZES, **LAYOUTS[request.param])
    random_model(f"{name}ForCausalLM", config).save_pretrained(root / "theirs")
    import_folder(root / "theirs", root / "ours")
    exported = "Llama" if name == "Mistral" else name
    assert export_folder(root / "ours", root / "back") == f"{exported}ForCausalLM"
    return root


@pytest.fixture(scope="module")
def task(folders):
    return load(folders / "ours", device="cpu")


@pytest.fixture(scope="module", params=["theirs", "back"])
def model(folders, request):
    return transformers.AutoModelForCausalLM.from_pretrained(folders / request.param).eval()


def test_logits_are_transformers_over_ragged_batches(task, model):
    ids = ragged(task.config.vocab_size, PAD)
    with torch.no_grad():
        expected = model(input_ids=ids, attention_mask=ids != PAD).logits
        logits = task.model.logits(task.model(ids))
    torch.testing.assert_close(logits[ids != PAD], expected[ids != PAD], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("length", [pytest.param(1, marks=pytest.mark.slow), 5])
def test_search_gives_transformers_tokens(task, model, beam, length):
    prompts = ragged(task.config.vocab_size, PAD, (length,) * 5)
    with torch.no_grad():
        expected = model.generate(
            input_ids=prompts, attention_mask=torch.ones_like(prompts), num_beams=beam, do_sample=False,
            max_new_tokens=MAX_LEN, length_penalty=0.0, early_stopping=True, bad_words_ids=None, pad_token_id=PAD,
        )  # fmt: skip
    hypotheses = beam_search(
        decodable(task.model), prompts.tolist(), [MAX_LEN] * len(prompts), eos_id=EOS, beam=beam, alpha=0.0
    )
    for ours_best, theirs_ids in zip(hypotheses, expected[:, length:].tolist(), strict=True):
        assert ours_best[0].ids == up_to(EOS, theirs_ids)


def test_cached_decoding_gives_the_logits_of_the_full_forward_pass(task):
    m, ids = task.model, ragged(task.config.vocab_size, PAD, (13, 13, 13))
    with torch.inference_mode():
        whole = m.logits(m(ids))
        state, last = m.start(ids[:, :4])
        for i in range(3, 13):
            torch.testing.assert_close(m.step(last, state), whole[:, i], rtol=1e-5, atol=1e-5)
            last = ids[:, min(i + 1, 12)]


def test_texts_packed_into_one_sequence_give_the_outputs_of_separate_texts(task):
    ids = ragged(task.config.vocab_size, PAD, (5, 3, 7))
    segments = torch.tensor([[1] * 5 + [2] * 3 + [3] * 7])
    packed = torch.cat([ids[0, :5], ids[1, :3], ids[2]])[None]
    alone = torch.cat([task.model(row[row != PAD][None])[0] for row in ids])
    torch.testing.assert_close(task.model(packed, segments)[0], alone, rtol=1e-5, atol=1e-5)


def test_ids_are_those_of_transformers(folders, task):
    # AutoTokenizer replaces the pre-tokenizer of every Qwen2 folder by Qwen2's own.
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(folders / "theirs")
    assert theirs(LINES, add_special_tokens=False)["input_ids"] == task.tokenizer.encode_batch(LINES)
    if task.config.qkv_bias:
        back = transformers.PreTrainedTokenizerFast.from_pretrained(folders / "back")
    else:
        back = transformers.AutoTokenizer.from_pretrained(folders / "back")
    assert back(LINES)["input_ids"] == [task.prompt(line) for line in LINES]


def test_a_sliding_window_limits_the_length(task, folders):
    config = json.loads((folders / "theirs" / "config.json").read_text())
    window = config.get("sliding_window") if config["model_type"] == "mistral" else None
    assert task.config.max_len == (window or 64)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4}}, "rope_type = 'llama3' is not supported"),
        ({"attention_bias": True}, "attention_bias = True is not supported"),
        ({"hidden_act": "gelu"}, "hidden_act = 'gelu' is not supported"),
        ({"num_key_value_heads": 4}, "n_heads = 6 is not divisible by n_kv_heads = 4"),
    ],
)
def test_other_layouts_are_refused(tmp_path, change, message):
    n = write_tokenizer(tmp_path / "theirs")
    config = transformers.LlamaConfig(vocab_size=n, num_key_value_heads=2, **SIZES)
    random_model("LlamaForCausalLM", config).save_pretrained(tmp_path / "theirs")
    path = tmp_path / "theirs" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(CheckpointError, match=message):
        import_folder(tmp_path / "theirs", tmp_path / "ours")


def test_all_impossible_sizes_are_named_at_once():
    with pytest.raises(ConfigError) as error:
        LlamaConfig.resolve({"vocab_size": 100, "d_model": 35, "n_heads": 6, "n_kv_heads": 4})
    message = str(error.value)
    assert "d_model = 35 is not divisible by n_heads = 6" in message
    assert "n_heads = 6 is not divisible by n_kv_heads = 4" in message
    assert "d_head = 5 must be even" in message


def test_a_model_of_many_positions_is_used_up_to_the_limit(tmp_path):
    n = write_tokenizer(tmp_path / "theirs")
    sizes = {**SIZES, **LAYOUTS["Qwen2"], "max_position_embeddings": 32_768}
    config = transformers.Qwen2Config(vocab_size=n + 3, **sizes)
    random_model("Qwen2ForCausalLM", config).save_pretrained(tmp_path / "theirs")
    import_folder(tmp_path / "theirs", tmp_path / "ours")
    assert load(tmp_path / "ours", device="cpu").config.max_len == MAX_TOKENS


def test_the_base_of_the_rotation_is_written_for_transformers_4_too(folders):
    config = json.loads((folders / "back" / "config.json").read_text())
    assert config["rope_theta"] == config["rope_parameters"]["rope_theta"]


@pytest.mark.parametrize("settings", [{"bos_token": None}, {"add_bos_token": False}, {}], ids=str)
def test_a_model_whose_texts_have_no_start_token_gets_none(tmp_path, settings):
    n = write_tokenizer(tmp_path / "theirs")
    path = tmp_path / "theirs" / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))
    config = transformers.Qwen2Config(vocab_size=n + 3, **SIZES, **LAYOUTS["Qwen2"])
    random_model("Qwen2ForCausalLM", config).save_pretrained(tmp_path / "theirs")
    task = import_folder(tmp_path / "theirs", tmp_path / "ours")
    text = "the black cat"
    expected = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")(text)["input_ids"]
    assert task.prompt(text) == expected
    assert BOS not in expected
    export_folder(tmp_path / "ours", tmp_path / "back")
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "back")(text)["input_ids"] == expected
