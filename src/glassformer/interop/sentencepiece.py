"""SentencePiece's .model files, as tokenizers of the library that all others are of."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

from glassformer.errors import CheckpointError
from glassformer.limits import MAX_JSON_BYTES

UNIGRAM, BPE = 1, 2
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED = 1, 2, 3, 4, 5
HIDDEN = "\ue000"
"""Begins a unit that no text may become; taken out of what is read and of what is said."""
UNKNOWN_RUN = "\ue001"
"""Stands for several characters that are unknown."""
SPECIAL = ["<unk>", "</s>", "<pad>"]


@dataclass(frozen=True, slots=True)
class Pieces:
    """What a .model file says."""

    rows: list[tuple[str, float, int]]
    """Text, log-probability and kind, in the order of the ids."""
    algorithm: int
    byte_fallback: bool
    charsmap: bytes
    """How characters are rewritten first; empty for not at all."""

    def of_kind(self, *kinds: int) -> list[str]:
        """The texts of some kinds of pieces."""
        return [text for text, _, kind in self.rows if kind in kinds]


def read_pieces(path: Path) -> Pieces:
    """Read a .model file.

    Raises:
        CheckpointError: it is none, or one of a kind that this version does not read.
    """
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise ValueError("too large")
        rows, trainer, normalizer = [], {}, {}
        for number, value in fields(path.read_bytes()):
            if number == 1:
                piece = dict(fields(value))
                kind = piece.get(3, NORMAL)
                text = HIDDEN * (kind == UNUSED) + piece[1].decode()
                rows.append((text, struct.unpack("<f", piece.get(2, bytes(4)))[0], kind))
            elif number == 2:
                trainer = dict(fields(value))
            elif number == 3:
                normalizer = dict(fields(value))
        pieces = Pieces(rows, trainer.get(3, UNIGRAM), bool(trainer.get(35)), normalizer.get(2, b""))
        if not pieces.of_kind(UNKNOWN):
            raise ValueError("no unknown piece")
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}.") from None
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, struct.error) as error:
        raise CheckpointError(f"{path}: not a SentencePiece model: {error}.") from None
    if pieces.algorithm not in (UNIGRAM, BPE) or not normalizer.get(3, 1) or trainer.get(24):
        raise CheckpointError(
            f"{path}: this version reads unigram and BPE pieces with a space before the text, and this is another kind."
        )
    return pieces


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Number and value of each field of a protobuf message."""
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        match key & 7:
            case 0:
                value, at = varint(message, at)
                yield key >> 3, value
                continue
            case 1:
                n = 8
            case 2:
                n, at = varint(message, at)
            case 5:
                n = 4
            case kind:
                raise ValueError(f"a field of kind {kind}")
        if at + n > len(message):
            raise ValueError("cut off")
        yield key >> 3, message[at : at + n]
        at += n


def varint(message: bytes, at: int) -> tuple[int, int]:
    """The number that begins at a place, and the place after it: 7 bits a byte, the lowest first."""
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise ValueError("a number too long")


def sentencepiece_tokenizer(pieces: Pieces, sentinels: int = 0) -> tokenizers.Tokenizer:
    """A tokenizer with the ids of a .model file.

    Args:
        sentinels: T5's <extra_id_N-1> to <extra_id_0>, put behind all others.
    """
    unknown = pieces.of_kind(UNKNOWN)[0]
    more = [f"<extra_id_{i}>" for i in reversed(range(sentinels))]
    units = [text for text, _, _ in pieces.rows] + more
    if pieces.algorithm == UNIGRAM:
        scores = [*((text, score) for text, score, _ in pieces.rows), *((text, 0.0) for text in more)]
        model: models.Model = models.Unigram(scores, units.index(unknown), pieces.byte_fallback)
    else:
        vocab = {text: i for i, text in enumerate(units)}
        model = models.BPE(vocab, merges(pieces), unk_token=unknown, fuse_unk=True, byte_fallback=pieces.byte_fallback)
    inner = tokenizers.Tokenizer(model)
    inner.add_special_tokens([unknown, *pieces.of_kind(CONTROL)])
    inner.add_tokens([AddedToken(text, normalized=False) for text in [*pieces.of_kind(USER_DEFINED), *more]])
    return with_spaces(inner, pieces)


def marian_tokenizer(pieces: Pieces, vocab: dict[str, int]) -> tokenizers.Tokenizer:
    """A tokenizer that cuts text as source.spm does and has the ids of vocab.json.

    Units that source.spm lacks are only said, never read, but for single characters that it does not know. Where a
    piece is not in vocab.json others spell it, and transformers has <unk>; a run of characters unknown to source.spm
    is one <unk>, and transformers looks it up in vocab.json.
    """
    scores = {text: score for text, score, kind in pieces.rows if kind in (NORMAL, USER_DEFINED)}
    units = sorted(vocab, key=vocab.__getitem__)
    if sorted(vocab.values()) != list(range(len(vocab))) or not {*SPECIAL} <= vocab.keys():
        raise CheckpointError("vocab.json does not number its units 0, 1, 2 and so on, or lacks <unk>, </s> or <pad>.")
    known = {character for text in scores for character in text}
    codes = [unit for unit in units if unit.startswith(">>") and unit.endswith("<<")]
    unread = min(scores.values(), default=0.0) - 10  # what SentencePiece takes for an unknown character
    scores = dict.fromkeys((*codes, *(unit for unit in units if len(unit) == 1), *SPECIAL), unread) | scores
    named = [(unit if unit in scores else HIDDEN + unit, scores.get(unit, unread)) for unit in units]
    inner = tokenizers.Tokenizer(models.Unigram(named, vocab["<unk>"], False))
    inner.add_special_tokens(SPECIAL)
    inner.add_tokens([AddedToken(code, normalized=False) for code in codes])
    with_spaces(inner, pieces)
    run = Regex(f"[^\\s{quote(''.join(sorted(known)))}]{{2,}}")
    inner.normalizer = normalizers.Sequence([inner.normalizer, normalizers.Replace(run, UNKNOWN_RUN)])
    return inner


def with_spaces(inner: tokenizers.Tokenizer, pieces: Pieces) -> tokenizers.Tokenizer:
    """The tokenizer with SentencePiece's reading and writing of text."""
    rewriting: list[normalizers.Normalizer] = [normalizers.Replace(HIDDEN, "")]
    if pieces.charsmap:
        rewriting.append(normalizers.Precompiled(pieces.charsmap))
    inner.normalizer = normalizers.Sequence(rewriting)
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    saying: list[decoders.Decoder] = [decoders.Replace(HIDDEN, "")]
    saying += [decoders.ByteFallback()] if pieces.byte_fallback else []
    inner.decoder = decoders.Sequence([*saying, decoders.Metaspace()])
    return inner


def merges(pieces: Pieces) -> list[tuple[str, str]]:
    """Of each piece all pairs of pieces that make it, most probable pieces first."""
    known = {text for text, _, kind in pieces.rows if kind == NORMAL}
    ranked = sorted((row for row in pieces.rows if row[2] == NORMAL), key=lambda row: -row[1])
    return [
        (text[:i], text[i:])
        for text, _, _ in ranked
        for i in range(1, len(text))
        if text[:i] in known and text[i:] in known
    ]


def keep_names_apart(inner: tokenizers.Tokenizer) -> None:
    """Let no unigram of a text be a special token: its name is cut after the first character."""
    if not isinstance(inner.model, models.Unigram):
        return
    names = [token.content for token in inner.get_added_tokens_decoder().values() if token.special]
    names += [f"<0x{byte:02X}>" for byte in range(256)]
    known = [name for name in names if len(name) > 1 and inner.token_to_id(name) is not None]
    if known:
        quoted = (f"(?<={quote(name[0])})(?={quote(name[1:])})" for name in known)
        cut = pre_tokenizers.Split(Regex("|".join(quoted)), "isolated")
        first = [inner.pre_tokenizer] if inner.pre_tokenizer else []
        inner.pre_tokenizer = pre_tokenizers.Sequence([*first, cut])


def quote(text: str) -> str:
    """The pattern of a text."""
    return "".join(f"\\x{{{ord(character):x}}}" for character in text)
