"""Tokenizers of Hugging Face's folders, in and out."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors

from glassformer import checkpoint
from glassformer.errors import CheckpointError
from glassformer.interop import sentencepiece as sp
from glassformer.tokens.tokenizer import SpecialTokens, Tokenizer, wrap_native_errors
from glassformer.tokens.wordpiece import wordpiece_tokenizer

Record = dict[str, Any]
SENTENCEPIECE = ("spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "spm.model")
ROLES = ("pad_token", "bos_token", "eos_token", "cls_token", "sep_token", "mask_token", "unk_token")


def import_tokenizer(source: Path, config: Record) -> Tokenizer:
    """The tokenizer of a transformers folder.

    Args:
        config: what its config.json says.

    Raises:
        CheckpointError: no tokenizer file that this version reads, or it lacks a special token.
    """

    def read() -> Tokenizer:
        settings = named_specials(source)
        inner = read_tokenizer(source, config, settings)
        sp.keep_names_apart(inner)
        return Tokenizer(inner, find_specials(source, config, settings, inner))

    return wrap_native_errors(read, lambda problem: CheckpointError(f"{source}: no usable tokenizer: {problem}"))


def named_specials(source: Path) -> Record:
    """tokenizer_config.json, and of special_tokens_map.json what it lacks; special tokens by their text alone."""
    found: Record = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        if (source / name).exists():
            found |= checkpoint.read_json(source / name)
    for role in ROLES:
        if isinstance(found.get(role), dict):
            found[role] = found[role].get("content")
    return found


def read_tokenizer(source: Path, config: Record, settings: Record) -> tokenizers.Tokenizer:
    """The tokenizer that the files of a folder describe."""
    t5_sentinels = int(settings.get("extra_ids", 100)) if config["model_type"] == "t5" else 0
    pieces = next((source / name for name in SENTENCEPIECE if (source / name).exists()), None)
    if (source / "tokenizer.json").exists():
        return from_json(source / "tokenizer.json")
    if (source / "source.spm").exists():
        if settings.get("separate_vocabs"):
            raise CheckpointError(f"{source}: a vocabulary for each language; this version has one for both.")
        inner = sp.marian_tokenizer(sp.read_pieces(source / "source.spm"), checkpoint.read_json(source / "vocab.json"))
    elif pieces:
        inner = sp.sentencepiece_tokenizer(sp.read_pieces(pieces), t5_sentinels)
    elif (source / "vocab.txt").exists():
        inner = wordpieces(source / "vocab.txt", settings)
    elif (source / "vocab.json").exists() and (source / "merges.txt").exists():
        inner = byte_level(source, settings)
    else:
        raise CheckpointError(
            f"{source}: no tokenizer: none of tokenizer.json, vocab.txt, vocab.json with merges.txt or source.spm,"
            f" {', '.join(SENTENCEPIECE)}."
        )
    add_tokens(inner, source, settings)
    return inner


def from_json(path: Path) -> tokenizers.Tokenizer:
    """A tokenizer.json; T5's sentinels in a text are sentinels."""
    record = checkpoint.read_json(path)
    for token in record.get("added_tokens", ()):
        if re.fullmatch(r"<extra_id_\d+>", token["content"]):
            token["special"] = False
    return tokenizers.Tokenizer.from_str(json.dumps(record))


def wordpieces(path: Path, settings: Record) -> tokenizers.Tokenizer:
    """BERT's vocab.txt."""
    vocab = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    lowercase = bool(settings.get("do_lower_case", True))
    strip = settings.get("strip_accents")
    inner = wordpiece_tokenizer(vocab, lowercase=lowercase, strip_accents=lowercase if strip is None else strip)
    if not settings.get("tokenize_chinese_chars", True):
        inner.normalizer.handle_chinese_chars = False
    return inner


def byte_level(source: Path, settings: Record) -> tokenizers.Tokenizer:
    """The vocab.json and merges.txt of GPT-2 and RoBERTa."""
    inner = tokenizers.Tokenizer(models.BPE.from_file(str(source / "vocab.json"), str(source / "merges.txt")))
    space = bool(settings.get("add_prefix_space", False))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=space)
    inner.decoder = decoders.ByteLevel()
    usual = ("<|endoftext|>", "<s>", "</s>", "<pad>", "<unk>", "<mask>")
    names = dict.fromkeys([*(settings.get(role) for role in ROLES), *usual])
    inner.add_special_tokens([name for name in names if name and inner.token_to_id(name) is not None])
    return inner


def add_tokens(inner: tokenizers.Tokenizer, source: Path, settings: Record) -> None:
    """Tokens that were added to a finished vocabulary: `added_tokens_decoder`, or the older added_tokens.json."""
    rows: dict[int, Record] = {int(i): row for i, row in settings.get("added_tokens_decoder", {}).items()}
    if not rows and (source / "added_tokens.json").exists():
        rows = {i: {"content": name} for name, i in checkpoint.read_json(source / "added_tokens.json").items()}
    specials = [settings.get(role) for role in ROLES]
    for i, row in sorted(rows.items()):
        name = row["content"]
        if re.fullmatch(r"<extra_id_\d+>", name) and inner.token_to_id(name) == i:
            continue
        special = bool(row.get("special", name in specials))
        inner.add_tokens([AddedToken(name, special=special, normalized=bool(row.get("normalized", not special)))])
        if inner.token_to_id(name) != i:
            raise CheckpointError(f"{source}: its added token {name} is to be number {i:,}, which is not free.")


def find_specials(source: Path, config: Record, settings: Record, inner: tokenizers.Tokenizer) -> SpecialTokens:
    """Which tokens begin, end, pad and mask: by the tokenizer's settings, the model's, or their usual names."""

    def token(roles: tuple[str, ...], *usual: str | None) -> str:
        by_id = (inner.id_to_token(i) for role in roles if isinstance(i := config.get(f"{role}_id"), int))
        for name in (*(settings.get(role) for role in roles), *by_id, *usual):
            if name is not None and inner.token_to_id(name) is not None:
                return str(name)
        raise CheckpointError(f"{source}: the tokenizer names no {roles[0]}.")

    match config["model_type"]:
        case "gpt2":
            end = token(("eos_token",), "<|endoftext|>", "</s>")
            return SpecialTokens(token(("pad_token",), end), token(("bos_token",), end), end, prefix="")
        case "t5" | "marian" | "pegasus":
            pad = token(("pad_token",), "<pad>")
            start = decoder_start(source)
            begin = pad if start is None else inner.id_to_token(start)
            if begin is None:
                raise CheckpointError(f"{source}: the decoder's start token, {start:,}, is none of the tokenizer's.")
            return SpecialTokens(pad, begin, token(("eos_token",), "</s>"), prefix="")
    mask = settings.get("mask_token")
    return SpecialTokens(
        token(("pad_token",), "[PAD]", "<pad>"),
        token(("cls_token", "bos_token"), "[CLS]", "<s>"),
        token(("sep_token", "eos_token"), "[SEP]", "</s>"),
        next((name for name in (mask, "[MASK]", "<mask>") if name and inner.token_to_id(name) is not None), None),
        prefix="",
    )


def decoder_start(source: Path) -> int | None:
    """The id that a decoder begins with; None: that of padding."""
    for name in ("generation_config.json", "config.json"):
        record = checkpoint.read_json(source / name) if (source / name).exists() else {}
        if isinstance(record.get("decoder_start_token_id"), int):
            return int(record["decoder_start_token_id"])
    return None


# Out


def export_tokenizer(tokenizer: Tokenizer, task: str, sizes: Any) -> Mapping[str, str]:
    """tokenizer.json and tokenizer_config.json that make transformers' AutoTokenizer encode as the task does."""
    s, encodes = tokenizer.special_tokens, task not in ("translation", "causal-lm", "summarization")
    inner = tokenizers.Tokenizer.from_str(tokenizer.to_json())
    if s.prefix:
        first = [normalizers.Prepend(s.prefix)]
        inner.normalizer = normalizers.Sequence([*first, *([inner.normalizer] if inner.normalizer else [])])
        inner.decoder = decoders.Sequence([inner.decoder, decoders.Strip(s.prefix, 1, 0)])
    single, pair = around(s, task, 2 if getattr(sizes, "position_offset", 0) else 1)
    ids = {s.bos_token: tokenizer.bos_id, s.eos_token: tokenizer.eos_id}
    inner.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=list(ids.items()))
    record = json.loads(inner.to_str())
    for token in record["added_tokens"]:
        if token["content"] == s.mask_token:
            token["lstrip"] = True  # the space before a masked word is the word's
    begin, end = ("cls_token", "sep_token") if encodes else ("bos_token", "eos_token")
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": sizes.max_len,
        "clean_up_tokenization_spaces": False,
        "padding_side": "left" if task in ("causal-lm", "summarization") else "right",
        "pad_token": s.pad_token,
        begin: s.bos_token,
        end: s.eos_token,
        **({"mask_token": s.mask_token} if s.mask_token else {}),
        **({"unk_token": unk} if (unk := unknown(record["model"])) else {}),
        "model_input_names": [
            "input_ids", *(["token_type_ids"] if getattr(sizes, "n_token_types", 0) > 1 else []), "attention_mask"
        ],
    }  # fmt: skip
    return {"tokenizer.json": checkpoint.to_json(record), "tokenizer_config.json": checkpoint.to_json(settings)}


def around(s: SpecialTokens, task: str, n_separators: int) -> tuple[list[str], list[str]]:
    """The special tokens that a task puts around a text, and around two."""
    match task:
        case "translation" | "summarization":
            return ["$A", s.eos_token], ["$A", s.eos_token, "$B", s.eos_token]
        case "causal-lm":
            start = [s.bos_token] if s.bos_token != s.eos_token else []
            return [*start, "$A"], [*start, "$A", "$B"]
    single = [s.bos_token, "$A", s.eos_token]
    return single, [*single, *[s.eos_token] * (n_separators - 1), "$B:1", f"{s.eos_token}:1"]


def unknown(inner: Record) -> str | None:
    """What stands for text that no units make up."""
    if inner["type"] == "Unigram":
        return None if inner["unk_id"] is None else str(inner["vocab"][inner["unk_id"]][0])
    return inner.get("unk_token")
