"""token-classification: labels of tokens, and entities made of several tokens."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import field_validator

from glassformer.config import JsonObject
from glassformer.errors import ConfigError
from glassformer.generate.scores import softmax
from glassformer.pipelines.base import Options, Output, Pipeline, warn_truncated
from glassformer.pipelines.tokenizer_adapter import Window, encoder_batches
from glassformer.tasks.tagging import Tagger

Entity = JsonObject
Scores = NDArray[np.float32]


class TokenClassificationOptions(Options):
    """Arguments of token-classification."""

    aggregation_strategy: Literal["none", "simple", "first", "average", "max"] = "none"
    ignore_labels: tuple[str, ...] | None = None
    """Labels that are omitted from the output. Default: "O"."""
    stride: int | None = None
    """Process long texts in windows that share this number of tokens. Requires an aggregation_strategy."""
    is_split_into_words: bool = False
    """Whether texts are given as lists of words."""
    delimiter: str | None = None
    """Separator of the words, used to compute start and end. Default: a space."""
    grouped_entities: bool | None = None
    ignore_subwords: bool | None = None

    @field_validator("aggregation_strategy", mode="before")
    @classmethod
    def lower(cls, value: object) -> object:
        value = getattr(value, "value", value)  # transformers' own enumeration
        return value.lower() if isinstance(value, str) else value

    @property
    def strategy(self) -> str:
        """Aggregation strategy, also from the old arguments grouped_entities and ignore_subwords."""
        if self.grouped_entities is None and self.ignore_subwords is None:
            return self.aggregation_strategy
        if not self.grouped_entities:
            return "none"
        return "first" if self.ignore_subwords else "simple"


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a text with its label probabilities."""

    token: str
    scores: Scores
    """Label probabilities, [labels]."""
    start: int
    end: int
    index: int
    """Position in the model input, including special tokens."""
    is_continuation: bool
    """Whether the token belongs to the same word as the previous token."""


class TokenClassification(Pipeline[TokenClassificationOptions]):
    """Labeled tokens ("entity") or groups of tokens ("entity_group") of a text, with score, word, start and end.

    aggregation_strategy: "none" returns every token; "simple" merges adjacent tokens of the same label; "first",
    "average" and "max" first assign each word the label of its first token, of the mean over its tokens, or of its
    most probable token.
    """

    options_type = TokenClassificationOptions
    model: Tagger

    def each(self, inputs: object, options: Mapping[str, object]) -> Output:
        merged = {**self.options, **options}
        if merged.get("is_split_into_words") and isinstance(inputs, (list, tuple)):
            are_texts = all(isinstance(words, list) for words in inputs)
            return super().each(list(inputs) if are_texts else [list(inputs)], options)
        return super().each(list(inputs) if isinstance(inputs, tuple) else inputs, options)

    def run(self, inputs: list[object], options: TokenClassificationOptions) -> list[list[Entity]]:
        texts_or_words = [self.text_or_words(value, options) for value in inputs]
        windows_of_texts = [self.windows(text, options) for text in texts_or_words]
        texts = [self.full_text(text, options) for text in texts_or_words]
        all_windows = [window for windows in windows_of_texts for window in windows]
        scores = iter(self.scores(all_windows))
        results = []
        for value, text, windows in zip(texts_or_words, texts, windows_of_texts, strict=True):
            word_starts = find_word_starts(value, options)
            entities: list[Entity] = []
            for window in windows:
                entities += self.entities(text, window, next(scores), word_starts, options)
            results.append(remove_overlaps(entities) if len(windows) > 1 else entities)
        return results

    def text_or_words(self, value: object, options: TokenClassificationOptions) -> str | list[str]:
        """Return the input if it is a string, or with is_split_into_words a list of words; else raise ConfigError."""
        if not options.is_split_into_words:
            return self.text(value)
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise ConfigError(f"{self.task}: is_split_into_words requires lists of words, found {value!r:.60}.")
        return value

    def windows(self, text: str | list[str], options: TokenClassificationOptions) -> list[Window]:
        """Encode a text as one window, or with `stride` as several overlapping windows."""
        limit = self.tokenizer.model_max_length
        if options.stride is not None and options.strategy == "none":
            raise ConfigError('stride: requires an aggregation_strategy other than "none".')
        if options.stride is not None and not 0 <= options.stride < limit - 2:
            raise ConfigError(f"stride = {options.stride}: must be from 0 to {limit - 3}.")
        windows = self.tokenizer.encode_windows(text, max_length=limit, overlap=options.stride or 0)
        if options.stride is None and len(windows) > 1:
            if not options.truncates:
                warn_truncated(limit, "end")
            return windows[:1]
        return windows

    def full_text(self, text: str | list[str], options: TokenClassificationOptions) -> str:
        """The text, or the words joined by the delimiter."""
        return (" " if options.delimiter is None else options.delimiter).join(text) if isinstance(text, list) else text

    def scores(self, windows: Sequence[Window]) -> list[Scores]:
        """Label probabilities of the tokens of each window, [tokens, labels]."""
        results: list[Scores] = [np.empty(0, np.float32)] * len(windows)
        encoder = self.model.encoder
        for indices, hidden in encoder_batches(self.model, [(w.ids, w.token_type_ids) for w in windows]):
            for i, states in zip(indices, hidden, strict=True):
                results[i] = softmax(encoder.outputs(states))
        return results

    def entities(
        self,
        text: str,
        window: Window,
        scores: Scores,
        word_starts: Sequence[int] | None,
        options: TokenClassificationOptions,
    ) -> list[Entity]:
        """Entities of a window, without those with ignored labels."""
        tokens = self.tokens(text, window, scores, word_starts)
        strategy = options.strategy
        if strategy in ("none", "simple"):
            entities = [self.entity(token.scores, token.token, token.start, token.end, token.index) for token in tokens]
        else:
            if not self.tokenizer.continuation_prefix:
                warnings.warn(
                    "the tokenizer does not split texts into words: words are determined by spaces.",
                    UserWarning,
                    stacklevel=2,
                )
            entities = [self.word(tokens_of_word, strategy) for tokens_of_word in group_by_word(tokens)]
        if strategy != "none":
            entities = [self.group(members) for members in group_by_label(entities)]
        ignored = ("O",) if options.ignore_labels is None else options.ignore_labels
        return [e for e in entities if e.get("entity", e.get("entity_group")) not in ignored]

    def tokens(self, text: str, window: Window, scores: Scores, word_starts: Sequence[int] | None) -> list[Token]:
        """The tokens of a window except special tokens.

        Args:
            word_starts: character offset of each word, if the text was given as words.
        """
        tokens = []
        for index, (row, is_special) in enumerate(zip(scores, window.is_special, strict=True)):
            if is_special:
                continue
            start, end = window.char_span(index)
            word = window.encoding.word_ids[index]
            if word_starts is not None and word is not None:
                start, end = start + word_starts[word], end + word_starts[word]
            token, span = self.tokenizer.token(window.ids[index]), text[start:end]
            if window.ids[index] == self.tokenizer.unk_token_id:
                token, is_continuation = span, False
            elif self.tokenizer.continuation_prefix:
                is_continuation = len(token) != len(span)
            else:
                is_continuation = start > 0 and " " not in text[start - 1 : start + 1]
            tokens.append(Token(token, row, start, end, index, is_continuation))
        return tokens

    def entity(self, scores: Scores, word: str, start: int, end: int, index: int | None = None) -> Entity:
        """Output dictionary with the most probable label of a token or word."""
        best = int(scores.argmax())
        position = {} if index is None else {"index": index}
        return {
            "entity": self.model.labels[best],
            "score": float(scores[best]),
            **position,
            "word": word,
            "start": start,
            "end": end,
        }

    def word(self, tokens: Sequence[Token], strategy: str) -> Entity:
        """Assign one label to the tokens of a word."""
        if strategy == "first":
            scores = tokens[0].scores
        elif strategy == "max":
            scores = max(tokens, key=lambda token: float(token.scores.max())).scores
        else:
            scores = np.stack([token.scores for token in tokens]).mean(axis=0)
        word = self.tokenizer.join([token.token for token in tokens])
        return self.entity(scores, word, tokens[0].start, tokens[-1].end)

    def group(self, members: Sequence[Entity]) -> Entity:
        """Merge adjacent entities of the same label into one."""
        return {
            "entity_group": members[0]["entity"].split("-", 1)[-1],
            "score": float(np.mean([member["score"] for member in members])),
            "word": self.tokenizer.join([member["word"] for member in members]),
            "start": members[0]["start"],
            "end": members[-1]["end"],
        }


def find_word_starts(text: str | list[str], options: TokenClassificationOptions) -> list[int] | None:
    """Character offset of each word of a text given as words; None for a string."""
    if not isinstance(text, list):
        return None
    n_delimiter = len(" " if options.delimiter is None else options.delimiter)
    starts = np.cumsum([len(word) + n_delimiter for word in text]).tolist()
    return [0, *starts[:-1]]


def group_by_word(tokens: Sequence[Token]) -> list[list[Token]]:
    """Group tokens by word."""
    words: list[list[Token]] = []
    for token in tokens:
        if words and token.is_continuation:
            words[-1].append(token)
        else:
            words.append([token])
    return words


def group_by_label(entities: Sequence[Entity]) -> list[list[Entity]]:
    """Group adjacent entities of the same type. The prefix B- always starts a new group."""
    groups: list[list[Entity]] = []
    for entity in entities:
        is_start, type_ = split_label(entity["entity"])
        if groups and type_ == split_label(groups[-1][-1]["entity"])[1] and not is_start:
            groups[-1].append(entity)
        else:
            groups.append([entity])
    return groups


def split_label(label: str) -> tuple[bool, str]:
    """Split a label: whether it starts an entity, and its type."""
    return label.startswith("B-"), label[2:] if label.startswith(("B-", "I-")) else label


def remove_overlaps(entities: list[Entity]) -> list[Entity]:
    """Remove overlaps of entities from different windows; the longer, or else the more probable entity is kept."""
    kept: list[Entity] = []
    for entity in sorted(entities, key=lambda e: e["start"]):
        previous = kept[-1] if kept else None
        if previous is None or not previous["start"] <= entity["start"] < previous["end"]:
            kept.append(entity)
        elif (entity["end"] - entity["start"], entity["score"]) > (
            previous["end"] - previous["start"],
            previous["score"],
        ):
            kept[-1] = entity
    return kept
