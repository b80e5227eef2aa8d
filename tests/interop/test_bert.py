"""BERT, RoBERTa and DistilBERT with every head, imported and exported again: same outputs as transformers."""

import json

import pytest
import torch

transformers = pytest.importorskip("transformers")

from glassformer import checkpoint
from glassformer.errors import CheckpointError, ConfigError
from glassformer.interop.huggingface import SENTENCE_FILE, export_folder, import_folder
from glassformer.manifest import read_json
from glassformer.tasks.registry import load
from tests.interop.theirs import LINES, ragged, random_model, write_byte_level, write_wordpiece

SIZES = dict(
    hidden_size=22, num_attention_heads=11, intermediate_size=31, num_hidden_layers=2, max_position_embeddings=23
)
HEADS = ["Model", "ForMaskedLM", "ForPreTraining", "ForSequenceClassification", "ForTokenClassification",
         "ForQuestionAnswering"]  # fmt: skip
NAMES = {
    "bert": "Bert", "roberta": "Roberta", "roberta-prelayernorm": "RobertaPreLayerNorm", "distilbert": "DistilBert",
}  # fmt: skip
CASES = [(kind, head) for kind in NAMES for head in HEADS if kind == "bert" or head != "ForPreTraining"]
LABELS = {0: "bad", 1: "middling", 2: "good"}


def make(kind, head, folder):
    """Write a transformers folder and return its model."""
    if kind.startswith("roberta"):
        mask = {"__type": "AddedToken", "content": "<mask>", "lstrip": True}  # as in roberta-base
        n = write_byte_level(folder, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"], mask_token=mask)
        config = transformers.AutoConfig.for_model(
            kind, vocab_size=n + 3, **SIZES, type_vocab_size=1, pad_token_id=1, bos_token_id=0, eos_token_id=2
        )
    else:
        n = write_wordpiece(folder)
        sizes = SIZES if kind == "bert" else dict(dim=22, n_heads=11, hidden_dim=31, n_layers=2)
        config = transformers.AutoConfig.for_model(kind, vocab_size=n + 3, **{**sizes, "max_position_embeddings": 23})
    if head in ("ForSequenceClassification", "ForTokenClassification"):
        config.id2label, config.label2id = LABELS, {name: i for i, name in LABELS.items()}
    model = random_model(NAMES[kind] + head, config)
    model.save_pretrained(folder)
    return model


def theirs(model, ids, token_type_ids, pad_id):
    given = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
    out = model(input_ids=ids, attention_mask=(ids != pad_id).long(), **given)
    if hasattr(out, "prediction_logits"):
        return out.prediction_logits, out.seq_relationship_logits
    if hasattr(out, "start_logits"):
        return (torch.stack([out.start_logits, out.end_logits], -1),)
    return (out.logits if hasattr(out, "logits") else out.last_hidden_state,)


def ours(task, ids, token_type_ids):
    hidden = task.model(ids, token_type_ids)
    c = task.config
    words = (task.model.mlm_logits(hidden),) if c.head == "mlm" else ()
    labels = (task.model.label_logits(hidden, ids),) if c.n_labels else ()
    return words + labels or (hidden,)


def assert_same(task, model):
    c = task.config
    ids = ragged(c.vocab_size, c.pad_id)
    token_type_ids = torch.randint(0, 2, ids.shape) if c.n_token_types == 2 else None
    with torch.no_grad():
        for found, expected in zip(
            ours(task, ids, token_type_ids), theirs(model, ids, token_type_ids, c.pad_id), strict=True
        ):
            there = (ids != c.pad_id) if found.dim() == 3 else slice(None)
            torch.testing.assert_close(found[there], expected[there], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("kind", "head"), CASES)
def test_imported_and_exported_models_give_the_outputs_of_transformers(kind, head, tmp_path):
    model = make(kind, head, tmp_path / "theirs")
    import_folder(tmp_path / "theirs", tmp_path / "ours")
    task = load(tmp_path / "ours", device="cpu")
    assert_same(task, model)
    assert task.labels == (tuple(LABELS.values()) if "Classification" in head else ())

    name = export_folder(tmp_path / "ours", tmp_path / "back")
    assert name == NAMES[kind] + head
    again, report = getattr(transformers, name).from_pretrained(tmp_path / "back", output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert_same(task, again.eval())
    if "Classification" in head:
        assert again.config.id2label == LABELS
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "back")
    assert tokenizer(LINES)["input_ids"] == [
        task.add_special_tokens(ids, [])[0] for ids in task.tokenizer.encode_batch(LINES)
    ]


@pytest.mark.parametrize("kind", ["bert", "distilbert", "roberta"])
def test_pairs_are_encoded_as_by_transformers(kind, tmp_path):
    make(kind, "ForSequenceClassification", tmp_path / "theirs")
    import_folder(tmp_path / "theirs", tmp_path / "ours")
    export_folder(tmp_path / "ours", tmp_path / "back")
    task = load(tmp_path / "ours", device="cpu")
    pairs = list(zip(LINES[:50], LINES[50:100], strict=True))
    expected = [task.add_special_tokens(*row) for row in task.encode_texts(pairs)]
    for folder in ("theirs", "back"):
        found = transformers.AutoTokenizer.from_pretrained(tmp_path / folder)(
            [a for a, _ in pairs], [b for _, b in pairs]
        )
        assert found["input_ids"] == [ids for ids, _ in expected]
        if kind == "bert":
            assert found["token_type_ids"] == [token_type_ids for _, token_type_ids in expected]


def test_a_model_with_one_token_type_accepts_pairs(tmp_path):
    model = make("roberta", "ForSequenceClassification", tmp_path / "theirs")
    task = import_folder(tmp_path / "theirs", tmp_path / "ours")
    ids = torch.tensor([task.add_special_tokens(*task.encode_texts([("a cat", "a dog")])[0])[0]])
    with torch.no_grad():
        expected = model(input_ids=ids).logits
    torch.testing.assert_close(torch.from_numpy(task.logits([("a cat", "a dog")])), expected, rtol=1e-4, atol=1e-4)


def sentence_model(folder, pooling, *modules):
    """Write the folder of a model of sentence-transformers."""
    model = make("bert", "Model", folder)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 22, **pooling}))
    types = ["models.Transformer", "models.Pooling", *modules]
    paths = ["", "1_Pooling", *[f"{i}_More" for i in range(2, len(types))]]
    records = [
        {"idx": i, "path": path, "type": f"sentence_transformers.{name}"}
        for i, (path, name) in enumerate(zip(paths, types, strict=True))
    ]
    (folder / "modules.json").write_text(json.dumps(records))
    return model


@pytest.mark.parametrize(
    ("pooling", "cls"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, True),
        ({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}, False),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, False),
        ({"pooling_mode": "cls"}, True),
        ({"pooling_mode": ["mean"]}, False),
        ({}, False),
    ],
)
def test_sentence_embeddings_are_pooled_as_the_model_says(pooling, cls, tmp_path):
    model = sentence_model(tmp_path / "theirs", pooling, "models.Normalize")
    import_folder(tmp_path / "theirs", tmp_path / "ours")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    with torch.no_grad():
        hidden = model(**tokenizer("the cat sat", return_tensors="pt")).last_hidden_state[0]
    expected = torch.nn.functional.normalize(hidden[0] if cls else hidden.mean(0), dim=-1)
    export_folder(tmp_path / "ours", tmp_path / "back")
    import_folder(tmp_path / "back", tmp_path / "again")
    for folder in ("ours", "again"):
        found = load(tmp_path / folder, device="cpu")("the cat sat")[0]
        torch.testing.assert_close(torch.from_numpy(found), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("pooling", "modules", "named"),
    [
        ({"pooling_mode_max_tokens": True}, (), "max"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}, (), r"mean \+ cls|cls \+ mean"),
        ({"pooling_mode": ["cls", "max"]}, (), r"cls \+ max"),
        ({"pooling_mode_mean_tokens": True}, ("models.Dense",), "Dense"),
    ],
)
def test_sentence_embeddings_that_need_more_are_refused(pooling, modules, named, tmp_path):
    sentence_model(tmp_path / "theirs", pooling, *modules)
    with pytest.raises(ConfigError, match=rf"embeddings of this model need ({named}) \(modules.json\)"):
        import_folder(tmp_path / "theirs", tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


def test_a_head_with_one_label_is_a_regression_with_the_same_output(tmp_path):
    folder = tmp_path / "theirs"
    n = write_wordpiece(folder)
    config = transformers.BertConfig(vocab_size=n, **SIZES, num_labels=1)
    model = random_model("BertForSequenceClassification", config)
    model.save_pretrained(folder)
    task = import_folder(folder, tmp_path / "ours")
    assert task.name == "regression"
    found = task(["the cat sat", "a dog"])
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        expected = model(**tokenizer(["the cat sat", "a dog"], padding=True, return_tensors="pt")).logits[:, 0]
    torch.testing.assert_close(torch.tensor(found), expected, rtol=1e-4, atol=1e-4)


def test_an_exported_regression_head_includes_the_range_of_labels(tmp_path):
    folder = tmp_path / "theirs"
    model = random_model(
        "BertForSequenceClassification",
        transformers.BertConfig(vocab_size=write_wordpiece(folder), **SIZES, num_labels=1),
    )
    model.save_pretrained(folder)
    task = import_folder(folder, tmp_path / "ours")
    task.labels = ("-3.0", "5.0")
    checkpoint.save_folder(tmp_path / "ours", task.contents())
    export_folder(tmp_path / "ours", tmp_path / "back")
    again = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "back").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "back")
    with torch.no_grad():
        found = again(**tokenizer(["the cat sat", "a dog"], padding=True, return_tensors="pt")).logits[:, 0]
    torch.testing.assert_close(found, torch.tensor(task(["the cat sat", "a dog"])), rtol=1e-4, atol=1e-4)


def test_padding_may_exceed_the_last_position(tmp_path):
    """Batches are padded to a multiple of 8, which may be longer than the position table."""
    make("bert", "Model", tmp_path / "theirs")
    task = import_folder(tmp_path / "theirs", tmp_path / "ours")
    long = " ".join(["cat"] * 40)
    with pytest.warns(UserWarning, match="its end was cut off"):
        short = task([long, "cat"])
    alone = task(["cat"])
    torch.testing.assert_close(short[1:], alone)


def test_original_bert_files_are_read(tmp_path):
    """Norm weights named gamma and beta, and heads that masked-token prediction does not use."""
    model = make("bert", "ForPreTraining", tmp_path)
    tensors = checkpoint.read_tensors(tmp_path / "model.safetensors")
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
        for name, value in tensors.items()
    }
    config = read_json(tmp_path / "config.json") | {"architectures": ["BertForMaskedLM"]}
    checkpoint.write_files(tmp_path, {"model.safetensors": old, "config.json": checkpoint.to_json(config)})
    task = import_folder(tmp_path, tmp_path / "ours")
    ids = ragged(task.config.vocab_size, 0)
    with torch.no_grad():
        expected = model(input_ids=ids, attention_mask=ids != 0).prediction_logits
        found = task.model.mlm_logits(task.model(ids))
    torch.testing.assert_close(found[ids != 0], expected[ids != 0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_masked_tokens_are_predicted_as_by_transformers(kind, tmp_path):
    model = make(kind, "ForMaskedLM", tmp_path / "theirs")
    task = import_folder(tmp_path / "theirs", tmp_path / "ours")
    export_folder(tmp_path / "ours", tmp_path / "back")
    text = "the <mask> sat on <mask>."
    for folder in ("theirs", "back"):
        tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / folder)
        given = tokenizer(text.replace("<mask>", tokenizer.mask_token), return_tensors="pt")
        with torch.no_grad():
            probs = model(**given).logits.softmax(-1)[given["input_ids"] == tokenizer.mask_token_id]
        expected = probs.topk(3)
        found = task.fill_mask(text, 3)
        assert [[guess.token_id for guess in predictions] for predictions in found] == expected.indices.tolist()
        torch.testing.assert_close(
            torch.tensor([[guess.score for guess in predictions] for predictions in found]),
            expected.values,
            rtol=1e-4,
            atol=1e-6,
        )


@pytest.mark.parametrize("settings", [{"max_seq_length": 9}, {"max_seq_length": None}, {}])
def test_the_length_of_sentences_is_read_and_written(settings, tmp_path):
    make("bert", "Model", tmp_path / "theirs")
    (tmp_path / "theirs" / "modules.json").write_text(
        json.dumps([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}])
    )
    (tmp_path / "theirs" / SENTENCE_FILE).write_text(json.dumps(settings))
    task = import_folder(tmp_path / "theirs", tmp_path / "ours")
    assert load(tmp_path / "ours").max_len == task.max_len == (settings.get("max_seq_length") or 23)
    export_folder(tmp_path / "ours", tmp_path / "back")
    assert import_folder(tmp_path / "back", tmp_path / "again").max_len == task.max_len


def test_lower_case_before_a_tokenizer_with_capitals_is_refused(tmp_path):
    make("roberta", "Model", tmp_path / "theirs")
    (tmp_path / "theirs" / SENTENCE_FILE).write_text(json.dumps({"do_lower_case": True}))
    with pytest.raises(CheckpointError, match="do_lower_case"):
        import_folder(tmp_path / "theirs", tmp_path / "ours")
