"""Text to ids and back, without loss."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeVar

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from glassformer.errors import CheckpointError, UserError

PAD, BOS, EOS = "<pad>", "<s>", "</s>"
SPECIALS = (PAD, BOS, EOS)

Result = TypeVar("Result")


def guarded(call: Callable[[], Result], error: Callable[[str], UserError]) -> Result:
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


class Tokenizer:
    """Subword units over bytes: any text has ids, and its ids give the same text again.

    Every byte is a unit, so nothing is unknown. One space is put before a text and taken off again, which makes the
    first word the same unit as elsewhere. Names of special tokens inside a text are text.
    """

    def __init__(self, inner: tokenizers.Tokenizer) -> None:
        self.inner = inner
        inner.encode_special_tokens = True  # "</s>" typed by a user is four characters
        inner.no_padding()
        inner.no_truncation()
        self.pad_id, self.bos_id, self.eos_id = map(self.special_id, SPECIALS)

    @classmethod
    def train(
        cls, texts: Iterable[str], *, kind: Literal["bpe", "unigram"] = "bpe", vocab_size: int = 8000
    ) -> "Tokenizer":
        """Units learned from texts.

        Args:
            kind: "bpe" merges the most frequent pair again and again (Sennrich et al. 2016); "unigram" prunes
                a large inventory by likelihood (Kudo 2018). The library orders unigrams by chance: trained again on
                the same text they differ a little, where BPE does not.
            vocab_size: units wanted, the 256 bytes and 3 special tokens among them; fewer if the text has no more.
        """
        options: dict[str, Any] = {
            "vocab_size": vocab_size,
            "special_tokens": list(SPECIALS),
            "initial_alphabet": pre_tokenizers.ByteLevel.alphabet(),
            "show_progress": False,
        }
        trainer: Any
        if kind == "bpe":
            inner, trainer = tokenizers.Tokenizer(models.BPE()), trainers.BpeTrainer(min_frequency=2, **options)
        else:
            inner, trainer = tokenizers.Tokenizer(models.Unigram()), trainers.UnigramTrainer(**options)
        inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        inner.decoder = decoders.ByteLevel()
        guarded(
            lambda: inner.train_from_iterator((" " + well_formed(text) for text in texts), trainer),
            lambda problem: UserError(f"the tokenizer could not be trained: {problem}"),
        )
        return cls(inner)

    @classmethod
    def from_json(cls, text: str) -> "Tokenizer":
        """The tokenizer that `to_json` wrote.

        Raises:
            CheckpointError: not a tokenizer's JSON.
        """
        return cls(
            guarded(
                lambda: tokenizers.Tokenizer.from_str(text),
                lambda problem: CheckpointError(f"tokenizer.json: not a tokenizer: {problem}"),
            )
        )

    def to_json(self) -> str:
        """The whole tokenizer, as Hugging Face's `tokenizer.json`."""
        return self.inner.to_str(pretty=True)

    def special_id(self, token: str) -> int:
        """The id of a special token."""
        found = self.inner.token_to_id(token)
        if found is None:
            raise CheckpointError(f"tokenizer.json: lacks the special token {token}.")
        return found

    @property
    def vocab_size(self) -> int:
        return self.inner.get_vocab_size()

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each text, without special tokens."""
        clean = [" " + well_formed(text) for text in texts]
        encodings = guarded(
            lambda: self.inner.encode_batch_fast(clean, add_special_tokens=False),
            lambda problem: UserError(f"the tokenizer failed on this text: {problem}"),
        )
        return [encoding.ids for encoding in encodings]

    def encode(self, text: str) -> list[int]:
        """Ids of a text, without special tokens."""
        return self.encode_batch([text])[0]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; special tokens are left out."""
        return self.inner.decode(list(ids), skip_special_tokens=True).removeprefix(" ")

    def starts_word(self, token_id: int) -> bool:
        """Whether a unit begins with a space."""
        return (self.inner.id_to_token(token_id) or "").startswith("Ġ")

    def token(self, token_id: int) -> str:
        """One unit as text; a unit that is part of a character shows as U+FFFD."""
        return self.inner.decode([token_id], skip_special_tokens=False)
