"""Tokenizers of other programs."""

from pathlib import Path
from typing import Any

import tokenizers

from glassformer import checkpoint
from glassformer.errors import CheckpointError
from glassformer.tokens.tokenizer import Specials, Tokenizer, guarded
from glassformer.tokens.wordpiece import wordpiece_tokenizer


def import_tokenizer(source: Path, config: dict[str, Any]) -> Tokenizer:
    """The tokenizer of a transformers folder.

    Raises:
        CheckpointError: no tokenizer file that this version reads, or it lacks a special token.
    """
    settings = (
        checkpoint.read_json(source / "tokenizer_config.json") if (source / "tokenizer_config.json").exists() else {}
    )
    if (source / "tokenizer.json").exists():
        text = (source / "tokenizer.json").read_text(encoding="utf-8")
        inner = guarded(
            lambda: tokenizers.Tokenizer.from_str(text),
            lambda problem: CheckpointError(f"{source / 'tokenizer.json'}: not a tokenizer: {problem}"),
        )
    elif (source / "vocab.txt").exists():
        vocab = (source / "vocab.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
        lowercase = bool(settings.get("do_lower_case", True))
        strip = settings.get("strip_accents")
        inner = wordpiece_tokenizer(vocab, lowercase=lowercase, strip_accents=lowercase if strip is None else strip)
    else:
        raise CheckpointError(f"{source}: no tokenizer.json and no vocab.txt.")
    vocab_of = inner.get_vocab()

    def named(role: str, *usual: str) -> str:
        given = settings.get(role)
        given = given.get("content") if isinstance(given, dict) else given
        for token in (given, *usual):
            if token in vocab_of:
                return str(token)
        raise CheckpointError(f"{source}: the tokenizer names no {role}.")

    pad = named("pad_token", "[PAD]", "<pad>", "<|endoftext|>")
    begin = named("cls_token", "[CLS]", "<s>", "<|endoftext|>", pad)
    end = named("sep_token", "[SEP]", "</s>", "<|endoftext|>")
    mask = next((token for token in (settings.get("mask_token"), "[MASK]", "<mask>") if token in vocab_of), None)
    return Tokenizer(inner, Specials(pad, begin, end, mask, prefix=""))
