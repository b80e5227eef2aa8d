"""Import of invalid or unsupported folders fails with an error message that names the cause, and writes nothing."""

import pytest
import torch

transformers = pytest.importorskip("transformers")

from glassformer import checkpoint
from glassformer.cli import main
from glassformer.errors import CheckpointError, ConfigError
from glassformer.interop.huggingface import import_folder
from glassformer.manifest import read_json
from tests.interop.theirs import random_model, write_byte_level, write_unigram, write_wordpiece

SIZES = dict(
    hidden_size=22, num_attention_heads=11, intermediate_size=31, num_hidden_layers=1, max_position_embeddings=23
)


@pytest.fixture
def folder(tmp_path):
    """A small BERT for masked-token prediction, which the tests corrupt."""
    path = tmp_path / "theirs"
    n = write_wordpiece(path)
    random_model("BertForMaskedLM", transformers.BertConfig(vocab_size=n, **SIZES)).save_pretrained(path)
    return path


def change_config(folder, **changes):
    config = read_json(folder / "config.json") | changes
    kept = {name: value for name, value in config.items() if value != "removed"}
    (folder / "config.json").write_text(checkpoint.to_json(kept))


def change_weights(folder, change):
    tensors = checkpoint.read_tensors(folder / "model.safetensors")
    change(tensors)
    checkpoint.write_files(folder, {"model.safetensors": tensors})


def refused(folder, *words):
    out = folder.with_name("ours")
    with pytest.raises(CheckpointError) as error:
        import_folder(folder, out)
    for word in words:
        assert word in str(error.value)
    assert not out.exists()


CONFIGS = {
    "an unknown model": ({"model_type": "mamba"}, "'mamba'", "Supported: bert, roberta"),
    "no model type": ({"model_type": "removed"}, "'None'"),
    "an unknown head": ({"architectures": ["BertForMultipleChoice"]}, "'BertForMultipleChoice'", "BertForMaskedLM"),
    "a size that is missing": ({"hidden_size": "removed"}, "missing field 'hidden_size'"),
    "a size that is no number": ({"hidden_size": "many"}, "config.json", "d_model", "'many'"),
    "a size beyond all limits": ({"hidden_size": 10**9}, "d_model", "1000000000"),
    "heads that do not divide": ({"num_attention_heads": 5}, "n_heads = 5"),
    "an unknown activation": ({"hidden_act": "mish"}, "'mish'", "gelu_new"),
    "relative positions": ({"position_embedding_type": "relative_key"}, "position_embedding_type = 'relative_key'"),
    "a decoder": ({"is_decoder": True}, "is_decoder = True"),
    "other shapes than the weights": ({"intermediate_size": 37}, "(31, 22), expected from config.json (37, 22)"),
    "more layers than the weights": ({"num_hidden_layers": 2}, "missing: bert.encoder.layer.1.", "and 8 more"),
}


@pytest.mark.parametrize("case", CONFIGS)
def test_an_unsupported_or_invalid_config_is_refused(folder, case):
    changes, *words = CONFIGS[case]
    change_config(folder, **changes)
    refused(folder, *words)


WEIGHTS = {
    "missing": (lambda t: t.pop("cls.predictions.bias"), "missing: cls.predictions.bias"),
    "unexpected": (lambda t: t.update({"adapter.weight": torch.zeros(3)}), "unexpected: adapter.weight"),
    "not a number": (lambda t: t["cls.predictions.bias"].fill_(torch.nan), "cls.predictions.bias", "not finite"),
    "infinite": (lambda t: t["cls.predictions.bias"][3].fill_(torch.inf), "cls.predictions.bias", "not finite"),
    "of another shape": (lambda t: t.update({"cls.predictions.bias": torch.zeros(3)}), "cls.predictions.bias: (3,)"),
    "an untied output matrix": (
        lambda t: t.update({"cls.predictions.decoder.weight": torch.zeros(211, 22)}),
        "cls.predictions.decoder.weight and bert.embeddings.word_embeddings.weight differ",
    ),
}


@pytest.mark.parametrize("case", WEIGHTS)
def test_weights_that_do_not_match_the_architecture_are_refused(folder, case):
    change, *words = WEIGHTS[case]
    change_weights(folder, change)
    refused(folder, *words)


def test_pickled_weights_are_refused_with_the_command_that_converts_them(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    refused(folder, "pytorch_model.bin: a pickle", "python -c", "save_pretrained")


def test_a_folder_without_weights_is_refused(folder):
    (folder / "model.safetensors").unlink()
    refused(folder, "no model.safetensors")


def test_a_damaged_weight_file_is_refused(folder):
    (folder / "model.safetensors").write_bytes(b"nothing of the kind")
    refused(folder, "not readable as safetensors")


def test_a_tokenizer_larger_than_the_embedding_is_refused(folder):
    with open(folder / "vocab.txt", "a", encoding="utf-8") as file:
        file.write("onemore\n")
    refused(folder, "the tokenizer has 212 entries, but the embedding has only 211 rows")


def test_a_tokenizer_without_special_tokens_is_refused(folder):
    vocab = (folder / "vocab.txt").read_text(encoding="utf-8").replace("[CLS]", "[XYZ]")
    (folder / "vocab.txt").write_text(vocab, encoding="utf-8")
    refused(folder, "tokenizer", "[CLS]")


def test_a_folder_without_config_is_refused(tmp_path):
    refused(tmp_path, "config.json", "not a model folder of transformers: it has no config.json")


def test_multi_label_classification_is_refused(tmp_path):
    path = tmp_path / "theirs"
    config = transformers.BertConfig(
        vocab_size=write_wordpiece(path), **SIZES, num_labels=3, problem_type="multi_label_classification"
    )
    random_model("BertForSequenceClassification", config).save_pretrained(path)
    refused(path, "multi_label_classification")


def test_a_gpt2_with_unsupported_attention_scaling_is_refused(tmp_path):
    path = tmp_path / "theirs"
    n = write_byte_level(path, ["<|endoftext|>"])
    config = transformers.GPT2Config(
        vocab_size=n, n_embd=22, n_head=11, n_layer=1, scale_attn_by_inverse_layer_idx=True
    )
    random_model("GPT2LMHeadModel", config).save_pretrained(path)
    refused(path, "scale_attn_by_inverse_layer_idx = True")


def test_a_c_attn_matrix_of_a_wrong_shape_is_refused(tmp_path):
    path = tmp_path / "theirs"
    config = transformers.GPT2Config(
        vocab_size=write_byte_level(path, ["<|endoftext|>"]), n_embd=22, n_head=11, n_layer=1
    )
    random_model("GPT2LMHeadModel", config).save_pretrained(path)
    change_weights(path, lambda t: t.update({"transformer.h.0.attn.c_attn.weight": torch.zeros(2, 3, 5)}))
    refused(path, "the weights do not match the architecture")


def test_a_decoder_start_token_outside_the_vocabulary_is_refused(tmp_path):
    path = tmp_path / "theirs"
    config = transformers.T5Config(
        vocab_size=write_unigram(path) + 3, d_model=22, d_kv=5, num_heads=3, d_ff=31, num_layers=1
    )
    random_model("T5ForConditionalGeneration", config).save_pretrained(path)
    change_config(path, decoder_start_token_id=4000)
    (path / "generation_config.json").unlink()
    refused(path, "start token id 4,000")


def test_a_name_that_is_neither_a_folder_nor_a_hub_repository_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit) as done:
        main(["import", "nobody/no-such-model", "--out", str(tmp_path / "ours")])
    assert done.value.code == 1
    assert (
        "nobody/no-such-model: no such folder, and the download from the Hugging Face hub failed"
        in capsys.readouterr().err
    )


def test_a_folder_that_is_not_empty_is_not_overwritten(folder, tmp_path):
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "diary.txt").write_text("mine")
    with pytest.raises(ConfigError, match="not empty"):
        import_folder(folder, tmp_path / "ours")


def test_import_and_export_commands_print_results_and_errors(folder, tmp_path, capsys):
    ours, back = str(tmp_path / "ours"), str(tmp_path / "back")
    with pytest.raises(SystemExit) as done:
        main(["import", str(folder), "--out", ours])
    assert not done.value.code
    assert "masked-lm, 0.0 M parameters, vocabulary of 211" in capsys.readouterr().out
    with pytest.raises(SystemExit) as done:
        main(["export", ours, "--to", "huggingface", "--out", back])
    assert not done.value.code
    assert "BertForMaskedLM" in capsys.readouterr().out
    with pytest.raises(SystemExit) as done:
        main(["export", ours, "--out", back])
    assert done.value.code == 2
    assert "not empty" in capsys.readouterr().err


def test_a_tokenizer_much_smaller_than_the_vocabulary_is_refused(tmp_path):
    for vocab_size, is_padded in ((30_522, False), (256, True)):
        path = tmp_path / str(vocab_size) / "theirs"
        path.parent.mkdir()
        n = write_wordpiece(path)
        assert n < 256
        config = transformers.BertConfig(vocab_size=vocab_size, **SIZES)
        random_model("BertForMaskedLM", config).save_pretrained(path)
        if is_padded:
            assert import_folder(path, path.with_name("ours")).tokenizer.vocab_size == n
        else:
            refused(path, f"the tokenizer has {n} entries, the vocabulary of the model 30,522")
