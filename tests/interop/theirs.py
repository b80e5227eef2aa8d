"""Small transformers models and tokenizers with random weights, and text to test them with."""

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers
from tokenizers import decoders, models, pre_tokenizers, processors, trainers
from torch import Tensor

TEXTS = [
    "The black cat sat on the couch and the brown dog slept on the rug.",
    "Le chat noir était assis sur le canapé et le chien marron dormait sur le tapis.",
    "Ich bin glücklich, weil die Straße übermäßig groß ist!",
    "What's the matter? It's 10:45 p.m., isn't it -- and we've paid $3.50 (or €4,20)…",
    "Съешь ещё этих мягких французских булок, да выпей чаю.",
    "天地玄黃,宇宙洪荒。日月盈昃, 辰宿列張。",
    "naïve café, ﬁrst-class № ½ ①  double  spaces\tand a tab",
    "emoji 😀👍🏽 and ﷽ and a\u200bzero width, a\u00a0no-break space",
    "snake_case CamelCase http://example.org/?q=a+b&c=d#e user@example.org",
    '{\'json\': [1, 2.5, -3e7], "tab": "\\t"} <b>bold</b> a<b>c',
    "ALL CAPS SHOUTING and mIxEd cAsE; semi;colons, com,mas",
    "the the the the the cat cat sat sat on on on a a rug rug rug",
    "zzyzx qwrtp xkcd vcvcvc lllll",
]


def varied_lines(n: int = 300) -> list[str]:
    """The texts, and lines of randomly chosen words from them."""
    draw = random.Random(7)
    words = [word for text in TEXTS for word in text.split(" ")]
    lines = [" ".join(draw.choices(words, k=draw.randint(1, 12))) for _ in range(n - len(TEXTS))]
    return TEXTS + lines


LINES = varied_lines()


@cache
def wordpiece_vocab() -> list[str]:
    """Lines of a vocab.txt."""
    inner = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    inner.normalizer = tokenizers.normalizers.BertNormalizer()
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=211, special_tokens=special, show_progress=False)
    inner.train_from_iterator(TEXTS, trainer)
    vocab = inner.get_vocab()
    return sorted(vocab, key=vocab.__getitem__)


def write_wordpiece(folder: Path, **settings: Any) -> int:
    """Write vocab.txt and tokenizer_config.json; return the vocabulary size."""
    vocab = wordpiece_vocab()
    folder.mkdir(exist_ok=True)
    (folder / "vocab.txt").write_text("".join(unit + "\n" for unit in vocab), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True, **settings}))
    return len(vocab)


def write_byte_level(folder: Path, special: list[str], **settings: Any) -> int:
    """Write vocab.json and merges.txt; return the vocabulary size."""
    inner = tokenizers.Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=311, special_tokens=special, show_progress=False, initial_alphabet=alphabet
    )
    inner.train_from_iterator(TEXTS, trainer)
    folder.mkdir(exist_ok=True)
    inner.model.save(str(folder))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return inner.get_vocab_size()


def write_unigram(folder: Path) -> int:
    """Write a tokenizer.json like T5's; return the vocabulary size."""
    inner = tokenizers.Tokenizer(models.Unigram())
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.decoder = decoders.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=151, special_tokens=special, unk_token="<unk>", show_progress=False)
    inner.train_from_iterator(TEXTS, trainer)
    inner.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    folder.mkdir(exist_ok=True)
    inner.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "<pad>", "eos_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"unk_token": "<unk>"}))
    return inner.get_vocab_size()


def random_model(kind: str, config: transformers.PretrainedConfig, *, std: float = 0.3) -> Any:
    """A model with random weights, norms and biases included: with default values a missing one would go unnoticed."""
    torch.manual_seed(11)
    model = getattr(transformers, kind)(config).eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "embed_positions" not in name:
                p.normal_(std=std)
                if "norm" in name.lower() and name.endswith("weight"):
                    p.add_(1.0)
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.normal_()
    return model


def ragged(vocab_size: int, pad_id: int, lengths: tuple[int, ...] = (13, 3, 7, 13, 1), first: int = 5) -> Tensor:
    """Ids of texts of several lengths, padded at the end."""
    generator = torch.Generator().manual_seed(5)
    ids = torch.randint(first, vocab_size, (len(lengths), max(lengths)), generator=generator)
    ids[ids == pad_id] = first
    for row, length in zip(ids, lengths, strict=True):
        row[length:] = pad_id
    return ids


def up_to(end: int, ids: list[int]) -> list[int]:
    """Ids up to and including the first `end`."""
    return ids[: ids.index(end) + 1] if end in ids else ids
