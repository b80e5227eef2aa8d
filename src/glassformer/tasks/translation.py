"""Translation with encoder-decoder models."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from glassformer import checkpoint
from glassformer.config import JsonObject
from glassformer.corpora.example import Example
from glassformer.corpora.language_id import FILE as LANGUAGE_PROFILES
from glassformer.corpora.language_id import LanguageProfiles
from glassformer.corpora.read_options import DETECT, ReadOptions
from glassformer.corpora.spelling import FILE as WORDS
from glassformer.corpora.spelling import KnownWords, Reading
from glassformer.corpora.words import has_words, list_mark, scripts_of
from glassformer.decode_config import DecodeConfig, DecodeOptions
from glassformer.devices import Device
from glassformer.documents.document import Only
from glassformer.documents.exchange import Exchange
from glassformer.manifest import MANIFEST, read_json
from glassformer.tasks.base import Log, StoredPrecision, stored_number
from glassformer.tasks.casing import recased
from glassformer.tasks.confidence import N_BINS, expected_calibration_error, right_words
from glassformer.tasks.steps import with_confidence
from glassformer.tasks.terms import Terms
from glassformer.tasks.text_to_text import TextToTextTask
from glassformer.tasks.texts import no_op
from glassformer.tasks.translated import Translation

if TYPE_CHECKING:
    from torch import Tensor

    from glassformer.metrics import Score
    from glassformer.metrics.score import MetricFn
    from glassformer.tasks.files import TranslatedFile

MIN_TOKENS = 16
"""A vocabulary with no more tokens besides bytes does not tell the scripts of the training."""


class Translator(TextToTextTask[Example]):
    """Translation: an encoder-decoder with its tokenizer."""

    name = "translation"
    pipeline_tag = "translation"
    pipelines = ("translation", "text2text-generation")
    command = "translate"
    example_type = Example
    examples_name = "pairs"
    read_options = ("format", "keys", "skip_bad", "fuzzy", "languages")
    output_type = "texts"
    stored_attributes = ("languages", "scripts", "sentences_at_once")
    languages: tuple[str, ...] = ()
    """Codes of source and target language; empty if they are not known."""
    scripts: tuple[str, ...] = ()
    """Scripts of the sources of the training (`corpora.words.source_scripts`); empty in older and imported folders."""
    sentences_at_once: tuple[str, ...] = ()
    """Number of sentences that a text is translated at a time (`splitting.sentences_at_once`); empty in older and
    imported folders: any number."""
    detection: LanguageProfiles | None = None
    """What the server detects the languages by, if the folder has it."""
    words: KnownWords | None = None
    """The words of the sources of the training, if the folder has them."""

    @classmethod
    def from_folder(cls, folder: Path, config: JsonObject, device: Device) -> Self:
        task = super().from_folder(folder, config, device)
        files = read_json(folder / MANIFEST)["files"]
        if LANGUAGE_PROFILES in files:
            task.detection = LanguageProfiles.of_file(folder / LANGUAGE_PROFILES)
        if WORDS in files:
            task.words = KnownWords.of_file(folder / WORDS)
        return task

    def contents(
        self, tensors: "dict[str, Tensor] | None" = None, *, precision: StoredPrecision = "fp32"
    ) -> dict[str, str | checkpoint.Arrays]:
        contents = super().contents(tensors, precision=precision)
        if self.detection:
            contents[LANGUAGE_PROFILES] = self.detection.to_json()
        if self.words:
            contents[WORDS] = checkpoint.to_json(self.words.to_record())
        return contents

    @cached_property
    def scripts_of_vocabulary(self) -> tuple[str, ...] | None:
        """The scripts of the tokens; None if the vocabulary does not tell, as that of a byte-level tokenizer."""
        special = self.tokenizer.backend.get_added_tokens_decoder()
        texts = (self.tokenizer.token(i) for i in range(self.tokenizer.vocab_size) if i not in special)
        tokens = [text for text in texts if (len(text) > 1 or not text.isascii()) and "\ufffd" not in text]
        return tuple(sorted(scripts_of(tokens))) if len(tokens) > MIN_TOKENS else None

    @property
    def n_sentences(self) -> int:
        return stored_number(self.sentences_at_once)

    def list_mark(self, text: str) -> str:
        return list_mark(text)

    def language(self, side: int) -> str:
        return self.languages[side].lower().replace("_", "-").partition("-")[0] if len(self.languages) == 2 else ""

    def recased(self, text: str, side: int = 0) -> str:
        return recased(text, self.tokenizer.sides[side], self.language(side))

    def readings(self, text: str, terms: Terms | None) -> list[Reading]:
        """The words of a source with typing errors, see `KnownWords.readings`. Those of terms stay."""
        spans = [(term.start, term.end) for term in terms.required(text)] if terms else []
        return self.words.readings(text, spans) if self.words else []

    def is_translated(self, text: str, terms: Terms | None) -> bool:
        """Whether a text has words in a script of the training, or a term."""
        scripts = self.scripts or self.scripts_of_vocabulary
        return has_words(text, scripts) or bool(terms and terms.required(text))

    @classmethod
    def read(
        cls, src: Sequence[Path], tgt: Sequence[Path], options: ReadOptions = DETECT, log: Log | None = None
    ) -> Iterator[Example]:
        """Read the pairs with text on both sides. `log` is called with a warning for each type of problem found."""
        from glassformer.corpora.corpus import read_pairs
        from glassformer.corpora.doctor.diagnosis import PairChecker
        from glassformer.corpora.pair_formats import format_of

        checker = PairChecker(n_shown=1) if log else None
        for example in read_pairs(src, tgt, **asdict(options), log=log):
            if checker:
                checker.check(example)
            if example.has_both_sides:
                yield example
        if log and checker:
            for problem, _, n, first_location, explanation in checker.diagnosis().rows():
                left_out = " left out" if problem in ("blank-side", "blank-both") else ""
                log(f"warning: {problem}: {n:,}{left_out}: {explanation} ({first_location})")
            formats = {options.format or format_of(path) for path in src}
            if checker.diagnosis().counts and "catalogue" not in formats:  # `doctor` does not read these
                first = "After the archive is extracted, " if "archive" in formats else ""
                log(f"{first}`glassformer doctor` lists all such lines and can repair most of them.")

    @classmethod
    def texts(cls, example: Example) -> Sequence[str]:
        return example.src, example.tgt

    def translate_file(
        self,
        path: str | Path,
        out: str | Path,
        *,
        only: Only = "empty",
        to: Exchange | None = None,
        **options: Unpack[DecodeOptions],
    ) -> "TranslatedFile":
        """Translate a file of Office, OpenDocument, HTML, Markdown, subtitles, PO, XLIFF, TMX and others.

        Args:
            path: the file; its suffix says what it is.
            out: the translated file, which must not exist.
            only: which entries of PO, XLIFF and TMX are translated: those without a translation, also fuzzy ones, or
                all that are not locked.
            to: write the texts and their translations as TMX or XLIFF, instead of the file.
            options: fields of `DecodeConfig`. With min_confidence, less confident translations are marked in PO and
                XLIFF; in other files the text stays as it is.

        Raises:
            UserError: the file cannot be read, has other languages, or `out` cannot be written.
        """
        from glassformer.tasks.files import read_file, translate_document, write_new

        document = read_file(Path(path), self.languages)
        data, done = translate_document(
            self, document, DecodeConfig.resolve(options), only=only, to=to, name=Path(path).name
        )
        write_new(Path(out), data)
        return replace(done, path=Path(out))

    def evaluate(
        self,
        examples: Sequence[Example],
        options: DecodeConfig | None = None,
        *,
        tokenize: str | None = None,
        lowercase: bool = False,
        progress: Callable[[int], None] = no_op,
    ) -> "tuple[list[str], list[Score]]":
        """Best translations, and their BLEU, chrF, TER and fraction of exact matches with the references."""
        translations = self.translate([example.src for example in examples], options, progress=progress)
        hypotheses, references = [nbest[0].text for nbest in translations], self.references(examples)
        return hypotheses, [
            *self.scores_of(hypotheses, examples, tokenize=tokenize, lowercase=lowercase),
            *self.calibration([nbest[0] for nbest in translations], references),
        ]

    @classmethod
    def scores_of(
        cls,
        hypotheses: Sequence[str],
        examples: Sequence[Example],
        *,
        tokenize: str | None = None,
        lowercase: bool = False,
    ) -> "list[Score]":
        """BLEU, chrF, TER and fraction of exact matches of translations with the references."""
        from glassformer.metrics import translation_scores
        from glassformer.metrics.registry import scores

        references = cls.references(examples)
        return [
            *translation_scores(hypotheses, references, tokenize=tokenize, lowercase=lowercase),
            *scores("texts", hypotheses, references),
        ]

    def calibration(self, translations: Sequence[Translation], references: Sequence[str]) -> "list[Score]":
        """Expected calibration error of the confidence of words, if the folder has confidence."""
        if self.confidence is None:
            return []
        from glassformer.metrics import Score

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
        cls,
        outputs: Sequence[str],
        examples: Sequence[Example],
        classes: Sequence[str] | None = None,
        *,
        tokenize: str | None = None,
        lowercase: bool = False,
    ) -> "dict[str, tuple[NDArray[np.float64], MetricFn]]":
        from glassformer.metrics.translation import bleu_from, bleu_statistics

        rows = bleu_statistics(outputs, cls.references(examples), tokenize=tokenize, lowercase=lowercase)
        return {"BLEU": (rows, bleu_from)} | super().bootstrap_statistics(outputs, examples, classes)
