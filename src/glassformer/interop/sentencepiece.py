"""Conversion of SentencePiece .model files to Hugging Face tokenizers."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

from glassformer.errors import CheckpointError
from glassformer.limits import MAX_JSON_BYTES
from glassformer.tokens.tokenizer import NEVER_ENCODED, wrap_native_errors

UNIGRAM, BPE = 1, 2
"""Values of model_type in a .model file."""
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED = 1, 2, 3, 4, 5
"""Types of vocabulary entries in a .model file."""
UNKNOWN_SPAN = "\ue001"
"""Replaces a span of several unknown characters."""
MARIAN_SPECIAL_TOKENS = ["<unk>", "</s>", "<pad>"]


@dataclass(frozen=True, slots=True)
class SentencePieceModel:
    """Contents of a .model file."""

    entries: list[tuple[str, float, int]]
    """Text, log-probability and type of each vocabulary entry, in the order of the ids."""
    algorithm: int
    """UNIGRAM or BPE."""
    byte_fallback: bool
    charsmap: bytes
    """Precompiled character normalization; empty if there is none."""
    keeps_spaces: bool = False
    """White space is part of the text: spaces are not joined, and none is removed at the ends."""

    def of_type(self, *types: int) -> list[str]:
        """Texts of all entries of the given types."""
        return [text for text, _, entry_type in self.entries if entry_type in types]


def read_sentencepiece(path: Path) -> SentencePieceModel:
    """Read a SentencePiece .model file.

    Raises:
        CheckpointError: not a SentencePiece model, or of an unsupported type.
    """
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise ValueError("too large")
        entries, trainer, normalizer = [], {}, {}
        for number, value in protobuf_fields(path.read_bytes()):
            if number == 1:
                entry = dict(protobuf_fields(value))
                entry_type = entry.get(3, NORMAL)
                text = NEVER_ENCODED * (entry_type == UNUSED) + entry[1].decode()
                entries.append((text, struct.unpack("<f", entry.get(2, bytes(4)))[0], entry_type))
            elif number == 2:
                trainer = dict(protobuf_fields(value))
            elif number == 3:
                normalizer = dict(protobuf_fields(value))
        # Numbers of the fields in sentencepiece_model.proto: model_type 3, byte_fallback 35, precompiled_charsmap 2,
        # remove_extra_whitespaces 4.
        character_map = normalizer.get(2, b"")
        if not isinstance(character_map, bytes):
            raise ValueError("its map of characters is a number")
        if character_map:
            wrap_native_errors(
                lambda: normalizers.Precompiled(character_map),
                lambda problem: CheckpointError(f"{path}: not a SentencePiece model: {problem}."),
            )
        spm = SentencePieceModel(
            entries, trainer.get(3, UNIGRAM), bool(trainer.get(35)), character_map, not normalizer.get(4, 1)
        )
        if not spm.of_type(UNKNOWN):
            raise ValueError("no entry for unknown text")
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}.") from None
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, struct.error) as error:
        raise CheckpointError(f"{path}: not a SentencePiece model: {error}.") from None
    # add_dummy_prefix 3, treat_whitespace_as_suffix 24
    if spm.algorithm not in (UNIGRAM, BPE) or not normalizer.get(3, 1) or trainer.get(24):
        raise CheckpointError(
            f"{path}: unsupported type of SentencePiece model. Supported: unigram and BPE with a space before the text."
        )
    return spm


def protobuf_fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Number and value of each field of a protobuf message."""
    offset = 0
    while offset < len(message):
        key, offset = varint(message, offset)
        match key & 7:
            case 0:
                value, offset = varint(message, offset)
                yield key >> 3, value
                continue
            case 1:
                n = 8
            case 2:
                n, offset = varint(message, offset)
            case 5:
                n = 4
            case wire_type:
                raise ValueError(f"unknown wire type {wire_type}")
        if offset + n > len(message):
            raise ValueError("truncated")
        yield key >> 3, message[offset : offset + n]
        offset += n


def varint(message: bytes, offset: int) -> tuple[int, int]:
    """Decode a protobuf varint (7 bits per byte, lowest first): its value and the offset after it."""
    value = shift = 0
    while True:
        byte = message[offset]
        value |= (byte & 127) << shift
        offset, shift = offset + 1, shift + 7
        if byte < 128:
            return value, offset
        if shift > 63:
            raise ValueError("varint too long")


def sentencepiece_tokenizer(spm: SentencePieceModel, n_sentinels: int = 0) -> tokenizers.Tokenizer:
    """Tokenizer with the vocabulary and the ids of a .model file.

    Args:
        spm: contents of a .model file, from `read_sentencepiece`.
        n_sentinels: number N of T5's sentinel tokens <extra_id_N-1> to <extra_id_0>, added after all other tokens.
    """
    unknown = spm.of_type(UNKNOWN)[0]
    sentinel_tokens = [f"<extra_id_{i}>" for i in reversed(range(n_sentinels))]
    tokens = [text for text, _, _ in spm.entries] + sentinel_tokens
    if spm.algorithm == UNIGRAM:
        scores = [*((text, score) for text, score, _ in spm.entries), *((text, 0.0) for text in sentinel_tokens)]
        model: models.Model = models.Unigram(scores, tokens.index(unknown), spm.byte_fallback)
    else:
        vocab = {text: i for i, text in enumerate(tokens)}
        model = models.BPE(vocab, merges(spm), unk_token=unknown, fuse_unk=True, byte_fallback=spm.byte_fallback)
    backend = tokenizers.Tokenizer(model)
    backend.add_special_tokens([unknown, *spm.of_type(CONTROL)])
    backend.add_tokens([AddedToken(text, normalized=False) for text in [*spm.of_type(USER_DEFINED), *sentinel_tokens]])
    return add_text_processing(backend, spm)


def marian_tokenizer(spm: SentencePieceModel, vocab: dict[str, int]) -> tokenizers.Tokenizer:
    """Tokenizer that segments text as source.spm does, with the ids of vocab.json.

    Entries of vocab.json that are not in source.spm are only decoded, never encoded, except single characters.
    Two differences from transformers: a token of source.spm that is not in vocab.json is split into other tokens,
    where transformers gives <unk>; a span of characters unknown to source.spm is one <unk>, where transformers looks
    it up in vocab.json.
    """
    scores = {text: score for text, score, entry_type in spm.entries if entry_type in (NORMAL, USER_DEFINED)}
    tokens = sorted(vocab, key=vocab.__getitem__)
    if sorted(vocab.values()) != list(range(len(vocab))) or not {*MARIAN_SPECIAL_TOKENS} <= vocab.keys():
        raise CheckpointError(
            "vocab.json: the ids are not 0, 1, 2, ... without gaps, or <unk>, </s> or <pad> is missing."
        )
    known = {character for text in scores for character in text}
    codes = [token for token in tokens if token.startswith(">>") and token.endswith("<<")]
    unk_score = min(scores.values(), default=0.0) - 10  # SentencePiece's score of an unknown character
    scores = (
        dict.fromkeys((*codes, *(token for token in tokens if len(token) == 1), *MARIAN_SPECIAL_TOKENS), unk_score)
        | scores
    )
    entries = [(token if token in scores else NEVER_ENCODED + token, scores.get(token, unk_score)) for token in tokens]
    backend = tokenizers.Tokenizer(models.Unigram(entries, vocab["<unk>"], False))
    backend.add_special_tokens(MARIAN_SPECIAL_TOKENS)
    backend.add_tokens([AddedToken(code, normalized=False) for code in codes])
    add_text_processing(backend, spm)
    unknown_span = Regex(f"[^\\s{regex_literal(''.join(sorted(known)))}]{{2,}}")
    backend.normalizer = normalizers.Sequence([backend.normalizer, normalizers.Replace(unknown_span, UNKNOWN_SPAN)])
    return backend


def add_text_processing(backend: tokenizers.Tokenizer, spm: SentencePieceModel) -> tokenizers.Tokenizer:
    """Set SentencePiece's normalizer, pre-tokenizer and decoder on a tokenizer, and return it."""
    steps: list[normalizers.Normalizer] = [normalizers.Replace(NEVER_ENCODED, "")]
    if spm.charsmap:
        steps.append(normalizers.Precompiled(spm.charsmap))
    if spm.keeps_spaces:
        steps += [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    else:
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
        )
    backend.normalizer = normalizers.Sequence(steps)
    decoding: list[decoders.Decoder] = [decoders.Replace(NEVER_ENCODED, "")]
    decoding += [decoders.ByteFallback()] if spm.byte_fallback else []
    backend.decoder = decoders.Sequence([*decoding, decoders.Metaspace()])
    return backend


def merges(spm: SentencePieceModel) -> list[tuple[str, str]]:
    """BPE merges: for each entry all pairs of entries that form it, most probable entries first."""
    known = {text for text, _, entry_type in spm.entries if entry_type == NORMAL}
    ranked = sorted((entry for entry in spm.entries if entry[2] == NORMAL), key=lambda entry: -entry[1])
    return [
        (text[:i], text[i:])
        for text, _, _ in ranked
        for i in range(1, len(text))
        if text[:i] in known and text[i:] in known
    ]


def encode_special_tokens_as_text(backend: tokenizers.Tokenizer) -> None:
    """Make a unigram tokenizer encode names of special tokens in a text as ordinary text, by splitting the names.

    transformers calls this split_special_tokens. For other models `Tokenizer.encode_special_tokens` is sufficient; in a
    unigram model, special tokens are also entries of the vocabulary that any text can be segmented into.
    """
    if not isinstance(backend.model, models.Unigram):
        return
    names = [token.content for token in backend.get_added_tokens_decoder().values() if token.special]
    names += [f"<0x{byte:02X}>" for byte in range(256)]
    known = [name for name in names if len(name) > 1 and backend.token_to_id(name) is not None]
    if known:
        patterns = (f"(?<={regex_literal(name[0])})(?={regex_literal(name[1:])})" for name in known)
        split = pre_tokenizers.Split(Regex("|".join(patterns)), "isolated")
        first = [backend.pre_tokenizer] if backend.pre_tokenizer else []
        backend.pre_tokenizer = pre_tokenizers.Sequence([*first, split])


def regex_literal(text: str) -> str:
    """Regular expression that matches a literal text."""
    return "".join(f"\\x{{{ord(character):x}}}" for character in text)
