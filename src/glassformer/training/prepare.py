"""Corpus files to what training reads: a tokenizer, ids in memory-mapped files, a held-out dev set."""

import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer import checkpoint
from glassformer.config import TrainConfig
from glassformer.corpora.lines import check_readable, refuse_streams
from glassformer.corpora.read_options import ReadOptions
from glassformer.data.dataset import Dataset, Row
from glassformer.errors import CheckpointError, ConfigError, CorpusError
from glassformer.limits import MAX_TOKENS
from glassformer.presets import vocab_size_for
from glassformer.tasks.base import MAX_HELD_OUT, Log, Task
from glassformer.tasks.multitask import mixing_rates
from glassformer.tasks.registry import find_model
from glassformer.tokens.tokenizer import Tokenizer

TOKENIZER_EXAMPLES = 1_000_000
NAMED = 3
MAX_LEFT_OUT = 0.1
"""Fraction of the examples that may be left out as too long; more is an error."""
TOO_LONG_SAMPLE = 1000


@dataclass(frozen=True, slots=True)
class CorpusInfo:
    """What a corpus says before there is a model."""

    tokenizer: Tokenizer
    labels: tuple[str, ...]
    n_examples: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """A corpus ready for training."""

    train: Dataset
    dev: list[Any]
    n_examples: int


def prepare(
    config: TrainConfig, kind: type[Task], make: Callable[[CorpusInfo], Task], log: Log
) -> tuple[Task, Prepared]:
    """The run folder's `data/`, made if it is not there yet, and the task that reads it.

    Args:
        make: the untrained task, given what the corpus says.

    Raises:
        CorpusError: a file cannot be used.
        ConfigError: the folder was made from other files, or the same files have changed.
    """
    folder = config.out / "data"
    if not (config.out / "run.toml").exists():  # begun with other options, perhaps
        shutil.rmtree(folder, ignore_errors=True)
    if not (folder / "corpus.json").exists():
        write_whole(folder, lambda fresh: describe_corpus(config, kind, fresh, log))
    record = checkpoint.read_json(folder / "corpus.json")
    check_unchanged(config, record["files"])
    task = make(CorpusInfo(Tokenizer.from_folder(folder), tuple(record["labels"]), record["n_examples"]))
    if not (folder / "train").exists():
        write_whole(folder / "train", lambda fresh: encode_corpus(config, task, record["held_out"], fresh, log))
    train = Dataset(folder / "train", kind.fields)
    return task, Prepared(train, read_dev(folder / "dev.jsonl", kind), len(train))


def read_dev(path: Path, kind: type[Task]) -> list[Any]:
    """The dev examples in a run folder's `data/`.

    Raises:
        CheckpointError: the file is missing or damaged.
    """
    try:
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        dev = [kind.example_type(**json.loads(line)) for line in text.split("\n") if line]
    except (OSError, ValueError, TypeError):
        dev = []
    if not dev:
        raise CheckpointError(f"{path}: missing or damaged.\n  Delete its folder: training writes it again.")
    return dev


def write_whole(folder: Path, write: Callable[[Path], None]) -> None:
    """Write a folder so that it is there whole or not at all."""
    fresh = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        fresh.mkdir(parents=True)
        write(fresh)
        checkpoint.sync_folder(fresh)
        os.rename(fresh, folder)
    except OSError as error:
        raise checkpoint.write_error(folder, error) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def describe_corpus(config: TrainConfig, kind: type[Task], folder: Path, log: Log) -> None:
    """Write what there is to know of a corpus before a model reads it: dev set, tokenizer, labels."""
    refuse_streams(corpus_files(config), "training reads its text several times")
    check_readable(*corpus_files(config))
    files = [fingerprint(path) for path in corpus_files(config)]

    def examples(log: Log | None = None) -> Iterator[Any]:
        return kind.read(config.src, config.tgt, read_options(config), log)

    has_text = False

    def keys() -> Iterator[int]:
        nonlocal has_text
        for example in examples(log):
            has_text = has_text or any(text.strip() for text in kind.texts(example))
            yield text_hash(kind.key(example))

    hashes = np.fromiter(keys(), dtype=np.uint64)
    if not len(hashes) or not has_text:
        blank = ": all its lines are blank" if len(hashes) else ""
        raise CorpusError(f"{config.src[0]}: nothing in it that could be trained on{blank}.\n  Give a file with text.")
    held_out = np.zeros(len(hashes), dtype=np.bool_)
    if config.dev_src:
        dev = list(kind.read(config.dev_src, config.dev_tgt, read_options(config)))
        if not any(text.strip() for example in dev for text in kind.texts(example)):
            raise CorpusError(f"{config.dev_src[0]}: nothing in it to validate on.\n  Give a file with text.")
        log(f"Dev set: {len(dev):,} {kind.examples_name}, as given.")
        warn_of_overlap(hashes, [text_hash(kind.key(e)) for e in dev], config, log)
    else:
        held_out = kind.held_out(hashes, config.src[0])
        dev = list(islice((e for e, out in zip(examples(), held_out, strict=True) if out), MAX_HELD_OUT))
        log(
            f"Dev set: {len(dev):,} {kind.examples_name} held out of the {len(hashes):,}; nothing of them stays in training."
        )

    def training() -> Iterator[Any]:
        return (e for e, out in zip(examples(), held_out, strict=True) if not out)

    counts = Counter(label for e in training() for label in kind.labels_in(e))
    dev = check_labels(dev, counts, kind, given=bool(config.dev_src), log=log)
    n_train = int((~held_out).sum())
    if config.init_from:
        tokenizer = Tokenizer.from_folder(find_model(config.init_from))
        log(f"Tokenizer: that of {config.init_from}, {tokenizer.vocab_size:,} units.")
    else:
        tokenizer = Tokenizer.train(
            (text for e in islice(training(), TOKENIZER_EXAMPLES) for text in kind.texts(e)),
            kind=config.tokenizer or kind.default_tokenizer,  # type: ignore[arg-type]
            vocab_size=config.vocab_size or vocab_size_for(n_train),
            extra_special_tokens=kind.extra_special_tokens,
            lowercase=config.lowercase,
            add_prefix_space=kind.add_prefix_space,
        )
        log(f"Tokenizer: {config.tokenizer or kind.default_tokenizer}, {tokenizer.vocab_size:,} units.")
    rows = (json.dumps(asdict(example)) + "\n" for example in dev)
    checkpoint.write_synced(folder / "dev.jsonl", "".join(rows).encode())
    for name, text in tokenizer.files().items():
        checkpoint.write_synced(folder / name, text.encode())
    record = {
        "files": files,
        "n_examples": n_train,
        "n_dev": len(dev),
        "labels": kind.label_set(counts),
        "held_out": np.flatnonzero(held_out).tolist(),
    }
    checkpoint.write_synced(folder / "corpus.json", checkpoint.to_json(record).encode())


def check_labels(dev: list[Any], counts: Counter[str], kind: type[Task], *, given: bool, log: Log) -> list[Any]:
    """The dev examples all of whose labels are trained on; of those that the user gave, others are an error."""
    if not kind.has_classes:
        return dev
    rare = [label for label, n in counts.items() if n == 1]
    if rare:
        names = ", ".join(map(repr, rare[:NAMED]))
        log(f"warning: {len(rare):,} labels have one example each, too few to learn from: {names}")
    known = [e for e in dev if all(label in counts for label in kind.labels_in(e))]
    if given and len(known) < len(dev):
        first = next(e for e in dev if not all(label in counts for label in kind.labels_in(e)))
        label = next(label for label in kind.labels_in(first) if label not in counts)
        raise CorpusError(
            f"{first.path}:{first.line}: the label {label!r} is in the dev set alone.\n"
            f"  Known are {', '.join(map(repr, sorted(counts)[:20]))}.\n"
            "  Mend the label, or give the training text examples of it."
        )
    if not known:
        raise CorpusError("no example can be held out whose label is trained on too.\n  Give a dev set: --dev FILE.")
    return known


def encode_corpus(config: TrainConfig, task: Task, held_out: Sequence[int], folder: Path, log: Log) -> None:
    """Write the rows that training reads."""
    left_out = frozenset(held_out)
    too_long: list[Any] = []

    def training() -> Iterator[Any]:
        examples = task.read(config.src, config.tgt, read_options(config))
        return (e for i, e in enumerate(examples) if i not in left_out)

    def rows() -> Iterator[Row]:
        for block in blocks(resample_mixture(training, task, config, log), 4096):
            found, left = task.encode(block)
            too_long.extend(left)
            yield from found

    train = Dataset.write(folder, rows(), task.fields, task.tokenizer.vocab_size)
    limit = task.model.config.max_len - 1
    if len(too_long) > MAX_LEFT_OUT * (len(train) + len(too_long)):
        raise CorpusError(too_long_message(config, task, too_long, len(train)))
    if too_long:
        first = ", ".join(f"{e.path}:{e.line}" for e in too_long[:NAMED]) + (", …" if len(too_long) > NAMED else "")
        log(f"warning: {len(too_long):,} {task.examples_name} longer than {limit} tokens left out (--max-len): {first}")
    sizes = task.n_tokens(train)
    if not any(sizes):
        raise CorpusError(f"{config.src[0]}: no {task.examples_name} to train on.")
    tokens = " + ".join(f"{size:,}" for size in sizes)
    log(f"Training set: {len(train):,} {task.examples_name}, {tokens} tokens.")


def too_long_message(config: TrainConfig, task: Task, too_long: Sequence[Any], n_train: int) -> str:
    """The error for a corpus of which too much would be left out as too long, with what the user can do."""
    limit, n = task.model.config.max_len - 1, len(too_long) + n_train
    lengths = sorted(task.needed_max_len(example) for example in too_long[:TOO_LONG_SAMPLE])
    wanted = lengths[int(0.95 * (len(lengths) - 1))]
    advice = [f"--max-len {wanted} keeps most of them"] if wanted <= MAX_TOKENS and not config.init_from else []
    if task.name == "translation":
        advice.append("--task summarization truncates long texts, if the targets are summaries")
    advice.append("or split the texts at ends of sentences")
    return (
        f"{config.src[0]}: {len(too_long):,} of {n:,} {task.examples_name} ({len(too_long) / n:.0%}) are longer than"
        f" {limit} tokens and would be left out.\n  {'; '.join(advice)[0].upper()}{'; '.join(advice)[1:]}."
    )


def resample_mixture(training: Callable[[], Iterator[Any]], task: Task, config: TrainConfig, log: Log) -> Iterator[Any]:
    """The examples; of several tasks the rarer ones as many times as the mixture asks for."""
    if config.mixing_limit is None and config.mixing_temperature == 1:
        yield from training()
        return
    counts = Counter(task.group(e) for e in training())
    factors = mixing_rates(counts, config.mixing_limit, config.mixing_temperature)
    log("Mixture: " + ", ".join(f"{name} {n:,} x {factors[name]:.2f}" for name, n in counts.items()))
    due = dict.fromkeys(counts, 0.0)
    for example in training():
        due[task.group(example)] += factors[task.group(example)]
        while due[task.group(example)] >= 1 - 1e-9:
            yield example
            due[task.group(example)] -= 1


def text_hash(text: str) -> int:
    """64 bits of a text, the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "little")


def warn_of_overlap(hashes: NDArray[np.uint64], dev: Sequence[int], config: TrainConfig, log: Log) -> None:
    """Say so if what is validated on is trained on."""
    known = set(hashes.tolist())
    places = [n for n, key in enumerate(dev, 1) if key in known]
    if places:
        log(
            f"warning: {len(places):,} of the {len(dev):,} dev examples are in the training text too"
            f" (the first is number {places[0]} of {config.dev_src[0]}): the dev score will be too good."
        )


def blocks(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Up to `size` items at a time."""
    source = iter(items)
    while block := list(islice(source, size)):
        yield block


def read_options(config: TrainConfig) -> ReadOptions:
    """How the corpus files are read."""
    return ReadOptions(config.format, config.columns, config.keys)


def corpus_files(config: TrainConfig) -> list[Path]:
    """Every file that a run reads."""
    return [*config.src, *config.tgt, *config.dev_src, *config.dev_tgt]


def fingerprint(path: Path) -> dict[str, Any]:
    """What tells a file from a changed one."""
    status = path.stat()
    return {
        "path": str(path),
        "bytes": status.st_size,
        "mtime_ns": status.st_mtime_ns,
        "sha256": checkpoint.sha256(path),
    }


def check_unchanged(config: TrainConfig, known: Sequence[dict[str, Any]]) -> None:
    """Raise ConfigError unless the files given are those the folder was made from."""
    given = corpus_files(config)
    check_readable(*given)
    same = len(given) == len(known)
    for path, row in zip(given, known, strict=False):
        status = path.stat()
        if (status.st_size, status.st_mtime_ns) != (row["bytes"], row["mtime_ns"]):
            same &= checkpoint.sha256(path) == row["sha256"]
    if not same:
        raise ConfigError(
            f"{config.out}: holds a run on other text than {', '.join(map(str, given))}, or that text has changed.\n"
            "  Choose another --out."
        )
