"""Labels of tokens, and the entities that they make up."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import field_validator

from glassformer.errors import ConfigError
from glassformer.pipelines.base import Options, Pipeline, warn_cut
from glassformer.pipelines.tokenizer_adapter import Window, encoded

Entity = dict[str, Any]
Scores = NDArray[np.float32]


class EntityOptions(Options):
    """Arguments of token-classification."""

    aggregation_strategy: Literal["none", "simple", "first", "average", "max"] = "none"
    ignore_labels: tuple[str, ...] | None = None
    """Labels that are left out; default: "O"."""
    stride: int | None = None
    """Read a long text in windows that share so many tokens; with an aggregation_strategy alone."""
    is_split_into_words: bool = False
    """Texts are lists of words."""
    delimiter: str | None = None
    """What stood between the words, for start and end; default: a space."""
    grouped_entities: bool | None = None
    ignore_subwords: bool | None = None

    @field_validator("aggregation_strategy", mode="before")
    @classmethod
    def lower(cls, value: Any) -> Any:
        value = getattr(value, "value", value)  # transformers' own enumeration
        return value.lower() if isinstance(value, str) else value

    @property
    def strategy(self) -> str:
        """How tokens become entities, by the old names too."""
        if self.grouped_entities is None and self.ignore_subwords is None:
            return self.aggregation_strategy
        if not self.grouped_entities:
            return "none"
        return "first" if self.ignore_subwords else "simple"


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a text with what the model says of it."""

    unit: str
    scores: Scores
    """Probabilities of the labels."""
    start: int
    end: int
    index: int
    """Its place in what the model read, special tokens among it."""
    goes_on: bool
    """Whether it is part of the word of the token before."""


class TokenClassification(Pipeline):
    """Of a text the tokens with a label ("entity"), or their groups ("entity_group"), with score, word, start, end.

    aggregation_strategy: "none" gives every token; "simple" joins neighbors of one label; "first", "average" and "max"
    first give each word the label of its first token, of its tokens' mean, or of the surest one.
    """

    tasks = ("tagging",)
    options_type = EntityOptions

    def each(self, inputs: Any, options: Mapping[str, Any]) -> Any:
        merged = {**self.options, **options}
        if merged.get("is_split_into_words") and isinstance(inputs, (list, tuple)):
            are_texts = all(isinstance(words, list) for words in inputs)
            return super().each(list(inputs) if are_texts else [list(inputs)], options)
        return super().each(list(inputs) if isinstance(inputs, tuple) else inputs, options)

    def run(self, inputs: list[Any], options: EntityOptions) -> list[list[Entity]]:
        read = [self.windows(given, options) for given in inputs]
        texts = [self.whole(given, options) for given in inputs]
        every = [window for windows in read for window in windows]
        scores = iter(self.scores(every))
        results = []
        for given, text, windows in zip(inputs, texts, read, strict=True):
            begins = word_begins(given, options)
            entities: list[Entity] = []
            for window in windows:
                entities += self.entities(text, window, next(scores), begins, options)
            results.append(longest_of_overlapping(entities) if len(windows) > 1 else entities)
        return results

    def windows(self, given: Any, options: EntityOptions) -> list[Window]:
        """The text in as many windows as are asked for: one, unless there is a stride."""
        limit = self.tokenizer.model_max_length
        if options.is_split_into_words:
            if not isinstance(given, list) or not all(isinstance(word, str) for word in given):
                raise ConfigError(f"{self.task}: is_split_into_words asks for lists of words, found {given!r:.60}.")
        else:
            self.text(given)
        if options.stride is not None and options.strategy == "none":
            raise ConfigError('stride: windows need an aggregation_strategy other than "none".')
        if options.stride is not None and not 0 <= options.stride < limit - 2:
            raise ConfigError(f"stride = {options.stride}: must be less than the {limit} tokens that the model reads.")
        windows = self.tokenizer.read(given, max_length=limit, overlap=options.stride or 0)
        if options.stride is None and len(windows) > 1:
            if not options.cuts:
                warn_cut(limit, "end")
            return windows[:1]
        return windows

    def whole(self, given: Any, options: EntityOptions) -> str:
        """The text; of words, as it may have been."""
        return (
            (" " if options.delimiter is None else options.delimiter).join(given) if isinstance(given, list) else given
        )

    def scores(self, windows: Sequence[Window]) -> list[Scores]:
        """Of each window [tokens, labels] probabilities."""
        found: list[Scores] = [np.empty(0, np.float32)] * len(windows)
        for places, hidden, ids in encoded(self.model, [(w.ids, w.token_type_ids) for w in windows]):
            with torch.inference_mode():
                probs = self.model.model.label_logits(hidden, ids).float().softmax(-1).cpu().numpy()
            for place, rows in zip(places, probs, strict=True):
                found[place] = rows[: len(windows[place].ids)]
        return found

    def entities(
        self, text: str, window: Window, scores: Scores, begins: Sequence[int] | None, options: EntityOptions
    ) -> list[Entity]:
        """What a window says, without what is to be ignored."""
        tokens = self.tokens(text, window, scores, begins)
        strategy = options.strategy
        if strategy in ("none", "simple"):
            entities = [self.entity(token.scores, token.unit, token.start, token.end, token.index) for token in tokens]
        else:
            if not self.tokenizer.continuation:
                warnings.warn(
                    "the tokenizer knows no words: they are taken to be what spaces separate.",
                    UserWarning,
                    stacklevel=2,
                )
            entities = [self.word(tokens_of_word, strategy) for tokens_of_word in by_word(tokens)]
        if strategy != "none":
            entities = [self.group(members) for members in by_label(entities)]
        ignored = ("O",) if options.ignore_labels is None else options.ignore_labels
        return [e for e in entities if e.get("entity", e.get("entity_group")) not in ignored]

    def tokens(self, text: str, window: Window, scores: Scores, begins: Sequence[int] | None) -> list[Token]:
        """The tokens of a window that are text.

        Args:
            begins: where in the text each word begins, if it was given in words.
        """
        tokens = []
        for index, (row, is_special) in enumerate(zip(scores, window.is_special, strict=True)):
            if is_special:
                continue
            start, end = window.characters(index)
            word = window.encoding.word_ids[index]
            if begins is not None and word is not None:
                start, end = start + begins[word], end + begins[word]
            unit, shown = self.tokenizer.unit(window.ids[index]), text[start:end]
            if window.ids[index] == self.tokenizer.unk_token_id:
                unit, goes_on = shown, False
            elif self.tokenizer.continuation:
                goes_on = len(unit) != len(shown)
            else:
                goes_on = start > 0 and " " not in text[start - 1 : start + 1]
            tokens.append(Token(unit, row, start, end, index, goes_on))
        return tokens

    def entity(self, scores: Scores, word: str, start: int, end: int, index: int | None = None) -> Entity:
        """The most probable label of a token, or of a word."""
        best = int(scores.argmax())
        place = {} if index is None else {"index": index}
        return {
            "entity": self.model.labels[best],
            "score": float(scores[best]),
            **place,
            "word": word,
            "start": start,
            "end": end,
        }

    def word(self, tokens: Sequence[Token], strategy: str) -> Entity:
        """One label for the tokens of a word."""
        if strategy == "first":
            scores = tokens[0].scores
        elif strategy == "max":
            scores = max(tokens, key=lambda token: float(token.scores.max())).scores
        else:
            scores = np.stack([token.scores for token in tokens]).mean(axis=0)
        word = self.tokenizer.join([token.unit for token in tokens])
        return self.entity(scores, word, tokens[0].start, tokens[-1].end)

    def group(self, members: Sequence[Entity]) -> Entity:
        """Neighbors of one label as one entity."""
        return {
            "entity_group": members[0]["entity"].split("-", 1)[-1],
            "score": float(np.mean([member["score"] for member in members])),
            "word": self.tokenizer.join([member["word"] for member in members]),
            "start": members[0]["start"],
            "end": members[-1]["end"],
        }


def word_begins(given: Any, options: EntityOptions) -> list[int] | None:
    """Of words, where each begins in the whole text."""
    if not isinstance(given, list):
        return None
    between = len(" " if options.delimiter is None else options.delimiter)
    ends = np.cumsum([len(word) + between for word in given]).tolist()
    return [0, *ends[:-1]]


def by_word(tokens: Sequence[Token]) -> list[list[Token]]:
    """The tokens of each word."""
    words: list[list[Token]] = []
    for token in tokens:
        if words and token.goes_on:
            words[-1].append(token)
        else:
            words.append([token])
    return words


def by_label(entities: Sequence[Entity]) -> list[list[Entity]]:
    """Neighbors of one kind; B- begins another entity even after one of its kind."""
    groups: list[list[Entity]] = []
    for entity in entities:
        begins, kind = tag(entity["entity"])
        if groups and kind == tag(groups[-1][-1]["entity"])[1] and not begins:
            groups[-1].append(entity)
        else:
            groups.append([entity])
    return groups


def tag(label: str) -> tuple[bool, str]:
    """Whether a label begins an entity, and of what kind that is."""
    return label.startswith("B-"), label[2:] if label.startswith(("B-", "I-")) else label


def longest_of_overlapping(entities: list[Entity]) -> list[Entity]:
    """Of the entities of windows that overlap, the longer one of each two, or the surer one of two equally long."""
    kept: list[Entity] = []
    for entity in sorted(entities, key=lambda e: e["start"]):
        before = kept[-1] if kept else None
        if before is None or not before["start"] <= entity["start"] < before["end"]:
            kept.append(entity)
        elif (entity["end"] - entity["start"], entity["score"]) > (before["end"] - before["start"], before["score"]):
            kept[-1] = entity
    return kept
