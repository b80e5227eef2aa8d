"""Exported glassformer models give the same outputs in transformers."""

import pytest
import torch

transformers = pytest.importorskip("transformers")

from glassformer import checkpoint
from glassformer.errors import UserError
from glassformer.interop.huggingface import export_folder
from tests.interop.ours import make
from tests.interop.theirs import LINES, TEXTS, ragged

KINDS = {
    "masked-lm": "ForMaskedLM", "bert-pretraining": "ForPreTraining", "tagging": "ForTokenClassification",
    "classification": "ForSequenceClassification",
    "question-answering": "ForQuestionAnswering", "feature-extraction": "Model",
}  # fmt: skip


def exported(task, folder):
    """Name of the transformers class, the model, and AutoTokenizer."""
    checkpoint.save_folder(folder / "ours", task.contents())
    name = export_folder(folder / "ours", folder / "back")
    model, report = getattr(transformers, name).from_pretrained(folder / "back", output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    return name, model.eval(), transformers.AutoTokenizer.from_pretrained(folder / "back")


@pytest.mark.parametrize(
    ("name", "pre_norm"),
    [*((name, False) for name in KINDS), *((name, True) for name in KINDS if name != "bert-pretraining")],
)
def test_every_encoder_task_gives_the_outputs_of_transformers(name, pre_norm, tmp_path):
    task = make(name, pre_norm=pre_norm)
    found, model, tokenizer = exported(task, tmp_path)
    assert found == ("RobertaPreLayerNorm" if pre_norm else "Bert") + KINDS[name]
    lines = [line for line in LINES if len(task.tokenizer.encode(line)) < 27][:5]
    given = tokenizer(lines, padding=True, return_tensors="pt")
    ids, there = given["input_ids"], given["attention_mask"].bool()
    with torch.no_grad():
        out, hidden = model(**given), task.model(ids)
        match name:
            case "masked-lm" | "bert-pretraining":
                logits = out.logits if name == "masked-lm" else out.prediction_logits
                pairs = [(logits[there], task.model.mlm_logits(hidden)[there])]
                if name == "bert-pretraining":
                    pairs.append((out.seq_relationship_logits, task.model.label_logits(hidden, ids)))
            case "question-answering":
                spans = torch.stack([out.start_logits, out.end_logits], -1)
                pairs = [(spans[there], task.model.label_logits(hidden, ids)[there])]
            case "classification":
                pairs = [(out.logits, task.logits(lines))]
            case "tagging":
                pairs = [(out.logits[there], task.model.label_logits(hidden, ids)[there])]
            case _:
                pairs = [(out.last_hidden_state[there], hidden[there])]
    for expected, got in pairs:
        torch.testing.assert_close(torch.as_tensor(got), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece", "char", "byte"])
def test_every_tokenizer_type_gives_the_ids_and_texts_of_transformers(kind, tmp_path):
    task = make("classification", kind=kind)
    _, _, tokenizer = exported(task, tmp_path)
    expected = [task.add_special_tokens(ids, []) for ids in task.tokenizer.encode_batch(LINES)]
    found = tokenizer(LINES)
    assert found["input_ids"] == [ids for ids, _ in expected]
    assert found["token_type_ids"] == [types for _, types in expected]
    texts = [task.tokenizer.decode(ids) for ids, _ in expected]
    assert tokenizer.batch_decode(found["input_ids"], skip_special_tokens=True) == texts


@pytest.mark.parametrize("name", ["causal-lm", "summarization"])
def test_decoders_encode_prompts_and_generate_text_as_transformers(name, tmp_path):
    task = make(name, "gpt2")
    _, model, tokenizer = exported(task, tmp_path)
    found = tokenizer(TEXTS)["input_ids"]
    assert found == [task.prompt(text) for text in TEXTS]
    line = "the cat"
    given = tokenizer(line, return_tensors="pt", return_token_type_ids=False)
    ids = model.generate(**given, max_new_tokens=7, do_sample=False)[0, given["input_ids"].size(1) :]
    expected = tokenizer.decode(ids, skip_special_tokens=True)
    options = {"beam": 1, "max_length": 7, "no_repeat_ngram_size": 0}
    assert task(line, **options) == expected


def test_t5_gives_the_logits_and_translations_of_transformers(tmp_path):
    task = make("translation", "t5", d_head=5, n_encoder_layers=2, n_decoder_layers=2)
    _, model, tokenizer = exported(task, tmp_path)
    lines = [line for line in LINES if len(task.tokenizer.encode(line)) < 27][:5]
    given = tokenizer(lines, padding=True, return_tensors="pt", return_token_type_ids=False)
    tgt = ragged(task.config.vocab_size, task.tokenizer.pad_id, (7,) * 5)
    tgt[:, 0] = task.tokenizer.bos_id
    with torch.no_grad():
        found = task.model.logits(task.model(given["input_ids"], tgt))
        torch.testing.assert_close(found, model(**given, decoder_input_ids=tgt).logits, rtol=1e-4, atol=1e-4)
        ids = model.generate(**given, max_new_tokens=7, num_beams=1)
    assert task(lines, beam=1, max_length=7) == tokenizer.batch_decode(ids, skip_special_tokens=True)


def test_a_task_without_a_transformers_class_is_refused(tmp_path):
    with pytest.raises(UserError, match="pretraining with roberta-prelayernorm: transformers has no such model"):
        exported(make("bert-pretraining", pre_norm=True), tmp_path)


@pytest.mark.parametrize(
    ("sizes", "pooling"),
    [({"pooling": "mean"}, "the mean over all tokens"), ({"pooler": False}, "the first token without that layer")],
)
def test_classifiers_with_other_pooling_than_berts_are_refused(sizes, pooling, tmp_path):
    task = make("classification", **sizes)
    with pytest.raises(
        UserError, match=f"classifies the first token after a dense layer; this model classifies {pooling}"
    ):
        exported(task, tmp_path)


@pytest.mark.parametrize(
    ("name", "family", "sizes", "match"),
    [
        (
            "translation",
            "transformer",
            {"activation": "gated_silu"},
            "a transformer with the activation function gated",
        ),
        ("causal-lm", "gpt2", {"activation": "gated_gelu"}, "a gpt2 with the activation function gated_gelu"),
        ("masked-lm", "bert", {"activation": "gated_silu"}, "a bert with the activation function gated_silu"),
        (
            "translation",
            "t5",
            {"d_head": 5, "activation": "gated_silu"},
            "a t5 with the activation function gated",
        ),
        ("classification", "bert", {"n_token_types": 0}, "n_token_types = 0.* pooler_activation = tanh"),
        ("classification", "bert", {"pooler_activation": "relu"}, "n_token_types = 2.* pooler_activation = relu"),
        ("masked-lm", "bert", {"n_token_types": 0, "pre_norm": True}, "pre_norm = True"),
        ("masked-lm", "bert", {"n_token_types": 0, "position_offset": 2}, "position_offset = 2"),
        ("masked-lm", "bert", {"n_token_types": 0, "norm_eps": 1e-5}, "norm_eps = 1e-05"),
        ("masked-lm", "bert", {"pre_norm": True, "activation": "relu"}, "activation = relu"),
        ("masked-lm", "bert", {"position_offset": 1, "activation": "silu"}, "activation = silu"),
        ("translation", "rnn", {}, "a rnn"),
        (
            "translation",
            "transformer",
            {"rotary": True, "d_model": 24, "n_heads": 2},
            "a transformer with rotary positions",
        ),
    ],
)
def test_models_that_transformers_does_not_have_are_refused(name, family, sizes, match, tmp_path):
    with pytest.raises(UserError, match=f"{match}.*: transformers has no such model, so it cannot be exported"):
        exported(make(name, family, **sizes), tmp_path)


@pytest.mark.parametrize("name", ["masked-lm", "classification"])
def test_models_without_token_types_are_distilberts(name, tmp_path):
    task = make(name, n_token_types=0, pooler_activation="relu")
    found, model, tokenizer = exported(task, tmp_path)
    assert found == "DistilBert" + KINDS[name]
    lines = [line for line in LINES if len(task.tokenizer.encode(line)) < 27][:5]
    given = tokenizer(lines, padding=True, return_tensors="pt", return_token_type_ids=False)
    with torch.no_grad():
        logits = model(**given).logits
        if name == "classification":
            torch.testing.assert_close(torch.as_tensor(task.logits(lines)), logits, rtol=1e-4, atol=1e-4)
        else:
            there = given["attention_mask"].bool()
            expected = task.model.mlm_logits(task.model(given["input_ids"]))[there]
            torch.testing.assert_close(logits[there], expected, rtol=1e-4, atol=1e-4)


def test_an_untied_t5_with_scaled_output_has_the_scale_in_its_weights(tmp_path):
    task = make("translation", "t5", d_head=5, tie_embeddings=False)
    _, model, tokenizer = exported(task, tmp_path)
    given = tokenizer(LINES[:3], padding=True, return_tensors="pt", return_token_type_ids=False)
    tgt = ragged(task.config.vocab_size, task.tokenizer.pad_id, (7,) * 3)
    tgt[:, 0] = task.tokenizer.bos_id
    with torch.no_grad():
        found = task.model.logits(task.model(given["input_ids"], tgt))
        torch.testing.assert_close(found, model(**given, decoder_input_ids=tgt).logits, rtol=1e-4, atol=1e-4)
