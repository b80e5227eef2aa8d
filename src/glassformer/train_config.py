"""Options of training."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Self, TypedDict

from pydantic import Field, field_validator, model_validator

from glassformer.config import LIST_EXAMPLES, MAX_THREADS, Config
from glassformer.limits import MAX_TOKENS

Files = str | Path | Sequence[str | Path]
"""One or more paths."""

Preset = Literal["auto", "tiny", "small", "base", "large", "big"]

MAX_WEIGHT = 10_000.0
"""Largest value of --weights."""

MAX_TEACHERS = 8
"""Largest value of --n-teachers."""

NOT_WITH_TEACHERS = ("weights", "tags", "in_domain", "more_tgt", "more_src")
"""Options that a training on the translations of teachers does not have."""

BUDGETS = ("steps", "epochs", "minutes")
"""Options that say how long a training is."""

NO_TAG = "none"
"""Value of --tags for a file without a tag."""


class TrainConfig(Config):
    """Options of a training run. Those that are None are chosen from the corpus and the preset, and logged."""

    alternatives = (BUDGETS,)

    src: tuple[Path, ...] = Field(
        min_length=1, description="Training text; for translation the source side, or TSV or JSONL files of pairs."
    )
    tgt: tuple[Path, ...] = Field(
        default=(), description="Target side of the training text: line n is the translation of source line n."
    )
    out: Path = Field(description="Run folder. It is created, or continued if it holds the same run.")
    dev_src: tuple[Path, ...] = Field(
        default=(),
        description="Dev set; for translation a file of pairs, or two files: --dev dev.en dev.fr. Default: held out"
        " from the training text.",
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
        description="Format of the files: lines, tsv, csv, jsonl, tmx, xliff, po, archive or catalogue. Default: by"
        " file name, for other names by content.",
    )
    keys: tuple[str, ...] = Field(
        default=(),
        description="Fields and their columns in CSV and TSV, by name or number, or their keys in JSONL: text=tweet"
        " label=sentiment, or src=translation.en tgt=translation.fr. Default: by the names, or guessed.",
    )
    skip_bad: bool = Field(
        default=False,
        description="Leave out the rows of labeled text that have no label or cannot be read, and catalogues that"
        " cannot be read. They are counted.",
    )

    fuzzy: bool = Field(
        default=False,
        description="Also use the entries of translation memories, XLIFF and gettext catalogues that are fuzzy or were"
        " translated by a machine.",
    )

    inline_codes: bool = Field(
        default=False,
        description="Translation: also train with codes in the text, so that the model says where placeholders and"
        " tags of a source belong in the translation. Default: word alignment says it.",
    )
    more_tgt: tuple[Path, ...] = Field(
        default=(),
        description="Translation: more text in the target language, one sentence on each line. A model of the other"
        " direction translates it back, and the training uses these pairs as well.",
    )
    more_src: tuple[Path, ...] = Field(
        default=(),
        description="Translation: more text in the source language. A first model translates it, and the training uses"
        " these pairs as well.",
    )
    reverse_model: Path | None = Field(
        default=None, description="Model folder that translates --more-tgt. Default: trained first."
    )
    forward_model: Path | None = Field(
        default=None, description="Model folder that translates --more-src. Default: trained first."
    )
    n_teachers: int = Field(
        default=0,
        ge=0,
        le=MAX_TEACHERS,
        description="Translation: number of models that are trained first, in half of --minutes, and whose translations"
        " are used, too.",
    )
    weights: tuple[float, ...] = Field(
        default=(),
        description="Translation: how often each pair is used in a pass over the corpus, a number for each source file:"
        " 3 three times, 0.5 every other pair. Default: 1.",
    )
    tags: tuple[str, ...] = Field(
        default=(),
        description="Translation: a tag for each source file, such as its domain, or none. The model learns how text"
        " with a tag differs: translate --tag NAME. Without --tag it translates like the files without one.",
    )
    in_domain: tuple[Path, ...] = Field(
        default=(),
        description="Translation: those of the source files that are of the domain that the model is for. The last"
        " fifth of the training uses only these.",
    )
    languages: tuple[str, ...] = Field(
        default=(),
        description="Codes of source and target language, stored with the model. Default: the suffixes of the files, as"
        " in train.en train.fr, or of the --keys.",
    )

    preset: Preset = Field(
        default="auto",
        description="Model size and training recipe; auto: by corpus size, on a CPU also by --minutes.",
    )
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
    dropout: float | Literal["auto"] | None = Field(
        default=None,
        description="Dropout probability of embeddings and sub-layer outputs; auto: the higher, the more often the"
        " training sees its text. Default: by preset.",
    )
    pre_norm: bool | None = Field(default=None, description="Normalize before each sub-layer, not after it.")
    rotary: bool | None = Field(
        default=None,
        description="Relative positions in self-attention, by rotation, instead of sinusoids. Such a translator cannot"
        " be exported to Hugging Face. Default: by preset.",
    )
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
        description="Maximum number of tokens computed at once, per side; larger batches are computed in parts: the"
        " same, up to rounding and random numbers. Default: 8,192, on a GPU for each 8 GiB of its memory; half when"
        " memory runs out.",
    )
    accumulate: int = Field(
        default=1, ge=1, le=4096, description="Number of batches of one update (gradient accumulation)."
    )
    optimizer: str | None = Field(
        default=None, min_length=1, description="Optimizer: adam, adamw, adafactor or muon. Default: by preset."
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
    augment: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Translation: fraction of the training pairs that are changed at each use: lower case, typing"
        " errors, missing or repeated end marks, emoji, numbers, codes, two sentences as one, single words."
        " Default: 0.1 with the presets tiny and small of the Transformer, unless the tokenizer is word, else 0.",
    )
    bpe_dropout: float | None = Field(
        default=None,
        ge=0,
        lt=1,
        description="Text to text: probability with which a merge of the tokenizer is left out in training.",
    )
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
        description="Arithmetic. Default: on a CPU the fastest, measured for the sizes of the model; on a GPU bf16 if"
        " it has it.",
    )
    cpu_matmul: Literal["auto", "kernels", "torch"] = Field(
        default="auto",
        description="On a CPU, matrix products by the kernels of this package or by PyTorch. Default: the faster ones.",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(default="auto", description="Device to compute on.")
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

    @field_validator("dropout")
    @classmethod
    def check_dropout(cls, value: float | str | None) -> float | str | None:
        if isinstance(value, float) and not 0 <= value < 1:
            raise ValueError(f"{value}: a probability is at least 0 and below 1")
        return value

    @field_validator("keys", mode="before")
    @classmethod
    def join_keys(cls, value: object) -> object:
        """FIELD=KEY texts of a mapping from fields to keys."""
        return [f"{field}={key}" for field, key in value.items()] if isinstance(value, Mapping) else value

    @field_validator("languages")
    @classmethod
    def check_languages(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if bad := next((code for code in value if len(code.split()) > 1), None):
            raise ValueError(f"{bad!r}: expected a list of codes, for example languages={LIST_EXAMPLES['languages']}")
        return value

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
            except (ValueError, RecursionError):  # also a number of thousands of digits
                parsed = text
            fields[name] = parsed if isinstance(parsed, bool | int | float | str) else text
        return fields

    @model_validator(mode="after")
    def check_together(self) -> Self:
        budgets = [name for name in BUDGETS if getattr(self, name) is not None]
        if len(budgets) > 1:
            raise ValueError(f"{' and '.join(budgets)} are mutually exclusive; give one")
        if self.dev_tgt and not self.dev_src:
            raise ValueError("dev_tgt needs dev_src")
        for model, more in (("reverse_model", "more_tgt"), ("forward_model", "more_src")):
            if getattr(self, model) and not getattr(self, more):
                raise ValueError(f"{model} needs {more}")
        if self.n_teachers and (given := [name for name in NOT_WITH_TEACHERS if getattr(self, name)]):
            raise ValueError(f"n_teachers and {given[0]} are mutually exclusive; give one")
        if (self.n_teachers or 0) > 1 and self.tokenizer == "unigram":
            raise ValueError(
                "n_teachers with the tokenizer unigram, whose training is not deterministic: each teacher would have"
                " another vocabulary; use bpe"
            )
        self.check_files()
        if (self.warmup_ratio or 0) + (self.decay_ratio or 0) > 1:
            raise ValueError("warmup_ratio and decay_ratio sum to more than 1")
        return self

    def check_files(self) -> None:
        """Check the options that describe the source files."""
        n = len(self.src)
        for name in ("weights", "tags"):
            if (values := getattr(self, name)) and len(values) != n:
                raise ValueError(f"{name}: {len(values)} for {n} source files; give one for each (--src A B --tgt A B)")
        if bad := [f"{weight:g}" for weight in self.weights if not 0 < weight <= MAX_WEIGHT]:
            raise ValueError(f"weights: {', '.join(bad)}: a weight is above 0 and at most {MAX_WEIGHT:,.0f}")
        if bad := [tag for tag in self.tags if tag != NO_TAG and not re.fullmatch(r"\w[\w.-]*", tag)]:
            raise ValueError(f"tags: {', '.join(bad)}: a name has letters, digits, '.', '_' and '-'")
        if self.tags and NO_TAG not in self.tags:
            raise ValueError(f"tags: one file must have {NO_TAG}: translations without --tag are like it")
        if self.tags and set(self.tags) == {NO_TAG}:
            raise ValueError("tags: no file has one; leave the option out")
        if unknown := [str(path) for path in self.in_domain if path not in self.src]:
            files = ", ".join(map(str, self.src))
            raise ValueError(f"in_domain: {', '.join(unknown)}: not a source file of the training, which are {files}")
        if self.in_domain and set(self.in_domain) == set(self.src) and not (self.more_tgt or self.more_src):
            raise ValueError("in_domain: all source files; name some of them")
        if (self.weights or self.tags or self.in_domain) and len(set(self.src)) < n:
            raise ValueError("weights, tags and in_domain are of files, and a source file is given twice")


class TrainOptions(TypedDict, total=False):
    """Fields of `TrainConfig` as keyword arguments, without those that `gf.train` has as parameters of its own."""

    dev_src: Files
    dev_tgt: Files
    family: str | None
    init_from: str | Path | None
    embeddings: str | Path | None
    format: Literal["lines", "tsv", "csv", "jsonl", "tmx", "xliff", "po", "archive", "catalogue"] | None
    keys: str | Sequence[str] | Mapping[str, str | int]
    skip_bad: bool
    fuzzy: bool
    inline_codes: bool
    more_tgt: Files
    more_src: Files
    reverse_model: str | Path | None
    forward_model: str | Path | None
    n_teachers: int
    weights: Sequence[float]
    tags: Sequence[str]
    in_domain: Files
    languages: Sequence[str]
    preset: Preset
    steps: int | None
    epochs: int | None
    minutes: float | None
    tokenizer: Literal["bpe", "unigram", "wordpiece", "word", "char", "byte"] | None
    lowercase: bool
    vocab_size: int | None
    d_model: int | None
    n_heads: int | None
    d_ff: int | None
    n_layers: int | None
    dropout: float | Literal["auto"] | None
    pre_norm: bool | None
    rotary: bool | None
    max_len: int | None
    model: dict[str, bool | int | float | str] | None
    pooling: Literal["first", "mean"] | None
    batch_tokens: int | None
    auto_batch: bool
    micro_batch_tokens: int | None
    accumulate: int
    optimizer: str | None
    beta1: float | None
    beta2: float | None
    eps: float | None
    weight_decay: float | None
    lr: float | None
    schedule: str | None
    warmup_ratio: float | None
    decay_ratio: float | None
    mixing_limit: int | None
    mixing_temperature: float
    max_grad_norm: float | None
    prompt_loss_weight: float | None
    label_smoothing: float | None
    augment: float | None
    bpe_dropout: float | None
    average_checkpoints: int
    ema: float | None
    seed: int
    save_every: int | None
    validate_every: int | None
    precision: Literal["auto", "fp32", "bf16"]
    cpu_matmul: Literal["auto", "kernels", "torch"]
    device: Literal["auto", "cpu", "cuda"]
    compile: Literal["auto", "on", "off"]
    activation_checkpointing: bool
    deterministic: bool
    threads: int | None
    devices: int | None
    shard: bool
    timeout_s: float
    profile: bool
    tensorboard: bool
