"""Types of keyword arguments: the options of `gf.train` and of tasks that generate text, for type checkers and editors.

`config.py` has the descriptions, defaults and ranges of the options.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypedDict

from glassformer.train_config import Preset

Files = str | Path | Sequence[str | Path]
"""One or more paths."""


class TextOptions(TypedDict, total=False):
    """Fields of `DecodeConfig` as keyword arguments, without those that add more to an output than its text."""

    beam: int
    length_penalty: float
    max_length: int | None
    no_repeat_ngram_size: int | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    typical_p: float | None
    seed: int
    repetition_penalty: float | None
    min_length: int
    prefix: str
    ban: Sequence[str]
    stop: Sequence[str]
    glossary: str | Path | None
    protect: Sequence[str]
    min_confidence: float | None
    shortlist: bool
    precision: Literal["auto", "fp32", "bf16", "int8"]
    batch_tokens: int


class DecodeOptions(TextOptions, total=False):
    """Fields of `DecodeConfig` as keyword arguments."""

    nbest: int
    align: bool
    confidence: bool


class TrainOptions(TypedDict, total=False):
    """Fields of `TrainConfig` as keyword arguments, without those that `gf.train` has as parameters of its own."""

    dev_src: Files
    dev_tgt: Files
    family: str | None
    init_from: str | Path | None
    embeddings: str | Path | None
    format: Literal["lines", "tsv", "csv", "jsonl"] | None
    keys: Sequence[str]
    skip_bad: bool
    languages: Sequence[str]
    preset: Preset | None
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
    dropout: float | None
    pre_norm: bool | None
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
    average_checkpoints: int
    ema: float | None
    seed: int
    save_every: int | None
    validate_every: int | None
    precision: Literal["auto", "fp32", "bf16"]
    cpu_matmul: Literal["auto", "kernels", "torch"]
    device: Literal["auto", "cpu", "cuda", "mps"]
    compile: Literal["auto", "on", "off"]
    activation_checkpointing: bool
    deterministic: bool
    threads: int | None
    devices: int | None
    shard: bool
    timeout_s: float
    profile: bool
    tensorboard: bool
