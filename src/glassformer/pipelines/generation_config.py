"""Generation parameters: the arguments of `generate` in transformers, and their values in the files of a model."""

import secrets
import sys
import warnings
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar

import numpy as np
from pydantic import Field

from glassformer.config import JsonObject
from glassformer.decode_config import GENERATE_NAMES, DecodeConfig
from glassformer.errors import CheckpointError, ConfigError
from glassformer.pipelines.base import Options
from glassformer.pipelines.source import Source

GenerateOptionsT = TypeVar("GenerateOptionsT", bound="GenerateOptions")

TEXT_TO_TEXT_DEFAULTS: JsonObject = {"max_new_tokens": 256, "num_beams": 4}
TEXT_GENERATION_DEFAULTS: JsonObject = {"max_new_tokens": 256, "do_sample": True, "temperature": 0.7}
"""Defaults of the pipelines, for arguments that neither the caller nor the model files set."""
DEFAULT_MAX_LENGTH = 20
"""Default of max_length in transformers. Files with this value are treated as if max_length was not set."""
KNOWN_UNUSED_ENTRIES = {"transformers_version", "use_cache", "bos_token_id", "pad_token_id", "cache_implementation"}
"""Entries of generation_config.json that have no effect here and cause no warning."""


class GenerateOptions(Options):
    """Arguments of pipelines that generate text: those of `generate` in transformers, and `seed`."""

    max_length: int | None = Field(default=None, ge=1)
    """Maximum total number of decoder tokens: start token or prompt, and generated tokens."""
    max_new_tokens: int | None = Field(default=None, ge=1)
    min_length: int | None = Field(default=None, ge=0)
    min_new_tokens: int | None = Field(default=None, ge=0)
    do_sample: bool | None = None
    num_beams: int | None = Field(default=None, ge=1)
    num_return_sequences: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0)
    top_k: int | None = Field(default=None, ge=0)
    """Sample from the k most probable tokens; 0: from all."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """Sample from the most probable tokens whose probabilities sum to at least top_p."""
    seed: int | None = Field(default=None, ge=0, lt=1 << 63)
    """Seed of sampling. The result also depends on the index of the text. Default: drawn at random. For models of
    glassformer, the samples of a generator are not those of a list."""
    length_penalty: float | None = None
    """The score of a hypothesis is divided by length^length_penalty. Models of glassformer: by
    ((5 + length) / 6)^length_penalty, as `glassformer translate` does."""
    early_stopping: bool | Literal["never"] | None = None
    repetition_penalty: float | None = Field(default=None, gt=0)
    no_repeat_ngram_size: int | None = Field(default=None, ge=0)
    bad_words_ids: tuple[tuple[int, ...], ...] | None = None
    """Token id sequences that are never generated."""
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
    """Stop at the first token of this text. Models of glassformer: stop before this text."""
    prefix: str | None = None
    """Text that is prepended to every input."""
    return_tensors: bool | None = None
    """Return ids instead of text."""
    return_text: bool | None = None


@dataclass(frozen=True, slots=True)
class GenerationConfig:
    """Generation parameters after merging caller, model files and defaults."""

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

    def total_max_length(self, n_prompt: int, max_positions: int | None) -> int:
        """Maximum total number of decoder tokens.

        Args:
            n_prompt: number of prompt tokens.
            max_positions: maximum number of decoder tokens of the model; None: unlimited.
        """
        if self.max_new_tokens is not None or self.max_length is None:
            n = n_prompt + (self.max_new_tokens or DEFAULT_MAX_LENGTH)
        else:
            n = self.max_length
        n = n if max_positions is None else min(n, max_positions)
        if n <= n_prompt:
            raise ConfigError(f"max_length = {n}: must be greater than {n_prompt}, the number of prompt tokens.")
        return n


def resolve_generation_config(
    source: Source, task: str, default_arguments: JsonObject, options: GenerateOptions
) -> GenerationConfig:
    """Merge arguments with decreasing precedence: caller, model files, defaults of the pipeline."""
    file_values = read_generation_config(source)
    if file_values.get("max_length") == DEFAULT_MAX_LENGTH:
        del file_values["max_length"]
    values = {**default_arguments, **file_values}
    if "max_length" in file_values and "max_new_tokens" not in file_values:
        del values["max_new_tokens"]
    names = {f.name for f in fields(GenerationConfig)}
    values |= validate_file_values(
        {n: x for n, x in task_specific_params(source, task).items() if n in names and x is not None}, source
    )
    explicit = explicit_arguments(options)
    if "max_length" in explicit and "max_new_tokens" not in explicit:
        values.pop("max_new_tokens", None)
    values |= explicit
    eos = values.get("eos_token_id", source.task.tokenizer.eos_id)
    values["eos_token_id"] = (eos,) if isinstance(eos, int) else tuple(eos)
    config = GenerationConfig(**{f.name: values[f.name] for f in fields(GenerationConfig) if f.name in values})
    check_combinations(config, explicit)
    return config


def explicit_arguments(options: GenerateOptions) -> JsonObject:
    """Arguments that the caller set."""
    return {name: value for name, value in options.model_dump(exclude_unset=True).items() if value is not None}


def read_generation_config(source: Source) -> JsonObject:
    """Known entries of generation_config.json. Unknown entries cause a warning."""
    has_own_file = source.generation_config is not source.config
    names = {f.name for f in fields(GenerationConfig)}
    values, unknown = {}, []
    for name, value in source.generation_config.items():
        if name in names and value is not None:
            values[name] = value
        elif has_own_file and value and name not in KNOWN_UNUSED_ENTRIES and not name.startswith("_"):
            unknown.append(name)
    if unknown:
        warnings.warn(
            f"{source.name}: unsupported entries of generation_config.json are ignored: {', '.join(unknown)}.",
            UserWarning,
            stacklevel=2,
        )
    return validate_file_values(values, source)


def task_specific_params(source: Source, task: str) -> JsonObject:
    """Entries for a task in `task_specific_params` of config.json."""
    table = source.config.get("task_specific_params")
    params = table.get(task) if isinstance(table, dict) else None
    return dict(params) if isinstance(params, dict) else {}


def validate_file_values(values: JsonObject, source: Source) -> JsonObject:
    """Validate and convert the values of a model file.

    Raises:
        CheckpointError: a value is invalid.
    """
    try:
        return GenerateOptions.resolve(values, environment={}).model_dump(include=set(values))
    except ConfigError as error:
        raise CheckpointError(f"{source.name}: invalid config.json or generation_config.json: {error}") from None


def check_combinations(config: GenerationConfig, explicit: JsonObject) -> None:
    """Raise ConfigError for invalid combinations of arguments; warn about arguments without effect."""
    n = config.num_return_sequences
    if not config.do_sample and n > config.num_beams:
        raise ConfigError(
            f"num_return_sequences = {n}: must not exceed num_beams = {config.num_beams} without sampling.\n"
            "  Increase num_beams, or pass do_sample=True."
        )
    if config.do_sample and config.num_beams > 1 and n > config.num_beams:
        raise ConfigError(f"num_return_sequences = {n}: must not exceed num_beams = {config.num_beams}.")
    if config.do_sample and config.temperature == 0:
        raise ConfigError("temperature = 0: must be above 0.\n  Pass do_sample=False for the most probable text.")
    if not config.do_sample:
        warn_unused_sampling({name: explicit[name] for name in SAMPLING_ARGUMENTS if name in explicit})


def resolve_seed(options: GenerateOptions) -> int:
    """Seed set by the caller, or a seed drawn at random: from torch's random state, where torch is loaded."""
    return random_seed() if options.seed is None else options.seed


def with_seed_of_text(options: GenerateOptionsT, index: int) -> GenerateOptionsT:
    """The arguments for one text of a generator, with a seed that depends on the index of the text."""
    assert options.seed is not None
    seed = int(np.random.SeedSequence([options.seed, index]).generate_state(1, np.uint64)[0] >> 1)
    return type(options).resolve({**options.model_dump(exclude_unset=True), "seed": seed}, environment={})


SAMPLING_ARGUMENTS = ("temperature", "top_k", "top_p")
"""Arguments that have an effect only with do_sample."""
OTHER_NATIVE_ARGUMENTS = {
    "do_sample",
    "min_length",
    "seed",
    "stop_sequence",
    "use_cache",
    "pad_token_id",
    "bos_token_id",
    "prefix",
    "return_text",
    "return_full_text",
    "skip_special_tokens",
    "continue_final_message",
    "src_lang",
    "tgt_lang",
    *Options.model_fields,
}
"""Other arguments that models of glassformer accept: handled separately, or without effect."""


def native_decode_config(options: GenerateOptions, default_arguments: DecodeConfig) -> DecodeConfig:
    """Convert the caller's arguments to a DecodeConfig for a model of glassformer.

    Args:
        default_arguments: defaults of the task.
    """
    explicit = explicit_arguments(options)
    if unknown := sorted(explicit.keys() - GENERATE_NAMES.keys() - OTHER_NATIVE_ARGUMENTS):
        raise ConfigError(
            f"{', '.join(unknown)}: not supported for models of glassformer, which support"
            f" {', '.join(GENERATE_NAMES)}, min_length, do_sample, seed and stop_sequence."
        )
    if "max_new_tokens" in explicit:
        explicit.pop("max_length", None)  # as in transformers
    do_sample = explicit.get("do_sample", default_arguments.do_sample and "num_beams" not in explicit)
    values = {
        GENERATE_NAMES[name]: explicit[name]
        for name in GENERATE_NAMES
        if name in explicit and name not in SAMPLING_ARGUMENTS
    }
    if "min_length" in explicit:
        values.setdefault("min_length", explicit["min_length"])
    sampling = {name: explicit[name] for name in SAMPLING_ARGUMENTS if name in explicit}
    if do_sample:
        sampling_defaults = (
            {name: getattr(default_arguments, name) for name in SAMPLING_ARGUMENTS}
            if default_arguments.do_sample
            else {"temperature": 1.0}
        )
        values |= {**sampling_defaults, **sampling, "seed": resolve_seed(options), "beam": 1, "nbest": 1}
        values["top_k"] = values.get("top_k") or None
    else:
        warn_unused_sampling(sampling)
        values.setdefault("beam", 1 if default_arguments.do_sample else default_arguments.beam)
    if options.stop_sequence:
        values["stop"] = (options.stop_sequence,)
    return DecodeConfig.resolve(values, environment={})


def warn_unused_sampling(sampling: JsonObject) -> None:
    """Warn about sampling arguments that have no effect, unless their value equals the neutral default."""
    unused = [name for name, value in sampling.items() if (name, value) not in (("temperature", 1.0), ("top_p", 1.0))]
    if unused:
        warnings.warn(f"{', '.join(unused)}: no effect without do_sample=True.", UserWarning, stacklevel=2)


def random_seed() -> int:
    """A seed drawn at random: where torch is loaded, from its state, so that `torch.manual_seed` has an effect."""
    torch: Any = sys.modules.get("torch")
    return int(torch.randint(1 << 62, ())) if torch else secrets.randbelow(1 << 62)
