"""A tokenizer as the page reads it: what of tokenizer.json its JavaScript has, all else is refused."""

import json
from typing import Any

from glassformer.config import JsonObject
from glassformer.errors import ConfigError
from glassformer.tokens.tokenizer import BYTE_OF, Tokenizer

BYTE_LEVEL = {"type": "ByteLevel", "use_regex": True, "add_prefix_space": False}
BPE_OPTIONS = ("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "ignore_merges")


def tokenizer_record(tokenizer: Tokenizer) -> JsonObject:
    """The record of a tokenizer.

    Raises:
        ConfigError: the page has no such tokenizer.
    """
    parts = json.loads(tokenizer.to_json())
    found = parts_of(parts)
    if found is None:
        raise ConfigError(
            f"a page cannot have this tokenizer ({parts['model']['type']}): it has those of train --tokenizer."
        )
    special = {token["id"] for token in parts["added_tokens"] if token["special"]}
    return {
        "vocab": [tokenizer.backend.id_to_token(i) for i in range(tokenizer.vocab_size)],
        "specials": sorted(special),
        "prefix": tokenizer.special_tokens.prefix,
        "first": tokenizer.first_ids,
        "unknown": parts["model"]["vocab"][unknown] if (unknown := parts["model"].get("unk_token")) else None,
        **found,
    }


def parts_of(parts: JsonObject) -> JsonObject | None:
    """The kind of a tokenizer, and what only this kind has. None: another one.

    Args:
        parts: tokenizer.json.
    """
    model, normalizer = parts["model"], parts["normalizer"] or {}
    before = parts["pre_tokenizer"] or {}
    is_byte_level = not normalizer and BYTE_LEVEL.items() <= before.items()
    match model["type"]:
        case "BPE" if is_byte_level and not any(model.get(name) for name in (*BPE_OPTIONS, "byte_fallback")):
            return {
                "kind": "bpe",
                "merges": [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]],
            }
        case "BPE" if not (normalizer or before or model["merges"]) and model["byte_fallback"]:
            return {"kind": "char"}
        case "Unigram" if is_byte_level and has_all_bytes(model):
            return {"kind": "unigram", "scores": [score for _, score in model["vocab"]]}
        case "WordLevel" if before.get("type") == "Whitespace" and normalizer.get("type") in (None, "Lowercase"):
            return {"kind": "word", "lowercase": bool(normalizer)}
        case "WordPiece" if is_bert(parts):
            lowercase, strip = normalizer["lowercase"], normalizer["strip_accents"]
            return {
                "kind": "wordpiece", "lowercase": lowercase,
                "strip_accents": lowercase if strip is None else strip, "max_word": model["max_input_chars_per_word"],
            }  # fmt: skip
    return None


def has_all_bytes(model: Any) -> bool:
    """Whether a unigram model has a token for each byte, so that none is unknown."""
    return BYTE_OF.keys() <= {token for token, _ in model["vocab"]}


def is_bert(parts: JsonObject) -> bool:
    """Whether a WordPiece tokenizer normalizes, splits and joins as BERT's."""
    normalizer, decoder = parts["normalizer"] or {}, parts["decoder"] or {}
    return (
        normalizer.get("type") == "BertNormalizer"
        and normalizer["clean_text"]
        and normalizer["handle_chinese_chars"]
        and (parts["pre_tokenizer"] or {}).get("type") == "BertPreTokenizer"
        and parts["model"]["continuing_subword_prefix"] == "##"
        and {"type": "WordPiece", "prefix": "##", "cleanup": True}.items() <= decoder.items()
    )
