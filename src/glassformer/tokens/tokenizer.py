"""Tokenizers: training, encoding and decoding."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from glassformer.errors import CheckpointError, ConfigError, UserError
from glassformer.manifest import COPY_AGAIN

PAD, BOS, EOS = "<pad>", "<s>", "</s>"
DEFAULT_SPECIAL_TOKENS = (PAD, BOS, EOS)
MASK, UNK = "<mask>", "<unk>"

NEVER_ENCODED = "\ue000"
"""Prefix of vocabulary entries that no text may be encoded to. Removed from input text and from decoded text."""

PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
OTHERS = [byte for byte in range(0x100) if byte not in PRINTABLE]
BYTE_OF = {chr(byte): byte for byte in PRINTABLE} | {chr(0x100 + i): byte for i, byte in enumerate(OTHERS)}
"""The byte of each character in the tokens of a byte-level tokenizer. Source: Radford et al. 2019, released code."""

TARGET_TOKENIZER_FILE = "target_tokenizer.json"
"""File of a model folder, only where another tokenizer encodes target texts."""

TokenizerType = Literal["bpe", "unigram", "wordpiece", "word", "char", "byte"]

Result = TypeVar("Result")


def wrap_native_errors(call: Callable[[], Result], error: Callable[[str], UserError]) -> Result:
    """Call a native library and convert its failures to a UserError. A Rust panic is not a subclass of Exception.

    Args:
        call: the function to call.
        error: creates the UserError from the message of the failure.
    """
    try:
        return call()
    except (KeyboardInterrupt, SystemExit, UserError):
        raise
    except BaseException as problem:
        raise error(str(problem)) from problem


def well_formed(text: str) -> str:
    """Replace each lone surrogate by U+FFFD. UTF-8 cannot encode them, but JSON escapes can contain them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def with_prefix(prefix: str, texts: Sequence[str]) -> list[str]:
    """The well-formed texts, each after the prefix."""
    try:
        "".join(texts).encode()  # one test for all
    except UnicodeEncodeError:
        texts = [well_formed(text) for text in texts]
    return [prefix + text for text in texts]


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """Special tokens and text prefix of a tokenizer, as saved in tokenizer_config.json of a model folder."""

    pad_token: str = PAD
    bos_token: str = BOS
    """First input token of a decoder, and first token of an encoder input ([CLS])."""
    eos_token: str = EOS
    """End of a text ([SEP])."""
    mask_token: str | None = None
    prefix: str = " "
    """A space or nothing: added before every text and removed when decoding. With a space, the first word of a text
    gets the same token as elsewhere in a text. Not the task prefix of T5."""
    first_token: str | None = None
    """Special token before every text, source or target (BART: <s>)."""


class Tokenizer:
    """Tokenizer: encodes text to token ids and decodes ids to text.

    Trained tokenizers of the types bpe, unigram, char and byte can encode any text and decode it to the same text.
    Names of special tokens in a text are encoded as ordinary text.
    """

    def __init__(
        self,
        backend: tokenizers.Tokenizer,
        specials: SpecialTokens = SpecialTokens(),
        target_backend: tokenizers.Tokenizer | None = None,
    ) -> None:
        """
        Args:
            target_backend: encodes target texts to the same vocabulary, if another tokenizer does than that of source
                texts (Opus-MT).

        Raises:
            CheckpointError: a special token is not in the vocabulary, or the two vocabularies differ.
        """
        self.backend, self.special_tokens = backend, specials
        self.targets = self if target_backend is None else Tokenizer(target_backend, specials)
        """The tokenizer of target texts."""
        if self.targets is not self and self.targets.ids() != self.ids():
            raise CheckpointError(
                f"{TARGET_TOKENIZER_FILE}: another vocabulary than that of tokenizer.json.{COPY_AGAIN}"
            )
        backend.encode_special_tokens = True  # "</s>" in a text is four characters, not the special token
        backend.no_padding()
        backend.no_truncation()
        self.pad_id, self.bos_id, self.eos_id = map(
            self.special_id, (specials.pad_token, specials.bos_token, specials.eos_token)
        )
        self.unk_id: int | None = backend.token_to_id(UNK)
        self.mask_id = self.special_id(specials.mask_token) if specials.mask_token else None
        self.first_ids = [self.special_id(specials.first_token)] if specials.first_token else []

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        *,
        kind: TokenizerType = "bpe",
        vocab_size: int = 8000,
        extra_special_tokens: Sequence[str] = (),
        lowercase: bool = False,
        add_prefix_space: bool = True,
    ) -> "Tokenizer":
        """Train a tokenizer on texts.

        Args:
            texts: training texts.
            kind: type of the tokenizer. "bpe" repeatedly merges the most frequent pair (Sennrich et al. 2016).
                "unigram" prunes a large vocabulary by likelihood (Kudo 2018); its training is not deterministic, so
                that two vocabularies from the same texts differ slightly. "wordpiece" repeatedly makes the merge that
                increases the likelihood most, and pre-tokenizes as BERT does. "word" has the most frequent words and
                `<unk>`. "char" has the characters of the texts, and bytes for all others. "byte" has the 256 bytes.
            vocab_size: maximum vocabulary size, including the 256 bytes and the special tokens; less if the texts do
                not have enough different tokens. Ignored for "char" and "byte".
            extra_special_tokens: special tokens in addition to pad, start and end. `<mask>` becomes the mask token.
            lowercase: convert text to lower case, for "wordpiece" also remove accents. "wordpiece" and "word" only.
            add_prefix_space: add a space before every text and remove it when decoding. "bpe" and "unigram" only.

        Raises:
            ConfigError: `lowercase` with another type than "wordpiece" or "word".
        """
        if kind == "wordpiece":
            return cls.train_wordpiece(texts, vocab_size, extra_special_tokens, lowercase=lowercase)
        if kind == "word":
            return cls(
                word_tokenizer(texts, vocab_size, extra_special_tokens, lowercase=lowercase), SpecialTokens(prefix="")
            )
        if lowercase:
            raise ConfigError(
                "lowercase is supported only by the tokenizers wordpiece and word; the others preserve the text."
            )
        specials = [*DEFAULT_SPECIAL_TOKENS, *extra_special_tokens]
        names = SpecialTokens(
            mask_token=MASK if MASK in specials else None,
            prefix=" " if add_prefix_space and kind in ("bpe", "unigram") else "",
        )
        if kind == "char":
            return cls(character_tokenizer(texts, specials), names)
        if kind == "byte":
            return cls(byte_level_tokenizer((), len(specials) + 256, specials), names)
        texts = (names.prefix + text for text in texts)
        return cls(byte_level_tokenizer(texts, vocab_size, specials, unigram=kind == "unigram"), names)

    @classmethod
    def train_wordpiece(
        cls, texts: Iterable[str], vocab_size: int, extra_special_tokens: Sequence[str], *, lowercase: bool
    ) -> "Tokenizer":
        """Train WordPiece by likelihood gain, with BERT's special tokens."""
        from glassformer.tokens import wordpiece as w

        specials = [*w.BERT_SPECIALS, *(token for token in extra_special_tokens if token != MASK)]
        counts = w.count_words(texts, lowercase=lowercase, strip_accents=lowercase)
        vocab = w.train_wordpiece(counts, vocab_size, special_tokens=specials)
        backend = w.wordpiece_tokenizer(vocab, lowercase=lowercase, strip_accents=lowercase, special_tokens=specials)
        return cls(backend, SpecialTokens(w.PAD, w.CLS, w.SEP, w.MASK, prefix=""))

    @classmethod
    def from_folder(cls, folder: Path) -> "Tokenizer":
        """Load a tokenizer from a model folder (see `files`).

        Raises:
            CheckpointError: a file is missing or invalid, or a special token is not in the vocabulary.
        """
        try:
            if not (folder / "tokenizer.json").is_file():
                raise FileNotFoundError("tokenizer.json is not there or not a regular file")
            text = (folder / "tokenizer.json").read_text(encoding="utf-8")
            config = folder / "tokenizer_config.json"
            names = json.loads(config.read_text(encoding="utf-8")) if config.exists() else {}
        except (OSError, ValueError, RecursionError) as error:
            raise CheckpointError(f"{folder}: no usable tokenizer: {error}.{COPY_AGAIN}") from None
        if not isinstance(names, dict):
            raise CheckpointError(f"{config}: damaged: not a JSON object.{COPY_AGAIN}")
        specials = SpecialTokens(**{f.name: names[f.name] for f in fields(SpecialTokens) if f.name in names})
        for name, value in asdict(specials).items():
            if not (isinstance(value, str) or (name in ("mask_token", "first_token") and value is None)):
                raise CheckpointError(f"{config}: damaged: {name} is {value!r}, not a string.{COPY_AGAIN}")
        tokenizer = cls.from_json(text, specials)
        target = folder / TARGET_TOKENIZER_FILE
        if not target.exists():
            return tokenizer
        try:
            text = target.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{folder}: no usable tokenizer: {error}.{COPY_AGAIN}") from None
        return cls(tokenizer.backend, specials, cls.from_json(text, specials).backend)

    @classmethod
    def from_json(cls, text: str, specials: SpecialTokens = SpecialTokens()) -> "Tokenizer":
        """Load a tokenizer from the contents of a tokenizer.json (see `to_json`).

        Raises:
            CheckpointError: not the JSON of a tokenizer, or a special token is not in the vocabulary.
        """
        backend = wrap_native_errors(
            lambda: tokenizers.Tokenizer.from_str(text),
            lambda problem: CheckpointError(f"tokenizer.json: not a tokenizer: {problem}{COPY_AGAIN}"),
        )
        return cls(backend, specials)

    def to_json(self) -> str:
        """Serialize the tokenizer in the format of Hugging Face's `tokenizer.json`."""
        return self.backend.to_str(pretty=True)

    def files(self) -> dict[str, str]:
        """Contents of the tokenizer files of a model folder, which `from_folder` reads."""
        names = {"tokenizer_class": "PreTrainedTokenizerFast", **asdict(self.special_tokens)}
        files = {"tokenizer.json": self.to_json(), "tokenizer_config.json": json.dumps(names, indent=2) + "\n"}
        return files if self.targets is self else {**files, TARGET_TOKENIZER_FILE: self.targets.to_json()}

    def special_id(self, token: str) -> int:
        """Id of a special token.

        Raises:
            CheckpointError: the token is not in the vocabulary.
        """
        token_id = self.backend.token_to_id(token)
        if token_id is None:
            raise CheckpointError(f"tokenizer.json: the special token {token} is missing.")
        return token_id

    def ids(self) -> dict[str, int]:
        """The id of each token."""
        return {name.removeprefix(NEVER_ENCODED): i for name, i in self.backend.get_vocab().items()}

    @property
    def sides(self) -> "tuple[Tokenizer, Tokenizer]":
        """The tokenizers of source and target texts, mostly the same."""
        return self, self.targets

    @property
    def vocab_size(self) -> int:
        return self.backend.get_vocab_size()

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, without special tokens except for `SpecialTokens.first_token`."""
        clean = with_prefix(self.special_tokens.prefix, texts)
        encodings = wrap_native_errors(
            lambda: self.backend.encode_batch_fast(clean, add_special_tokens=False),
            lambda problem: UserError(f"the tokenizer failed on this text: {problem}"),
        )
        return [[*self.first_ids, *encoding.ids] for encoding in encodings]

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, as those of `encode_batch`."""
        return self.encode_batch([text])[0]

    @cached_property
    def target_warning(self) -> str:
        """Warning that a given target is encoded into other tokens than the model writes; empty if it is not."""
        n = sum(token.startswith(NEVER_ENCODED) for token in self.backend.get_vocab())
        if self.targets is not self or n * 100 < self.vocab_size:
            return ""
        return (
            f"{n:,} of the {self.vocab_size:,} tokens are those of target.spm only, which this folder lacks: given"
            " targets are encoded by source.spm, into other tokens than the model writes.\n"
            "  Import the model again, from a folder with target.spm"
        )

    @cached_property
    def token_bytes(self) -> list[bytes]:
        """The bytes that each token adds to a text after another token. Special tokens add none."""
        before = next((i for i in range(self.vocab_size) if self.backend.decode([i]).strip().isalnum()), self.eos_id)
        start = self.backend.decode([before])
        texts = self.backend.decode_batch([[before, i] for i in range(self.vocab_size)], skip_special_tokens=True)
        return [
            self.part_of_character(i) if "\ufffd" in text else text[len(start) :].encode()
            for i, text in enumerate(texts)
        ]

    def part_of_character(self, token_id: int) -> bytes:
        """The bytes of a token that is a part of a multi-byte character."""
        name = self.backend.id_to_token(token_id) or ""
        if match := re.fullmatch(r"<0x(..)>", name):
            return bytes.fromhex(match[1])
        return bytes(BYTE_OF.get(c, 0xFF) for c in name)

    def decode(self, ids: Sequence[int]) -> str:
        """Decode ids to text. Special tokens are skipped."""
        return self.backend.decode(list(ids), skip_special_tokens=True).removeprefix(self.special_tokens.prefix)

    def decode_stable_prefix(self, ids: Sequence[int]) -> str:
        """Decode ids to the longest text that further ids cannot change: without a trailing incomplete character."""
        n = len(ids)
        while n and (not self.decode(ids[n - 1 : n]) or (self.backend.id_to_token(ids[n - 1]) or "").startswith("<0x")):
            n -= 1
        return self.decode(ids[:n]).rstrip("\ufffd")

    def starts_word(self, token_id: int) -> bool:
        """Whether a token begins with a space."""
        name = self.backend.id_to_token(token_id) or ""
        return name.removeprefix(NEVER_ENCODED).startswith(("Ġ", " ", "▁"))

    def for_words(self) -> "Tokenizer":
        """A tokenizer of the same vocabulary for texts that are single words.

        If tokens begin with a space and none is added to a text, as with GPT-2, it is added: a word gets the tokens
        that it has within a text, not those of the first word.
        """
        first = self.encode("a")[len(self.first_ids) :][:1]
        names = (self.backend.id_to_token(i) or "" for i in range(self.vocab_size) if self.starts_word(i))
        if any(map(self.starts_word, first)) or not any(len(name) > 1 for name in names):
            return self
        return Tokenizer(self.backend, replace(self.special_tokens, prefix=" "))

    def encode_words(self, words: Sequence[str]) -> list[list[int]]:
        """Token ids of each word of a sentence. A word without tokens gets those of a space, so no list is empty."""
        n = len(self.first_ids)
        return [ids[n:] or self.encode(" ")[n:] or [self.eos_id] for ids in self.encode_batch(words)]

    def offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Token ids of a text, and the character span (start, end) of each token."""
        prefix = self.special_tokens.prefix
        encoding = wrap_native_errors(
            lambda: self.backend.encode(prefix + well_formed(text), add_special_tokens=False),
            lambda problem: UserError(f"the tokenizer failed on this text: {problem}"),
        )
        n = len(prefix)
        spans = [(max(0, start - n), max(0, end - n)) for start, end in encoding.offsets]
        return [*self.first_ids, *encoding.ids], [*[(0, 0)] * len(self.first_ids), *spans]

    def token(self, token_id: int) -> str:
        """Text of one token. Part of a multi-byte character is shown as U+FFFD."""
        return self.backend.decode([token_id], skip_special_tokens=False)


def byte_level_tokenizer(
    texts: Iterable[str], vocab_size: int, specials: Sequence[str], *, unigram: bool = False
) -> tokenizers.Tokenizer:
    """Train a byte-level BPE or unigram tokenizer. Without texts, its vocabulary is the 256 bytes."""
    options: dict[str, Any] = {
        "vocab_size": vocab_size,
        "special_tokens": list(specials),
        "initial_alphabet": pre_tokenizers.ByteLevel.alphabet(),
        "show_progress": False,
    }
    trainer: Any
    if unigram:
        backend, trainer = tokenizers.Tokenizer(models.Unigram()), trainers.UnigramTrainer(**options)
    else:
        backend, trainer = tokenizers.Tokenizer(models.BPE()), trainers.BpeTrainer(min_frequency=2, **options)
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    wrap_native_errors(
        lambda: backend.train_from_iterator((well_formed(text) for text in texts), trainer),
        lambda problem: UserError(f"the tokenizer could not be trained: {problem}"),
    )
    return backend


def character_tokenizer(texts: Iterable[str], specials: Sequence[str]) -> tokenizers.Tokenizer:
    """Character tokenizer: the characters of the texts in order of code points, and bytes for all others."""
    characters = sorted({character for text in texts for character in well_formed(text)})
    tokens = [*specials, *(f"<0x{byte:02X}>" for byte in range(256)), *characters]
    vocab = {token: i for i, token in enumerate(tokens)}
    backend = tokenizers.Tokenizer(models.BPE(vocab, [], byte_fallback=True))
    backend.add_special_tokens(list(specials))
    backend.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    return backend


def word_tokenizer(
    texts: Iterable[str], vocab_size: int, extra_special_tokens: Sequence[str], *, lowercase: bool
) -> tokenizers.Tokenizer:
    """Word tokenizer: the most frequent words. A sequence of symbols (not letters, digits or spaces) is a word too."""
    backend = tokenizers.Tokenizer(models.WordLevel(unk_token=UNK))  # type: ignore[call-arg, unused-ignore]
    if lowercase:
        backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(
        vocab_size=vocab_size, special_tokens=[*DEFAULT_SPECIAL_TOKENS, UNK, *extra_special_tokens], show_progress=False
    )
    backend.train_from_iterator((well_formed(text) for text in texts), trainer)
    return backend
