"""BART, imported and exported again: same outputs and same tokens as transformers."""

import numpy as np
import pytest
import torch

transformers = pytest.importorskip("transformers")

from glassformer import pipeline
from glassformer.decode_config import DecodeConfig
from glassformer.errors import UserError
from glassformer.generate.search import beam_search
from glassformer.interop.huggingface import export_folder, import_folder
from glassformer.models.decoding import decodable
from glassformer.tasks.embeddings import nearest_tokens
from glassformer.tasks.registry import load
from glassformer.tasks.splitting import split
from tests.generate.sources import unpadded
from tests.interop.theirs import LINES, ragged, random_model, up_to, write_byte_level

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
START, PAD, END, MAX_LEN = 0, 1, 2, 11


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Our task, and the folders and models of transformers: the original, and our export."""
    root = tmp_path_factory.mktemp("bart")
    n = write_byte_level(root / "theirs", SPECIAL, tokenizer_class="BartTokenizer", **dict(
        bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>", mask_token="<mask>"
    ))  # fmt: skip
    config = transformers.BartConfig(
        vocab_size=n, d_model=22, encoder_layers=2, decoder_layers=3, encoder_ffn_dim=31, decoder_ffn_dim=31,
        encoder_attention_heads=11, decoder_attention_heads=11, max_position_embeddings=29, bos_token_id=START,
        pad_token_id=PAD, eos_token_id=END, decoder_start_token_id=END, forced_eos_token_id=None,
        forced_bos_token_id=None,
    )  # fmt: skip
    model = random_model("BartForConditionalGeneration", config)
    with torch.no_grad():
        for side in (model.model.encoder, model.model.decoder):
            side.embed_positions.weight.normal_(std=0.3)
    model.save_pretrained(root / "theirs")
    import_folder(root / "theirs", root / "ours")
    assert export_folder(root / "ours", root / "back") == "BartForConditionalGeneration"
    read = transformers.AutoModelForSeq2SeqLM.from_pretrained
    folders = [root / "theirs", root / "back"]
    return load(root / "ours", device="cpu"), folders, [read(folder).eval() for folder in folders]


def test_logits_are_transformers_over_ragged_batches(both):
    task, _, models = both
    src = ragged(task.config.vocab_size, PAD)
    tgt = ragged(task.config.vocab_size, PAD, (29,) * 5)  # the last position, too
    tgt[:, 0] = END
    with torch.no_grad():
        found = task.model.logits(task.model(src, tgt))
        for model in models:
            expected = model(input_ids=src, attention_mask=src != PAD, decoder_input_ids=tgt).logits
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("beam", [1, 4])
def test_search_gives_transformers_tokens(both, beam):
    task, _, models = both
    src = ragged(task.config.vocab_size, PAD)
    found = beam_search(
        decodable(task.model), unpadded(src, PAD), [MAX_LEN] * len(src), eos_id=END, beam=beam, alpha=0.0
    )
    for model in models:
        with torch.no_grad():
            expected = model.generate(
                input_ids=src, attention_mask=src != PAD, num_beams=beam, do_sample=False, max_new_tokens=MAX_LEN,
                length_penalty=0.0, early_stopping=True, bad_words_ids=None, use_cache=False,
            )  # fmt: skip
        for ours_best, theirs_ids in zip(found, expected.tolist(), strict=True):
            assert ours_best[0].ids == up_to(END, theirs_ids[1:])


def test_texts_begin_with_the_start_token_as_those_of_auto_tokenizer(both):
    task, folders, _ = both
    expected = [[*ids, END] for ids in task.tokenizer.encode_batch(LINES)]
    assert {ids[0] for ids in expected} == {START}
    ids, spans = task.tokenizer.offsets("a cat")
    assert (ids[0], spans[0]) == (START, (0, 0))
    for folder in folders:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        assert tokenizer(LINES)["input_ids"] == expected
        assert tokenizer.batch_decode(expected, skip_special_tokens=True) == [
            task.tokenizer.decode(i) for i in expected
        ]


def test_the_kernels_compute_what_the_model_computes(both):
    task, folders, models = both
    options = DecodeConfig(beam=1, max_length=9, no_repeat_ngram_size=0)
    line = "the cat sat on the rug"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders[0])
    with torch.no_grad():
        ids = models[0].generate(**tokenizer(line, return_tensors="pt"), max_new_tokens=9, num_beams=1, do_sample=False)
    expected = tokenizer.decode(ids[0], skip_special_tokens=True)
    assert task.run([line], options) == [expected.replace("\n", " ")]
    assert task.run([line], options.model_copy(update={"precision": "int8"}))  # random weights: another text


def test_its_pipeline_is_that_of_summaries(both):
    _, folders, _ = both
    summarizer = pipeline(model=str(folders[0]))
    assert summarizer.task == "summarization"
    assert "summary_text" in summarizer("the cat sat on the rug", max_new_tokens=5)[0]


def test_a_bart_is_fine_tuned(both, tmp_path):
    from glassformer import train

    _, folders, _ = both
    (tmp_path / "a.tsv").write_text("the cat\tle chat\nthe dog\tle chien\nthe rug\tle tapis\n" * 20, encoding="utf-8")
    start = load(folders[0].parent / "ours", device="cpu")
    task = train(
        tmp_path / "a.tsv", out=tmp_path / "out", init_from=folders[0].parent / "ours", task="translation", steps=2,
        quiet=True, threads=1,
    )  # fmt: skip
    assert task.tokenizer.encode("the cat") == start.tokenizer.encode("the cat")
    assert task.config.learned_positions


@pytest.mark.slow
def test_it_has_no_export_to_ctranslate2(both, tmp_path):
    from glassformer.interop.export import export_verified

    _, folders, _ = both
    with pytest.raises(UserError, match="learned positions: CTranslate2 has no such model"):
        export_verified(folders[0].parent / "ours", tmp_path / "ct2", "ctranslate2")
    assert "decoder_model.onnx" in export_verified(folders[0].parent / "ours", tmp_path / "onnx", "onnx")


def test_neighbors_of_a_word_are_those_of_its_tokens_alone(both):
    task = both[0]
    ids = task.tokenizer.for_words().encode("cat")[1:]
    table = task.source.array("embedding.weight")
    mean = table[ids].mean(0)
    for token, cosine in nearest_tokens(task, "cat", 5):
        (row,) = {i for i in range(len(table)) if task.tokenizer.token(i) == token}
        assert cosine == pytest.approx(table[row] @ mean / np.linalg.norm(table[row]) / np.linalg.norm(mean), abs=1e-5)


def test_each_part_of_a_long_text_has_one_start_token(both):
    task = both[0]
    text = "The cat sat. A dog ran to the house. " * 6
    parts = split(text, task.tokenizer, 25, lambda message: None)
    assert len(parts) > 2
    assert all(ids[0] == START and START not in ids[1:] and len(ids) <= 25 for _, ids in parts)
    assert " ".join(task.tokenizer.decode(ids).strip() for _, ids in parts) == text.strip()
