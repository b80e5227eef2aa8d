"""Every option, as frozen records; read from flags, environment and TOML, written back as TOML."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Self

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from glassformer.errors import ConfigError
from glassformer.limits import MAX_TOKENS

ENVIRONMENT_PREFIX = "GLASSFORMER_"
NO_ENVIRONMENT: Mapping[str, str] = MappingProxyType({})


class Config(BaseModel):
    """A frozen record of options; an unknown name is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def resolve(
        cls,
        flags: Mapping[str, Any],
        file: Path | None = None,
        environment: Mapping[str, str] = NO_ENVIRONMENT,
    ) -> Self:
        """The options given, flags before environment before file before defaults.

        Args:
            environment: variables GLASSFORMER_<OPTION>. The command line alone gives `os.environ`: a call from Python
                depends on its arguments only.

        Raises:
            ConfigError: naming every unknown, missing and impossible value at once.
        """
        from_file = read_toml(file) if file else {}
        from_environment: dict[str, Any] = {
            name: value.split(os.pathsep) if str(field.annotation).startswith("tuple") else value
            for name, field in cls.model_fields.items()
            if (value := environment.get(ENVIRONMENT_PREFIX + name.upper())) is not None
        }
        given = {**from_file, **from_environment, **flags}
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            places = {**dict.fromkeys(from_file, f"in {file}"), **dict.fromkeys(from_environment, "in the environment")}
            raise ConfigError(describe(error, {**places, **dict.fromkeys(flags, "")})) from None

    def to_toml(self) -> str:
        """The options as TOML, those without a value left out."""
        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))


def describe(error: ValidationError, places: Mapping[str, str]) -> str:
    """Every fault of a record, one a line, each with its value and where it was given."""
    faults = []
    for fault in error.errors():
        name = ".".join(str(part) for part in fault["loc"]) or "options"
        place = places.get(str(fault["loc"][0])) if fault["loc"] else ""
        match fault["type"]:
            case "extra_forbidden":
                what = "there is no such option"
            case "missing":
                what = "must be given"
            case "value_error":
                what = fault["msg"].removeprefix("Value error, ")
            case _:
                message = fault["msg"]
                what = f"{fault['input']!r}: {message[0].lower()}{message[1:]}"
        faults.append(f"  {name}: {what}{f' ({place})' if place else ''}")
    return "these options cannot be used:\n" + "\n".join(faults)


def read_toml(path: Path) -> dict[str, Any]:
    """The table in a TOML file.

    Raises:
        ConfigError: no such file, or not TOML; with the line.
    """
    if path.exists() and not path.is_file():
        raise ConfigError(f"{path}: not a regular file.\n  --config takes a TOML file such as a run folder's run.toml.")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"{path}: {error.strerror}.\n  --config takes a TOML file such as a run folder's run.toml."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML: {error}.") from None


class DecodeConfig(Config):
    """How a trained model is asked for its output."""

    beam: int = Field(default=4, ge=1, le=64, description="Hypotheses kept per sentence; 1 = greedy.")
    length_penalty: float = Field(
        default=0.6,
        ge=0,
        le=5,
        description="Alpha of ((5 + length) / 6)^alpha, by which a hypothesis' score is divided.",
    )
    nbest: int = Field(default=1, ge=1, le=64, description="Translations given per sentence, best first.")
    max_length: int | None = Field(
        default=None, ge=1, le=MAX_TOKENS, description="Longest output in tokens. Default: source length + 50."
    )
    no_repeat_ngram_size: int | None = Field(
        default=None,
        ge=0,
        description="Never say so many tokens in a row twice; 0: free. Default: 6 of summaries, else 0.",
    )
    temperature: float | None = Field(
        default=None,
        gt=0,
        le=100,
        description="Sample in place of searching, logits divided by this: below 1 safer, above 1 bolder.",
    )
    top_k: int | None = Field(default=None, ge=1, description="Sample from the k most probable tokens alone.")
    top_p: float | None = Field(
        default=None, gt=0, le=1, description="Sample from the fewest tokens whose probabilities come to p."
    )
    seed: int = Field(default=1, ge=0, lt=1 << 63, description="Of sampling: the same seed, the same text.")
    stop: tuple[str, ...] = Field(default=(), description="Texts at which the output ends; they are left out.")
    precision: Literal["fp32", "bf16"] = Field(
        default="fp32",
        description="fp32: the same bytes whatever the batch. bf16: faster where the hardware has it.",
    )
    batch_tokens: int = Field(
        default=1024,
        ge=1,
        description="Source tokens decoded together, padding included; more is faster and takes more memory.",
    )

    @property
    def do_sample(self) -> bool:
        """Whether tokens are drawn, not searched for."""
        return self.temperature is not None or self.top_k is not None or self.top_p is not None

    @model_validator(mode="after")
    def check_nbest(self) -> Self:
        if self.nbest > self.beam:
            raise ValueError(f"nbest = {self.nbest} is more than the {self.beam} hypotheses kept; raise beam")
        return self


Preset = Literal["tiny", "small", "base", "large", "big"]
Family = Literal["transformer", "bert", "gpt2", "t5", "rnn", "skipgram"]


class TrainConfig(Config):
    """A training run. What is None is chosen from the corpus and the preset, and said."""

    src: tuple[Path, ...] = Field(
        min_length=1, description="Text to learn from; of translation the source text, or TSV or JSONL of pairs."
    )
    tgt: tuple[Path, ...] = Field(default=(), description="Target text, line by line the translation of the source.")
    out: Path = Field(description="Run folder: made if absent, continued if it holds this run.")
    dev_src: tuple[Path, ...] = Field(default=(), description="Held-out source text, or TSV or JSONL of pairs.")
    dev_tgt: tuple[Path, ...] = Field(default=(), description="Held-out target text.")

    task: str | None = Field(default=None, description="What to learn. Default: found from the data.")
    family: Family | None = Field(default=None, description="Family of models. Default: the task's usual one.")
    init_from: Path | None = Field(
        default=None, description="Model folder, ours or imported, whose tokenizer and weights to start from."
    )
    embeddings: Path | None = Field(
        default=None, description="Model folder whose embeddings, unit by unit, the model's own begin with."
    )
    columns: tuple[str, ...] = Field(
        default=(), description="What the columns of a labeled file without a header hold: text, text2, label, or _."
    )

    preset: Preset | None = Field(default=None, description="Sizes and recipe. Default: by corpus size.")
    steps: int | None = Field(default=None, ge=1, description="Length of training in updates.")
    epochs: int | None = Field(default=None, ge=1, description="Length of training in passes over the corpus.")
    minutes: float | None = Field(default=None, gt=0, description="Length of training in minutes of wall time.")

    tokenizer: Literal["bpe", "unigram", "wordpiece", "word", "char", "byte"] | None = Field(
        default=None, description="Kind of units. Default: bpe; of vectors word."
    )
    lowercase: bool = Field(default=False, description="Lower case; of wordpiece and word alone.")
    vocab_size: int | None = Field(
        default=None, ge=8, le=1 << 20, description="Subword units, of a translation both languages together."
    )
    d_model: int | None = Field(default=None, ge=1, description="Width of the model.")
    n_heads: int | None = Field(default=None, ge=1, description="Attention heads.")
    d_ff: int | None = Field(default=None, ge=1, description="Width inside the feed-forward sub-layers.")
    n_layers: int | None = Field(default=None, ge=1, description="Layers of the encoder, and of the decoder.")
    dropout: float | None = Field(default=None, ge=0, lt=1, description="Dropout of residual and embedding sums.")
    pre_norm: bool | None = Field(default=None, description="Normalize before each sub-layer; the paper does after.")
    max_len: int | None = Field(
        default=None, ge=8, le=MAX_TOKENS, description="Longest text in tokens; longer ones are left out, or cut."
    )
    pooling: Literal["first", "mean"] | None = Field(
        default=None, description="What stands for a text that is classified: its first token or the mean of all."
    )

    batch_tokens: int | None = Field(default=None, ge=1, description="Tokens a side and update, padding included.")
    lr: float | None = Field(default=None, gt=0, description="Peak learning rate.")
    warmup_ratio: float | None = Field(
        default=None, ge=0, le=1, description="Share of the training in which the rate rises."
    )
    decay_ratio: float | None = Field(
        default=None, ge=0, le=1, description="Share at the end in which the rate falls to 0."
    )
    mixing_limit: int | None = Field(
        default=None, ge=1, description="Of several tasks, the examples that a larger one counts as."
    )
    mixing_temperature: float = Field(
        default=1.0, ge=1, le=100, description="Of several tasks: 1 mixes in proportion to size, more evens out."
    )
    max_grad_norm: float | None = Field(
        default=None,
        gt=0,
        description="Longer gradients are shortened to this norm. Default: by preset.",
    )
    prompt_loss_weight: float | None = Field(
        default=None, ge=0, le=1, description="Of a prompted language model, what the prompt's loss counts. Default: 0."
    )
    label_smoothing: float | None = Field(default=None, ge=0, lt=1, description="Probability spread evenly over all.")
    average_checkpoints: int = Field(
        default=10, ge=1, description="Checkpoints averaged at the end; 1 = only the last."
    )

    seed: int = Field(default=1, ge=0, lt=1 << 63, description="Seed of everything random.")
    save_every: int | None = Field(
        default=None, ge=1, description="Updates between checkpoints. Default: at every validation."
    )
    validate_every: int | None = Field(
        default=None, ge=1, description="Updates between validations. Default: 12 in all."
    )
    precision: Literal["auto", "fp32", "bf16"] = Field(default="auto", description="Arithmetic of training.")
    device: Literal["auto", "cpu", "cuda", "mps"] = Field(default="auto", description="Where to compute.")
    threads: int | None = Field(default=None, ge=1, description="Processor threads. Default: all cores.")
    tensorboard: bool = Field(default=False, description="Also write TensorBoard events into the run folder.")

    @model_validator(mode="after")
    def check_together(self) -> Self:
        budgets = [name for name in ("steps", "epochs", "minutes") if getattr(self, name) is not None]
        if len(budgets) > 1:
            raise ValueError(f"{' and '.join(budgets)} exclude one another; give one")
        if self.dev_tgt and not self.dev_src:
            raise ValueError("dev_tgt needs dev_src")
        if (self.warmup_ratio or 0) + (self.decay_ratio or 0) > 1:
            raise ValueError("warmup_ratio and decay_ratio together are more than the whole training")
        return self
