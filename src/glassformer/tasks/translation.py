"""Translation and other text-to-text tasks with encoder-decoder models."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import compress
from pathlib import Path
from typing import Literal, Self, TypeVar, Unpack, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from glassformer import checkpoint
from glassformer.config import DecodeConfig, JsonObject, TrainConfig
from glassformer.corpora.corpus import Example, read_pairs
from glassformer.corpora.doctor.diagnosis import PairChecker
from glassformer.corpora.language_id import FILE as LANGUAGE_PROFILES
from glassformer.corpora.language_id import MAX_SENTENCES, LanguageProfiles
from glassformer.corpora.languages import languages_of
from glassformer.corpora.read_options import DETECT, ReadOptions
from glassformer.corpora.repetition import repeats
from glassformer.corpora.terms import unmet
from glassformer.corpora.words import has_words, list_mark, scripts_of, source_scripts
from glassformer.data.dataset import Dataset
from glassformer.data.pairs import PairBatch, make_batch, pack_pairs
from glassformer.data.ragged import Row
from glassformer.documents.inline import Detached, put_back
from glassformer.errors import ConfigError
from glassformer.generate.engine import Decoding, Sources, batches_by_length
from glassformer.generate.search import Hypothesis
from glassformer.generate.shortlist import FILE as SHORTLIST
from glassformer.generate.shortlist import Shortlist
from glassformer.keyword_options import DecodeOptions, TextOptions
from glassformer.metrics import Score, bleu, translation_scores
from glassformer.metrics.registry import scores
from glassformer.metrics.score import MetricFn
from glassformer.metrics.translation import bleu_from, bleu_statistics
from glassformer.models.decoding import DecodesTogether
from glassformer.models.transformer import Transformer, TransformerConfig
from glassformer.objectives.loss import linear_cross_entropy
from glassformer.runtime.precision import in_precision
from glassformer.runtime.storage import can_have_weights, has_weights
from glassformer.tasks.alignment import align
from glassformer.tasks.base import ExampleT, Log, Record, StoredPrecision, Task
from glassformer.tasks.confidence import FILE as CONFIDENCE
from glassformer.tasks.confidence import (
    N_BINS,
    Confidence,
    expected_calibration_error,
    right_words,
    word_features,
    words_in,
    words_of,
)
from glassformer.tasks.generation import GeneratesText
from glassformer.tasks.terms import Output, Part, Terms, meet_requirements, terms_of
from glassformer.tasks.texts import Warn, check_texts, no_op
from glassformer.tokens.tokenizer import Tokenizer

# End of a sentence: closing punctuation, optional closing quotes or brackets, then space; or full-width punctuation.
SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’»)\]]*\s+|(?<=[。！？])")

FULL_WIDTH_ENDS = ("。", "！", "？")
"""Ends of sentences that no space follows."""

REPEATED_NGRAMS = (3, 2)
"""Size of the n-grams that occur once only in translations that are decoded again because they repeat themselves; the
second if the first is not sufficient."""

MIN_TOKENS = 16
"""A vocabulary with no more tokens besides bytes does not tell the scripts of the training."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Translation:
    """One translation of one text."""

    source: str
    text: str
    score: float
    """Sum of `log_probs` divided by ((5 + length) / 6)^length_penalty, at most 0. For a text in parts, the sum over the
    parts. transformers divides by length^length_penalty."""
    tokens: list[str]
    log_probs: list[float]
    """Natural log-probability of each token, given the source and the previous tokens."""
    repeated: bool = False
    """A first translation repeated itself ("salad salad salad"), and this one was decoded without repeated n-grams."""
    missing: tuple[str, ...] = ()
    """Terms of the glossary that are in the source and not in the translation."""
    ids: tuple[int, ...] = ()
    """Token ids."""
    words: tuple[tuple[str, float], ...] | None = None
    """If requested: each word of the translation, without protected spans, with the probability that it is right. Words
    of a term that the glossary put in have 1."""
    forced: tuple[str, ...] = ()
    """Forms of terms that the glossary put in."""
    is_untranslated: bool = False
    """The confidence was too low, and the text is the source."""
    alignment: tuple[tuple[int, int], ...] | None = None
    """If requested: pairs of a word of the source and a word of the translation, counted from 0. Words are separated by
    white space."""

    @property
    def confidence(self) -> float | None:
        """Expected fraction of right words, if requested. Without words it is 1 if there was nothing to translate,
        else 0."""
        if self.words is None:
            return None
        return sum(p for _, p in self.words) / len(self.words) if self.words else float(not self.log_probs)


class TranslationRecord(Record, total=False):
    """JSON record of a line: its best translation, with the fields of `Translation`."""

    score: float
    tokens: list[str]
    log_probs: list[float]
    repeated: bool
    """True if a first translation repeated itself, and this one was decoded without repeated n-grams."""
    missing: list[str]
    """Terms of the glossary that are in the source and not in the translation, if there are any."""
    confidence: float
    """Expected fraction of right words, if requested."""
    words: list[list[str | float]]
    """Each word and the probability that it is right, if requested."""
    untranslated: bool
    """True if the confidence was too low; the output is the source."""
    alignment: list[list[int]]
    """Pairs of source and target word, if requested."""
    nbest: list[JsonObject]
    """All translations, best first, if there are several: output, score, tokens and log_probs of each."""


class TextToTextTask(GeneratesText, Task[ExampleT, PairBatch]):
    """Base class of tasks that generate a text from a source text with an encoder-decoder."""

    source_has_end_token = True
    kind = "encoder-decoder"
    static_shapes = True
    can_pack = True
    confidence: Confidence | None = None
    """Confidence of translations, if the folder has it."""

    @classmethod
    def from_folder(cls, folder: Path, config: JsonObject, device: torch.device) -> Self:
        task = super().from_folder(folder, config, device)
        files = checkpoint.read_json(folder / checkpoint.MANIFEST)["files"]
        if CONFIDENCE in files:
            task.confidence = Confidence.from_record(checkpoint.read_json(folder / CONFIDENCE))
        if SHORTLIST in files:
            tensors = checkpoint.read_tensors(folder / SHORTLIST)
            task.shortlist = Shortlist.from_tensors(tensors, task.model.config.vocab_size)
        return task

    def contents(
        self, tensors: dict[str, Tensor] | None = None, *, precision: StoredPrecision = "fp32"
    ) -> dict[str, str | dict[str, Tensor]]:
        contents = super().contents(tensors, precision=precision)
        if self.confidence:
            contents[CONFIDENCE] = checkpoint.to_json(self.confidence.to_record())
        if self.shortlist:
            contents[SHORTLIST] = self.shortlist.to_tensors()
        return contents

    @classmethod
    def build(cls, config: TransformerConfig, tokenizer: Tokenizer, device: torch.device | str = "cpu") -> Self:
        """An untrained translator with weights initialized from torch's random state."""
        return cls(Transformer(config), tokenizer, device)

    def encode(self, examples: Sequence[ExampleT]) -> tuple[list[Row], list[ExampleT]]:
        src, tgt = (self.tokenizer.encode_batch([self.texts(e)[side] for e in examples]) for side in (0, 1))
        limit = self.model.config.max_len
        rows: list[Row] = list(zip(src, tgt, strict=True))
        fits = [max(map(len, row)) < limit for row in rows]
        return list(compress(rows, fits)), [e for e, fit in zip(examples, fits, strict=True) if not fit]

    @property
    def validation_precision(self) -> Literal["auto", "fp32"]:
        """Precision of decoding in `validate`."""
        return "auto" if self.device.type == "cpu" else "fp32"

    @overload
    def __call__(self, texts: str, *extra: object, **options: Unpack[TextOptions]) -> str: ...
    @overload
    def __call__(self, texts: list[str], *extra: object, **options: Unpack[TextOptions]) -> list[str]: ...
    @overload
    def __call__(self, texts: str, *extra: object, **options: Unpack[DecodeOptions]) -> "str | TranslationRecord": ...
    @overload
    def __call__(
        self, texts: list[str], *extra: object, **options: Unpack[DecodeOptions]
    ) -> "list[str] | list[TranslationRecord]": ...
    def __call__(
        self, texts: str | list[str], *extra: object, **options: Unpack[DecodeOptions]
    ) -> "str | list[str] | TranslationRecord | list[TranslationRecord]":
        """Translate a text, or each text of a list. Lines within a text are translated separately.

        Args:
            options: fields of `DecodeConfig`: beam, length_penalty (scores are divided by
                ((5 + length) / 6)^length_penalty), max_length, batch_tokens. With nbest above 1, align or confidence,
                the result of each text is a dictionary, as `translate --json` prints it.

        Raises:
            TypeError: neither a text nor a list of texts.
            ConfigError: a text of several lines, and options whose result is a dictionary.
        """
        lines = [text.split("\n") for text in check_texts(self, texts, *extra)]
        config = DecodeConfig.resolve(options)
        if config.nbest > 1 or config.align or config.confidence:
            if several := next((text for text in lines if len(text) > 1), None):
                raise ConfigError(
                    f"nbest, align and confidence are of single lines, and a text has {len(several)}.\n"
                    "  Give a list of lines: text.splitlines()."
                )
            found = self.translate([text for (text,) in lines], config)
            records = [record_of(nbest) for nbest in found]
            return records[0] if isinstance(texts, str) else records
        flat = self.translate([line for text in lines for line in text], config)
        best = iter(translations[0].text for translations in flat)
        results = ["\n".join(next(best) for _ in text) for text in lines]
        return results[0] if isinstance(texts, str) else results

    def translate(
        self,
        texts: Sequence[str],
        options: DecodeConfig | None = None,
        *,
        max_new_tokens: Callable[[int], int] | None = None,
        progress: Callable[[int], None] = no_op,
        warn: Warn = no_op,
        **keywords: Unpack[DecodeOptions],
    ) -> list[list[Translation]]:
        """Translate texts. Returns the `nbest` translations of each text, best first; that of a blank text is empty.

        Args:
            options: decoding options.
            keywords: the same as keyword arguments, instead of `options` or with precedence over it.
            max_new_tokens: maximum number of generated tokens as a function of the source length in tokens. Default:
                from `options`.
            progress: called with the number of parts completed since the last call.
            warn: called with the index of a text and a message: it was too long and split, it misses terms, or it is
                not translated.
        """
        if isinstance(texts, str):
            raise TypeError("translate(…) takes a list of texts; got str. Write one text as a list: translate([text]).")
        explicit = options.model_dump(include=options.model_fields_set) if options else {}
        options = DecodeConfig.resolve({**explicit, **keywords})
        return self.engine(options).run(self.decoding(texts, options, max_new_tokens, warn), progress)

    def decoding(
        self,
        texts: Sequence[str],
        options: DecodeConfig,
        max_new_tokens: Callable[[int], int] | None = None,
        warn: Warn = no_op,
        terms: Terms | None = None,
    ) -> Decoding[list[list[Translation]]]:
        """`translate` as a decoding, which an engine of the task computes.

        Args:
            terms: terms and protected spans. Default: those of the options.
        """
        terms = terms or terms_of(options)
        if options.shortlist and self.shortlist is None:
            raise ConfigError(
                "this model has no vocabulary shortlist.\n"
                "  Add it: glassformer shortlist FOLDER --src train.en --ref train.fr"
            )
        if options.shortlist and not self.uses_shortlist(options.precision):
            raise ConfigError("shortlist: is used in int8 on a CPU only.\n  Add --precision int8.")
        if (options.confidence or options.min_confidence is not None) and self.confidence is None:
            raise ConfigError(
                "this model has no confidence.\n  Add it: glassformer calibrate FOLDER --src dev.en --ref dev.fr"
            )
        originals, texts = texts, [text.strip() for text in texts]
        marks = ["" if options.prefix else self.list_mark(text) for text in texts]
        texts = [text.removeprefix(mark) for text, mark in zip(texts, marks, strict=True)]
        detached = [terms.take_out(text) if terms else None for text in texts]
        cores = [spans.core if spans else text for text, spans in zip(texts, detached, strict=True)]
        is_kept = [not (options.prefix or self.is_translated(core, terms)) for core in cores]
        parts = [
            part
            for index, (core, kept) in enumerate(zip(cores, is_kept, strict=True))
            if not kept
            for part in self.parts(index, core, terms, partial(warn, index))
        ]
        prefix = self.tokenizer.encode(options.prefix) if options.prefix else []
        limits = [max_new_tokens(len(part.ids)) for part in parts] if max_new_tokens else []
        decoded = yield Sources([part.ids for part in parts], options, limits, prefix=prefix)
        repeated: set[int] = set()
        for n in REPEATED_NGRAMS if options.no_repeat_ngram_size is None and max_new_tokens is None else ():
            repeating = self.repeating(parts, decoded)
            if not repeating:
                break
            repeated |= {parts[i].text for i in repeating}
            other = options.model_copy(update={"no_repeat_ngram_size": n})
            again = yield Sources([parts[i].ids for i in repeating], other, prefix=prefix)
            for i, nbest in zip(repeating, again, strict=True):
                decoded[i] = nbest
        outputs = [[Output(self.text_of(hypothesis), hypothesis) for hypothesis in nbest] for nbest in decoded]
        if any(part.required for part in parts):
            meet_requirements(self, parts, outputs, options, options.prefix or "")
        per_text: list[list[tuple[Part, list[Output]]]] = [[] for _ in texts]
        for part, nbest_of_part in zip(parts, outputs, strict=True):
            per_text[part.text].append((part, nbest_of_part))
        results = [
            [self.join(text, rank, of_text, index in repeated) for rank in range(options.nbest)]
            for index, (text, of_text) in enumerate(zip(texts, per_text, strict=True))
        ]
        for core, kept, nbest_of_text in zip(cores, is_kept, results, strict=True):
            if kept:
                nbest_of_text[:] = [replace(translation, text=core) for translation in nbest_of_text]
        if options.confidence or options.min_confidence is not None:
            results = [[self.with_confidence(translation) for translation in nbest] for nbest in results]
        self.put_back_spans(detached, results)
        for mark, nbest_of_text in zip(marks, results, strict=True):
            if mark:
                nbest_of_text[:] = [replace(t, source=mark + t.source, text=mark + t.text) for t in nbest_of_text]
        for nbest_of_text in results:
            for rank, translation in enumerate(nbest_of_text):
                if options.min_confidence is not None and (translation.confidence or 0) < options.min_confidence:
                    nbest_of_text[rank] = replace(translation, text=translation.source, is_untranslated=True)
        if options.align:
            self.add_alignment(results)
        results = [
            [replace(translation, source=text, text=with_space_of(text, translation.text)) for translation in nbest]
            for text, nbest in zip(originals, results, strict=True)
        ]
        for index, (best, *_) in enumerate(results):
            if best.missing:
                warn(index, f"not in the translation: {', '.join(best.missing)}")
            if best.is_untranslated:
                warn(index, f"not translated: confidence {best.confidence:.2f}")
        return results

    def uses_shortlist(self, precision: str) -> bool:
        """Whether decoding in a precision computes the probabilities of some tokens only."""
        is_int8 = precision not in ("fp32", "bf16") or not has_weights(self.model)
        return is_int8 and isinstance(in_precision(self.model, precision), DecodesTogether)

    def with_confidence(self, translation: Translation) -> Translation:
        """The translation with the probability of each word that it is right."""
        assert self.confidence is not None
        words, owners = words_of(translation.ids, self.tokenizer)
        forced = words_in(translation.forced, words)
        p = self.confidence.probabilities(word_features(words, translation.log_probs, owners, forced))
        p[forced] = 1.0
        return replace(translation, words=tuple(zip(words, p.tolist(), strict=True)))

    def list_mark(self, text: str) -> str:
        """What a text begins with that stays as it is. By default nothing."""
        return ""

    def is_translated(self, text: str, terms: Terms | None) -> bool:
        """Whether the model is given a text; others stay as they are. By default all are."""
        return True

    def parts(self, index: int, text: str, terms: Terms | None, warn: Callable[[str], None]) -> Iterator[Part]:
        """The parts of a text, of at most the maximum length; none for a blank text."""
        if not text.strip():
            return
        several = self.split(text, warn)
        for space, ids in several:
            source = text if len(several) == 1 else self.tokenizer.decode(ids)
            yield Part(index, space, source, [*ids, self.tokenizer.eos_id], terms.required(source) if terms else [])

    def repeating(self, parts: Sequence[Part], decoded: Sequence[Sequence[Hypothesis]]) -> list[int]:
        """Indices of the parts of which a hypothesis repeats itself, if the source does not."""
        return [
            i
            for i, (part, nbest) in enumerate(zip(parts, decoded, strict=True))
            if any(repeats(self.text_of(hypothesis)) for hypothesis in nbest) and not repeats(part.source)
        ]

    def put_back_spans(self, detached: Sequence[Detached | None], results: list[list[Translation]]) -> None:
        """Put the protected spans of texts into their translations."""
        places = [(i, k) for i, spans in enumerate(detached) if spans for k in range(len(results[i]))]
        inner = [place for place in places if detached[place[0]].inner]  # type: ignore[union-attr]
        pairs = [(detached[i].core, results[i][k].text) for i, k in inner]  # type: ignore[union-attr]
        alignments = align(self, *zip(*pairs, strict=True)) if pairs and can_have_weights(self.model) else []
        by_place = dict(zip(inner, alignments, strict=False))
        for i, k in places:
            text = put_back(detached[i], results[i][k].text, by_place.get((i, k), []))  # type: ignore[arg-type]
            results[i][k] = replace(results[i][k], text=text)

    def add_alignment(self, results: list[list[Translation]]) -> None:
        """Add the word alignment to translations."""
        places = [(i, k) for i, nbest in enumerate(results) for k in range(len(nbest))]
        translations = [results[i][k] for i, k in places]
        targets = ["" if t.is_untranslated else t.text for t in translations]
        alignments = align(self, [t.source for t in translations], targets)
        for (i, k), pairs in zip(places, alignments, strict=True):
            results[i][k] = replace(results[i][k], alignment=tuple(pairs))

    def text_of(self, hypothesis: Hypothesis) -> str:
        """The text of a hypothesis."""
        return self.tokenizer.decode(hypothesis.ids).replace("\n", " ")

    def run(self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = no_op) -> list[str]:
        return [nbest[0].text for nbest in self.translate(lines, options, warn=warn)]

    def records(
        self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = no_op
    ) -> list[TranslationRecord]:
        """For each line its translation with score, tokens and log-probabilities, and all of them if nbest > 1."""
        return [record_of(nbest) for nbest in self.translate(lines, options, warn=warn)]

    def join(
        self, source: str, rank: int, parts: Sequence[tuple[Part, Sequence[Output]]], repeated: bool
    ) -> Translation:
        """Join the outputs of rank `rank` of the parts of a text. If a part has fewer, its worst."""
        selected = [(part, nbest[min(rank, len(nbest) - 1)]) for part, nbest in parts]
        hypotheses = [output.hypothesis for _, output in selected]
        text = ""
        for part, output in selected:
            text += (part.space or ("" if text.endswith(FULL_WIDTH_ENDS) else " ") if text else "") + output.text
        return Translation(
            source=source,
            text=text,
            score=sum(hypothesis.score for hypothesis in hypotheses),
            tokens=[self.tokenizer.token(i) for hypothesis in hypotheses for i in hypothesis.ids],
            log_probs=[p for hypothesis in hypotheses for p in hypothesis.log_probs],
            ids=tuple(i for hypothesis in hypotheses for i in hypothesis.ids),
            repeated=repeated,
            forced=tuple(form for _, output in selected for form in output.forced),
            missing=tuple("|".join(r.targets) for part, output in selected for r in unmet(part.required, output.text)),
        )

    def split(self, text: str, warn: Callable[[str], None]) -> list[tuple[str, list[int]]]:
        """Split a text into parts of at most the maximum length, at sentence ends, or at word ends within a sentence
        that is too long. Returns the white space before each part and its token ids.
        """
        limit = self.model.config.max_len - 1
        ids = self.tokenizer.encode(text)
        if len(ids) <= limit:
            return [("", ids)]
        parts: list[tuple[str, list[int]]] = []
        cut_inside = False
        for space, sentence in split_text(SENTENCE_END, text):
            first, *rest = self.split_ids(self.tokenizer.encode(sentence), limit)
            if parts and len(parts[-1][1]) + len(first) <= limit:
                parts[-1][1].extend(first)
            else:
                parts.append((space if parts else "", first))
            parts += [(" ", ids) for ids in rest]
            cut_inside |= bool(rest)
        where = "within a sentence that is too long" if cut_inside else "at sentence ends"
        warn(f"longer than the maximum length of {limit} tokens: translated in {len(parts)} parts, split {where}")
        return parts

    def split_ids(self, ids: list[int], limit: int) -> Iterator[list[int]]:
        """Split token ids into parts of at most `limit`, before a word start in the second half of the part if any."""
        while len(ids) > limit:
            word_starts = (i for i in range(limit, limit // 2, -1) if self.tokenizer.starts_word(ids[i]))
            end = next(word_starts, limit)
            yield ids[:end]
            ids = ids[end:]
        yield ids

    def score(self, sources: Sequence[str], targets: Sequence[str], *, batch_tokens: int = 2048) -> list[list[float]]:
        """Natural log-probabilities of the target tokens, including the end token, given the source.

        Sources and targets are truncated to the maximum length.
        """
        limit = self.model.config.max_len - 1
        pairs = [
            (src[:limit], tgt[:limit])
            for src, tgt in zip(self.tokenizer.encode_batch(sources), self.tokenizer.encode_batch(targets), strict=True)
        ]
        results: list[list[float]] = [[] for _ in pairs]
        for indices in batches_by_length([max(len(src), len(tgt)) + 1 for src, tgt in pairs], batch_tokens):
            batch = self.batch([pairs[i] for i in indices]).to(self.device)
            with torch.inference_mode():
                logits = self.model.logits(self.model(batch.src, batch.tgt_in))
                log_probs = logits.log_softmax(-1).gather(-1, batch.tgt_out[..., None])[..., 0]
            for i, values in zip(indices, log_probs.tolist(), strict=True):
                results[i] = values[: len(pairs[i][1]) + 1]
        return results

    def reference_loss(self, examples: Sequence[ExampleT]) -> float:
        """Mean negative log-probability of the tokens of the references, in nats. See `map_parts`."""

        def sums(pairs: list[Sequence[str]]) -> list[tuple[float, int]]:
            rows = self.score([src for src, _ in pairs], [tgt for _, tgt in pairs])
            return [(sum(log_probs), len(log_probs)) for log_probs in rows]

        results = self.map_parts(sums, [self.texts(example) for example in examples])
        return -sum(total for total, _ in results) / sum(n for _, n in results)

    def batch(self, rows: Sequence[Row]) -> PairBatch:
        """Collate pairs of token ids to a batch."""
        t = self.tokenizer
        return make_batch(rows, pad_id=t.pad_id, bos_id=t.bos_id, eos_id=t.eos_id)

    def packed_batch(self, rows: Sequence[Row], n_tokens: int, n_sequences: int, longest: int) -> PairBatch:
        t = self.tokenizer
        return pack_pairs(rows, n_tokens, n_sequences, longest, pad_id=t.pad_id, bos_id=t.bos_id, eos_id=t.eos_id)

    def loss(self, batch: PairBatch, *, label_smoothing: float = 0.0) -> Tensor:
        """Label-smoothed cross-entropy, summed over the target tokens of a batch, in nats."""
        # Not all encoder-decoders take packed sequences.
        spans = () if batch.src_spans is None else (batch.src_spans, batch.tgt_spans)
        hidden = self.model(batch.src, batch.tgt_in, *spans).flatten(0, 1)
        return linear_cross_entropy(
            hidden.index_select(0, batch.target_positions),
            self.model.output_weight,
            batch.tgt_out.flatten().index_select(0, batch.target_positions),
            label_smoothing=label_smoothing,
            bias=self.model.output_bias,
            token_weights=batch.target_weights,
        )


class Translator(TextToTextTask[Example]):
    """Translation: an encoder-decoder with its tokenizer."""

    name = "translation"
    pipeline_tag = "translation"
    pipelines = ("translation", "text2text-generation")
    command = "translate"
    too_long_advice = "--task summarization truncates long texts, if the targets are summaries"
    example_type = Example
    examples_name = "pairs"
    metric = "bleu"
    output_type = "texts"
    validation_decodes = True
    stored_attributes = ("languages", "scripts")
    languages: tuple[str, ...] = ()
    """Codes of source and target language; empty if they are not known."""
    scripts: tuple[str, ...] = ()
    """Scripts of the sources of the training (`corpora.words.source_scripts`); empty in older and imported folders."""
    detection: LanguageProfiles | None = None
    """What the server detects the languages by, if the folder has it."""

    @classmethod
    def from_folder(cls, folder: Path, config: JsonObject, device: torch.device) -> Self:
        task = super().from_folder(folder, config, device)
        if LANGUAGE_PROFILES in checkpoint.read_json(folder / checkpoint.MANIFEST)["files"]:
            task.detection = LanguageProfiles.from_json((folder / LANGUAGE_PROFILES).read_text("utf-8"))
        return task

    def contents(
        self, tensors: dict[str, Tensor] | None = None, *, precision: StoredPrecision = "fp32"
    ) -> dict[str, str | dict[str, Tensor]]:
        contents = super().contents(tensors, precision=precision)
        if self.detection:
            contents[LANGUAGE_PROFILES] = self.detection.to_json()
        return contents

    def configure(self, config: TrainConfig) -> None:
        self.languages = languages_of(config.src, config.tgt, config.keys, config.languages)

    def fit_statistics(self, data: Dataset) -> None:
        """Find the scripts of the sources, in addition to those of the model that the training starts from."""
        self.scripts = tuple(sorted({*self.scripts, *source_scripts(zip(*self.sample(data), strict=True))}))

    def sample(self, data: Dataset) -> tuple[list[str], list[str]]:
        """Sources and targets of a training set: `MAX_SENTENCES` evenly spaced ones."""
        rows = data.rows(np.array(evenly_spaced(range(len(data)), MAX_SENTENCES)))
        src, tgt = ([self.tokenizer.decode(list(row[side])) for row in rows] for side in (0, 1))
        return src, tgt

    @cached_property
    def scripts_of_vocabulary(self) -> tuple[str, ...] | None:
        """The scripts of the tokens; None if the vocabulary does not tell, as that of a byte-level tokenizer."""
        special = self.tokenizer.backend.get_added_tokens_decoder()
        texts = (self.tokenizer.token(i) for i in range(self.tokenizer.vocab_size) if i not in special)
        tokens = [text for text in texts if (len(text) > 1 or not text.isascii()) and "\ufffd" not in text]
        return tuple(sorted(scripts_of(tokens))) if len(tokens) > MIN_TOKENS else None

    def list_mark(self, text: str) -> str:
        return list_mark(text)

    def is_translated(self, text: str, terms: Terms | None) -> bool:
        """Whether a text has words in a script of the training, or a term."""
        scripts = self.scripts or self.scripts_of_vocabulary
        return has_words(text, scripts) or bool(terms and terms.required(text))

    @classmethod
    def read(
        cls, src: Sequence[Path], tgt: Sequence[Path], options: ReadOptions = DETECT, log: Log | None = None
    ) -> Iterator[Example]:
        """Read the pairs with text on both sides. `log` is called with a warning for each type of problem found."""
        checker = PairChecker(n_shown=1) if log else None
        for example in read_pairs(src, tgt, format=options.format, keys=options.keys, log=log):
            if checker:
                checker.check(example)
            if example.src.strip() and example.tgt.strip():
                yield example
        if log and checker:
            for problem, _, n, first_location, explanation in checker.diagnosis().rows():
                left_out = " left out" if problem in ("blank-side", "blank-both") else ""
                log(f"warning: {problem}: {n:,}{left_out}: {explanation} ({first_location})")
            if checker.diagnosis().counts:
                log("`glassformer doctor` lists all such lines and can repair most of them.")

    @classmethod
    def texts(cls, example: Example) -> Sequence[str]:
        return example.src, example.tgt

    def evaluate(
        self,
        examples: Sequence[Example],
        options: DecodeConfig | None = None,
        *,
        tokenize: str = "13a",
        lowercase: bool = False,
        progress: Callable[[int], None] = no_op,
    ) -> tuple[list[str], list[Score]]:
        """Best translations, and their BLEU, chrF, TER and fraction of exact matches with the references."""
        translations = self.translate([example.src for example in examples], options, progress=progress)
        hypotheses, references = [nbest[0].text for nbest in translations], self.references(examples)
        return hypotheses, [
            *translation_scores(hypotheses, references, tokenize=tokenize, lowercase=lowercase),
            *scores("texts", hypotheses, references),
            *self.calibration([nbest[0] for nbest in translations], references),
        ]

    def calibration(self, translations: Sequence[Translation], references: Sequence[str]) -> list[Score]:
        """Expected calibration error of the confidence of words, if the folder has confidence."""
        if self.confidence is None:
            return []
        words = [self.with_confidence(translation).words or () for translation in translations]
        rights = [
            right_words([word for word, _ in of_line], ref) for of_line, ref in zip(words, references, strict=True)
        ]
        p, is_right = [p for of_line in words for _, p in of_line], [right for of_line in rights for right in of_line]
        return [Score("ECE", expected_calibration_error(p, is_right), f"bins:{N_BINS}|of:words")]

    @classmethod
    def references(cls, examples: Sequence[Example]) -> list[str]:
        return [example.tgt for example in examples]

    @classmethod
    def bootstrap_statistics(
        cls, outputs: Sequence[str], examples: Sequence[Example]
    ) -> dict[str, tuple[NDArray[np.float64], MetricFn]]:
        bleu = {"BLEU": (bleu_statistics(outputs, cls.references(examples)), bleu_from)}
        return bleu | super().bootstrap_statistics(outputs, examples)

    def validate(self, examples: Sequence[Example], n_decoded: int | None = None) -> dict[str, float]:
        """BLEU of greedy translations, and the mean negative log-probability of the reference tokens in nats.

        Args:
            n_decoded: decode this many of the examples, evenly spaced; the loss is that of all. Default: all.
        """
        decoded = evenly_spaced(examples, n_decoded)
        options = DecodeConfig(beam=1, batch_tokens=4096, precision=self.validation_precision)

        def best_translations(sources: list[str]) -> list[str]:
            # Early in training, models often do not generate the end token: limit the time of a validation.
            translations = self.translate(sources, options, max_new_tokens=lambda n_tokens: 2 * n_tokens + 10)
            return [nbest[0].text for nbest in translations]

        hypotheses = self.map_parts(best_translations, [example.src for example in decoded])
        return {"bleu": bleu(hypotheses, [example.tgt for example in decoded]), "loss": self.reference_loss(examples)}


def evenly_spaced(items: Sequence[Item], n: int | None) -> Sequence[Item]:
    """n evenly spaced items in order, so that a sample of sorted items is representative. None: all items."""
    return items if n is None or n >= len(items) else [items[i * len(items) // n] for i in range(n)]


def record_of(nbest: Sequence[Translation]) -> TranslationRecord:
    """JSON record of the translations of one text, best first."""
    best = nbest[0]
    record: TranslationRecord = {
        "input": best.source,
        "output": best.text,
        "score": best.score,
        "tokens": best.tokens,
        "log_probs": best.log_probs,
    }
    if best.repeated:
        record["repeated"] = True
    if best.missing:
        record["missing"] = list(best.missing)
    if best.confidence is not None and best.words is not None:
        record["confidence"] = best.confidence
        if not best.is_untranslated:  # they are those of the translation
            record["words"] = [list(pair) for pair in best.words]
    if best.is_untranslated:
        record["untranslated"] = True
    if best.alignment is not None:
        record["alignment"] = [list(pair) for pair in best.alignment]
    if len(nbest) > 1:
        record["nbest"] = [
            {"output": t.text, "score": t.score, "tokens": t.tokens, "log_probs": t.log_probs} for t in nbest
        ]
    return record


def split_text(separator: re.Pattern[str], text: str) -> Iterator[tuple[str, str]]:
    """Parts of a text that end with a match of `separator`, each with the white space before it."""
    end = 0
    for stop in [*(match.end() for match in separator.finditer(text)), len(text)]:
        if part := text[end:stop].strip():
            start = text.index(part, end)
            yield text[end:start], part
            end = start + len(part)


def with_space_of(text: str, translation: str) -> str:
    """A translation with the white space around its source; for a blank text, the text."""
    core = text.strip()
    return translation.join(text.split(core, 1)) if core else text
