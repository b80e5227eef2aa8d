"""Encoding of the training examples of a run as memory-mapped token ids. Stored in `data/` of the run folder."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, compress, islice
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from glassformer.config import JsonObject
from glassformer.corpora.lines import chunks, source_of
from glassformer.data.dataset import Dataset
from glassformer.data.ragged import Row
from glassformer.errors import CheckpointError, CorpusError
from glassformer.learning.base import AnyObjective
from glassformer.learning.multitask import repetition_factors
from glassformer.limits import MAX_TOKENS
from glassformer.tasks.base import AnyTask, CorpusExample, Log
from glassformer.train_config import TrainConfig
from glassformer.training.labels import N_LISTED, location
from glassformer.training.scan import (
    CorpusInfo,
    check_intact,
    is_training,
    rare_garbage_collection,
    read_corpus,
    write_folder_atomically,
)

ItemT = TypeVar("ItemT")

ENCODED_TOGETHER = 4096
"""Number of examples that are encoded in one call."""
IN_DOMAIN = "in_domain.npy"
"""File with the indices of the examples of the files that --in-domain names."""
MAX_LEFT_OUT = 0.1
"""Fraction of the examples that may be left out as too long; more is an error."""
TOO_LONG_SAMPLE = 1000
"""Maximum number of too long examples in memory, from which an error message suggests a maximum length."""


@dataclass(frozen=True, slots=True)
class PreparedData:
    """Encoded training set and dev set."""

    train: Dataset
    dev: list[CorpusExample]
    label_counts: JsonObject
    """Number of training examples of each class, the most frequent first."""
    in_domain: NDArray[np.int64] | None = None
    """Indices of the training examples of the files that --in-domain names."""


@rare_garbage_collection()
def encode(config: TrainConfig, objective: AnyObjective, corpus: CorpusInfo, log: Log) -> PreparedData:
    """Encode the training examples, if an earlier start of the run has not done it, and read the dev set.

    Raises:
        CorpusError: nothing to train on or to validate on, or too many examples are too long.
        CheckpointError: the dev set in the run folder is missing or damaged.
    """
    folder = config.out / "data"
    if not (folder / "train").exists():
        write_folder_atomically(
            folder / "train", lambda temporary: write_train(config, objective, corpus, temporary, log)
        )
    else:
        check_intact(folder / "train")
    dev = read_dev(folder / "dev.jsonl", objective.task_type)
    if objective.metric == "loss":
        dev = usable_dev(dev, config, objective, log)
    return PreparedData(
        Dataset(folder / "train", objective.fields),
        dev,
        corpus.label_counts,
        np.load(folder / "train" / IN_DOMAIN) if config.in_domain else None,
    )


def read_dev(path: Path, task_type: type[AnyTask]) -> list[CorpusExample]:
    """Read the dev examples of a run folder.

    Raises:
        CheckpointError: the file is missing or damaged.
    """
    try:
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        dev = [task_type.example_type(**json.loads(line)) for line in text.split("\n") if line]
    except (OSError, ValueError, TypeError):
        dev = []
    if not dev:
        raise CheckpointError(f"{path}: missing or damaged.\n  Delete its folder: training writes it again.")
    return dev


def usable_dev(dev: list[CorpusExample], config: TrainConfig, objective: AnyObjective, log: Log) -> list[CorpusExample]:
    """The dev examples whose loss can be computed.

    Raises:
        CorpusError: there are none.
    """
    rows, too_long = objective.encode(dev)
    if not rows:
        raise CorpusError(
            f"{(config.dev_src or config.src)[0]}: nothing in the dev set has a loss: its texts are too"
            f" {f'long ({limited_by(config)})' if too_long else 'short'}.\n  Give more text, or a dev set: --dev FILE."
        )
    if too_long:
        log(
            f"warning: {len(too_long):,} of {len(dev):,} dev examples are too long, and left out"
            f" ({limited_by(config)})."
        )
    left_out = set(map(id, too_long))
    return [example for example in dev if id(example) not in left_out]


def write_train(config: TrainConfig, objective: AnyObjective, corpus: CorpusInfo, folder: Path, log: Log) -> None:
    """Encode the training examples and write them as a memory-mapped dataset.

    Raises:
        CorpusError: nothing to train on, or more than MAX_LEFT_OUT of the examples are too long.
    """
    task = objective.task
    selectors = is_training(corpus.n_examples + len(corpus.held_out), corpus.held_out)
    too_long: list[CorpusExample] = []  # the first of them
    n_too_long = 0
    own_files, is_own = frozenset(map(str, config.in_domain)), bytearray()

    def training() -> Iterator[CorpusExample]:
        return compress(read_corpus(config, objective.task_type), selectors)

    def encoded_chunks() -> Iterator[list[Row]]:
        nonlocal n_too_long
        # The tokenizer encodes a chunk on all cores while the next one is read and the previous one is written.
        examples = objective.extended(resampled(training, objective, config, log), training, log)
        read = ahead(chunks(examples, ENCODED_TOGETHER))
        for chunk, (encoded, too_long_in_chunk) in ahead((part, objective.encode(part)) for part in read):
            n_too_long += len(too_long_in_chunk)
            if own_files:
                left_out = set(map(id, too_long_in_chunk))
                used = (example for example in chunk if id(example) not in left_out)
                is_own.extend(source_of(example.path, own_files) in own_files for example in used)
            too_long.extend(too_long_in_chunk[: TOO_LONG_SAMPLE - len(too_long)])
            yield encoded

    train = Dataset.write(folder, chain.from_iterable(encoded_chunks()), objective.fields, task.tokenizer.vocab_size)
    if n_too_long > MAX_LEFT_OUT * (len(train) + n_too_long):
        raise CorpusError(too_long_message(config, objective, too_long, n_too_long, len(train)))
    if n_too_long:
        first = ", ".join(location(e) for e in too_long[:N_LISTED]) + (", …" if n_too_long > N_LISTED else "")
        log(
            f"warning: {n_too_long:,} {task.examples_name} {objective.too_long} were left out"
            f" ({limited_by(config)}): {first}"
        )
    if objective.n_truncated:
        log(
            f"warning: of {objective.n_truncated:,} {task.examples_name}, the end of the text was cut off, since the"
            f" model has {task.config.max_len} positions ({limited_by(config)})"
        )
    counts = objective.n_tokens(train)
    if not any(counts):
        raise CorpusError(f"{config.src[0]}: no {task.examples_name} to train on.\n  Give a file that has some.")
    if own_files:
        in_domain = np.flatnonzero(np.frombuffer(is_own, bool))
        if not len(in_domain):
            longer = "" if config.init_from else " a larger --max-len,"
            raise CorpusError(
                f"{config.in_domain[0]}: no {task.examples_name} to train on (--in-domain).\n"
                f"  Give a file with more or shorter text,{longer} or larger --weights."
            )
        np.save(folder / IN_DOMAIN, in_domain)
    tokens = " + ".join(f"{n:,}" for n in counts if n)
    log(f"Training set: {len(train):,} {task.examples_name}, {tokens} tokens.")


def resampled(
    training: Callable[[], Iterator[CorpusExample]], objective: AnyObjective, config: TrainConfig, log: Log
) -> Iterator[CorpusExample]:
    """The training examples, in which those of each file are used as often as --weights says, and those of each task
    according to `repetition_factors`."""
    sources = frozenset(map(str, config.src))

    def group(example: CorpusExample) -> str:
        return source_of(example.path, sources) if config.weights else objective.group(example)

    if not config.weights and config.mixing_limit is None and config.mixing_temperature == 1:
        yield from training()
        return
    counts = Counter(group(e) for e in training())
    if config.weights:
        factors = dict(zip(map(str, config.src), config.weights, strict=True))
    else:
        factors = repetition_factors(counts, config.mixing_limit, config.mixing_temperature)
    log("Mixture: " + ", ".join(f"{name} {n:,} x {factors[name]:.2f}" for name, n in counts.items()))
    pending = dict.fromkeys(counts, 0.0)
    for example in training():
        pending[group(example)] += factors[group(example)]
        while pending[group(example)] >= 1 - 1e-9:
            yield example
            pending[group(example)] -= 1


def ahead(items: Iterator[ItemT]) -> Iterator[ItemT]:
    """The items of an iterator, each computed in another thread while the previous one is in use."""
    with ThreadPoolExecutor(1) as thread:
        following = thread.submit(list, islice(items, 1))
        while item := following.result():
            following = thread.submit(list, islice(items, 1))
            yield item[0]


def limited_by(config: TrainConfig) -> str:
    """What determines the maximum length of an example, for messages."""
    return "the length of the model of --init-from" if config.init_from else "--max-len"


def too_long_message(
    config: TrainConfig, objective: AnyObjective, too_long: Sequence[CorpusExample], n_too_long: int, n_train: int
) -> str:
    """Error message for a corpus with too many examples above the maximum length, with suggestions.

    Args:
        too_long: the first of these examples.
    """
    task = objective.task
    n = n_too_long + n_train
    lengths = sorted(objective.needed_max_len(example) for example in too_long)
    suggested = lengths[int(0.95 * (len(lengths) - 1))]
    advice = [f"--max-len {suggested} keeps most of them"] if suggested <= MAX_TOKENS and not config.init_from else []
    if objective.too_long_advice:
        advice.append(objective.too_long_advice)
    advice.append(f"{'or ' if advice else ''}split the texts at sentence ends")
    return (
        f"{config.src[0]}: {n_too_long:,} of {n:,} {task.examples_name} ({n_too_long / n:.0%}) are {objective.too_long}"
        f" and would be left out.\n  {'; '.join(advice)[0].upper()}{'; '.join(advice)[1:]}."
    )
