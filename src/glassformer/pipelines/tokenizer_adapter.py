"""Tokenization with character offsets and windows, with the behavior of the tokenizers of transformers."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tokenizers
from tokenizers import pre_tokenizers, processors

from glassformer.config import JsonObject
from glassformer.devices import require_torch
from glassformer.errors import CheckpointError, UserError
from glassformer.generate.batches import batches_by_length
from glassformer.interop.tokenizer import ROLES, special_token_template
from glassformer.limits import MAX_TOKENS
from glassformer.pipelines.source import Source
from glassformer.runtime.graph import Floats
from glassformer.tasks.base import AnyTask
from glassformer.tasks.encoder import EncoderTask
from glassformer.tokens.tokenizer import well_formed, wrap_native_errors

BATCH_TOKENS = 4096
"""Maximum number of tokens per batch, including padding."""
CLEAN_UP_REPLACEMENTS = {" .": ".", " ?": "?", " !": "!", " ,": ",", " ' ": "'", " n't": "n't"}
CLEAN_UP_REPLACEMENTS |= {f" '{end}": f"'{end}" for end in ("m", "s", "ve", "re")}
"""Replacements of clean_up_tokenization_spaces, in the order of transformers."""


@dataclass(frozen=True, slots=True)
class Window:
    """One model input: a text or pair with special tokens, or one part of a text that exceeds the maximum length."""

    encoding: Any
    n_prefix: int = 0
    """Number of characters that the tokenizer prepends to each text."""
    has_token_types: bool = True
    """Whether token type ids distinguish the texts of a pair."""

    @property
    def ids(self) -> list[int]:
        return self.encoding.ids

    @property
    def token_type_ids(self) -> list[int]:
        """0 for tokens of the first text, 1 for tokens of the second."""
        return self.encoding.type_ids if self.has_token_types else [0] * len(self.ids)

    @property
    def is_special(self) -> list[bool]:
        """Whether each token is a special token."""
        return [bool(x) for x in self.encoding.special_tokens_mask]

    def char_span(self, token: int) -> tuple[int, int]:
        """Character span of a token in its text, or in its word if the text was given as words."""
        start, end = self.encoding.offsets[token]
        return max(0, start - self.n_prefix), max(0, end - self.n_prefix)

    def char_span_of_words(self, first: int, last: int, sequence: int) -> tuple[int, int]:
        """Character span from the word that contains token `first` to the word that contains token `last`."""
        words = [self.encoding.token_to_word(token) for token in (first, last)]
        if None in words:
            return self.char_span(first)[0], self.char_span(last)[1]
        start, _ = self.encoding.word_to_chars(words[0], sequence)
        _, end = self.encoding.word_to_chars(words[1], sequence)
        return max(0, start - self.n_prefix), max(0, end - self.n_prefix)


class TokenizerAdapter:
    """Encoding and decoding of text for a model. Users of transformers know it as the tokenizer of a pipeline."""

    def __init__(self, source: Source) -> None:
        task, t = source.task, source.task.tokenizer
        self.backend = build_tokenizer(source)
        self.lock = threading.Lock()
        """Truncation is a setting of the backend, not an argument: one thread encodes at a time."""
        self.is_encoder = task.kind == "encoder"
        self.chat_template = source.origin.chat_template
        self.special_names = t.special_tokens
        named = source.tokenizer_config
        roles = {"bos_token": t.special_tokens.bos_token, "eos_token": t.special_tokens.eos_token, **named}
        self.template_variables = {role: roles[role] for role in ROLES if isinstance(roles.get(role), str)}
        """Names of special tokens by their role, as chat templates have them."""
        self.prefix = "" if source.follows_transformers else t.special_tokens.prefix
        self.pad_token_id, self.eos_token_id, self.mask_token_id = t.pad_id, t.eos_id, t.mask_id
        self.cls_token_id, self.sep_token_id = t.bos_id, t.eos_id
        self.clean_up_spaces = bool(source.tokenizer_config.get("clean_up_tokenization_spaces", False))
        self.max_positions = int(task.config.max_len) if task.source.has_position_limit else MAX_TOKENS
        """Maximum number of tokens that the model accepts."""
        max_length = source.tokenizer_config.get("model_max_length")
        self.model_max_length = int(min(float(max_length or "inf"), task.config.max_len))
        """Maximum number of tokens of a truncated text, including special tokens."""
        names = source.tokenizer_config.get("model_input_names")
        # The TokenizersBackend of transformers 5 returns no token type ids by default.
        is_bare = source.tokenizer_config.get("tokenizer_class") == "TokenizersBackend"
        has_types = getattr(task.config, "n_token_types", 0) > 1
        self.has_token_types = "token_type_ids" in names if names else has_types and not is_bare
        unk = getattr(self.backend.model, "unk_token", None) or source.tokenizer_config.get("unk_token")
        self.unk_token_id = self.backend.token_to_id(unk) if isinstance(unk, str) else None
        self.continuation_prefix = getattr(self.backend.model, "continuing_subword_prefix", None)

    @property
    def mask_token(self) -> str | None:
        return self.special_names.mask_token

    @property
    def pad_token(self) -> str:
        return self.special_names.pad_token

    @property
    def eos_token(self) -> str:
        return self.special_names.eos_token

    def limit(self, *, truncates: bool, max_length: int | None = None) -> int:
        """Maximum number of tokens of a text.

        Args:
            truncates: the caller requested truncation.
            max_length: maximum length set by the caller.
        """
        return min(max_length or (self.model_max_length if truncates else self.max_positions), self.max_positions)

    def get_vocab(self) -> dict[str, int]:
        return self.backend.get_vocab()

    def encode_windows(
        self,
        text: str | Sequence[str],
        pair: str | None = None,
        *,
        max_length: int | None = None,
        strategy: str = "longest_first",
        overlap: int = 0,
        special_tokens: bool = True,
    ) -> list[Window]:
        """Encode a text, a list of words, or a pair of texts, as one window or several.

        Args:
            max_length: maximum number of tokens of a window, including special tokens. Default: no limit.
            strategy: which text of a pair is truncated: "longest_first" or "only_second".
            overlap: number of tokens shared by adjacent windows.
        """
        texts = self.add_prefix(text), None if pair is None else self.add_prefix(pair)
        with self.lock:
            if max_length is not None:
                self.backend.enable_truncation(max_length, stride=overlap, strategy=strategy)
            try:
                encoding = wrap_native_errors(
                    lambda: self.backend.encode(
                        *texts, is_pretokenized=not isinstance(text, str), add_special_tokens=special_tokens
                    ),
                    lambda problem: UserError(f"the tokenizer failed on this text: {problem}"),
                )
            finally:
                self.backend.no_truncation()
        n_prefix = len(self.prefix)
        return [Window(one, n_prefix, self.has_token_types) for one in (encoding, *encoding.overflowing)]

    def __call__(
        self,
        text: str | Sequence[str],
        text_pair: str | Sequence[str] | None = None,
        *,
        truncation: bool = False,
        max_length: int | None = None,
        padding: bool = False,
        return_tensors: str | None = None,
    ) -> JsonObject:
        """Encode a text or a list of texts as transformers' tokenizers do.

        Args:
            truncation: truncate to `max_length`, default the maximum length of the model.
            padding: pad the texts of a list to the longest.
            return_tensors: "pt" for tensors, which need padding if the lengths differ.

        Returns:
            input_ids, attention_mask and, if the model has them, token_type_ids: lists, or lists of lists.
        """
        texts = [text] if isinstance(text, str) else list(text)
        pairs = [text_pair] * len(texts) if text_pair is None or isinstance(text_pair, str) else list(text_pair)
        limit = (max_length or self.model_max_length) if truncation else None
        windows = [self.encode_windows(one, pair, max_length=limit)[0] for one, pair in zip(texts, pairs, strict=True)]
        columns = {"input_ids": [w.ids for w in windows]}
        if self.has_token_types and self.is_encoder:
            columns["token_type_ids"] = [w.token_type_ids for w in windows]
        columns["attention_mask"] = [[1] * len(w.ids) for w in windows]
        if padding:
            n = max(len(ids) for ids in columns["input_ids"])
            fill = {"input_ids": self.pad_token_id}
            columns = {
                name: [[*row, *[fill.get(name, 0)] * (n - len(row))] for row in rows] for name, rows in columns.items()
            }
        if return_tensors == "pt":
            require_torch("return_tensors")
            import torch

            return {name: torch.tensor(rows) for name, rows in columns.items()}
        return {name: rows[0] for name, rows in columns.items()} if isinstance(text, str) else dict(columns)

    def add_prefix(self, text: str | Sequence[str]) -> str | list[str]:
        """Add the prefix of the tokenizer to a text, or to each word of a list."""
        if isinstance(text, str):
            return self.prefix + well_formed(text)
        return [self.prefix + well_formed(word) for word in text]

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False, clean: bool | None = None) -> str:
        """Decode ids to text.

        Args:
            clean: remove spaces before punctuation. Default: the setting in tokenizer_config.json.
        """
        text = self.backend.decode(list(ids), skip_special_tokens=skip_special_tokens).removeprefix(self.prefix)
        for old, new in CLEAN_UP_REPLACEMENTS.items() if (self.clean_up_spaces if clean is None else clean) else ():
            text = text.replace(old, new)
        return text

    def token(self, token_id: int) -> str:
        """Vocabulary entry of a token id."""
        return str(self.backend.id_to_token(token_id))

    def join(self, tokens: Sequence[str]) -> str:
        """Convert vocabulary entries to text."""
        return str(self.backend.decoder.decode(list(tokens))) if self.backend.decoder else " ".join(tokens)


def build_tokenizer(source: Source) -> tokenizers.Tokenizer:
    """The tokenizer of a Hugging Face folder, or a copy of that of a glassformer task. It adds special tokens.

    Names of special tokens in a text are special tokens for models of transformers, and plain text for others.
    """
    task = source.task
    if source.folder and (source.folder / "tokenizer.json").exists():
        backend = wrap_native_errors(
            lambda: tokenizers.Tokenizer.from_file(str(source.folder / "tokenizer.json")),  # type: ignore[operator]
            lambda problem: CheckpointError(f"{source.folder}: no usable tokenizer: {problem}"),
        )
    else:
        backend = tokenizers.Tokenizer.from_str(task.tokenizer.to_json())
        if not backend.num_special_tokens_to_add(False):
            bytes_first = isinstance(backend.pre_tokenizer, pre_tokenizers.ByteLevel)
            trim = [processors.ByteLevel(add_prefix_space=False, trim_offsets=True)] if bytes_first else []
            backend.post_processor = processors.Sequence([*trim, special_token_template(task.tokenizer, task)])
    backend.no_padding()
    backend.no_truncation()
    backend.encode_special_tokens = not source.follows_transformers
    return backend


def encoder_batches(
    task: AnyTask, inputs: Sequence[tuple[Sequence[int], Sequence[int]]]
) -> Iterator[tuple[list[int], list[Floats]]]:
    """Output of the last layer for inputs of (ids, token type ids), batch by batch.

    Yields: indices of the inputs in the batch, hidden states of each [tokens, d_model].
    """
    if isinstance(task, EncoderTask):
        yield from task.run_encoder(inputs)
        return
    require_torch("feature-extraction with a decoder")
    from glassformer.recording.modules import hidden_states

    for indices in batches_by_length([len(ids) for ids, _ in inputs], BATCH_TOKENS, 1):
        yield indices, hidden_states(task.model, [inputs[i][0] for i in indices])
