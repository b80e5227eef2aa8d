"""Options of decoding, in groups: what a task has of them is in `Task.option_groups`. Command line, environment, Python
and the server take them from here.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Literal, Self, TypedDict

from pydantic import Field, model_validator

from glassformer.config import ENVIRONMENT_PREFIX, TRANSFORMERS_NAMES, Config
from glassformer.errors import ConfigError
from glassformer.limits import MAX_TOKENS

Precision = Literal["auto", "fp32", "bf16", "int8"]
"""Arithmetic of inference."""


class OptionGroup(Config):
    """Base class of the groups."""

    used_by: ClassVar[str]
    """What has the options, for messages."""


class InferenceConfig(OptionGroup):
    """What inference of any model takes."""

    used_by = "all models"

    precision: Precision = Field(
        default="fp32",
        description="Arithmetic. int8: 8-bit linear layers, on a CPU. bf16: for hardware that has it; the output may"
        " depend on the batch. auto: the faster of int8 and fp32 on a CPU, measured; on a GPU bf16 if it has it.",
    )


class SearchConfig(OptionGroup):
    """The search, and what its outputs may be."""

    used_by = "models that generate text"

    beam: int = Field(
        default=4,
        ge=1,
        le=64,
        description="Beam size; 1 = greedy search. Default: 4; for summaries 1; language models sample.",
    )
    length_penalty: float = Field(
        default=1.0,
        ge=0,
        le=5,
        description="Exponent alpha: scores are divided by ((5 + length) / 6)^alpha (transformers: length^alpha).",
    )
    max_length: int | None = Field(
        default=None,
        ge=1,
        le=MAX_TOKENS,
        description="Maximum number of output tokens. Default: source length + 50; for language models 256 and for"
        " summaries 128 or the longest of the training, at most half of the maximum length of the model.",
    )
    min_length: int = Field(default=0, ge=0, le=MAX_TOKENS, description="Minimum number of output tokens.")
    no_repeat_ngram_size: int | None = Field(
        default=None,
        ge=0,
        description="No n-gram of this size occurs twice in the output; 0: off. Default: 6 for summaries; 3, then"
        " 2, for translations that repeat themselves, which are decoded again.",
    )
    repetition_penalty: float | None = Field(
        default=None,
        gt=0,
        le=100,
        description="Divide positive logits of generated tokens by it, multiply negative ones. Each step then computes"
        " the scores of all tokens, which takes longer.",
    )
    ban: tuple[str, ...] = Field(
        default=(), description="Texts that do not occur in the output, also as parts of words."
    )

    @model_validator(mode="after")
    def check_ban(self) -> Self:
        if "" in self.ban:
            raise ValueError("ban: an empty text, which every output contains")
        return self


class SamplingConfig(OptionGroup):
    """Sampling instead of a search."""

    used_by = "models that generate text"

    temperature: float | None = Field(
        default=None,
        gt=0,
        le=100,
        description="Sample instead of searching; logits are divided by the temperature. Default: for language models"
        " 0.8, if no other option of sampling and no beam size is given.",
    )
    top_k: int | None = Field(
        default=None,
        ge=1,
        description="Sample from the k most probable tokens only. Default: for language models 40, if no other option"
        " of sampling and no beam size is given.",
    )
    top_p: float | None = Field(
        default=None, gt=0, le=1, description="Sample from the smallest set of tokens whose probabilities sum to p."
    )
    min_p: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="Sample from the tokens that are at least p times as probable as the best.",
    )
    typical_p: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Sample from the tokens with the most typical information content whose probabilities sum to p.",
    )
    seed: int = Field(default=1, ge=0, lt=1 << 63, description="Random seed of sampling.")

    @property
    def do_sample(self) -> bool:
        """Whether tokens are sampled instead of searched."""
        options = self.temperature, self.top_k, self.top_p, self.min_p, self.typical_p
        return any(value is not None for value in options)

    def after(self, n: int) -> Self:
        """The options for texts that follow `n` others: their samples have other random numbers."""
        return self.model_copy(update={"seed": (self.seed + (n << 32)) % (1 << 63)}) if n else self


class TranslationConfig(OptionGroup):
    """What translations have besides: of models with an encoder and a decoder."""

    used_by = "translation"

    nbest: int = Field(default=1, ge=1, le=64, description="Number of translations printed for each line, best first.")
    rerank: Literal["mbr"] | None = Field(
        default=None,
        description="Which translation of the beam is the best. mbr: the one that is most like the others (minimum"
        " Bayes risk); for a large --beam, such as 16. Default: the one with the highest score.",
    )
    prefix: str = Field(default="", description="Text that each translation begins with.")
    tag: str = Field(
        default="", description="Tag of training files (train --tags): translate like the text of these files."
    )
    glossary: Path | None = Field(
        default=None,
        description="File of terms, a tab and their translations, forms separated by |. A term that is in the source is"
        " in the translation.",
    )
    memory: tuple[Path, ...] = Field(
        default=(),
        description="Translation memory: TMX, XLIFF, PO, folders of these, tables of pairs, or the folder of a"
        " training. A text that it has is not translated anew. Of a similar text, the translation is used for what is"
        " equal.",
    )
    min_match: float = Field(
        default=0.7, gt=0, le=1, description="Least similarity of a text of the memory that is used, in words."
    )
    protect: tuple[str, ...] = Field(
        default=(),
        description="What stays as it is in translations: all, placeholders, markers (of Weblate and OmegaT), tags,"
        " entities, urls, emails, units, or regular expressions.",
    )
    keep_spelling: bool = Field(
        default=False,
        description="Give the model each word as it is written. Default: a word that the training text does not have,"
        " and that is most probably one of its words with a typing error, is read as that word, and reported.",
    )
    align: bool = Field(
        default=False,
        description="Add the word alignment to each translation: pairs of source and target word, counted from 0.",
    )
    confidence: bool = Field(
        default=False,
        description="Add the confidence to each translation: the expected fraction of right words; with --json for each"
        " word the probability that it is right.",
    )
    min_confidence: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Lines that would be translated with less confidence are not translated: the source is printed.",
    )
    shortlist: bool = Field(
        default=False,
        description="In int8, consider only the tokens that the words of the source may need; see glassformer"
        " shortlist.",
    )


class CompletionConfig(OptionGroup):
    """What language models have besides."""

    used_by = "language models"

    stop: tuple[str, ...] = Field(default=(), description="Strings that end the output; they are not part of it.")


class BatchConfig(OptionGroup):
    """How many texts are decoded together."""

    used_by = "models that generate text"

    batch_tokens: int = Field(
        default=1024,
        ge=1,
        description="Maximum number of source tokens per batch, including padding.",
    )


class DecodeConfig(BatchConfig, InferenceConfig, TranslationConfig, CompletionConfig, SamplingConfig, SearchConfig):
    """All options of decoding."""

    @classmethod
    def groups(cls) -> Iterator[type[OptionGroup]]:
        """The groups of the options."""
        return (base for base in cls.__bases__[::-1] if issubclass(base, OptionGroup))

    @model_validator(mode="after")
    def check_together(self) -> Self:
        if self.nbest > self.beam:
            raise ValueError(f"nbest = {self.nbest} is more than the beam size {self.beam}; raise beam")
        if self.nbest > 1 and self.do_sample:
            raise ValueError("nbest: needs a search; sample several outputs with seed=1, seed=2, …")
        if self.min_match != type(self).model_fields["min_match"].default and not self.memory:
            raise ValueError("min_match: has no effect without a memory")
        if self.rerank and (self.beam == 1 or self.do_sample):
            raise ValueError("rerank: needs the translations of a beam: a beam of at least 2, and no sampling")
        if self.min_length and self.max_length and self.min_length >= self.max_length:
            raise ValueError(f"min_length = {self.min_length} is not less than max_length = {self.max_length}")
        if self.shortlist and (self.do_sample or self.repetition_penalty):
            raise ValueError("shortlist cannot be combined with sampling or repetition_penalty, which need all tokens")
        return self


INFERENCE = (InferenceConfig,)
COMPLETION = (SearchConfig, SamplingConfig, CompletionConfig, BatchConfig, InferenceConfig)
TRANSLATION = (SearchConfig, SamplingConfig, TranslationConfig, BatchConfig, InferenceConfig)
"""The groups of encoders, of language models, and of models with an encoder and a decoder."""

GENERATE_NAMES = {name: TRANSFORMERS_NAMES.get(name, name) for name in (
    "num_beams", "num_return_sequences", "max_new_tokens", "max_length", "min_new_tokens", "length_penalty",
    "no_repeat_ngram_size", "repetition_penalty", "temperature", "top_k", "top_p",
)}  # fmt: skip
"""Arguments of `generate` in transformers that have the same meaning, and their names here."""


def check_groups(options: DecodeConfig, groups: Sequence[type[OptionGroup]], whose: str) -> None:
    """Check that the options that differ from their defaults are in some groups.

    Args:
        whose: what has these groups, for the message.

    Raises:
        ConfigError: others were given.
    """
    known = {name for group in groups for name in group.model_fields}
    for group in DecodeConfig.groups():
        fields = group.model_fields.items()
        if given := [name for name, f in fields if name not in known and getattr(options, name) != f.default]:
            variables = ", ".join(ENVIRONMENT_PREFIX + name.upper() for name in given)
            raise ConfigError(
                f"{whose}: {', '.join(given)}: only for {group.used_by}.\n"
                f"  Leave it out; on the command line it may also come from the environment ({variables})."
            )


# The options as keyword arguments, for type checkers and editors; a test compares the names.


class SearchOptions(TypedDict, total=False):
    """Fields of `SearchConfig`."""

    beam: int
    length_penalty: float
    max_length: int | None
    min_length: int
    no_repeat_ngram_size: int | None
    repetition_penalty: float | None
    ban: Sequence[str]


class TextOptions(SearchOptions, total=False):
    """Fields of `DecodeConfig`, without those that add more to an output than its text."""

    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    typical_p: float | None
    seed: int
    stop: Sequence[str]
    rerank: Literal["mbr"] | None
    prefix: str
    tag: str
    glossary: str | Path | None
    memory: str | Path | Sequence[str | Path]
    min_match: float
    protect: Sequence[str]
    keep_spelling: bool
    min_confidence: float | None
    shortlist: bool
    precision: Precision
    batch_tokens: int


class DecodeOptions(TextOptions, total=False):
    """Fields of `DecodeConfig`."""

    nbest: int
    align: bool
    confidence: bool
