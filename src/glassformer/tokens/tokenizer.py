"""Text to ids and back."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, TypeVar

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from glassformer.errors import CheckpointError, ConfigError, UserError

PAD, BOS, EOS = "<pad>", "<s>", "</s>"
DEFAULT_SPECIAL_TOKENS = (PAD, BOS, EOS)
MASK, UNK = "<mask>", "<unk>"

TokenizerType = Literal["bpe", "unigram", "wordpiece", "word", "char", "byte"]

Result = TypeVar("Result")


def wrap_native_errors(call: Callable[[], Result], error: Callable[[str], UserError]) -> Result:
    """The result of a native library's call, its failures as ours: a Rust panic is no Exception."""
    try:
        return call()
    except (KeyboardInterrupt, SystemExit, UserError):
        raise
    except BaseException as problem:
        raise error(str(problem)) from problem


def well_formed(text: str) -> str:
    """The text with U+FFFD for each lone surrogate, which no file can hold but JSON can name."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """Names of the special tokens and what is put before every text: tokenizer_config.json of a model folder."""

    pad_token: str = PAD
    bos_token: str = BOS
    """Begins what a decoder says, and what an encoder reads ([CLS])."""
    eos_token: str = EOS
    """Ends a text ([SEP])."""
    mask_token: str | None = None
    prefix: str = " "
    """A space makes the first word the same unit as elsewhere; it is taken off again."""


class Tokenizer:
    """Text to ids and back.

    Unless it was imported or is WordPiece, every byte is a unit or can be spelled by units, so nothing is unknown and
    ids give the same text again. Names of special tokens inside a text are text.
    """

    def __init__(self, backend: tokenizers.Tokenizer, specials: SpecialTokens = SpecialTokens()) -> None:
        self.backend, self.special_tokens = backend, specials
        backend.encode_special_tokens = True  # "</s>" typed by a user is four characters
        backend.no_padding()
        backend.no_truncation()
        self.pad_id, self.bos_id, self.eos_id = map(
            self.special_id, (specials.pad_token, specials.bos_token, specials.eos_token)
        )
        self.unk_id: int | None = backend.token_to_id(UNK)
        self.mask_id = self.special_id(specials.mask_token) if specials.mask_token else None

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
        """Units learned from texts.

        Args:
            kind: "bpe" merges the most frequent pair again and again (Sennrich et al. 2016); "unigram" prunes
                a large inventory by likelihood (Kudo 2018) - the library orders unigrams by chance: trained again on
                the same text they differ a little, where BPE does not; "wordpiece" merges what raises the likelihood
                most, and reads text as BERT does; "word" has the most frequent words, and `<unk>`; "char" has the
                characters of the text, and bytes for all others; "byte" has the 256 bytes.
            vocab_size: units wanted, the 256 bytes and special tokens among them; fewer if the text has no more. Of
                no effect on "char" and "byte".
            extra_special_tokens: special tokens besides pad, start and end; `<mask>` is known as the mask.
            lowercase: WordPiece and words alone: lower case, of WordPiece also accents taken off.
            add_prefix_space: BPE and unigram alone: put a space before every text, and take it off again.
        """
        if kind == "wordpiece":
            return cls.train_wordpiece(texts, vocab_size, extra_special_tokens, lowercase=lowercase)
        if kind == "word":
            return cls(
                word_tokenizer(texts, vocab_size, extra_special_tokens, lowercase=lowercase), SpecialTokens(prefix="")
            )
        if lowercase:
            raise ConfigError(
                "lowercase: only wordpiece and word can; the other tokenizers give a text back as it was."
            )
        specials = [*DEFAULT_SPECIAL_TOKENS, *extra_special_tokens]
        names = SpecialTokens(
            mask_token=MASK if MASK in specials else None,
            prefix=" " if add_prefix_space and kind in ("bpe", "unigram") else "",
        )
        if kind == "char":
            return cls(character_tokenizer(texts, specials), names)
        options: dict[str, Any] = {
            "vocab_size": len(specials) + 256 if kind == "byte" else vocab_size,
            "special_tokens": specials,
            "initial_alphabet": pre_tokenizers.ByteLevel.alphabet(),
            "show_progress": False,
        }
        trainer: Any
        if kind == "unigram":
            backend, trainer = tokenizers.Tokenizer(models.Unigram()), trainers.UnigramTrainer(**options)
        else:
            backend, trainer = tokenizers.Tokenizer(models.BPE()), trainers.BpeTrainer(min_frequency=2, **options)
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = decoders.ByteLevel()
        texts = () if kind == "byte" else (names.prefix + well_formed(text) for text in texts)
        wrap_native_errors(
            lambda: backend.train_from_iterator(texts, trainer),
            lambda problem: UserError(f"the tokenizer could not be trained: {problem}"),
        )
        return cls(backend, names)

    @classmethod
    def train_wordpiece(
        cls, texts: Iterable[str], vocab_size: int, extra_special_tokens: Sequence[str], *, lowercase: bool
    ) -> "Tokenizer":
        """WordPiece by likelihood gain, with BERT's special tokens."""
        from glassformer.tokens import wordpiece as w

        specials = [*w.BERT_SPECIALS, *(token for token in extra_special_tokens if token != MASK)]
        counts = w.count_words(texts, lowercase=lowercase, strip_accents=lowercase)
        vocab = w.train_wordpiece(counts, vocab_size, special_tokens=specials)
        backend = w.wordpiece_tokenizer(vocab, lowercase=lowercase, strip_accents=lowercase, special_tokens=specials)
        return cls(backend, SpecialTokens(w.PAD, w.CLS, w.SEP, w.MASK, prefix=""))

    @classmethod
    def from_folder(cls, folder: Path) -> "Tokenizer":
        """The tokenizer that `files` wrote.

        Raises:
            CheckpointError: not a tokenizer's JSON, or a special token that it lacks.
        """
        try:
            text = (folder / "tokenizer.json").read_text(encoding="utf-8")
            config = folder / "tokenizer_config.json"
            names = json.loads(config.read_text(encoding="utf-8")) if config.exists() else {}
        except (OSError, ValueError, RecursionError) as error:
            raise CheckpointError(f"{folder}: no usable tokenizer: {error}.") from None
        if not isinstance(names, dict):
            raise CheckpointError(f"{config}: damaged: not a JSON object.")
        specials = SpecialTokens(**{f.name: names[f.name] for f in fields(SpecialTokens) if f.name in names})
        for name, value in asdict(specials).items():
            if not (isinstance(value, str) or (name == "mask_token" and value is None)):
                raise CheckpointError(f"{config}: damaged: {name} is {value!r}, not a string.")
        return cls.from_json(text, specials)

    @classmethod
    def from_json(cls, text: str, specials: SpecialTokens = SpecialTokens()) -> "Tokenizer":
        """The tokenizer that `to_json` wrote.

        Raises:
            CheckpointError: not a tokenizer's JSON.
        """
        backend = wrap_native_errors(
            lambda: tokenizers.Tokenizer.from_str(text),
            lambda problem: CheckpointError(f"tokenizer.json: not a tokenizer: {problem}"),
        )
        return cls(backend, specials)

    def to_json(self) -> str:
        """The whole tokenizer, as Hugging Face's `tokenizer.json`."""
        return self.backend.to_str(pretty=True)

    def files(self) -> dict[str, str]:
        """The files of a model folder that `from_folder` reads."""
        names = {"tokenizer_class": "PreTrainedTokenizerFast", **asdict(self.special_tokens)}
        return {"tokenizer.json": self.to_json(), "tokenizer_config.json": json.dumps(names, indent=2) + "\n"}

    def special_id(self, token: str) -> int:
        """The id of a special token."""
        found = self.backend.token_to_id(token)
        if found is None:
            raise CheckpointError(f"tokenizer.json: lacks the special token {token}.")
        return found

    @property
    def vocab_size(self) -> int:
        return self.backend.get_vocab_size()

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each text, without special tokens."""
        clean = [self.special_tokens.prefix + well_formed(text) for text in texts]
        encodings = wrap_native_errors(
            lambda: self.backend.encode_batch_fast(clean, add_special_tokens=False),
            lambda problem: UserError(f"the tokenizer failed on this text: {problem}"),
        )
        return [encoding.ids for encoding in encodings]

    def encode(self, text: str) -> list[int]:
        """Ids of a text, without special tokens."""
        return self.encode_batch([text])[0]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; special tokens are left out."""
        return self.backend.decode(list(ids), skip_special_tokens=True).removeprefix(self.special_tokens.prefix)

    def decode_stable_prefix(self, ids: Sequence[int]) -> str:
        """As much of the text of ids as no further id can change: bytes wait until their character is whole."""
        n = len(ids)
        while n and (not self.decode(ids[n - 1 : n]) or (self.backend.id_to_token(ids[n - 1]) or "").startswith("<0x")):
            n -= 1
        return self.decode(ids[:n]).rstrip("\ufffd")

    def starts_word(self, token_id: int) -> bool:
        """Whether a unit begins with a space."""
        return (self.backend.id_to_token(token_id) or "").startswith(("Ġ", " ", "▁"))

    def encode_words(self, words: Sequence[str]) -> list[list[int]]:
        """Ids of each word of a sentence; a word without any gets those of a space."""
        return [ids or self.encode(" ") or [self.eos_id] for ids in self.encode_batch(words)]

    def offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Ids of a text, and of each the stretch of characters that it stands for."""
        prefix = self.special_tokens.prefix
        encoding = wrap_native_errors(
            lambda: self.backend.encode(prefix + well_formed(text), add_special_tokens=False),
            lambda problem: UserError(f"the tokenizer failed on this text: {problem}"),
        )
        n = len(prefix)
        return encoding.ids, [(max(0, start - n), max(0, end - n)) for start, end in encoding.offsets]

    def token(self, token_id: int) -> str:
        """One unit as text; a unit that is part of a character shows as U+FFFD."""
        return self.backend.decode([token_id], skip_special_tokens=False)


def character_tokenizer(texts: Iterable[str], specials: Sequence[str]) -> tokenizers.Tokenizer:
    """The characters of the texts by code point, and the bytes that spell all others."""
    characters = sorted({character for text in texts for character in well_formed(text)})
    units = [*specials, *(f"<0x{byte:02X}>" for byte in range(256)), *characters]
    vocab = {unit: i for i, unit in enumerate(units)}
    backend = tokenizers.Tokenizer(models.BPE(vocab, [], byte_fallback=True))
    backend.add_special_tokens(list(specials))
    backend.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    return backend


def word_tokenizer(
    texts: Iterable[str], vocab_size: int, extra_special_tokens: Sequence[str], *, lowercase: bool
) -> tokenizers.Tokenizer:
    """The most frequent words; what is neither letter, digit nor space is a word of its own."""
    backend = tokenizers.Tokenizer(models.WordLevel(unk_token=UNK))  # type: ignore[call-arg, unused-ignore]
    if lowercase:
        backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(
        vocab_size=vocab_size, special_tokens=[*DEFAULT_SPECIAL_TOKENS, UNK, *extra_special_tokens], show_progress=False
    )
    backend.train_from_iterator((well_formed(text) for text in texts), trainer)
    return backend
