"""XLM-R imported: same outputs and token ids as transformers. Tokenizers without a start token are refused."""

import json

import pytest
import torch

transformers = pytest.importorskip("transformers")

import tokenizers
from tokenizers import models, pre_tokenizers, processors, trainers

from glassformer.errors import CheckpointError
from glassformer.interop.huggingface import export_folder, import_folder
from glassformer.interop.tokenizer import import_tokenizer
from glassformer.tasks.registry import load
from tests.interop.test_bert import HEADS, LABELS, SIZES, assert_same
from tests.interop.theirs import LINES, TEXTS, random_model

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


def write_tokenizer(folder, *, with_start: bool = True) -> int:
    """Write a tokenizer.json like that of XLM-R; return the vocabulary size."""
    backend = tokenizers.Tokenizer(models.Unigram())
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = tokenizers.decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=211, special_tokens=[*SPECIAL, "<mask>"], unk_token="<unk>", show_progress=False
    )
    backend.train_from_iterator(TEXTS, trainer)
    if with_start:
        backend.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
        )
    folder.mkdir()
    backend.save(str(folder / "tokenizer.json"))
    names = dict(bos_token="<s>", cls_token="<s>", pad_token="<pad>", eos_token="</s>", sep_token="</s>",
                 unk_token="<unk>", mask_token="<mask>", tokenizer_class="PreTrainedTokenizerFast")  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(names))
    return backend.get_vocab_size()


def make(head, folder, **tokenizer):
    n = write_tokenizer(folder, **tokenizer)
    config = transformers.XLMRobertaConfig(
        vocab_size=n + 3, **SIZES, type_vocab_size=1, pad_token_id=1, bos_token_id=0, eos_token_id=2
    )
    if head in ("ForSequenceClassification", "ForTokenClassification"):
        config.id2label, config.label2id = LABELS, {name: i for i, name in LABELS.items()}
    model = random_model("XLMRoberta" + head, config)
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize("head", [head for head in HEADS if head != "ForPreTraining"])
def test_an_imported_model_gives_the_outputs_of_transformers(head, tmp_path):
    model = make(head, tmp_path / "theirs")
    import_folder(tmp_path / "theirs", tmp_path / "ours")
    task = load(tmp_path / "ours", device="cpu")
    assert_same(task, model)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    assert tokenizer(LINES)["input_ids"] == [
        task.add_special_tokens(ids, [])[0] for ids in task.tokenizer.encode_batch(LINES)
    ]
    name = export_folder(tmp_path / "ours", tmp_path / "back")
    assert name == "Roberta" + head
    assert_same(task, getattr(transformers, name).from_pretrained(tmp_path / "back").eval())


def test_pairs_have_two_separators(tmp_path):
    model = make("ForSequenceClassification", tmp_path / "theirs")
    task = import_folder(tmp_path / "theirs", tmp_path / "ours")
    given = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")("a cat", "a dog", return_tensors="pt")
    with torch.no_grad():
        expected = model(input_ids=given["input_ids"]).logits
    torch.testing.assert_close(torch.from_numpy(task.logits([("a cat", "a dog")])), expected, rtol=1e-4, atol=1e-4)


def test_a_tokenizer_without_a_start_token_is_refused(tmp_path):
    make("Model", tmp_path / "theirs", with_start=False)
    with pytest.raises(CheckpointError, match=r"adds no token at the start of a text \(CLS\)"):
        import_folder(tmp_path / "theirs", tmp_path / "ours")


def test_xlm_r_without_tokenizer_json_is_refused(tmp_path):
    make("Model", tmp_path / "theirs")
    (tmp_path / "theirs" / "tokenizer.json").rename(tmp_path / "theirs" / "sentencepiece.bpe.model")
    with pytest.raises(CheckpointError, match=r"(?s)no tokenizer\.json\. .*AutoTokenizer.*save_pretrained"):
        import_folder(tmp_path / "theirs", tmp_path / "ours")


@pytest.mark.parametrize("type_", ["pegasus", "xlm-roberta"])
def test_ids_that_differ_from_those_of_the_sentencepiece_file_are_refused(tmp_path, type_):
    (tmp_path / "spiece.model").write_bytes(b"")
    with pytest.raises(CheckpointError, match=rf"no tokenizer\.json\. The ids of {type_} differ"):
        import_tokenizer(tmp_path, {"model_type": type_}, "encoder-decoder")


def test_similarity_and_embed_take_a_sentence_embedder(tmp_path):
    from tests.journeys.conftest import glassformer

    make("Model", tmp_path / "theirs")
    task = import_folder(tmp_path / "theirs", tmp_path / "ours")
    first, second = task.embed(["a cat", "a dog"])
    done = glassformer("similarity", tmp_path / "ours", stdin="a cat\ta dog\n\na cat\ta cat\n")
    assert done.stdout == f"{float(first @ second):.4f}\n\n1.0000\n", done.stderr
    done = glassformer("embed", tmp_path / "ours", stdin="a cat\n")
    torch.testing.assert_close(torch.tensor(json.loads(done.stdout)), torch.from_numpy(first), rtol=0, atol=1e-5)
