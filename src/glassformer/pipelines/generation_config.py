"""What is said and how: the arguments of transformers' `generate`, and what a model's files say of them."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

import torch
from pydantic import Field

from glassformer.config import DecodeConfig
from glassformer.errors import CheckpointError, ConfigError
from glassformer.pipelines.base import Options
from glassformer.pipelines.source import Source

Record = dict[str, Any]

TEXT_TO_TEXT_DEFAULTS: Record = {"max_new_tokens": 256, "num_beams": 4}
TEXT_GENERATION_DEFAULTS: Record = {"max_new_tokens": 256, "do_sample": True, "temperature": 0.7}
"""What a pipeline does unless its model's files or the caller say otherwise."""
DEFAULT_MAX_LENGTH = 20
"""transformers writes it into files where nothing was meant."""
IGNORED_ENTRIES = {"transformers_version", "use_cache", "bos_token_id", "pad_token_id", "cache_implementation"}
"""Entries of generation_config.json that change nothing here."""


class GenerateOptions(Options):
    """Arguments of whatever says something: those of transformers' `generate`, and `seed`."""

    max_length: int | None = Field(default=None, ge=1)
    """Tokens of the whole: a decoder's start or prompt and what it says."""
    max_new_tokens: int | None = Field(default=None, ge=1)
    min_length: int | None = Field(default=None, ge=0)
    min_new_tokens: int | None = Field(default=None, ge=0)
    do_sample: bool | None = None
    num_beams: int | None = Field(default=None, ge=1)
    num_return_sequences: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0)
    top_k: int | None = Field(default=None, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    seed: int | None = Field(default=None, ge=0, lt=1 << 63)
    """Of what is drawn, with a text's place in its list; default: drawn from torch's random state."""
    length_penalty: float | None = None
    """A beam's score is divided by length to this power; of a folder of ours it is that of `glassformer translate`."""
    early_stopping: bool | Literal["never"] | None = None
    repetition_penalty: float | None = Field(default=None, gt=0)
    no_repeat_ngram_size: int | None = Field(default=None, ge=0)
    bad_words_ids: tuple[tuple[int, ...], ...] | None = None
    suppress_tokens: tuple[int, ...] | None = None
    renormalize_logits: bool | None = None
    forced_bos_token_id: int | None = None
    forced_eos_token_id: int | None = None
    decoder_start_token_id: int | None = None
    eos_token_id: int | tuple[int, ...] | None = None
    bos_token_id: int | None = None
    pad_token_id: int | None = None
    use_cache: bool | None = None
    stop_sequence: str | None = None
    """Stop at its first token; of a folder of ours, before this text."""
    prefix: str | None = None
    """Put before every text."""
    return_tensors: bool | None = None
    """Give ids in place of text."""
    return_text: bool | None = None


@dataclass(frozen=True, slots=True)
class GenerationConfig:
    """How a model says something, all settled."""

    max_length: int | None = None
    max_new_tokens: int | None = None
    min_length: int = 0
    min_new_tokens: int = 0
    do_sample: bool = False
    num_beams: int = 1
    num_return_sequences: int = 1
    temperature: float = 1.0
    top_k: int = 50
    top_p: float = 1.0
    length_penalty: float = 1.0
    early_stopping: bool | Literal["never"] = False
    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int = 0
    bad_words_ids: tuple[tuple[int, ...], ...] = ()
    suppress_tokens: tuple[int, ...] = ()
    renormalize_logits: bool = False
    forced_bos_token_id: int | None = None
    forced_eos_token_id: int | None = None
    decoder_start_token_id: int | None = None
    eos_token_id: tuple[int, ...] = ()

    def total_max_length(self, n_prompt: int, room: int | None) -> int:
        """Tokens of the whole.

        Args:
            n_prompt: those of them that are given.
            room: those that the model can hold; None: any number.
        """
        if self.max_new_tokens is not None or self.max_length is None:
            n = n_prompt + (self.max_new_tokens or DEFAULT_MAX_LENGTH)
        else:
            n = self.max_length
        n = n if room is None else min(n, room)
        if n <= n_prompt:
            raise ConfigError(f"max_length = {n} leaves no room after the {n_prompt} tokens that are given.")
        return n


def resolve_generation_config(
    source: Source, task: str, default_arguments: Mapping[str, Any], options: GenerateOptions
) -> GenerationConfig:
    """The caller's arguments before what the model's files say before what the pipeline does."""
    said = read_generation_config(source)
    if said.get("max_length") == DEFAULT_MAX_LENGTH:
        del said["max_length"]
    values = {**default_arguments, **said}
    if "max_length" in said and "max_new_tokens" not in said:
        del values["max_new_tokens"]
    names = {f.name for f in fields(GenerationConfig)}
    values |= checked(
        {n: x for n, x in task_specific_params(source, task).items() if n in names and x is not None}, source
    )
    asked = explicit_arguments(options)
    if "max_length" in asked and "max_new_tokens" not in asked:
        values.pop("max_new_tokens", None)
    values |= asked
    eos = values.get("eos_token_id", source.task.tokenizer.eos_id)
    values["eos_token_id"] = (eos,) if isinstance(eos, int) else tuple(eos)
    rules = GenerationConfig(**{f.name: values[f.name] for f in fields(GenerationConfig) if f.name in values})
    check(rules, asked)
    return rules


def explicit_arguments(options: GenerateOptions) -> Record:
    """The arguments that the caller gave."""
    return {name: value for name, value in options.model_dump(exclude_unset=True).items() if value is not None}


def read_generation_config(source: Source) -> Record:
    """What generation_config.json says that we know; of what we do not, a warning."""
    is_its_own = source.generation is not source.config
    names = {f.name for f in fields(GenerationConfig)}
    said, unknown = {}, []
    for name, value in source.generation.items():
        if name in names and value is not None:
            said[name] = value
        elif is_its_own and value and name not in IGNORED_ENTRIES and not name.startswith("_"):
            unknown.append(name)
    if unknown:
        warnings.warn(
            f"{source.name}: its generation_config.json names {', '.join(unknown)}, which this version leaves out.",
            UserWarning,
            stacklevel=2,
        )
    return checked(said, source)


def task_specific_params(source: Source, task: str) -> Record:
    """What task_specific_params of config.json says of a task."""
    table = source.config.get("task_specific_params")
    found = table.get(task) if isinstance(table, dict) else None
    return dict(found) if isinstance(found, dict) else {}


def checked(said: Record, source: Source) -> Record:
    """What a file says, as the values that we know.

    Raises:
        CheckpointError: it says what cannot be.
    """
    try:
        return GenerateOptions.resolve(said, environment={}).model_dump(include=set(said))
    except ConfigError as error:
        raise CheckpointError(f"{source.name}: of its config.json and generation_config.json, {error}") from None


def check(rules: GenerationConfig, asked: Record) -> None:
    """Raise ConfigError for what cannot be together; warn of what has no effect."""
    n = rules.num_return_sequences
    if not rules.do_sample and n > rules.num_beams:
        raise ConfigError(
            f"num_return_sequences = {n}: only num_beams = {rules.num_beams} are looked at.\n"
            "  Raise num_beams, or give do_sample=True."
        )
    if rules.do_sample and rules.num_beams > 1 and n > rules.num_beams:
        raise ConfigError(f"num_return_sequences = {n} is more than num_beams = {rules.num_beams}.")
    if rules.do_sample and rules.temperature == 0:
        raise ConfigError("temperature = 0: must be above 0.\n  For the most probable text: do_sample=False.")
    if not rules.do_sample:
        warn_unused_sampling({name: asked[name] for name in SAMPLING_ARGUMENTS if name in asked})


def seed_of(options: GenerateOptions) -> int:
    """The caller's, else one drawn from torch's random state."""
    return int(torch.randint(1 << 62, ())) if options.seed is None else options.seed


NATIVE_NAMES = {
    "max_length": "max_length",
    "max_new_tokens": "max_length",
    "length_penalty": "length_penalty",
    "num_beams": "beam",
    "num_return_sequences": "nbest",
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
}
"""Arguments that a folder of ours knows, and their names in DecodeConfig."""
SAMPLING_ARGUMENTS = ("temperature", "top_k", "top_p")
NOT_DECODING = {"do_sample", "seed", "stop_sequence", "use_cache", "pad_token_id", "bos_token_id", "prefix"}
NOT_DECODING |= {
    "return_text",
    "return_full_text",
    "skip_special_tokens",
    "src_lang",
    "tgt_lang",
    *Options.model_fields,
}


def native_decode_config(options: GenerateOptions, default_arguments: DecodeConfig) -> DecodeConfig:
    """The caller's arguments for a folder of ours.

    Args:
        usual: what its task does unless told otherwise.
    """
    asked = explicit_arguments(options)
    if unknown := sorted(asked.keys() - NATIVE_NAMES.keys() - NOT_DECODING):
        raise ConfigError(
            f"{', '.join(unknown)}: not for a folder of ours, which knows {', '.join(NATIVE_NAMES)}, do_sample, seed and"
            " stop_sequence."
        )
    draws = asked.get("do_sample", default_arguments.do_sample and "num_beams" not in asked)
    given = {
        NATIVE_NAMES[name]: asked[name] for name in NATIVE_NAMES if name in asked and name not in SAMPLING_ARGUMENTS
    }
    drawing = {name: asked[name] for name in SAMPLING_ARGUMENTS if name in asked}
    if draws:
        from_usual = (
            {name: getattr(default_arguments, name) for name in SAMPLING_ARGUMENTS}
            if default_arguments.do_sample
            else {"temperature": 1.0}
        )
        given |= {**from_usual, **drawing, "seed": seed_of(options), "beam": 1, "nbest": 1}
        given["top_k"] = given.get("top_k") or None
    else:
        warn_unused_sampling(drawing)
        given.setdefault("beam", 1 if default_arguments.do_sample else default_arguments.beam)
    if options.stop_sequence:
        given["stop"] = (options.stop_sequence,)
    return DecodeConfig.resolve(given, environment={})


def warn_unused_sampling(drawing: Record) -> None:
    """Say that arguments of drawing change nothing; those that would change nothing anyway are passed over."""
    idle = [name for name, value in drawing.items() if (name, value) not in (("temperature", 1.0), ("top_p", 1.0))]
    if idle:
        warnings.warn(f"{', '.join(idle)}: of no effect without do_sample=True.", UserWarning, stacklevel=2)
