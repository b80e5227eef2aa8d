"""Translation and other text-to-text tasks with encoder-decoder models."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
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
from glassformer.corpora.words import has_words, list_mark, scripts_of, source_scripts
from glassformer.data.dataset import Dataset
from glassformer.data.pairs import PairBatch, make_batch, pack_pairs
from glassformer.data.ragged import Row
from glassformer.errors import ConfigError
from glassformer.generate.batches import batches_by_length
from glassformer.generate.request import Decoding
from glassformer.generate.search import Hypothesis
from glassformer.generate.shortlist import FILE as SHORTLIST
from glassformer.generate.shortlist import Shortlist
from glassformer.keyword_options import DecodeOptions, TextOptions
from glassformer.metrics import Score, bleu, translation_scores
from glassformer.metrics.registry import scores
from glassformer.metrics.score import MetricFn
from glassformer.metrics.translation import bleu_from, bleu_statistics
from glassformer.models.decoding import decodable
from glassformer.models.transformer import Transformer, TransformerConfig
from glassformer.objectives.loss import linear_cross_entropy
from glassformer.runtime.precision import in_precision
from glassformer.runtime.storage import has_weights
from glassformer.tasks.base import ExampleT, Log, StoredPrecision, Task
from glassformer.tasks.confidence import FILE as CONFIDENCE
from glassformer.tasks.confidence import (
    N_BINS,
    Confidence,
    expected_calibration_error,
    right_words,
)
from glassformer.tasks.generation import GeneratesText
from glassformer.tasks.steps import translated, with_confidence
from glassformer.tasks.terms import Terms, terms_of
from glassformer.tasks.texts import Warn, check_texts, no_op
from glassformer.tasks.translated import Translation, TranslationRecord, record_of
from glassformer.tokens.tokenizer import Tokenizer

MIN_TOKENS = 16
"""A vocabulary with no more tokens besides bytes does not tell the scripts of the training."""

Item = TypeVar("Item")


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
            arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
            task.shortlist = Shortlist.from_tensors(arrays, task.model.config.vocab_size)
        return task

    def contents(
        self, tensors: dict[str, Tensor] | None = None, *, precision: StoredPrecision = "fp32"
    ) -> dict[str, checkpoint.FileContent]:
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
        return translated(self, texts, options, max_new_tokens, warn, terms or terms_of(options))

    def uses_shortlist(self, precision: str) -> bool:
        """Whether decoding in a precision computes the probabilities of some tokens only."""
        is_int8 = precision not in ("fp32", "bf16") or not has_weights(self.model)
        return is_int8 and decodable(in_precision(self.model, precision)).joins

    def list_mark(self, text: str) -> str:
        """What a text begins with that stays as it is. By default nothing."""
        return ""

    def is_translated(self, text: str, terms: Terms | None) -> bool:
        """Whether the model is given a text; others stay as they are. By default all are."""
        return True

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
    ) -> dict[str, checkpoint.FileContent]:
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
        words = [with_confidence(self, translation).words or () for translation in translations]
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
