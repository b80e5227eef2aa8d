"""Command-line options: fields of the config classes as flags, in groups, and options that several commands share."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter, Token
from cyclopts.validators import Number

from glassformer.config import ENVIRONMENT_PREFIX, MAX_INTEGER, MAX_THREADS, SHORT_NAMES, Config, JsonObject
from glassformer.decode_config import (
    BatchConfig,
    CompletionConfig,
    DecodeConfig,
    InferenceConfig,
    SamplingConfig,
    SearchConfig,
    TranslationConfig,
)

SHOW_ALL = "--help-all" in sys.argv
"""Whether the help lists rare options too. Read once: commands build their options when they are imported."""

DATA = Group("Data", sort_key=1)
MODEL = Group("Model", sort_key=2)
OPTIMIZATION = Group("Optimization", sort_key=3)
SEARCH = Group("Search", sort_key=4)
SAMPLING = Group("Sampling", sort_key=5)
TRANSLATION = Group("Translation", sort_key=6)
RUN = Group("Run", sort_key=7)

GROUPS = {
    DATA: "src tgt more_tgt more_src reverse_model forward_model n_teachers weights tags in_domain dev_src dev_tgt task"
    " format keys skip_bad fuzzy inline_codes languages tokenizer vocab_size lowercase max_len"
    " mixing_limit mixing_temperature",
    MODEL: "family preset init_from embeddings d_model n_heads d_ff n_layers dropout pre_norm rotary pooling model",
    OPTIMIZATION: "steps epochs minutes batch_tokens auto_batch micro_batch_tokens accumulate lr schedule warmup_ratio"
    " decay_ratio optimizer beta1 beta2 eps weight_decay max_grad_norm label_smoothing prompt_loss_weight augment"
    " bpe_dropout average_checkpoints ema precision cpu_matmul compile activation_checkpointing deterministic seed",
    RUN: "out save_every validate_every device devices shard timeout_s threads profile tensorboard",
}
"""Group -> the options of `train` in it."""

DECODING: dict[type[Config], Group] = {
    SearchConfig: SEARCH,
    CompletionConfig: SEARCH,
    SamplingConfig: SAMPLING,
    TranslationConfig: TRANSLATION,
    BatchConfig: RUN,
    InferenceConfig: RUN,
}
"""The group of the options of decoding."""

RARE = (  # noqa: SIM905
    "fuzzy inline_codes more_src reverse_model forward_model weights tags in_domain augment bpe_dropout"
    " dev_tgt languages lowercase mixing_limit mixing_temperature embeddings n_heads d_ff pre_norm rotary pooling model"
    " auto_batch micro_batch_tokens accumulate schedule warmup_ratio decay_ratio optimizer beta1 beta2 eps weight_decay"
    " max_grad_norm prompt_loss_weight average_checkpoints ema precision cpu_matmul compile activation_checkpointing"
    " deterministic save_every validate_every shard timeout_s profile tensorboard"
).split()
"""Options of `train` that `--help-all` lists and `--help` does not."""

NAMES = {name: [f"--{name.replace('_', '-')}", f"--{short}"] for short, name in SHORT_NAMES.items()}
"""Options with more names than the one made from the field's name."""


def whole_number(type_: object, tokens: Sequence[Token]) -> int:
    """Convert the text of an option to an integer. Without this, cyclopts rounds 2.9 to 3.

    Raises:
        ValueError: not an integer, or one with a fraction.
    """
    text = tokens[0].value
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number; write it without a fraction") from None
    if abs(number) > MAX_INTEGER:
        raise ValueError(f"{text[:20]}… is too large")
    return number


Int = Annotated[int, Parameter(converter=whole_number)]
OptionalInt = Annotated[int | None, Parameter(converter=whole_number)]
Count = Annotated[int, Parameter(converter=whole_number, validator=Number(gte=1))]

Json = Annotated[bool, Parameter(group=RUN)]
Quiet = Annotated[bool, Parameter(name=["--quiet", "-q"], group=RUN)]


Keys = Annotated[tuple[str, ...], Parameter(name=NAMES["keys"], consume_multiple=True, negative=(), group=DATA)]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class BulkOptions:
    """How files are processed: options of a command."""

    workers: Annotated[
        int | None,
        Parameter(
            converter=whole_number,
            validator=Number(gte=1, lte=MAX_THREADS),
            group=RUN,
            help="Number of processes for files, which divide the threads among them. Default: 1.",
        ),
    ] = None
    shard: Annotated[
        str | None,
        Parameter(
            group=RUN,
            help="I/N: do the I-th of N shares of the work; for several machines with one output folder. The last to"
            " finish puts files of lines together.",
        ),
    ] = None
    ray: Annotated[
        str | None,
        Parameter(
            group=RUN,
            help="Address of a Ray cluster whose machines do the work: --workers actors of --threads processors each;"
            ' "local": one on this machine. The model folder has the same path on all.',
        ),
    ] = None
    cache: Annotated[
        Path | None,
        Parameter(
            group=RUN,
            help="File that keeps the outputs of lines, up to 10 GB: a line that it has is not computed again, by any"
            " process or later run with the same model and options.",
        ),
    ] = None


Ensemble = Annotated[
    tuple[Path, ...],
    Parameter(
        group=TRANSLATION,
        consume_multiple=True,
        help="Further model folders, which translate together with the model: with the mean of the probabilities."
        " Slower, and often better. All must have the same vocabulary.",
    ),
]
Device = Annotated[Literal["auto", "cpu", "cuda"], Parameter(group=RUN)]
Threads = Annotated[int | None, Parameter(converter=whole_number, validator=Number(gte=1, lte=MAX_THREADS), group=RUN)]


def flags(
    *configs: type[Config],
    exclude: Sequence[str] = (),
    only: Sequence[str] = (),
    descriptions: Mapping[str, str] = MappingProxyType({}),
) -> Any:
    """A dataclass with the fields of config classes, all optional, for a command's options.

    Args:
        exclude: fields that the command does not offer.
        only: fields that the command offers. Default: all.
        descriptions: help texts of fields that mean something else for the command.
    """
    fields = []
    groups = {name: group for group, names in GROUPS.items() for name in names.split()}
    offered = [(config, *item) for config in configs for item in config.model_fields.items()]
    for config, name, option in offered:
        if name in exclude or (only and name not in only):
            continue
        description = descriptions.get(name, str(option.description))
        is_given = " Default: " in description or option.is_required() or option.default in (None, (), "")
        default = "" if is_given else f" Default: {option.default}."
        # A table of a TOML file is a list of NAME=VALUE on the command line.
        annotation = tuple[str, ...] if str(option.annotation).startswith("dict") else option.annotation
        parameter = Parameter(
            name=NAMES.get(name),
            help=f"{description}{default}",
            consume_multiple=str(annotation).startswith("tuple"),
            show=SHOW_ALL or config in DECODING or name not in RARE,
            show_default=False,
            group=DECODING.get(config) or groups[name],
            converter=whole_number if option.annotation in (int, int | None) else None,
        )
        fields.append((name, Annotated[annotation | None, parameter], field(default=None)))  # type: ignore[operator]
    record = make_dataclass("Flags", fields)
    record.__module__ = __name__  # cyclopts takes a class of the standard library for a plain value
    return record


def given(record: object) -> JsonObject:
    """The options that were given on the command line."""
    return {name: value for name, value in vars(record).items() if value is not None} if record else {}


def decode_options(record: object) -> DecodeConfig:
    """The options of decoding that a command has, as given on the command line or in the environment."""
    names = {ENVIRONMENT_PREFIX + name.upper() for name in vars(record)}
    return DecodeConfig.resolve(given(record), environment={n: v for n, v in os.environ.items() if n in names})
