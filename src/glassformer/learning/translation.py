"""Objectives of translation and of other text-to-text tasks with encoder-decoder models."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from itertools import compress, islice
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from torch import Tensor

from glassformer.corpora.example import Example
from glassformer.corpora.language_id import MAX_SENTENCES
from glassformer.corpora.languages import languages_of
from glassformer.corpora.lines import source_of
from glassformer.corpora.words import source_scripts
from glassformer.data.dataset import Dataset
from glassformer.data.pairs import PairBatch, make_batch, pack_pairs
from glassformer.data.ragged import Row
from glassformer.decode_config import DecodeConfig
from glassformer.errors import ConfigError
from glassformer.learning.augmentation import Augmentation, drawn
from glassformer.learning.base import Objective
from glassformer.learning.inline_codes import with_code
from glassformer.learning.lexicon import Lexicon
from glassformer.metrics import bleu, tokenizer_for
from glassformer.objectives.loss import pair_cross_entropy
from glassformer.tasks.base import ExampleT, Log
from glassformer.tasks.splitting import sentences_at_once
from glassformer.tasks.text_to_text import TextToTextTask
from glassformer.tasks.texts import evenly_spaced, no_op
from glassformer.tasks.translation import Translator
from glassformer.tokens.bpe_dropout import BpeDropout
from glassformer.tokens.codes import CODE_TOKENS, code_ids, encode_with_codes
from glassformer.tokens.tags import tag_token, tags_of
from glassformer.train_config import NO_TAG, TrainConfig

CODE_FRACTION = 0.4
"""Fraction of the pairs that are tried with a code."""

MAX_AUGMENTATION = 50_000
"""Number of pairs from which augmentation learns which words correspond."""

N_TRIES = 4
"""Number of tries to change a row without making it longer: the row itself, then shorter ones in its place."""

N_CANDIDATES = 256
"""Number of random pairs of which the longest that is short enough is taken."""


class TextToTextObjective(Objective[ExampleT, PairBatch]):
    """Base class of objectives of text-to-text tasks: cross-entropy of the target tokens."""

    task: TextToTextTask[ExampleT]
    static_shapes = True
    can_pack = True
    options: ClassVar[tuple[str, ...]] = (*Objective.options, "bpe_dropout")
    bpe_dropout: BpeDropout | None = None

    def configure(self, config: TrainConfig) -> None:
        if config.bpe_dropout:
            self.bpe_dropout = BpeDropout(self.tokenizer, config.bpe_dropout, config.seed)

    @property
    def varies(self) -> bool:
        return self.bpe_dropout is not None

    def varied(self, rows: Sequence[Row], generators: Sequence[np.random.Generator], max_len: int) -> Sequence[Row]:
        """The rows in other segmentations."""
        if not (dropout := self.bpe_dropout):
            return rows
        segmented: list[Row] = [
            tuple(dropout.sampled(ids, rng) for ids in row) for row, rng in zip(rows, generators, strict=True)
        ]
        return short_or_before(segmented, rows, max_len)

    def tag(self, example: ExampleT) -> list[int]:
        """Tokens before the source of an example. By default none."""
        return []

    def encode(self, examples: Sequence[ExampleT]) -> tuple[list[Row], list[ExampleT]]:
        src, tgt = (
            encode_with_codes(t, [self.task.texts(e)[i] for e in examples]) for i, t in enumerate(self.tokenizer.sides)
        )
        src = [[*self.tag(example), *ids] for example, ids in zip(examples, src, strict=True)]
        limit = self.model.config.max_len
        rows: list[Row] = list(zip(src, tgt, strict=True))
        fits = [max(map(len, row)) < limit for row in rows]
        return list(compress(rows, fits)), [e for e, fit in zip(examples, fits, strict=True) if not fit]

    def needed_max_len(self, example: ExampleT) -> int:
        texts = self.task.texts(example)
        return max(len(t.encode(text)) for t, text in zip(self.tokenizer.sides, texts, strict=True)) + 1

    def batch(self, rows: Sequence[Row]) -> PairBatch:
        t = self.tokenizer
        return make_batch(rows, pad_id=t.pad_id, bos_id=t.bos_id, eos_id=t.eos_id)

    def packed_batch(self, rows: Sequence[Row], n_tokens: int, n_sequences: int, longest: int) -> PairBatch:
        t = self.tokenizer
        return pack_pairs(rows, n_tokens, n_sequences, longest, pad_id=t.pad_id, bos_id=t.bos_id, eos_id=t.eos_id)

    def loss(self, batch: PairBatch, *, label_smoothing: float = 0.0) -> Tensor:
        """Label-smoothed cross-entropy, summed over the target tokens of a batch, in nats."""
        return pair_cross_entropy(self.model, batch, label_smoothing=label_smoothing)

    def reference_loss(self, examples: Sequence[ExampleT]) -> float:
        """Mean negative log-probability of the tokens of the references, in nats. See `map_parts`."""

        def sums(pairs: list[Sequence[str]]) -> list[tuple[float, int]]:
            rows = self.task.score([src for src, _ in pairs], [tgt for _, tgt in pairs], no_op)
            return [(sum(log_probs), len(log_probs)) for log_probs in rows]

        results = self.map_parts(sums, [self.task.texts(example) for example in examples])
        return -sum(total for total, _ in results) / sum(n for _, n in results)


class TranslationObjective(TextToTextObjective[Example]):
    """Objective of translation."""

    task_type = Translator
    task: Translator
    too_long_advice = "--task summarization truncates long texts, if the targets are summaries"
    metric = "bleu"
    validation_decodes = True
    options = (*TextToTextObjective.options, "augment", "inline_codes", "in_domain", "tags", "weights")
    tag_ids: Mapping[str, int] = MappingProxyType({})
    """The special token before each source of a file, by the file."""
    inline_codes = False
    codes: AbstractSet[int] = frozenset()
    """The tokens of codes."""
    seed = 0
    augmented_fraction = 0.0
    augmentation: Augmentation | None = None
    data: Dataset | None = None
    """The training set, if it is augmented."""

    def configure(self, config: TrainConfig) -> None:
        super().configure(config)
        self.augmented_fraction = config.augment or 0.0
        self.codes = set(code_ids(self.tokenizer).values())
        self.inline_codes, self.seed = config.inline_codes, config.seed
        if config.inline_codes and not code_ids(self.tokenizer):
            raise ConfigError(
                "--inline-codes: the model of --init-from was not trained with them.\n  Train without --init-from."
            )
        known = tags_of(self.tokenizer)
        if unknown := set(config.tags) - {NO_TAG} - known.keys():
            names = f"has {', '.join(known)}" if known else "has none"
            raise ConfigError(
                f"--tags: {', '.join(sorted(unknown))}: the model of --init-from {names}.\n"
                "  Use its tags, or train without --init-from."
            )
        tags = zip(map(str, config.src), config.tags, strict=True) if config.tags else ()
        self.tag_ids = {path: known[tag] for path, tag in tags if tag != NO_TAG}
        self.task.languages = languages_of(config.src, config.tgt, config.keys, config.languages)

    @classmethod
    def special_tokens(cls, config: TrainConfig) -> tuple[str, ...]:
        tags = tuple(tag_token(tag) for tag in dict.fromkeys(config.tags) if tag != NO_TAG)
        return (*tags, *CODE_TOKENS) if config.inline_codes else tags

    def tag(self, example: Example) -> list[int]:
        source = source_of(example.path, frozenset(self.tag_ids))
        return [self.tag_ids[source]] if source in self.tag_ids else []

    def extended(
        self, examples: Iterator[Example], training: Callable[[], Iterator[Example]], log: Log
    ) -> Iterator[Example]:
        """The examples, and with --inline-codes some of them a second time with a code in both texts."""
        return self.with_codes(examples, training, log) if self.inline_codes else examples

    def with_codes(
        self, examples: Iterator[Example], training: Callable[[], Iterator[Example]], log: Log
    ) -> Iterator[Example]:
        """The examples, and a second time those whose files have codes in both texts, and some others with one."""
        pairs = [(e.src, e.tgt) for e in islice(training(), MAX_AUGMENTATION) if self.may_fit(e)]
        lexicon = Lexicon(pairs, self.tokenizer)
        rng = np.random.default_rng(self.seed)
        n = n_own = 0
        for example in examples:
            yield example
            if example.marked:
                n_own += 1
                yield replace(example, src=example.marked[0], tgt=example.marked[1])
            elif (
                rng.random() < CODE_FRACTION
                and self.may_fit(example)
                and (pair := with_code((example.src, example.tgt), lexicon, rng))
            ):
                n += 1
                yield replace(example, src=pair[0], tgt=pair[1])
        own = f", and {n_own:,} with those of their files" if n_own else ""
        log(f"Inline codes: {n:,} pairs are used with a code as well{own}.")

    def may_fit(self, example: Example) -> bool:
        """Whether no text has more words than the model reads tokens. `encode` leaves such pairs out; to align their
        words would take time and memory that grow with the product of their lengths."""
        return max(len(example.src.split()), len(example.tgt.split())) <= self.model.config.max_len

    def fit_statistics(self, data: Dataset) -> None:
        """Find the scripts of the sources, in addition to those of the model that the training starts from, and how
        many sentences are translated at once."""
        pairs = list(zip(*self.sample(data), strict=True))
        self.task.scripts = tuple(sorted({*self.task.scripts, *source_scripts(pairs)}))
        self.task.sentences_at_once = (str(max(self.task.n_sentences, sentences_at_once(pairs))),)
        if self.augmented_fraction:
            self.data = data
            self.augmentation = Augmentation(
                list(zip(*self.sample(data, MAX_AUGMENTATION), strict=True)), self.tokenizer
            )

    @property
    def varies(self) -> bool:
        return self.augmentation is not None or super().varies

    def varied(self, rows: Sequence[Row], generators: Sequence[np.random.Generator], max_len: int) -> Sequence[Row]:
        """The rows, some of them changed, in other segmentations."""
        if self.augmentation:
            rows = short_or_before(self.augmented(self.augmentation, rows, generators), rows, max_len)
        return super().varied(rows, generators, max_len)

    def augmented(
        self, augmentation: Augmentation, rows: Sequence[Row], generators: Sequence[np.random.Generator]
    ) -> list[Row]:
        """The rows, some of them changed. In place of one that would become longer, a shorter row of the training set
        is changed, if there is one: batches have rows of one length."""
        new, lengths = list(rows), [max(map(len, row)) for row in rows]
        changes = [drawn(rng, self.augmented_fraction) for rng in generators]
        tried = {i: row for i, row in enumerate(new) if changes[i] is not None and self.is_plain(row)}
        for _ in range(N_TRIES):
            longer: dict[int, Row] = {}
            changed = self.changed(augmentation, tried, changes, generators)
            for (i, before), row in zip(tried.items(), changed, strict=True):
                excess = max(map(len, row)) - lengths[i]
                if excess <= 0:
                    new[i] = row
                elif shorter := self.shorter(before, excess, generators[i]):
                    longer[i] = shorter
            tried = longer
        return new

    def changed(
        self,
        augmentation: Augmentation,
        rows: Mapping[int, Row],
        changes: Sequence[int | None],
        generators: Sequence[np.random.Generator],
    ) -> Iterator[Row]:
        """The rows with their changes.

        Args:
            rows: by position in the other sequences.
        """
        texts = []
        for i, row in rows.items():
            index, other = changes[i], partial(self.any_texts, generators[i], self.tag_of(row))
            assert index is not None
            texts.append(augmentation(index, self.texts(row), other, generators[i]))
        src, tgt = (t.encode_batch([text[i] for text in texts]) for i, t in enumerate(self.tokenizer.sides))
        for row, ids, target_ids in zip(rows.values(), src, tgt, strict=True):
            yield [*self.tag_of(row), *ids], target_ids

    def shorter(self, row: Row, n: int, rng: np.random.Generator) -> Row | None:
        """A random row of the training set that is about `n` tokens shorter than another one, with the same tag; None
        if none of some has this tag and is so short."""
        assert self.data is not None
        indices = rng.integers(len(self.data), size=N_CANDIDATES)
        lengths = np.max([field.lengths for field in self.data.rows(indices).fields], axis=0)
        fitting = np.flatnonzero(lengths <= max(map(len, row)) - n)
        if not len(fitting):
            return None
        found = self.data[int(indices[fitting[lengths[fitting].argmax()]])]
        return found if self.tag_of(found) == self.tag_of(row) and self.is_plain(found) else None

    def tag_of(self, row: Row) -> list[int]:
        """The token of the tag that the source of a row begins with, if there is one."""
        return [token_id for token_id in row[0][:1] if token_id in self.tag_ids.values()]

    def any_texts(self, rng: np.random.Generator, tag: list[int]) -> tuple[str, str] | None:
        """Source and target of a random row of the training set; None if it has another tag."""
        assert self.data is not None
        row = self.data[int(rng.integers(len(self.data)))]
        return self.texts(row) if self.tag_of(row) == tag and self.is_plain(row) else None

    def is_plain(self, row: Row) -> bool:
        """Whether a row has no codes."""
        return self.codes.isdisjoint(row[0])

    def texts(self, row: Row) -> tuple[str, str]:
        """Source and target of a row."""
        src, tgt = (self.tokenizer.decode(list(side)) for side in row)
        return src, tgt

    def sample(self, data: Dataset, n: int = MAX_SENTENCES) -> tuple[list[str], list[str]]:
        """Sources and targets of a training set: `n` evenly spaced ones."""
        rows = data.rows(np.array(evenly_spaced(range(len(data)), n)))
        src, tgt = ([self.tokenizer.decode(list(row[side])) for row in rows] for side in (0, 1))
        return src, tgt

    def validate(self, examples: Sequence[Example], n_decoded: int | None = None) -> dict[str, float]:
        """BLEU of greedy translations, and the mean negative log-probability of the reference tokens in nats.

        Args:
            n_decoded: decode this many of the examples, evenly spaced; the loss is that of all. Default: all.
        """
        decoded = evenly_spaced(examples, n_decoded)
        precision = self.decoding_precision or self.task.validation_precision
        options = DecodeConfig(beam=1, batch_tokens=4096, precision=precision)

        def best_translations(sources: list[str]) -> list[str]:
            # Early in training, models often do not generate the end token: limit the time of a validation.
            translations = self.task.translate(sources, options, max_new_tokens=lambda n_tokens: 2 * n_tokens + 10)
            return [nbest[0].text for nbest in translations]

        hypotheses = self.map_parts(best_translations, [example.src for example in decoded])
        tokenizer = tokenizer_for(self.task.references(examples))
        return {
            "bleu": bleu(hypotheses, self.task.references(decoded), tokenizer),
            "loss": self.reference_loss(examples),
        }


def short_or_before(rows: Sequence[Row], before: Sequence[Row], max_len: int) -> list[Row]:
    """The rows with at most `max_len` tokens on each side; for others those before."""
    return [new if max(map(len, new)) <= max_len else old for new, old in zip(rows, before, strict=True)]
