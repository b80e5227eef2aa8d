"""Text-to-text tasks with encoder-decoder models."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, overload

from glassformer import checkpoint
from glassformer.config import JsonObject
from glassformer.corpora.columns import is_language
from glassformer.corpora.spelling import Reading
from glassformer.decode_config import TRANSLATION, DecodeConfig, DecodeOptions, TextOptions
from glassformer.devices import Device
from glassformer.documents.languages import differing
from glassformer.errors import ConfigError
from glassformer.generate.ensemble import Ensemble
from glassformer.generate.protocol import Decodable
from glassformer.generate.request import Decoding
from glassformer.generate.search import Hypothesis
from glassformer.generate.shortlist import FILE as SHORTLIST
from glassformer.generate.shortlist import Shortlist
from glassformer.manifest import MANIFEST, read_json
from glassformer.model_config import TransformerConfig
from glassformer.runtime.arrays import read_arrays
from glassformer.tasks.base import ExampleT, StoredPrecision, Task
from glassformer.tasks.confidence import FILE as CONFIDENCE
from glassformer.tasks.confidence import Confidence
from glassformer.tasks.generation import GeneratesText
from glassformer.tasks.steps import translated
from glassformer.tasks.terms import Terms, terms_of
from glassformer.tasks.texts import Warn, check_texts, no_op, python_warning
from glassformer.tasks.translated import Translation, TranslationRecord, record_of
from glassformer.tokens.tokenizer import Tokenizer

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class TextToTextTask(GeneratesText, Task[ExampleT]):
    """Base class of tasks that generate a text from a source text with an encoder-decoder."""

    source_has_end_token = True
    kind = "encoder-decoder"
    option_groups = TRANSLATION
    confidence: Confidence | None = None
    """Confidence of translations, if the folder has it."""
    others: tuple["TextToTextTask[Any]", ...] = ()
    """The other members of an ensemble, see `with_members`."""

    @classmethod
    def from_folder(cls, folder: Path, config: JsonObject, device: Device) -> Self:
        task = super().from_folder(folder, config, device)
        files = read_json(folder / MANIFEST)["files"]
        if CONFIDENCE in files:
            task.confidence = Confidence.from_record(read_json(folder / CONFIDENCE))
        if SHORTLIST in files:
            task.shortlist = Shortlist.from_tensors(read_arrays(folder / SHORTLIST), task.config.vocab_size)
        return task

    def contents(
        self, tensors: "dict[str, Tensor] | None" = None, *, precision: StoredPrecision = "fp32"
    ) -> dict[str, str | checkpoint.Arrays]:
        contents = super().contents(tensors, precision=precision)
        if self.confidence:
            contents[CONFIDENCE] = checkpoint.to_json(self.confidence.to_record())
        if self.shortlist:
            contents[SHORTLIST] = self.shortlist.to_tensors()
        return contents

    @classmethod
    def build(cls, config: TransformerConfig, tokenizer: Tokenizer, device: "torch.device | str" = "cpu") -> Self:
        """An untrained translator with weights initialized from torch's random state."""
        from glassformer.models.transformer import Transformer

        return cls(Transformer(config), tokenizer, device)

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
        terms = terms or terms_of(options, getattr(self, "languages", ()))
        return translated(self, texts, options, max_new_tokens, warn, terms)

    def with_members(self, others: "Sequence[TextToTextTask[Any]]") -> Self:
        """This task, whose texts are from now on decoded by an ensemble: with the mean of the probabilities of its
        model and of the models of other tasks. Alignment, confidence and scores of given texts are of its own model.

        Raises:
            ConfigError: another model has another vocabulary or another direction, or is this one.
        """
        members: list[TextToTextTask[Any]] = [self, *others]
        folders = [task.source.stored.folder.resolve() for task in members if task.source.stored]
        if twice := next((folder for folder in folders if folders.count(folder) > 1), None):
            raise ConfigError(f"{twice}: is in the ensemble twice.\n  Name other models, for instance of other --seed.")
        for other in others:
            name = other.source.stored.folder if other.source.stored else other
            advice = "The models of an ensemble must translate in the same direction: name other models."
            other.check_direction(getattr(self, "languages", ()), advice)
            if other.tokenizer.files() != self.tokenizer.files():
                raise ConfigError(
                    f"{name}: has another vocabulary than the first model of the ensemble.\n"
                    "  Its models must be trained on the same files with the same --tokenizer and --vocab-size, for"
                    " instance with other --seed."
                )
            if other.config.max_len < self.config.max_len:
                raise ConfigError(
                    f"{name}: its texts have at most {other.config.max_len} tokens, those of the first model of the"
                    f" ensemble {self.config.max_len}.\n  Name it first."
                )
        self.others = tuple(others)
        return self

    def check_direction(self, languages: Sequence[str], advice: str) -> None:
        """Check that the model translates from and to given languages. Those that are not known, and suffixes of files
        that are no languages, are not compared.

        Args:
            languages: source and target language; empty if they are not known.
            advice: how to fix it, for the message.

        Raises:
            ConfigError: the model has another source or target language.
        """
        own: Sequence[str] = getattr(self, "languages", ())
        are_known = len(own) == len(languages) == 2 and all(map(is_language, (*own, *languages)))
        if are_known and differing((own[0], own[1]), (languages[0], languages[1])):
            name = self.source.stored.folder if self.source.stored else self
            raise ConfigError(
                f"{name}: translates from {own[0]} to {own[1]}, but a model from {languages[0]} to {languages[1]} is"
                f" needed.\n  {advice}"
            )

    def decodable(self, precision: str) -> Decodable:
        members: list[Decodable] = [task.source.in_precision(precision) for task in (self, *self.others)]
        return Ensemble(members) if self.others else members[0]

    def uses_shortlist(self, precision: str) -> bool:
        """Whether decoding in a precision computes the probabilities of some tokens only."""
        model = self.source.in_precision(precision)
        return bool(model.joins) and model.is_quantized

    @property
    def n_sentences(self) -> int:
        """Number of sentences of a text that are given to the model at once. 0, the default: any number."""
        return 0

    def list_mark(self, text: str) -> str:
        """What a text begins with that stays as it is. By default nothing."""
        return ""

    def is_translated(self, text: str, terms: Terms | None) -> bool:
        """Whether the model is given a text; others stay as they are. By default all are."""
        return True

    def language(self, side: int) -> str:
        """Code of the language of the sources (0) or of the translations (1); empty if it is not known."""
        return ""

    def recased(self, text: str, side: int = 0) -> str:
        """A source (0) or a translation (1) in the case that the model knows best. By default as it is."""
        return text

    def readings(self, text: str, terms: Terms | None) -> list[Reading]:
        """The words of a source that are taken for others, the last one first. By default none."""
        return []

    def text_of(self, hypothesis: Hypothesis) -> str:
        """The text of a hypothesis."""
        return self.tokenizer.decode(hypothesis.ids).replace("\n", " ")

    def run(
        self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = python_warning
    ) -> list[str]:
        return [nbest[0].text for nbest in self.translate(lines, options, warn=warn)]

    def records(
        self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = python_warning
    ) -> list[TranslationRecord]:
        """For each line its translation with score, tokens and log-probabilities, and all of them if nbest > 1."""
        return [record_of(nbest) for nbest in self.translate(lines, options, warn=warn)]

    def score(
        self, sources: Sequence[str], targets: Sequence[str], warn: Warn = python_warning, tag: Sequence[int] = ()
    ) -> list[list[float]]:
        """Natural log-probabilities of the target tokens, including the end token, given the source, in fp32.

        Sources and targets are truncated to the maximum length.

        Args:
            warn: called with the index of a pair that was truncated. Default: a Python warning.
            tag: token ids before each source.
        """
        limit, eos_id = self.config.max_len - 1, self.tokenizer.eos_id
        sides = [t.encode_batch(texts) for t, texts in zip(self.tokenizer.sides, (sources, targets), strict=True)]
        sides[0] = [[*tag, *ids] for ids in sides[0]]
        for i, pair in enumerate(zip(*sides, strict=True)):
            if max(map(len, pair)) > limit:
                warn(i, f"longer than the maximum length of {limit} tokens: its end was cut off")
        src, tgt = ([ids[:limit] for ids in side] for side in sides)
        return self.log_probs([[*ids, eos_id] for ids in src], [[*ids, eos_id] for ids in tgt], range(len(tgt)))

    def log_probs(
        self,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        source_of: Sequence[int],
        precision: str | None = None,
    ) -> list[list[float]]:
        """Natural log-probabilities of the target tokens.

        Args:
            sources: token ids, including the end-of-sentence token.
            targets: token ids, including the end-of-sentence token.
            source_of: index of the source of each target.
            precision: precision of inference. Default: fp32, see `TaskModel.in_fp32`.
        """
        inputs = [[self.config.bos_id, *target[:-1]] for target in targets]
        model = self.source.in_fp32 if precision is None else self.source.in_precision(precision)
        log_probs: list[list[float]] = model.score(inputs, targets, sources, source_of) if targets else []
        return log_probs
