"""Imported tokenizers give the same ids as transformers' AutoTokenizer or SentencePiece."""

import json

import pytest

transformers = pytest.importorskip("transformers")

from glassformer.errors import CheckpointError
from glassformer.interop.sentencepiece import read_sentencepiece
from glassformer.interop.tokenizer import import_tokenizer
from glassformer.manifest import read_json
from tests.interop.theirs import LINES, TEXTS, write_byte_level, write_unigram, write_wordpiece

T5 = {"model_type": "t5", "pad_token_id": 0, "eos_token_id": 1}


def settings(folder, **more):
    path = folder / "tokenizer_config.json"
    known = read_json(path) if path.exists() else {}
    path.write_text(json.dumps(known | more))


def auto(folder, **config):
    """Ids of the lines by AutoTokenizer, without special tokens."""
    (folder / "config.json").write_text(json.dumps(config))
    return transformers.AutoTokenizer.from_pretrained(folder)(LINES, add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize(
    "options",
    [{}, {"do_lower_case": False}, {"strip_accents": False}, {"do_lower_case": False, "tokenize_chinese_chars": False}],
    ids=str,
)
def test_vocab_txt_gives_the_ids_of_auto_tokenizer(tmp_path, options):
    write_wordpiece(tmp_path, tokenizer_class="BertTokenizer", **options)
    found = import_tokenizer(tmp_path, {"model_type": "bert"}, "encoder")
    assert found.encode_batch(LINES) == auto(tmp_path, model_type="bert")
    assert found.special_tokens.mask_token == "[MASK]"


@pytest.mark.parametrize("add_prefix_space", [False, True])
def test_vocab_json_and_merges_txt_give_the_ids_of_auto_tokenizer(tmp_path, add_prefix_space):
    write_byte_level(tmp_path, ["<|endoftext|>"], add_prefix_space=add_prefix_space)
    found = import_tokenizer(tmp_path, {"model_type": "gpt2"}, "decoder")
    assert found.encode_batch(LINES) == auto(tmp_path, model_type="gpt2")


def test_a_negative_id_means_that_a_token_is_not_set(tmp_path):
    write_byte_level(tmp_path, ["<|endoftext|>"])
    found = import_tokenizer(tmp_path, {"model_type": "llama", "pad_token_id": -1}, "decoder").special_tokens
    assert found.pad_token == found.eos_token == "<|endoftext|>"


def test_a_negative_start_token_of_the_decoder_is_not_set(tmp_path):
    write_unigram(tmp_path)
    (tmp_path / "generation_config.json").write_text('{"decoder_start_token_id": -1}')
    (tmp_path / "config.json").write_text('{"decoder_start_token_id": 1}')
    assert import_tokenizer(tmp_path, T5, "encoder-decoder").special_tokens.bos_token == "</s>"
    (tmp_path / "config.json").unlink()
    found = import_tokenizer(tmp_path, T5, "encoder-decoder").special_tokens
    assert found.bos_token == found.pad_token


def test_added_tokens_are_encoded_as_one_id(tmp_path):
    n = write_byte_level(tmp_path, ["<|endoftext|>"])
    row = {"content": "<|user|>", "special": False, "lstrip": False, "rstrip": False, "single_word": False}
    settings(tmp_path, added_tokens_decoder={str(n): row | {"normalized": False}}, tokenizer_class="GPT2Tokenizer")
    found = import_tokenizer(tmp_path, {"model_type": "gpt2"}, "decoder")
    assert found.encode("a<|user|>b") == [*found.encode("a"), n, *found.encode("b")]


def test_an_added_token_whose_id_is_not_free_is_refused(tmp_path):
    write_byte_level(tmp_path, ["<|endoftext|>"])
    (tmp_path / "added_tokens.json").write_text('{"<|user|>": 5000}')
    with pytest.raises(CheckpointError, match=r"<\|user\|> requires the id 5,000, which is not the next free id"):
        import_tokenizer(tmp_path, {"model_type": "gpt2"}, "decoder")


def train_spm(folder, name="spiece", **options):
    """Train a SentencePiece model on the lines."""
    spm = pytest.importorskip("sentencepiece")
    folder.mkdir(exist_ok=True)
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_prefix=str(folder / name), minloglevel=5, hard_vocab_limit=False,
        **dict(vocab_size=200, pad_id=0, eos_id=1, unk_id=2, bos_id=-1, character_coverage=0.98) | options,
    )  # fmt: skip
    return spm.SentencePieceProcessor(str(folder / f"{name}.model"))


STRANGE = ["", "   ", "a  b ", "﷽ ½ ①", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 ﬁ", "zz\x07zz", "丠丠 丠"]
"""Lines with characters that are not in the training text."""


@pytest.mark.parametrize("normalization", ["nmt_nfkc", "identity"])
def test_t5s_sentencepiece_model_gives_the_ids_of_auto_tokenizer(tmp_path, normalization):
    train_spm(tmp_path, normalization_rule_name=normalization)
    settings(tmp_path, tokenizer_class="T5Tokenizer", extra_ids=7)
    found = import_tokenizer(tmp_path, T5, "encoder-decoder")
    theirs = auto(tmp_path, **T5)
    assert found.encode_batch(LINES) == theirs
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert found.encode_batch(STRANGE) == tokenizer(STRANGE, add_special_tokens=False)["input_ids"]
    assert found.vocab_size == len(tokenizer)
    assert [found.decode(ids) for ids in theirs] == tokenizer.batch_decode(theirs, skip_special_tokens=True)


@pytest.mark.parametrize("kind", ["spiece.model", "tokenizer.json"])
def test_sentinels_in_a_text_are_encoded_as_sentinels(tmp_path, kind):
    if kind == "spiece.model":
        train_spm(tmp_path)
        settings(tmp_path, tokenizer_class="T5Tokenizer", extra_ids=7)
    else:
        train_spm(tmp_path / "spm")
        settings(tmp_path / "spm", tokenizer_class="T5Tokenizer", extra_ids=7)
        auto(tmp_path / "spm", **T5)
        transformers.AutoTokenizer.from_pretrained(tmp_path / "spm").save_pretrained(tmp_path)
    found = import_tokenizer(tmp_path, T5, "encoder-decoder")
    text = "the cat <extra_id_0> on <extra_id_1>the rug<extra_id_2>"
    auto(tmp_path, **T5)
    assert found.encode(text) == transformers.AutoTokenizer.from_pretrained(tmp_path)(text)["input_ids"][:-1]
    assert found.decode(found.encode("<extra_id_0> rug")) == "<extra_id_0> rug"


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
@pytest.mark.parametrize("byte_fallback", [False, True], ids=["unknown", "bytes"])
def test_a_sentencepiece_model_gives_the_ids_of_sentencepiece(tmp_path, model_type, byte_fallback):
    size = {"vocab_size": 480} if byte_fallback else {}
    theirs = train_spm(tmp_path, model_type=model_type, byte_fallback=byte_fallback, **size)
    found = import_tokenizer(tmp_path, {**T5, "model_type": "gpt2"}, "decoder")  # any but T5, which has sentinels
    expected = theirs.encode(LINES + STRANGE)
    assert found.encode_batch(LINES + STRANGE) == expected
    if byte_fallback:
        assert [found.decode(ids) for ids in expected] == theirs.decode(expected)


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_a_sentencepiece_model_may_keep_spaces_and_line_ends(tmp_path, model_type):
    options = {"remove_extra_whitespaces": False, "normalization_rule_name": "identity", "byte_fallback": True}
    theirs = train_spm(tmp_path, model_type=model_type, vocab_size=480, **options)
    found = import_tokenizer(tmp_path, {**T5, "model_type": "gpt2"}, "decoder")
    texts = [*LINES, *STRANGE, "the cat\n    sat  here\n", " the dog", "a\tb"]
    assert found.encode_batch(texts) == theirs.encode(texts)


@pytest.fixture
def marian(tmp_path):
    """A folder with two SentencePiece models and a joint vocabulary, as of OPUS-MT."""
    sides = {
        name: train_spm(tmp_path, name, normalization_rule_name="nmt_nfkc", eos_id=0, unk_id=1, pad_id=-1, **options)
        for name, options in {"source": {}, "target": {"vocab_size": 300, "character_coverage": 1.0}}.items()
    }
    pieces = [side.id_to_piece(i) for side in sides.values() for i in range(side.get_piece_size())]
    units = list(dict.fromkeys(["</s>", "<unk>", *sorted(set(pieces)), ">>fra<<", "<pad>"]))
    (tmp_path / "vocab.json").write_text(json.dumps({unit: i for i, unit in enumerate(units)}))
    for name in sides:
        (tmp_path / f"{name}.model").rename(tmp_path / f"{name}.spm")
    settings(tmp_path, tokenizer_class="MarianTokenizer", source_lang="eng", target_lang="fra")
    config = {"model_type": "marian", "eos_token_id": 0, "pad_token_id": len(units) - 1}
    (tmp_path / "config.json").write_text(json.dumps(config))
    return tmp_path, config, len(units)


@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_marians_two_models_and_vocabulary_give_the_ids_of_auto_tokenizer(marian):
    folder, config, n = marian
    found = import_tokenizer(folder, config, "encoder-decoder")
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    lines = LINES + STRANGE + [">>fra<< The cat sat.", ">>fra<<The cat"]
    ids = theirs(lines)["input_ids"]
    assert [[*row, 0] for row in found.encode_batch(lines)] == ids
    tgt_ids = theirs(text_target=LINES)["input_ids"]
    assert [found.decode(row) for row in tgt_ids] == theirs.batch_decode(tgt_ids, skip_special_tokens=True)
    assert (found.vocab_size, found.pad_id, found.bos_id, found.eos_id) == (n, n - 1, n - 1, 0)
    assert "\ue000" not in "".join(found.token(i) for i in range(n))


def test_text_is_never_encoded_to_target_only_tokens(marian):
    folder, config, n = marian
    found = import_tokenizer(folder, config, "encoder-decoder")
    hidden = [i for i in range(n) if (found.backend.id_to_token(i) or "").startswith("\ue000")]
    assert len(hidden) > 20
    text = " ".join(found.backend.id_to_token(i) for i in hidden)
    assert not {*found.encode(text)} & {*hidden}
    assert not found.target_warning
    (folder / "target.spm").unlink()
    found = import_tokenizer(folder, config, "encoder-decoder")
    assert found.target_warning.startswith(f"{len(hidden):,} of the {n:,} tokens are those of target.spm only")


@pytest.mark.parametrize("kind", ["unigram json", "unigram", "bpe", "wordpiece", "byte level"])
def test_names_of_special_tokens_in_a_text_are_text(tmp_path, kind):
    config = T5
    match kind:
        case "unigram json":
            write_unigram(tmp_path)
        case "unigram" | "bpe":
            train_spm(tmp_path, model_type=kind)
        case "wordpiece":
            write_wordpiece(tmp_path)
            config = {"model_type": "bert"}
        case "byte level":
            write_byte_level(tmp_path, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
            config = {"model_type": "roberta"}
    found = import_tokenizer(tmp_path, config, "encoder-decoder" if config is T5 else "encoder")
    text = "a </s> b<pad>c [SEP] d</s>"
    special = {found.pad_id, found.bos_id, found.eos_id}
    assert not special & {*found.encode(text)}


BROKEN = {
    "empty": b"",
    "text": b"this is no protocol buffer",
    "cut off": None,
    "a number without an end": b"\x08" + b"\xff" * 40,
    "no pieces": b"\x12\x02\x18\x01",
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_sentencepiece_model_is_refused(tmp_path, fault):
    path = tmp_path / "spiece.model"
    data = BROKEN[fault]
    if data is None:
        train_spm(tmp_path)
        data = path.read_bytes()[:-3]
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match=r"spiece\.model: not a SentencePiece model"):
        read_sentencepiece(path)


def test_an_unsupported_type_of_sentencepiece_model_is_refused(tmp_path):
    train_spm(tmp_path, model_type="char", vocab_size=100)
    with pytest.raises(CheckpointError, match="unsupported type of SentencePiece model"):
        read_sentencepiece(tmp_path / "spiece.model")


def test_a_folder_without_tokenizer_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="no tokenizer: none of tokenizer"):
        import_tokenizer(tmp_path, {"model_type": "bert"}, "encoder")


def test_a_damaged_tokenizer_is_refused(tmp_path):
    (tmp_path / "tokenizer.json").write_text('{"model": 3}')
    with pytest.raises(CheckpointError, match="no usable tokenizer"):
        import_tokenizer(tmp_path, {"model_type": "bert"}, "encoder")


def test_a_byte_level_tokenizer_decodes_every_text_to_itself(tmp_path):
    write_byte_level(tmp_path, ["<|endoftext|>"])
    found = import_tokenizer(tmp_path, {"model_type": "gpt2"}, "decoder")
    assert [found.decode(ids) for ids in found.encode_batch(TEXTS + STRANGE)] == TEXTS + STRANGE
