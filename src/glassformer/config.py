"""Options of training and decoding as frozen pydantic models, from flags, environment variables and TOML."""

import os
import tomllib
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Self

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from glassformer.errors import ConfigError
from glassformer.limits import MAX_TOKENS

ENVIRONMENT_PREFIX = "GLASSFORMER_"
MAX_INTEGER = (1 << 63) - 1
MAX_THREADS = 1024
JsonObject = dict[str, Any]
"""An object read from JSON or TOML, or one to write as JSON."""
NO_ENVIRONMENT: Mapping[str, str] = MappingProxyType({})


class Config(BaseModel):
    """Base class of options: frozen, and unknown names are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="after")
    def check_integers(self) -> Self:
        for name, value in self:
            if isinstance(value, int) and abs(value) > MAX_INTEGER:
                raise ValueError(f"{name} is too large")
        return self

    @classmethod
    def resolve(
        cls,
        flags: Mapping[str, object],
        file: Path | None = None,
        environment: Mapping[str, str] = NO_ENVIRONMENT,
        known: Mapping[str, Mapping[str, Collection[str]]] = MappingProxyType({}),
    ) -> Self:
        """The options given, flags before environment before file before defaults.

        Args:
            environment: variables GLASSFORMER_<OPTION>. The command line alone gives `os.environ`: a call from Python
                depends on its arguments only.
            known: for options whose values are rows of a registry, such as `optimizer`: the names of the rows, and for
                each row the options that have no meaning with it.

        Raises:
            ConfigError: naming every unknown, missing and impossible value at once.
        """
        from_file = read_toml(file) if file else {}
        from_environment: dict[str, object] = {
            name: value.split(os.pathsep) if str(field.annotation).startswith("tuple") else value
            for name, field in cls.model_fields.items()
            if (value := environment.get(ENVIRONMENT_PREFIX + name.upper())) is not None
        }
        given = {**from_file, **from_environment, **flags}
        origins = {
            **dict.fromkeys(from_file, f"in {file}"),
            **dict.fromkeys(from_environment, "in the environment"),
            **dict.fromkeys(flags, ""),
        }
        errors = []
        for name, rows in known.items():
            value = given.get(name)
            if not isinstance(value, str):
                continue  # other types are errors of their own
            if value not in rows:
                origin = f" ({origins[name]})" if origins[name] else ""
                errors.append(f"  {name}: {value!r} is unknown; known: {', '.join(rows)}{origin}")
            for option in rows.get(value, ()):
                if given.get(option) not in (None, 0):
                    origin = f" ({origins[option]})" if origins[option] else ""
                    errors.append(f"  {option}: cannot be combined with {name} = {value}{origin}")
        message = "invalid options:"
        try:
            config = cls.model_validate(given)
        except ValidationError as error:
            message = format_validation_error(error, origins, cls.model_fields)
        else:
            if not errors:
                return config
        raise ConfigError("\n".join([message, *errors]))

    def to_toml(self) -> str:
        """The options as TOML, without those that are None."""
        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))


TRANSFORMERS_NAMES = {
    "num_beams": "beam",
    "num_return_sequences": "nbest",
    "max_new_tokens": "max_length",
    "learning_rate": "lr",
    "batch_size": "batch_tokens",
    "max_steps": "steps",
    "num_train_epochs": "epochs",
    "output_dir": "out",
    "gradient_accumulation_steps": "accumulate",
    "hidden_size": "d_model",
    "num_layers": "n_layers",
    "max_seq_length": "max_len",
}
"""Names of options in transformers and their names here, for suggestions."""


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most similar to an unknown one, or None."""
    known = list(known)
    if (translated := TRANSFORMERS_NAMES.get(name.replace("-", "_"))) in known:
        return translated
    return next(iter(get_close_matches(name, known, 1)), None)


def format_validation_error(error: ValidationError, origins: Mapping[str, str], known: Iterable[str] = ()) -> str:
    """The validation errors as text, one per line, each with its value and where it was given.

    Args:
        known: names of the options, for suggestions.
    """
    lines = []
    for detail in error.errors():
        name = ".".join(str(part) for part in detail["loc"]) or "options"
        origin = origins.get(str(detail["loc"][0])) if detail["loc"] else ""
        match detail["type"]:
            case "extra_forbidden":
                nearest = nearest_name(name, known)
                what = f"no such option{f'; did you mean {nearest}?' if nearest else ''}"
            case "missing":
                what = f"required; on the command line --{name.replace('_', '-')}"
            case "value_error":
                what = detail["msg"].removeprefix("Value error, ")
            case _:
                message = detail["msg"]
                what = f"{detail['input']!r}: {message[0].lower()}{message[1:]}"
        lines.append(f"  {name}: {what}{f' ({origin})' if origin else ''}")
    return "invalid options:\n" + "\n".join(lines)


def read_toml(path: Path) -> JsonObject:
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
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not TOML: {error}.") from None


Precision = Literal["auto", "fp32", "bf16", "int8"]
"""Arithmetic of inference."""


class DecodeConfig(Config):
    """Options of decoding: search, sampling, output length."""

    beam: int = Field(default=4, ge=1, le=64, description="Beam size; 1 = greedy search.")
    length_penalty: float = Field(
        default=0.6,
        ge=0,
        le=5,
        description="Exponent alpha: scores are divided by ((5 + length) / 6)^alpha (transformers: length^alpha).",
    )
    nbest: int = Field(default=1, ge=1, le=64, description="Number of translations printed for each line, best first.")
    max_length: int | None = Field(
        default=None, ge=1, le=MAX_TOKENS, description="Maximum number of output tokens. Default: source length + 50."
    )
    no_repeat_ngram_size: int | None = Field(
        default=None,
        ge=0,
        description="No n-gram of this size occurs twice in the output; 0: off. Default: 6 for summaries; 3, then"
        " 2, for translations that repeat themselves, which are decoded again.",
    )
    temperature: float | None = Field(
        default=None,
        gt=0,
        le=100,
        description="Sample instead of searching; logits are divided by the temperature.",
    )
    top_k: int | None = Field(default=None, ge=1, description="Sample from the k most probable tokens only.")
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
    repetition_penalty: float | None = Field(
        default=None,
        gt=0,
        le=100,
        description="Divide positive logits of generated tokens by it, multiply negative ones. Each step then computes"
        " the scores of all tokens, which takes longer.",
    )
    min_length: int = Field(default=0, ge=0, le=MAX_TOKENS, description="Minimum number of output tokens.")
    prefix: str = Field(default="", description="Text that each translation begins with.")
    ban: tuple[str, ...] = Field(
        default=(), description="Texts that do not occur in the output, also as parts of words."
    )
    stop: tuple[str, ...] = Field(default=(), description="Strings that end the output; they are not part of it.")
    glossary: Path | None = Field(
        default=None,
        description="File of terms, a tab and their translations, forms separated by |. A term that is in the source is"
        " in the translation.",
    )
    protect: tuple[str, ...] = Field(
        default=(),
        description="What stays as it is in translations: all, placeholders, tags, entities, urls, emails, units, or"
        " regular expressions.",
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
    precision: Precision = Field(
        default="fp32",
        description="Arithmetic. int8: 8-bit linear layers, the fastest on a CPU. bf16: for hardware that has it; the"
        " output may depend on the batch. auto: int8 on a CPU that has the kernels, bf16 on a GPU.",
    )
    batch_tokens: int = Field(
        default=1024,
        ge=1,
        description="Maximum number of source tokens per batch, including padding.",
    )

    @property
    def do_sample(self) -> bool:
        """Whether tokens are sampled instead of searched."""
        options = self.temperature, self.top_k, self.top_p, self.min_p, self.typical_p
        return any(value is not None for value in options)

    @model_validator(mode="after")
    def check_search(self) -> Self:
        if self.nbest > self.beam:
            raise ValueError(f"nbest = {self.nbest} is more than the beam size {self.beam}; raise beam")
        if "" in self.ban:
            raise ValueError("ban: an empty text, which every output contains")
        if self.shortlist and (self.do_sample or self.repetition_penalty):
            raise ValueError("shortlist cannot be combined with sampling or repetition_penalty, which need all tokens")
        return self


Preset = Literal["tiny", "small", "base", "large", "big"]


class TrainConfig(Config):
    """Options of a training run. Those that are None are chosen from the corpus and the preset, and logged."""

    src: tuple[Path, ...] = Field(
        min_length=1, description="Training text; for translation the source side, or TSV or JSONL files of pairs."
    )
    tgt: tuple[Path, ...] = Field(
        default=(), description="Target side of the training text: line n is the translation of source line n."
    )
    out: Path = Field(description="Run folder. It is created, or continued if it holds the same run.")
    dev_src: tuple[Path, ...] = Field(
        default=(),
        description="Dev set; for translation its source side. Default: held out from the training text.",
    )
    dev_tgt: tuple[Path, ...] = Field(default=(), description="Target side of the dev set.")

    task: str | None = Field(default=None, min_length=1, description="Task. Default: inferred from the files.")
    family: str | None = Field(
        default=None,
        min_length=1,
        description="Model family: transformer, t5, rnn, bert, gpt2, llama or skipgram. Default: by task.",
    )
    init_from: Path | None = Field(
        default=None, description="Model folder to initialize tokenizer and weights from (fine-tuning)."
    )
    embeddings: Path | None = Field(
        default=None, description="Model folder to initialize the embeddings of common tokens from."
    )
    format: str | None = Field(
        default=None,
        description="Format of the files: lines, tsv, csv or jsonl. Default: by file name, for other names by content.",
    )
    keys: tuple[str, ...] = Field(
        default=(),
        description="Fields and their columns in CSV and TSV, by name or number, or their keys in JSONL: text=tweet"
        " label=sentiment, or src=translation.en tgt=translation.fr. Default: by the names, or guessed.",
    )
    skip_bad: bool = Field(
        default=False,
        description="Leave out the rows of labeled text that have no label or cannot be read. They are counted.",
    )

    languages: tuple[str, ...] = Field(
        default=(),
        description="Codes of source and target language, stored with the model. Default: the suffixes of the files, as"
        " in train.en train.fr, or of the --keys.",
    )

    preset: Preset | None = Field(default=None, description="Model size and training recipe. Default: by corpus size.")
    steps: int | None = Field(default=None, ge=1, description="Training length in updates.")
    epochs: int | None = Field(default=None, ge=1, description="Training length in passes over the corpus.")
    minutes: float | None = Field(
        default=None, gt=0, description="Training length in minutes, without preparation and final scoring."
    )

    tokenizer: Literal["bpe", "unigram", "wordpiece", "word", "char", "byte"] | None = Field(
        default=None, description="Tokenizer type. Default: bpe; for skip-gram word."
    )
    lowercase: bool = Field(default=False, description="Lower-case the text; wordpiece and word only.")
    vocab_size: int | None = Field(
        default=None,
        ge=8,
        le=1 << 20,
        description="Vocabulary size; for translation shared by both languages. Default: by corpus size.",
    )
    d_model: int | None = Field(default=None, ge=1, description="Hidden size of the model.")
    n_heads: int | None = Field(default=None, ge=1, description="Number of attention heads.")
    d_ff: int | None = Field(default=None, ge=1, description="Hidden size of the feed-forward sub-layers.")
    n_layers: int | None = Field(default=None, ge=1, description="Number of layers; for encoder-decoders of each side.")
    dropout: float | None = Field(
        default=None, ge=0, lt=1, description="Dropout probability of embeddings and sub-layer outputs."
    )
    pre_norm: bool | None = Field(default=None, description="Normalize before each sub-layer, not after it.")
    max_len: int | None = Field(
        default=None,
        ge=8,
        le=MAX_TOKENS,
        description="Maximum length of an example in tokens; longer ones are left out or truncated.",
    )
    model: dict[str, bool | int | float | str] | None = Field(
        default=None,
        description="Other fields of the model's configuration, for instance attention=additive; in a TOML file the"
        " table [model]. docs/glossary.md lists them by family.",
    )
    pooling: Literal["first", "mean"] | None = Field(
        default=None,
        description="Vector used for classification: that of the first token, or the mean over all tokens.",
    )

    batch_tokens: int | None = Field(
        default=None, ge=1, description="Maximum number of tokens per batch and side, including padding."
    )
    auto_batch: bool = Field(
        default=False,
        description="Choose --batch-tokens, unless it is given, as large as the memory of the device allows, by trial"
        " steps at the start. Larger batches mean fewer updates in an epoch, with the same --lr: set the length by"
        " --epochs or --minutes, and try a higher --lr.",
    )
    micro_batch_tokens: int | None = Field(
        default=None,
        ge=1,
        description="Maximum number of tokens computed at once, per side; larger batches are computed in parts, with"
        " the same result. Default: 8,192, on a GPU for each 8 GiB of its memory; half when memory runs out.",
    )
    accumulate: int = Field(
        default=1, ge=1, le=4096, description="Number of batches of one update (gradient accumulation)."
    )
    optimizer: str | None = Field(
        default=None, min_length=1, description="Optimizer: adam, adamw or adafactor. Default: by preset."
    )
    beta1: float | None = Field(default=None, ge=0, lt=1, description="Adam: decay rate of the mean of the gradients.")
    beta2: float | None = Field(default=None, ge=0, lt=1, description="Adam: decay rate of the squared gradients.")
    eps: float | None = Field(default=None, gt=0, le=1, description="Adam: added to the denominator of an update.")
    weight_decay: float | None = Field(
        default=None, ge=0, le=1, description="Weight decay of weight matrices; not of norms, biases and embeddings."
    )
    lr: float | None = Field(default=None, gt=0, le=1e9, description="Peak learning rate.")
    schedule: str | None = Field(
        default=None,
        min_length=1,
        description="Learning rate after the warm-up: inverse-sqrt, linear, cosine or constant. Default: by preset.",
    )
    warmup_ratio: float | None = Field(
        default=None, ge=0, le=1, description="Fraction of training used for learning-rate warm-up."
    )
    decay_ratio: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Fraction of training at the end with linear decay of the learning rate to 0.",
    )
    mixing_limit: int | None = Field(
        default=None, ge=1, description="Multitask: maximum number of examples that a task counts as."
    )
    mixing_temperature: float = Field(
        default=1.0,
        ge=1,
        le=100,
        description="Multitask: mixing temperature; 1 mixes in proportion to size, higher values more evenly.",
    )
    max_grad_norm: float | None = Field(
        default=None,
        gt=0,
        description="Maximum gradient norm for clipping. Default: by preset.",
    )
    prompt_loss_weight: float | None = Field(
        default=None, ge=0, le=1, description="Summarization: weight of the loss on the prompt. Default: 0."
    )
    label_smoothing: float | None = Field(default=None, ge=0, lt=1, description="Label smoothing epsilon.")
    average_checkpoints: int = Field(
        default=10, ge=1, description="Number of checkpoints averaged at the end; 1: no averaging."
    )
    ema: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="Decay per update of an exponential moving average of the weights. Default: none.",
    )

    seed: int = Field(default=1, ge=0, lt=1 << 63, description="Random seed.")
    save_every: int | None = Field(
        default=None, ge=1, description="Updates between checkpoints. Also at each validation and every minute."
    )
    validate_every: int | None = Field(
        default=None, ge=1, description="Updates between validations. Default: 12 validations in all."
    )
    precision: Literal["auto", "fp32", "bf16"] = Field(
        default="auto",
        description="Arithmetic. Default: on a CPU the fastest, measured for the sizes of the model; on a GPU bf16.",
    )
    cpu_matmul: Literal["auto", "kernels", "torch"] = Field(
        default="auto",
        description="On a CPU, matrix products by the kernels of this package or by PyTorch. Default: the faster ones.",
    )
    device: Literal["auto", "cpu", "cuda", "mps"] = Field(default="auto", description="Device to compute on.")
    compile: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="Compile the model with torch.compile. Default: on a GPU, if that saves more time than it takes.",
    )
    activation_checkpointing: bool = Field(
        default=False,
        description="Compute the activations of Transformer blocks again in the backward pass: less memory, more time.",
    )
    deterministic: bool = Field(
        default=False,
        description="Choose deterministic algorithms on a GPU. On a CPU they are always chosen.",
    )
    threads: int | None = Field(
        default=None, ge=1, le=MAX_THREADS, description="Number of CPU threads of each process. Default: all cores."
    )
    devices: int | None = Field(
        default=None, ge=1, le=1024, description="Number of processes on this machine, each with a GPU. Default: 1."
    )
    shard: bool = Field(
        default=False, description="Split weights and optimizer state over the processes (FSDP2): less memory in each."
    )
    timeout_s: float = Field(
        default=600,
        gt=0,
        le=1e6,
        description="With several processes: seconds without an answer from one after which all of them end.",
    )
    profile: bool = Field(
        default=False,
        description="Write profile.json and profile.html to the run folder: where time and memory go.",
    )
    tensorboard: bool = Field(default=False, description="Also write TensorBoard events to the run folder.")

    @field_validator("model", mode="before")
    @classmethod
    def parse_assignments(cls, value: object) -> object:
        """Parse NAME=VALUE texts. Values are numbers, true, false or texts."""
        if isinstance(value, str):
            value = value.split()
        if not isinstance(value, list | tuple):
            return value
        fields: dict[str, bool | int | float | str] = {}
        for assignment in value:
            name, equals, text = str(assignment).partition("=")
            if not equals or not name or not text:
                raise ValueError(f"expected NAME=VALUE, found {assignment!r}")
            try:
                parsed = tomllib.loads(f"value = {text}")["value"]
            except tomllib.TOMLDecodeError:
                parsed = text
            fields[name] = parsed if isinstance(parsed, bool | int | float | str) else text
        return fields

    @model_validator(mode="after")
    def check_together(self) -> Self:
        budgets = [name for name in ("steps", "epochs", "minutes") if getattr(self, name) is not None]
        if len(budgets) > 1:
            raise ValueError(f"{' and '.join(budgets)} are mutually exclusive; give one")
        if self.dev_tgt and not self.dev_src:
            raise ValueError("dev_tgt needs dev_src")
        if (self.warmup_ratio or 0) + (self.decay_ratio or 0) > 1:
            raise ValueError("warmup_ratio and decay_ratio sum to more than 1")
        return self
