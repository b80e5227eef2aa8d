"""Corpus preparation: tokenizer, memory-mapped token ids, and dev set, from corpus files."""

import gc
import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import chain, compress, islice
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from glassformer import checkpoint
from glassformer.config import JsonObject, TrainConfig
from glassformer.corpora.lines import check_readable, chunks, refuse_streams
from glassformer.corpora.read_options import ReadOptions
from glassformer.data.dataset import Dataset
from glassformer.data.ragged import Row
from glassformer.errors import CheckpointError, ConfigError, CorpusError
from glassformer.limits import MAX_TOKENS
from glassformer.presets import vocab_size_for
from glassformer.tasks.base import AnyTask, CorpusExample, Log
from glassformer.tasks.held_out import MAX_HELD_OUT, HeldOut
from glassformer.tasks.multitask import repetition_factors
from glassformer.tasks.registry import find_model
from glassformer.tokens.tokenizer import Tokenizer
from glassformer.training.labels import N_LISTED, check_are_classes, describe_labels, drop_unknown_labels, location

ItemT = TypeVar("ItemT")

TOKENIZER_EXAMPLES = 1_000_000
"""Maximum number of examples that the tokenizer is trained on."""
HASHED_TOGETHER = 16384
"""Number of examples in memory while keys are hashed."""
ENCODED_TOGETHER = 4096
"""Number of examples that are encoded in one call."""
LENGTH_SAMPLE = 1000
"""Number of examples from which the default maximum length is chosen."""
LENGTH_QUANTILE = 0.95
"""Fraction of these examples that fit in the default maximum length."""
MAX_LEFT_OUT = 0.1
"""Fraction of the examples that may be left out as too long; more is an error."""
ALLOCATIONS_PER_COLLECTION = 100_000
"""Number of new Python objects after which Python looks for reference cycles, during the preparation."""
TOO_LONG_SAMPLE = 1000
"""Maximum number of too long examples in memory, from which an error message suggests a maximum length."""


@dataclass(frozen=True, slots=True)
class CorpusInfo:
    """Tokenizer, labels and size of a corpus, from which a model is built."""

    tokenizer: Tokenizer
    labels: tuple[str, ...]
    n_examples: int
    wanted_max_len: int = 0
    """Maximum length in tokens with which most examples are not cut, for tasks whose default length follows the data;
    0 for others."""


@dataclass(frozen=True, slots=True)
class PreparedData:
    """Encoded training set and dev set."""

    train: Dataset
    dev: list[CorpusExample]
    n_examples: int
    label_counts: JsonObject
    """Number of training examples of each class, the most frequent first."""


@contextmanager
def rare_garbage_collection() -> Iterator[None]:
    """Make Python look for reference cycles less often. Examples and token ids have none, and are so many that the
    search takes a tenth of the time of the preparation."""
    thresholds = gc.get_threshold()
    gc.set_threshold(ALLOCATIONS_PER_COLLECTION, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


@rare_garbage_collection()
def prepare(
    config: TrainConfig, task_type: type[AnyTask], make_task: Callable[[CorpusInfo], AnyTask], log: Log
) -> tuple[AnyTask, PreparedData]:
    """Build the task and prepare its data. The data is stored in `data/` of the run folder and reused if it exists.

    Args:
        make_task: builds the untrained task.

    Raises:
        CorpusError: a file cannot be used.
        ConfigError: the folder was created from other files, or these files have changed.
    """
    folder = config.out / "data"
    if not (config.out / "run.toml").exists():  # the data may be from a killed run with other options
        shutil.rmtree(folder, ignore_errors=True)
    if not (folder / "corpus.json").exists():
        write_folder_atomically(folder, lambda temporary: prepare_corpus(config, task_type, temporary, log))
    corpus = checkpoint.read_json(folder / "corpus.json")
    check_unchanged(config, corpus["files"])
    task = make_task(
        CorpusInfo(
            Tokenizer.from_folder(folder),
            tuple(corpus["labels"]),
            corpus["n_examples"],
            corpus.get("wanted_max_len", 0),
        )
    )
    if not (folder / "train").exists():
        held_out = corpus["held_out"]
        n_examples = corpus["n_examples"] + len(held_out)
        write_folder_atomically(
            folder / "train", lambda temporary: encode_corpus(config, task, n_examples, held_out, temporary, log)
        )
    train = Dataset(folder / "train", task_type.fields)
    return task, PreparedData(
        train, read_dev(folder / "dev.jsonl", task_type), len(train), corpus.get("label_counts", {})
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


def write_folder_atomically(folder: Path, write: Callable[[Path], None]) -> None:
    """Create a folder atomically: after a crash it is either complete or absent."""
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
        write(temporary)
        checkpoint.sync_folder(temporary)
        os.rename(temporary, folder)
    except OSError as error:
        raise checkpoint.write_error(folder, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def prepare_corpus(config: TrainConfig, task_type: type[AnyTask], folder: Path, log: Log) -> None:
    """Write the dev set, the tokenizer and corpus.json with the labels and the held-out examples."""
    refuse_streams(corpus_files(config), "training reads its text several times")
    check_readable(*corpus_files(config))
    files = [fingerprint(path) for path in corpus_files(config)]
    if config.dev_src:
        dev, dev_hashes = read_dev_files(config, task_type)
        n_examples, overlap = scan_corpus(config, task_type, log, dev_hashes=dev_hashes)
        held_out = np.empty(0, np.int64)
        log(f"Dev set: {len(dev):,} {task_type.examples_name} from {config.dev_src[0]}.")
        warn_of_overlap(dev_hashes, overlap, config, log)
        _, counts = split_corpus(config, task_type, n_examples, held_out)
    else:
        selection = task_type.held_out()
        n_examples, _ = scan_corpus(config, task_type, log, selection=selection)
        held_out = selection.indices(config.src[0])
        dev, counts = split_corpus(config, task_type, n_examples, held_out)
        log(f"Dev set: {len(dev):,} {task_type.examples_name} held out from {n_examples:,}.")
    dev = drop_unknown_labels(dev, counts, task_type, is_explicit=bool(config.dev_src), log=log)
    if counts:
        check_are_classes(counts, task_type, is_inferred=config.task is None)
        log(describe_labels(counts, task_type))
    tokenizer = make_tokenizer(config, task_type, n_examples, held_out, log)
    records = (json.dumps(asdict(example)) + "\n" for example in dev)
    checkpoint.write_synced(folder / "dev.jsonl", "".join(records).encode())
    for name, text in tokenizer.files().items():
        checkpoint.write_synced(folder / name, text.encode())
    record = {
        "files": files,
        "n_examples": n_examples - len(held_out),
        "n_dev": len(dev),
        "wanted_max_len": wanted_max_len(config, task_type, tokenizer),
        "labels": task_type.label_set(counts),
        "label_counts": dict(counts.most_common()) if task_type.has_classes else {},
        "held_out": held_out.tolist(),
    }
    checkpoint.write_synced(folder / "corpus.json", checkpoint.to_json(record).encode())


def read_corpus(config: TrainConfig, task_type: type[AnyTask], log: Log | None = None) -> Iterator[CorpusExample]:
    """Read the training text: all examples, with those that are held out."""
    return task_type.read(config.src, config.tgt, read_options(config), log)


def scan_corpus(
    config: TrainConfig,
    task_type: type[AnyTask],
    log: Log,
    *,
    selection: HeldOut | None = None,
    dev_hashes: Sequence[int] = (),
) -> tuple[int, set[int]]:
    """Number of examples of the training text, and those of `dev_hashes` that are hashes of its keys.

    Args:
        selection: selection of the dev examples; gets the hash of each key.

    Raises:
        CorpusError: no example has text.
    """
    n_examples, has_text = 0, False
    distinct, overlap = frozenset(dev_hashes), set[int]()
    for examples in chunks(read_corpus(config, task_type, log), HASHED_TOGETHER):
        has_text = has_text or any(text.strip() for example in examples for text in task_type.texts(example))
        hashes = [text_hash(task_type.key(example)) for example in examples]
        overlap |= distinct.intersection(hashes)
        if selection:
            selection.add(np.array(hashes, np.uint64))
        n_examples += len(hashes)
    if not has_text:
        blank = ": all lines are blank" if n_examples else ""
        raise CorpusError(f"{config.src[0]}: contains no text to train on{blank}.\n  Give a file with text.")
    return n_examples, overlap


def is_training(n_examples: int, held_out: Sequence[int] | NDArray[np.int64]) -> bytearray:
    """For each example, whether it is for training. One byte per example, for `itertools.compress`.

    Args:
        held_out: indices of the other examples.
    """
    selectors = bytearray(b"\1") * n_examples
    for index in held_out:
        selectors[index] = 0
    return selectors


def split_corpus(
    config: TrainConfig, task_type: type[AnyTask], n_examples: int, held_out: NDArray[np.int64]
) -> tuple[list[CorpusExample], Counter[str]]:
    """The first MAX_HELD_OUT held-out examples, and the number of training examples of each label.

    Args:
        held_out: indices of the held-out examples.
    """
    dev: list[CorpusExample] = []
    counts: Counter[str] = Counter()
    for example, is_for_training in zip(read_corpus(config, task_type), is_training(n_examples, held_out), strict=True):
        if is_for_training:
            counts.update(task_type.labels_in(example))
        elif len(dev) < MAX_HELD_OUT:
            dev.append(example)
    return dev, counts


def read_dev_files(config: TrainConfig, task_type: type[AnyTask]) -> tuple[list[CorpusExample], list[int]]:
    """The examples of the dev files, and the hashes of their keys.

    Raises:
        CorpusError: no example has text.
    """
    dev = list(task_type.read(config.dev_src, config.dev_tgt, read_options(config)))
    if not any(text.strip() for example in dev for text in task_type.texts(example)):
        raise CorpusError(f"{config.dev_src[0]}: contains no text to validate on.\n  Give a file with text.")
    return dev, [text_hash(task_type.key(example)) for example in dev]


def make_tokenizer(
    config: TrainConfig, task_type: type[AnyTask], n_examples: int, held_out: NDArray[np.int64], log: Log
) -> Tokenizer:
    """The tokenizer of the model to start from, else one trained on the training examples."""
    if config.init_from:
        tokenizer = Tokenizer.from_folder(find_model(config.init_from))
        log(f"Tokenizer: from {config.init_from}, vocabulary of {tokenizer.vocab_size:,}.")
        return tokenizer
    training = compress(read_corpus(config, task_type), is_training(n_examples, held_out))
    kind = config.tokenizer or task_type.default_tokenizer
    tokenizer = Tokenizer.train(
        (text for example in islice(training, TOKENIZER_EXAMPLES) for text in task_type.texts(example)),
        kind=kind,  # type: ignore[arg-type]
        vocab_size=config.vocab_size or vocab_size_for(n_examples - len(held_out)),
        extra_special_tokens=task_type.extra_special_tokens,
        lowercase=config.lowercase,
        add_prefix_space=task_type.add_prefix_space,
    )
    log(f"Tokenizer: {kind}, vocabulary of {tokenizer.vocab_size:,}.")
    return tokenizer


def wanted_max_len(config: TrainConfig, task_type: type[AnyTask], tokenizer: Tokenizer) -> int:
    """`CorpusInfo.wanted_max_len`, from the first LENGTH_SAMPLE examples."""
    examples = islice(read_corpus(config, task_type), LENGTH_SAMPLE)
    lengths = sorted(task_type.wanted_max_len(tokenizer, example) for example in examples)
    return lengths[int(LENGTH_QUANTILE * (len(lengths) - 1))]


def encode_corpus(
    config: TrainConfig, task: AnyTask, n_examples: int, held_out: Sequence[int], folder: Path, log: Log
) -> None:
    """Encode the training examples and write them as a memory-mapped dataset.

    Args:
        n_examples: number of all examples of the corpus.
        held_out: indices of the examples that are not for training.

    Raises:
        CorpusError: nothing to train on, or more than MAX_LEFT_OUT of the examples are too long.
    """
    selectors = is_training(n_examples, held_out)
    too_long: list[CorpusExample] = []  # the first of them
    n_too_long = 0

    def training() -> Iterator[CorpusExample]:
        return compress(read_corpus(config, type(task)), selectors)

    def encoded_chunks() -> Iterator[list[Row]]:
        nonlocal n_too_long
        # The tokenizer encodes a chunk on all cores while the next one is read and the previous one is written.
        read = ahead(chunks(resample_mixture(training, task, config, log), ENCODED_TOGETHER))
        for encoded, too_long_in_chunk in ahead(map(task.encode, read)):
            n_too_long += len(too_long_in_chunk)
            too_long.extend(too_long_in_chunk[: TOO_LONG_SAMPLE - len(too_long)])
            yield encoded

    train = Dataset.write(folder, chain.from_iterable(encoded_chunks()), task.fields, task.tokenizer.vocab_size)
    limit = task.model.config.max_len - 1
    if n_too_long > MAX_LEFT_OUT * (len(train) + n_too_long):
        raise CorpusError(too_long_message(config, task, too_long, n_too_long, len(train)))
    if n_too_long:
        first = ", ".join(location(e) for e in too_long[:N_LISTED]) + (", …" if n_too_long > N_LISTED else "")
        log(
            f"warning: {n_too_long:,} {task.examples_name} longer than {limit} tokens were left out (--max-len):"
            f" {first}"
        )
    if task.n_truncated:
        log(
            f"warning: of {task.n_truncated:,} {task.examples_name}, the end of the text was cut off, since the model"
            f" has {task.model.config.max_len} positions (--max-len)"
        )
    counts = task.n_tokens(train)
    if not any(counts):
        raise CorpusError(f"{config.src[0]}: no {task.examples_name} to train on.")
    tokens = " + ".join(f"{n:,}" for n in counts if n)
    log(f"Training set: {len(train):,} {task.examples_name}, {tokens} tokens.")


def ahead(items: Iterator[ItemT]) -> Iterator[ItemT]:
    """The items of an iterator, each computed in another thread while the previous one is in use."""
    with ThreadPoolExecutor(1) as thread:
        following = thread.submit(list, islice(items, 1))
        while item := following.result():
            following = thread.submit(list, islice(items, 1))
            yield item[0]


def too_long_message(
    config: TrainConfig, task: AnyTask, too_long: Sequence[CorpusExample], n_too_long: int, n_train: int
) -> str:
    """Error message for a corpus with too many examples above the maximum length, with suggestions.

    Args:
        too_long: the first of these examples.
    """
    limit, n = task.model.config.max_len - 1, n_too_long + n_train
    lengths = sorted(task.needed_max_len(example) for example in too_long)
    suggested = lengths[int(0.95 * (len(lengths) - 1))]
    advice = [f"--max-len {suggested} keeps most of them"] if suggested <= MAX_TOKENS and not config.init_from else []
    if task.too_long_advice:
        advice.append(task.too_long_advice)
    advice.append("or split the texts at sentence ends")
    return (
        f"{config.src[0]}: {n_too_long:,} of {n:,} {task.examples_name} ({n_too_long / n:.0%}) are longer than"
        f" {limit} tokens and would be left out.\n  {'; '.join(advice)[0].upper()}{'; '.join(advice)[1:]}."
    )


def resample_mixture(
    training: Callable[[], Iterator[CorpusExample]], task: AnyTask, config: TrainConfig, log: Log
) -> Iterator[CorpusExample]:
    """The training examples, in which those of each task are repeated according to `repetition_factors`."""
    if config.mixing_limit is None and config.mixing_temperature == 1:
        yield from training()
        return
    counts = Counter(task.group(e) for e in training())
    factors = repetition_factors(counts, config.mixing_limit, config.mixing_temperature)
    log("Mixture: " + ", ".join(f"{name} {n:,} x {factors[name]:.2f}" for name, n in counts.items()))
    pending = dict.fromkeys(counts, 0.0)
    for example in training():
        pending[task.group(example)] += factors[task.group(example)]
        while pending[task.group(example)] >= 1 - 1e-9:
            yield example
            pending[task.group(example)] -= 1


def text_hash(text: str) -> int:
    """64-bit hash of a text, the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "little")


def warn_of_overlap(dev_hashes: Sequence[int], overlap: Collection[int], config: TrainConfig, log: Log) -> None:
    """Log a warning if dev examples are also in the training set.

    Args:
        dev_hashes: hashes of the dev examples.
        overlap: those that are hashes of training examples.
    """
    positions = [position for position, dev_hash in enumerate(dev_hashes, 1) if dev_hash in overlap]
    if positions:
        log(
            f"warning: {len(positions):,} of {len(dev_hashes):,} dev examples are also in the training set"
            f" (first: example {positions[0]} of {config.dev_src[0]}); dev scores will be too high."
        )


def read_options(config: TrainConfig) -> ReadOptions:
    """Options for reading the corpus files."""
    return ReadOptions(config.format, config.keys, config.skip_bad)


def corpus_files(config: TrainConfig) -> list[Path]:
    """All corpus files of a run."""
    return [*config.src, *config.tgt, *config.dev_src, *config.dev_tgt]


def fingerprint(path: Path) -> JsonObject:
    """Path, size, modification time and SHA-256 of a file, to detect changes."""
    status = path.stat()
    return {
        "path": str(path),
        "bytes": status.st_size,
        "mtime_ns": status.st_mtime_ns,
        "sha256": checkpoint.sha256(path),
    }


def check_unchanged(config: TrainConfig, recorded: Sequence[JsonObject]) -> None:
    """Check that the corpus files have the contents from which the run folder was created.

    Raises:
        ConfigError: other files, or changed contents.
    """
    files = corpus_files(config)
    check_readable(*files)
    is_same = len(files) == len(recorded)
    for path, entry in zip(files, recorded, strict=False):
        status = path.stat()
        if (status.st_size, status.st_mtime_ns) != (entry["bytes"], entry["mtime_ns"]):
            is_same &= checkpoint.sha256(path) == entry["sha256"]
    if not is_same:
        raise ConfigError(
            f"{config.out}: contains a run on other files than these, or on earlier contents of them:"
            f" {', '.join(map(str, files))}.\n  Choose another --out."
        )
