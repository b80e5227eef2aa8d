"""Special tokens of texts, for folders whose tokenizer files do not name them."""

import json

import pytest
import torch

transformers = pytest.importorskip("transformers")

import glassformer as gf
from glassformer import pipeline
from glassformer.interop.huggingface import import_folder
from glassformer.recording.modules import hidden_states
from tests.interop.test_tokenizer import train_spm
from tests.interop.theirs import random_model, write_byte_level
from tests.pipelines.test_ours import CAT, DOG, build

NAMES = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
IDS = dict(bos_token_id=0, pad_token_id=1, eos_token_id=2)
GREEDY = {"do_sample": False, "max_new_tokens": 5}


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """A Llama whose tokenizer is a tokenizer.model."""
    folder = tmp_path_factory.mktemp("llama")
    trained = train_spm(folder, "tokenizer", model_type="bpe", unk_id=0, bos_id=1, eos_id=2, pad_id=-1)
    settings = {"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"add_bos_token": True}))
    sizes = dict(hidden_size=24, intermediate_size=31, num_hidden_layers=2, num_attention_heads=6)
    config = transformers.LlamaConfig(vocab_size=len(trained), bos_token_id=1, eos_token_id=2, **sizes)
    random_model("LlamaForCausalLM", config).save_pretrained(folder)
    return folder


def test_a_prompt_of_llama_has_a_start_token(llama):
    generate = pipeline("text-generation", llama, device=-1)
    theirs = transformers.pipeline("text-generation", model=str(llama), device=-1)
    found = generate(CAT, **GREEDY, return_tensors=True)
    assert found == theirs(CAT, **GREEDY, return_tensors=True)
    assert found[0]["generated_token_ids"][0] == 1


def test_a_source_of_bart_has_a_start_token(tmp_path):
    n = write_byte_level(
        tmp_path, NAMES, tokenizer_class="BartTokenizer", bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )
    sizes = dict(
        d_model=22, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=31, decoder_ffn_dim=31,
        encoder_attention_heads=2, decoder_attention_heads=2, max_position_embeddings=97,
    )  # fmt: skip
    config = transformers.BartConfig(vocab_size=n, decoder_start_token_id=2, forced_eos_token_id=None, **sizes, **IDS)
    model = random_model("BartForConditionalGeneration", config)
    model.save_pretrained(tmp_path)
    ids = transformers.AutoTokenizer.from_pretrained(tmp_path)(CAT, return_tensors="pt")["input_ids"]
    assert ids[0, 0] == 0
    expected = model.generate(ids, num_beams=1, max_new_tokens=9)[0].tolist()
    summarize = pipeline("summarization", tmp_path, device=-1)
    found = summarize(CAT, num_beams=1, max_new_tokens=9, return_tensors=True)
    assert found[0]["summary_token_ids"].tolist() == expected


@pytest.mark.parametrize("native", [False, True])
def test_pairs_of_roberta_have_two_separators(tmp_path, native):
    roles = {"tokenizer_class": "RobertaTokenizer", "cls_token": "<s>", "sep_token": "</s>", "pad_token": "<pad>"}
    n = write_byte_level(tmp_path / "theirs", NAMES, **roles)
    config = transformers.RobertaConfig(
        vocab_size=n, hidden_size=22, num_attention_heads=2, intermediate_size=31, num_hidden_layers=2,
        max_position_embeddings=99, type_vocab_size=1, num_labels=3, **IDS,
    )  # fmt: skip
    random_model("RobertaForSequenceClassification", config).save_pretrained(tmp_path / "theirs")
    if native:
        import_folder(tmp_path / "theirs", tmp_path / "ours")
    ours = pipeline("text-classification", tmp_path / ("ours" if native else "theirs"), device=-1)
    theirs = transformers.pipeline("text-classification", model=str(tmp_path / "theirs"), device=-1)
    assert ours.tokenizer(CAT, DOG) == dict(theirs.tokenizer(CAT, DOG))
    pair = {"text": CAT, "text_pair": DOG}
    assert ours(pair)["score"] == pytest.approx(theirs(pair)["score"], abs=1e-4)


def test_features_of_a_language_model_are_those_of_its_prompts(tmp_path):
    task = build("causal-lm", "bpe")
    task.save(tmp_path / "it")
    prompt = task.prompt("A dog")
    assert prompt[0] == task.tokenizer.bos_id != task.tokenizer.eos_id
    found = pipeline("feature-extraction", tmp_path / "it", device=-1)("A dog")
    expected = hidden_states(gf.load(tmp_path / "it", device="cpu").model, [prompt])[0]
    torch.testing.assert_close(torch.tensor(found[0]), torch.as_tensor(expected))
