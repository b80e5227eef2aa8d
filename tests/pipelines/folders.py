"""Tiny folders of transformers with random weights, each with a tokenizer trained on a few lines."""

from pathlib import Path
from typing import Any

import torch
import transformers as hf
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

TEXTS = [
    "The cat sat on the mat, and Ann didn't see it.",
    "A dog ran over the hill to Berlin; nobody was there!",
    "Where does Wolfgang live? He lives in Rome with three unbelievable cats.",
    "It is raining. We're late, aren't we?",
]
VOCAB, D_MODEL, HEADS, D_FF, LAYERS, MAX_LEN = 157, 22, 2, 31, 2, 61
LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]

BERT = dict(
    hidden_size=D_MODEL, num_attention_heads=HEADS, intermediate_size=D_FF, num_hidden_layers=LAYERS,
    max_position_embeddings=MAX_LEN, initializer_range=0.5,
)  # fmt: skip


def wordpiece(*, types: bool = True) -> hf.PreTrainedTokenizerBase:
    inner = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    inner.normalizer = normalizers.BertNormalizer(lowercase=True)
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.decoder = decoders.WordPiece()
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    inner.train_from_iterator(TEXTS, trainers.WordPieceTrainer(vocab_size=97, special_tokens=names))
    inner.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", model_max_length=MAX_LEN, clean_up_tokenization_spaces=True,
        model_input_names=["input_ids", *(["token_type_ids"] if types else []), "attention_mask"],
    )  # fmt: skip


def bytes_of(names: list[str], n_vocab: int, **roles: Any) -> hf.PreTrainedTokenizerBase:
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    inner.train_from_iterator(
        TEXTS * 3, trainers.BpeTrainer(vocab_size=n_vocab, special_tokens=names, initial_alphabet=alphabet)
    )
    if "<mask>" in names:
        inner.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    else:
        inner.post_processor = processors.ByteLevel(trim_offsets=False)
    return hf.PreTrainedTokenizerFast(tokenizer_object=inner, **roles)


def roberta_tokenizer() -> hf.PreTrainedTokenizerBase:
    mask = AddedToken("<mask>", lstrip=True, special=True)
    return bytes_of(
        ["<s>", "<pad>", "</s>", "<unk>", "<mask>"], 331, bos_token="<s>", pad_token="<pad>", eos_token="</s>",
        cls_token="<s>", sep_token="</s>", unk_token="<unk>", mask_token=mask, model_max_length=MAX_LEN,
        model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip


def gpt2_tokenizer() -> hf.PreTrainedTokenizerBase:
    return bytes_of(
        ["<|endoftext|>"], 331, bos_token="<|endoftext|>", eos_token="<|endoftext|>", model_max_length=97,
        model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip


def unigram(names: list[str]) -> hf.PreTrainedTokenizerBase:
    """A unigram tokenizer with the vocabulary of BPE, as the unigram trainer of tokenizers is not deterministic."""
    merged = Tokenizer(models.BPE())
    merged.pre_tokenizer = pre_tokenizers.Metaspace()
    merged.train_from_iterator(TEXTS * 2, trainers.BpeTrainer(vocab_size=VOCAB, show_progress=False))
    vocab = merged.get_vocab()
    rows = [(name, 0.0) for name in names] + [
        (token, -1.0 - vocab[token] / 50) for token in sorted(vocab, key=vocab.get)
    ]
    inner = Tokenizer(models.Unigram(rows, names.index("<unk>"), False))
    inner.add_special_tokens(names)
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.decoder = decoders.Metaspace()
    ids = [("</s>", inner.token_to_id("</s>"))]
    inner.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=ids)
    sentinels = [name for name in names if "extra" in name]
    more = dict(additional_special_tokens=sentinels) if sentinels else {}
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=MAX_LEN, **more
    )


def save(folder: Path, model: Any, tokenizer: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    model.eval()
    if isinstance(getattr(model, "classifier", None), torch.nn.Linear):
        with torch.no_grad():  # otherwise random weights give all tokens the same label
            logits = model(torch.randint(5, len(tokenizer), (9, 11))).logits
            model.classifier.bias -= logits.flatten(0, -2).mean(0)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def bert(folder: Path, kind: Any = None, tokenizer: Any = None, **more: Any) -> Path:
    """A BERT with a head."""
    tokenizer = tokenizer or wordpiece()
    config = hf.BertConfig(vocab_size=len(tokenizer), **BERT, **more)
    torch.manual_seed(7)
    return save(folder, (kind or hf.BertModel)(config), tokenizer)


def roberta(folder: Path, kind: Any, **more: Any) -> Path:
    tokenizer = roberta_tokenizer()
    config = hf.RobertaConfig(
        vocab_size=len(tokenizer), **{**BERT, "max_position_embeddings": MAX_LEN + 2}, type_vocab_size=1,
        pad_token_id=1, bos_token_id=0, eos_token_id=2, **more,
    )  # fmt: skip
    torch.manual_seed(7)
    return save(folder, kind(config), tokenizer)


def distilbert(folder: Path, kind: Any, **more: Any) -> Path:
    tokenizer = wordpiece(types=False)
    config = hf.DistilBertConfig(
        vocab_size=len(tokenizer), dim=D_MODEL, n_heads=HEADS, hidden_dim=D_FF, n_layers=LAYERS,
        max_position_embeddings=MAX_LEN, initializer_range=0.5, **more,
    )  # fmt: skip
    torch.manual_seed(7)
    return save(folder, kind(config), tokenizer)


def gpt2(folder: Path, **more: Any) -> Path:
    tokenizer = gpt2_tokenizer()
    config = hf.GPT2Config(
        vocab_size=len(tokenizer), n_embd=D_MODEL, n_head=HEADS, n_layer=LAYERS, n_positions=97, bos_token_id=0,
        eos_token_id=0, initializer_range=0.5, **more,
    )  # fmt: skip
    torch.manual_seed(7)
    return save(folder, hf.GPT2LMHeadModel(config), tokenizer)


def t5(folder: Path, generation: dict[str, Any] | None = None, **more: Any) -> Path:
    tokenizer = unigram(["<pad>", "</s>", "<unk>", "<extra_id_0>", "<extra_id_1>"])
    config = hf.T5Config(
        vocab_size=len(tokenizer), d_model=D_MODEL, d_kv=7, num_heads=3, d_ff=D_FF, num_layers=LAYERS,
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=1, initializer_factor=1.5, **more,
    )  # fmt: skip
    torch.manual_seed(7)
    model = hf.T5ForConditionalGeneration(config)
    model.generation_config.update(**generation or {})
    return save(folder, model, tokenizer)


def marian(folder: Path, generation: dict[str, Any] | None = None, eos_bias: float = 3.0, std: float = 0.2) -> Path:
    tokenizer = unigram(["</s>", "<unk>", "<pad>"])
    config = hf.MarianConfig(
        vocab_size=len(tokenizer), d_model=D_MODEL, encoder_layers=LAYERS, decoder_layers=LAYERS,
        encoder_ffn_dim=D_FF, decoder_ffn_dim=D_FF, encoder_attention_heads=HEADS, decoder_attention_heads=HEADS,
        max_position_embeddings=MAX_LEN, pad_token_id=2, eos_token_id=0, bos_token_id=None, decoder_start_token_id=2,
        forced_eos_token_id=0, scale_embedding=True, activation_function="swish", init_std=std,
    )  # fmt: skip
    torch.manual_seed(7)
    model = hf.MarianMTModel(config)
    torch.nn.init.normal_(model.final_logits_bias, std=0.5)
    model.final_logits_bias[0, 0] += eos_bias
    model.generation_config.update(
        **{"bad_words_ids": [[2]], "forced_eos_token_id": 0, "max_length": 40, "num_beams": 4, **(generation or {})}
    )
    return save(folder, model, tokenizer)


def labels(names: list[str]) -> dict[str, Any]:
    """id2label and label2id of a config."""
    return {"id2label": dict(enumerate(names)), "label2id": {name: i for i, name in enumerate(names)}}
