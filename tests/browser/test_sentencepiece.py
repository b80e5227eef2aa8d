"""Imported tokenizers of SentencePiece encode and decode in a page as in the library."""

import json
import random

import pytest
import tokenizers
import transformers
from tokenizers import decoders, models, normalizers, pre_tokenizers

pytest.importorskip("sentencepiece")

from glassformer.browser.tokenizer_record import tokenizer_record
from glassformer.decode_config import DecodeConfig
from glassformer.errors import ConfigError
from glassformer.interop.huggingface import import_folder
from glassformer.interop.tokenizer import import_tokenizer
from glassformer.tasks.continuations import continuations
from glassformer.tasks.registry import load
from glassformer.tokens.tokenizer import SpecialTokens, Tokenizer
from tests.browser.test_engine import TEXTS
from tests.browser.test_tokenizer import random_texts, run
from tests.interop.test_target_tokenizer import TARGETS, marian_folder
from tests.interop.test_tokenizer import STRANGE, T5, marian, settings, train_spm
from tests.interop.theirs import LINES, random_model

__all__ = ["marian", "run"]

SPECIAL = ["a<extra_id_1>b <extra_id_0>", "<unk> </s> <0x41>", "e\u0301 ﬁn ½ ①", "..\u2581a", ">>fra<< a"]


def assert_alike(run, tokenizer):
    """Ids, texts, and the characters of each token."""
    texts = [*TEXTS, *LINES, *STRANGE, *SPECIAL, *random_texts(300)]
    encoded = tokenizer.encode_batch(texts)
    for text, ours, theirs in zip(texts, run(tokenizer, "encode", texts), encoded, strict=True):
        assert ours == theirs, text
    rng = random.Random(1)
    any_ids = [[rng.randrange(tokenizer.vocab_size) for _ in range(20)] for _ in range(200)]
    ids = [*encoded, *any_ids]
    assert run(tokenizer, "decode", ids) == [tokenizer.decode(own) for own in ids]
    plain = [text for text in LINES if max(map(ord, text), default=0) < 0xD800]  # positions are those in UTF-16
    for text, found in zip(plain, run(tokenizer, "offsets", plain), strict=True):
        if tokenizer.unk_id not in found["ids"]:
            assert [tuple(span) for span in found["spans"]] == tokenizer.offsets(text)[1]


@pytest.mark.parametrize("normalization", ["nmt_nfkc", "identity"])
def test_the_tokenizer_of_t5(run, tmp_path, normalization):
    train_spm(tmp_path, normalization_rule_name=normalization)
    settings(tmp_path, tokenizer_class="T5Tokenizer", extra_ids=7)
    assert_alike(run, import_tokenizer(tmp_path, T5, "encoder-decoder"))


@pytest.mark.parametrize("algorithm", ["unigram", "bpe"])
@pytest.mark.parametrize("byte_fallback", [False, True], ids=["unknown", "bytes"])
def test_models_of_sentencepiece(run, tmp_path, algorithm, byte_fallback):
    size = {"vocab_size": 480} if byte_fallback else {}
    train_spm(tmp_path, model_type=algorithm, byte_fallback=byte_fallback, **size)
    assert_alike(run, import_tokenizer(tmp_path, {**T5, "model_type": "gpt2"}, "decoder"))


def test_the_tokenizer_of_marian(run, marian):
    folder, config, _ = marian
    assert_alike(run, import_tokenizer(folder, config, "encoder-decoder"))


@pytest.mark.parametrize("has_words", [True, False], ids=["tokens within words", "tokens with spaces inside"])
def test_the_tokenizer_of_llama(run, has_words):
    """Spaces are replaced in the whole text, which is one word."""
    backend = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    names = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=900, special_tokens=names, show_progress=False)
    if has_words:
        backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    backend.train_from_iterator(LINES, trainer)
    backend.pre_tokenizer = None
    assert has_words != any("\u2581" in token.lstrip("\u2581") for token in backend.get_vocab())
    parts = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    backend.decoder = decoders.Sequence(parts)
    written = json.loads(backend.to_str())
    written["added_tokens"] = written["added_tokens"][:3]
    assert_alike(run, Tokenizer.from_json(json.dumps(written), SpecialTokens("<unk>", "<s>", "</s>", prefix="")))


@pytest.mark.parametrize("family", ["marian", "t5"])
def test_an_imported_translator(engines, marian, family, tmp_path):
    if family == "marian":
        folder = marian_folder(*marian)
    else:
        folder = tmp_path / "t5"
        train_spm(folder)
        settings(folder, tokenizer_class="T5Tokenizer", extra_ids=7)
        config = transformers.T5Config(
            vocab_size=207, d_model=64, d_kv=8, d_ff=96, num_layers=2, num_heads=8, decoder_start_token_id=0
        )
        random_model("T5ForConditionalGeneration", config).save_pretrained(folder)
    import_folder(folder, tmp_path / "ours")
    task = load(tmp_path / "ours", device="cpu")
    call = engines(task)
    texts = [*TEXTS, *LINES[:9]]
    for text, (wanted,) in zip(texts, task.translate(texts, DecodeConfig(precision="int8", beam=2)), strict=True):
        (found,) = call("translate", text=text, options={"beam": 2})
        assert (found["ids"], found["text"]) == (list(wanted.ids), wanted.text)
        assert found["logProbs"] == wanted.log_probs
    targets = task.tokenizer.targets
    assert (targets is task.tokenizer) == (family == "t5")
    record = call("record", text=LINES[0], target=TARGETS[0])
    assert record["sides"]["target"]["ids"][1:] == targets.encode(TARGETS[0])
    options = DecodeConfig(precision="int8", beam=2)
    wanted = task.engine(options).run(continuations(task, LINES[0], TARGETS[0], 5, options))
    found = call("continuations", text=LINES[0], prefix=TARGETS[0], n=5, options={"beam": 2})
    assert [x["text"] for x in found] == [x.text for x in wanted]


def test_a_tokenizer_with_other_parts_is_refused(tmp_path):
    train_spm(tmp_path)
    tokenizer = import_tokenizer(tmp_path, {**T5, "model_type": "gpt2"}, "decoder")
    parts = json.loads(tokenizer.to_json())
    parts["normalizer"] = {"type": "NFKC"}
    with pytest.raises(ConfigError, match=r"cannot have this tokenizer \(Unigram\)"):
        tokenizer_record(Tokenizer.from_json(json.dumps(parts), tokenizer.special_tokens))
