"""A tokenizer as the page reads it: what of tokenizer.json its JavaScript has; all else is refused."""

import json
import re
from typing import Any

from glassformer.config import JsonObject
from glassformer.errors import ConfigError
from glassformer.tokens.tokenizer import BYTE_OF, Tokenizer

BYTE_LEVEL = {"type": "ByteLevel", "use_regex": True, "add_prefix_space": False}
BPE_OPTIONS = ("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "ignore_merges")
ADDED_OPTIONS = "single_word", "lstrip", "rstrip", "normalized"
SIMPLE_REGEX = re.compile(r"(\\x\{[0-9a-f]+\}|\\s|[ ,0-9^|{}()<=\[\]?])+")
"""Regular expressions that JavaScript reads alike."""


def tokenizer_record(tokenizer: Tokenizer) -> JsonObject:
    """The record of a tokenizer.

    Raises:
        ConfigError: the page has no such tokenizer.
    """
    parts = json.loads(tokenizer.to_json())
    found = parts_of(parts)
    if found is None:
        raise ConfigError(
            f"a page cannot have this tokenizer ({parts['model']['type']}): it has those of train --tokenizer and of"
            " SentencePiece."
        )
    special = {token["id"] for token in parts["added_tokens"] if token["special"]}
    return {
        "vocab": [tokenizer.backend.id_to_token(i) for i in range(tokenizer.vocab_size)],
        "specials": sorted(special),
        "prefix": tokenizer.special_tokens.prefix,
        "space": "" if (within := tokenizer.for_words()) is tokenizer else within.special_tokens.prefix,
        "first": tokenizer.first_ids,
        "unknown": parts["model"]["vocab"][unknown] if (unknown := parts["model"].get("unk_token")) else None,
        "targets": None if tokenizer.targets is tokenizer else tokenizer_record(tokenizer.targets),
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
            return {"kind": "bpe", "merges": merges_of(model)}
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
        case "Unigram" | "BPE" as algorithm:
            return sentencepiece_parts(algorithm, parts)
    return None


def sentencepiece_parts(algorithm: str, parts: JsonObject) -> JsonObject | None:
    """The parts of a tokenizer of SentencePiece. None: it has others.

    Args:
        algorithm: "Unigram" or "BPE".
        parts: tokenizer.json.
    """
    model = parts["model"]
    added = [token for token in parts["added_tokens"] if not token["special"]]
    refused = [name for name in BPE_OPTIONS if name not in ("unk_token", "fuse_unk") and model.get(name)]
    is_fused = algorithm == "Unigram" or model["fuse_unk"]
    has_unknown = model["unk_id" if algorithm == "Unigram" else "unk_token"] is not None
    if refused or not (is_fused and has_unknown) or any(token[name] for token in added for name in ADDED_OPTIONS):
        return None
    steps = {
        "normalizers": [normalizer_step(part) for part in sequence(parts["normalizer"], "normalizers")],
        "splitters": [splitter_step(part) for part in sequence(parts["pre_tokenizer"], "pretokenizers")],
        "decoders": [decoder_step(part) for part in sequence(parts["decoder"], "decoders")],
    }
    if any(None in part for part in steps.values()):
        return None
    if algorithm == "Unigram":
        own: JsonObject = {"scores": [score for _, score in model["vocab"]], "unknown": model["unk_id"]}
    else:
        own = {"merges": merges_of(model)}
    texts = sorted((token["content"] for token in added), key=len, reverse=True)
    return {"kind": "sentencepiece", "byte_fallback": model["byte_fallback"], "added": texts, **own, **steps}


def merges_of(model: JsonObject) -> list[str]:
    """The merges of a BPE model, with a space between the two parts."""
    return [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]


def sequence(part: JsonObject | None, name: str) -> list[JsonObject]:
    """The steps of a part of tokenizer.json, which is one or a sequence of them, or none."""
    if not part:
        return []
    return [step for inner in part[name] for step in sequence(inner, name)] if part["type"] == "Sequence" else [part]


def normalizer_step(part: JsonObject) -> JsonObject | None:
    """A step of the normalization; None if the page has no such step."""
    match part:
        case {"type": "Precompiled", "precompiled_charsmap": str(map_)}:
            return {"type": "charsmap", "map": map_}
        case {"type": "Prepend", "prepend": str(text)}:
            return {"type": "prepend", "content": text}
        case {"type": "Replace"}:
            return replace_step(part)
    return None


def splitter_step(part: JsonObject) -> JsonObject | None:
    """A step of the division into words; None if the page has no such step."""
    match part:
        case {"type": "WhitespaceSplit"}:
            return {"type": "whitespace"}
        case {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": prepend, "split": split}:
            return {"type": "metaspace", "prepend": prepend, "split": split}
        case {"type": "Split", "behavior": "Isolated", "invert": False, "pattern": {"Regex": regex}}:
            pattern = pattern_of(regex)
            is_boundary = all(branch.startswith("(?<=") for branch in regex.split("|"))  # matches no characters
            return {"type": "boundary", "pattern": pattern} if pattern and is_boundary else None
    return None


def decoder_step(part: JsonObject) -> JsonObject | None:
    """A step from tokens to a text; None if the page has no such step."""
    match part:
        case {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": prepend}:
            return {"type": "metaspace", "prepend": prepend}
        case {"type": "ByteFallback"}:
            return {"type": "bytes"}
        case {"type": "Fuse"}:
            return {"type": "fuse"}
        case {"type": "Strip", "content": content, "start": start, "stop": 0}:
            return {"type": "strip", "content": content, "start": start}
        case {"type": "Replace"}:
            return replace_step(part)
    return None


def replace_step(part: JsonObject) -> JsonObject | None:
    """The step that replaces a pattern; None if the page has no such pattern."""
    found = part["pattern"]
    literal = "".join(f"\\u{{{ord(character):x}}}" for character in found.get("String", ""))
    pattern = literal or pattern_of(found.get("Regex", ""))
    return {"type": "replace", "pattern": pattern, "content": part["content"]} if pattern else None


def pattern_of(regex: str) -> str | None:
    """A regular expression of JavaScript that matches as one of Oniguruma; None for all but the simplest."""
    if not SIMPLE_REGEX.fullmatch(regex):
        return None
    return re.sub(r"\\x\{(\w+)\}", r"\\u{\1}", regex).replace(r"\s", r"\p{White_Space}")


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
