"""Text to what an encoder reads, with the places of its tokens in the text: as transformers' tokenizers give it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tokenizers
import torch
from tokenizers import pre_tokenizers, processors
from torch import Tensor

from glassformer.data.batch import pad
from glassformer.errors import CheckpointError, UserError
from glassformer.generate.engine import batches_by_length
from glassformer.limits import MAX_TOKENS
from glassformer.models.base import PAD_TO_MULTIPLE_OF
from glassformer.models.families import family_of
from glassformer.pipelines.source import Source
from glassformer.tasks.base import Task
from glassformer.tokens.tokenizer import well_formed, wrap_native_errors

BATCH_TOKENS = 4096
CLEANED = {" .": ".", " ?": "?", " !": "!", " ,": ",", " ' ": "'", " n't": "n't"}
CLEANED |= {f" '{end}": f"'{end}" for end in ("m", "s", "ve", "re")}
"""What transformers closes up, in its order."""


@dataclass(frozen=True, slots=True)
class Window:
    """What is read at once: a text or a pair with special tokens, or a stretch of one that was too long."""

    encoding: Any
    n_prefix: int = 0
    """Characters that stand before each text as the tokenizer sees it."""
    tells_apart: bool = True
    """Whether the model is told which text of a pair a token is of."""

    @property
    def ids(self) -> list[int]:
        return self.encoding.ids  # type: ignore[no-any-return]

    @property
    def token_type_ids(self) -> list[int]:
        """0 of the first text, 1 of the second."""
        return self.encoding.type_ids if self.tells_apart else [0] * len(self.ids)

    @property
    def is_special(self) -> list[bool]:
        """Which tokens are no text."""
        return [bool(x) for x in self.encoding.special_tokens_mask]

    def characters(self, token: int) -> tuple[int, int]:
        """The stretch of its text that a token stands for; of a pretokenized text, of its word."""
        start, end = self.encoding.offsets[token]
        return max(0, start - self.n_prefix), max(0, end - self.n_prefix)

    def characters_of_words(self, first: int, last: int, sequence: int) -> tuple[int, int]:
        """The stretch from the word that one token is of to the word that another is of."""
        words = [self.encoding.token_to_word(token) for token in (first, last)]
        if None in words:
            return self.characters(first)[0], self.characters(last)[1]
        start, _ = self.encoding.word_to_chars(words[0], sequence)
        _, end = self.encoding.word_to_chars(words[1], sequence)
        return max(0, start - self.n_prefix), max(0, end - self.n_prefix)


class TokenizerAdapter:
    """How a model's text is read and written; what transformers' users know as the tokenizer of a pipeline."""

    def __init__(self, source: Source) -> None:
        task, t = source.task, source.task.tokenizer
        self.backend = own_copy(source)
        self.special_names = t.special_tokens
        self.prefix = t.special_tokens.prefix if source.is_ours else ""
        self.pad_token_id, self.eos_token_id, self.mask_token_id = t.pad_id, t.eos_id, t.mask_id
        self.cls_token_id, self.sep_token_id = t.bos_id, t.eos_id
        self.cleans = bool(source.settings.get("clean_up_tokenization_spaces", False))
        self.room = MAX_TOKENS if family_of(task.model) == "t5" else int(task.model.config.max_len)
        """Tokens that the model can read; T5 knows no bound."""
        largest = source.settings.get("model_max_length")
        self.model_max_length = int(min(float(largest or "inf"), task.model.config.max_len))
        """Tokens of a text that is cut, special tokens among them."""
        names = source.settings.get("model_input_names")
        bare = source.settings.get("tokenizer_class") == "TokenizersBackend"  # transformers 5's, which gives no types
        self.gives_types = "token_type_ids" in names if names else not bare
        unk = getattr(self.backend.model, "unk_token", None) or source.settings.get("unk_token")
        self.unk_token_id = self.backend.token_to_id(unk) if isinstance(unk, str) else None
        self.continuation = getattr(self.backend.model, "continuing_subword_prefix", None)

    @property
    def mask_token(self) -> str | None:
        return self.special_names.mask_token

    @property
    def pad_token(self) -> str:
        return self.special_names.pad_token

    @property
    def eos_token(self) -> str:
        return self.special_names.eos_token

    def limit(self, *, cuts: bool, max_length: int | None = None) -> int:
        """Tokens of a text that are read.

        Args:
            cuts: the caller said that long texts are to be cut.
            max_length: at how many tokens.
        """
        return min(max_length or (self.model_max_length if cuts else self.room), self.room)

    def get_vocab(self) -> dict[str, int]:
        return self.backend.get_vocab()  # type: ignore[no-any-return]

    def read(
        self,
        text: str | Sequence[str],
        pair: str | None = None,
        *,
        max_length: int | None = None,
        strategy: str = "longest_first",
        overlap: int = 0,
        special_tokens: bool = True,
    ) -> list[Window]:
        """A text, words, or a pair as ids; one window, or as many as it takes.

        Args:
            max_length: tokens of a window, special tokens among them; default: whatever the text takes.
            strategy: which of a pair is cut: "longest_first" or "only_second".
            overlap: tokens that windows share.
        """
        given = self.prepared(text), None if pair is None else self.prepared(pair)
        if max_length is not None:
            self.backend.enable_truncation(max_length, stride=overlap, strategy=strategy)
        try:
            found = wrap_native_errors(
                lambda: self.backend.encode(
                    *given, is_pretokenized=not isinstance(text, str), add_special_tokens=special_tokens
                ),
                lambda problem: UserError(f"the tokenizer failed on this text: {problem}"),
            )
        finally:
            self.backend.no_truncation()
        n_prefix = len(self.prefix)
        return [Window(encoding, n_prefix, self.gives_types) for encoding in (found, *found.overflowing)]

    def prepared(self, text: str | Sequence[str]) -> str | list[str]:
        if isinstance(text, str):
            return self.prefix + well_formed(text)
        return [self.prefix + well_formed(word) for word in text]

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False, clean: bool | None = None) -> str:
        """The text of ids.

        Args:
            clean: take away the spaces before punctuation; default: as tokenizer_config.json says.
        """
        text = self.backend.decode(list(ids), skip_special_tokens=skip_special_tokens).removeprefix(self.prefix)
        for spaced, closed in CLEANED.items() if (self.cleans if clean is None else clean) else ():
            text = text.replace(spaced, closed)
        return text

    def unit(self, token_id: int) -> str:
        """A unit as the vocabulary has it."""
        return str(self.backend.id_to_token(token_id))

    def join(self, units: Sequence[str]) -> str:
        """Units as text."""
        return str(self.backend.decoder.decode(list(units))) if self.backend.decoder else " ".join(units)


def own_copy(source: Source) -> Any:
    """The tokenizer as its folder has it, where names of special tokens in a text are special tokens; of ours a copy,
    where they are text. It puts special tokens around a text.
    """
    task = source.task
    encodes = "bert" in task.families
    if source.folder and (source.folder / "tokenizer.json").exists():
        inner = wrap_native_errors(
            lambda: tokenizers.Tokenizer.from_file(str(source.folder / "tokenizer.json")),  # type: ignore[operator]
            lambda problem: CheckpointError(f"{source.folder}: no usable tokenizer: {problem}"),
        )
    else:
        inner = tokenizers.Tokenizer.from_str(task.tokenizer.to_json())
    inner.no_padding()
    inner.no_truncation()
    inner.encode_special_tokens = source.is_ours
    if encodes and not inner.num_special_tokens_to_add(False):
        cls, sep = task.tokenizer.special_tokens.bos_token, task.tokenizer.special_tokens.eos_token
        pair = [cls, "$A", sep, "$B:1", f"{sep}:1"]
        if str(source.config.get("model_type")).startswith("roberta"):
            pair = [cls, "$A", sep, sep, "$B", sep]
        ids = [(cls, task.tokenizer.bos_id), (sep, task.tokenizer.eos_id)]
        template = processors.TemplateProcessing(single=[cls, "$A", sep], pair=pair, special_tokens=ids)
        bytes_first = isinstance(inner.pre_tokenizer, pre_tokenizers.ByteLevel)
        trim = [processors.ByteLevel(add_prefix_space=False, trim_offsets=True)] if bytes_first else []
        inner.post_processor = processors.Sequence([*trim, template])
    return inner


def encoded(
    task: Task, rows: Sequence[tuple[Sequence[int], Sequence[int]]]
) -> Iterator[tuple[list[int], Tensor, Tensor]]:
    """The last layer's output for rows of ids and types, batch by batch, with the rows' places and ids."""
    is_encoder = "bert" in task.families
    pad_to_multiple_of = PAD_TO_MULTIPLE_OF if is_encoder else 1
    for places in batches_by_length([len(ids) for ids, _ in rows], BATCH_TOKENS, pad_to_multiple_of):
        ids = pad([rows[i][0] for i in places], task.tokenizer.pad_id, pad_to_multiple_of).to(task.device)
        token_type_ids = pad([rows[i][1] for i in places], 0, pad_to_multiple_of).to(task.device)
        with torch.inference_mode():
            yield places, task.model(ids, token_type_ids) if is_encoder else task.model(ids), ids
