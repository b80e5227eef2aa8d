"""Scan of the corpus files of a run: the dev set, the labels, the tokenizer. Stored in `data/` of the run folder."""

import gc
import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import compress, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from glassformer import checkpoint
from glassformer.config import JsonObject
from glassformer.corpora.bilingual import both_sided_format
from glassformer.corpora.lines import check_readable, chunks, refuse_streams
from glassformer.corpora.read_options import ReadOptions, have_fields
from glassformer.errors import CheckpointError, ConfigError, CorpusError
from glassformer.learning.base import AnyObjective
from glassformer.learning.held_out import MAX_HELD_OUT, HeldOut
from glassformer.manifest import MANIFEST, read_json, sha256, verify
from glassformer.presets import vocab_size_for
from glassformer.tasks.base import AnyTask, CorpusExample, Log
from glassformer.tasks.registry import find_model
from glassformer.tokens.tokenizer import Tokenizer
from glassformer.train_config import TrainConfig
from glassformer.training.labels import check_are_classes, describe_labels, drop_unknown_labels

TOKENIZER_EXAMPLES = 1_000_000
"""Maximum number of examples that the tokenizer is trained on."""
HASHED_TOGETHER = 16384
"""Number of examples in memory while keys are hashed."""
LENGTH_SAMPLE = 1000
"""Number of examples from which the default maximum length is chosen."""
LENGTH_QUANTILE = 0.95
"""Fraction of these examples that fit in the default maximum length."""
BYTES_OF_A_PAIR = 140
"""When the default vocabulary is chosen, text for pre-training counts as a pair of sentences for each so many bytes:
about as many as a pair of Multi30k has."""
ALLOCATIONS_PER_COLLECTION = 100_000
"""Number of new Python objects after which Python looks for reference cycles, during the preparation."""


@dataclass(frozen=True, slots=True)
class CorpusInfo:
    """Tokenizer, labels and size of a corpus, from which a model is built."""

    tokenizer: Tokenizer
    labels: tuple[str, ...]
    n_examples: int
    """Number of training examples, without those that are held out."""
    wanted_max_len: int = 0
    """Maximum length in tokens with which most examples are not cut, for tasks whose default length follows the data;
    0 for others."""
    held_out: Sequence[int] = ()
    """Indices of the examples of the training text that are not for training."""
    label_counts: JsonObject = field(default_factory=dict)
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
def scan(config: TrainConfig, objective_type: type[AnyObjective], log: Log) -> CorpusInfo:
    """Scan the corpus files, or read the result of an earlier scan in `data/` of the run folder.

    Raises:
        CorpusError: a file cannot be used.
        ConfigError: the folder was created from other files, or these files have changed.
    """
    folder = config.out / "data"
    if not (config.out / "run.toml").exists():  # the data may be from a killed run with other options
        shutil.rmtree(folder, ignore_errors=True)
    if not (folder / "corpus.json").exists():
        write_folder_atomically(folder, lambda temporary: write_corpus(config, objective_type, temporary, log))
    else:
        check_intact(folder)
    corpus = read_json(folder / "corpus.json")
    check_unchanged(config, corpus["files"])
    return CorpusInfo(
        Tokenizer.from_folder(folder),
        tuple(corpus["labels"]),
        corpus["n_examples"],
        corpus.get("wanted_max_len", 0),
        corpus["held_out"],
        corpus.get("label_counts", {}),
    )


def write_corpus(config: TrainConfig, objective_type: type[AnyObjective], folder: Path, log: Log) -> None:
    """Write the dev set, the tokenizer and corpus.json with the labels and the held-out examples."""
    refuse_streams(corpus_files(config), "training reads its text several times")
    check_readable(*corpus_files(config))
    files = [fingerprint(path) for path in corpus_files(config)]
    if config.dev_src:
        dev, dev_hashes = read_dev_files(config, objective_type)
        n_examples, n_bytes, counts, overlap = scan_corpus(config, objective_type, log, dev_hashes=dev_hashes)
        held_out = np.empty(0, np.int64)
        log(f"Dev set: {len(dev):,} {objective_type.task_type.examples_name} from {config.dev_src[0]}.")
        warn_of_overlap(dev_hashes, overlap, config, log)
    else:
        if config.tags or config.in_domain:
            raise ConfigError(
                "--tags and --in-domain: a dev set that is held out would be of all files.\n"
                "  Give a dev set of the text that the model is for: --dev-src and --dev-tgt."
            )
        selection = objective_type.held_out()
        n_examples, n_bytes, counts, _ = scan_corpus(config, objective_type, log, selection=selection)
        held_out = selection.indices(config.src[0])
        dev, counts_of_dev = held_out_examples(config, objective_type, n_examples, held_out)
        counts -= counts_of_dev
        log(f"Dev set: {len(dev):,} {objective_type.task_type.examples_name} held out from {n_examples:,}.")
    dev = drop_unknown_labels(dev, counts, objective_type, is_explicit=bool(config.dev_src), log=log)
    if counts:
        check_are_classes(counts, objective_type.task_type, is_inferred=config.task is None)
        log(describe_labels(counts, objective_type.task_type))
    n_pairs = n_bytes // BYTES_OF_A_PAIR if objective_type.vocabulary_by_bytes else n_examples - len(held_out)
    tokenizer = make_tokenizer(config, objective_type, n_examples, held_out, n_pairs, log)
    records = (json.dumps(asdict(example)) + "\n" for example in dev)
    checkpoint.write_synced(folder / "dev.jsonl", "".join(records).encode())
    for name, text in tokenizer.files().items():
        checkpoint.write_synced(folder / name, text.encode())
    record = {
        "files": files,
        "models": given_models(config),
        "n_examples": n_examples - len(held_out),
        "n_dev": len(dev),
        "wanted_max_len": wanted_max_len(config, objective_type, tokenizer),
        "labels": objective_type.label_set(counts),
        "label_counts": dict(counts.most_common()) if objective_type.task_type.has_classes else {},
        "held_out": held_out.tolist(),
    }
    checkpoint.write_synced(folder / "corpus.json", checkpoint.to_json(record).encode())


def scan_corpus(
    config: TrainConfig,
    objective_type: type[AnyObjective],
    log: Log,
    *,
    selection: HeldOut | None = None,
    dev_hashes: Sequence[int] = (),
) -> tuple[int, int, Counter[str], set[int]]:
    """Number of examples of the training text, of its bytes in UTF-8, of the examples with each label, and those of
    `dev_hashes` that are hashes of its keys.

    Args:
        selection: selection of the dev examples; gets the hash of each key.

    Raises:
        CorpusError: no example has text.
    """
    n_examples, n_bytes, has_text, counts = 0, 0, False, Counter[str]()
    distinct, overlap = frozenset(dev_hashes), set[int]()
    for examples in chunks(read_corpus(config, objective_type.task_type, log), HASHED_TOGETHER):
        for example in examples:
            for text in objective_type.task_type.texts(example):
                n_bytes += len(text.encode("utf-8", "replace"))
                has_text = has_text or bool(text.strip())
        hashes = [text_hash(objective_type.key(example)) for example in examples]
        overlap |= distinct.intersection(hashes)
        if selection:
            selection.add(np.array(hashes, np.uint64))
        counts.update(label for example in examples for label in objective_type.labels_in(example))
        n_examples += len(hashes)
    if not has_text:
        blank = ": all lines are blank" if n_examples else ""
        raise CorpusError(f"{config.src[0]}: contains no text to train on{blank}.\n  Give a file with text.")
    return n_examples, n_bytes, counts, overlap


def held_out_examples(
    config: TrainConfig, objective_type: type[AnyObjective], n_examples: int, held_out: NDArray[np.int64]
) -> tuple[list[CorpusExample], Counter[str]]:
    """The first MAX_HELD_OUT held-out examples, and the number of all of them with each label.

    Args:
        held_out: indices of the held-out examples.
    """
    dev: list[CorpusExample] = []
    counts: Counter[str] = Counter()
    is_held_out = (not is_for_training for is_for_training in is_training(n_examples, held_out))
    for example in compress(read_corpus(config, objective_type.task_type), is_held_out):
        counts.update(objective_type.labels_in(example))
        if len(dev) < MAX_HELD_OUT:
            dev.append(example)
    return dev, counts


def read_corpus(config: TrainConfig, task_type: type[AnyTask], log: Log | None = None) -> Iterator[CorpusExample]:
    """Read the training text: all examples, with those that are held out."""
    return task_type.read(config.src, config.tgt, set_options(config, task_type, config.src, config.tgt), log)


def is_training(n_examples: int, held_out: Sequence[int] | NDArray[np.int64]) -> bytearray:
    """For each example, whether it is for training. One byte per example, for `itertools.compress`.

    Args:
        held_out: indices of the other examples.
    """
    selectors = bytearray(b"\1") * n_examples
    for index in held_out:
        selectors[index] = 0
    return selectors


def read_dev_files(config: TrainConfig, objective_type: type[AnyObjective]) -> tuple[list[CorpusExample], list[int]]:
    """The examples of the dev files, and the hashes of their keys.

    Raises:
        CorpusError: no example has text.
    """
    options = set_options(config, objective_type.task_type, config.dev_src, config.dev_tgt)
    if objective_type.task_type.name == "translation" and not any(map(both_sided_format, config.dev_src)):
        options = replace(options, fuzzy=False, skip_bad=False)  # of the training files
    dev = list(objective_type.task_type.read(config.dev_src, config.dev_tgt, options))
    if not any(text.strip() for example in dev for text in objective_type.task_type.texts(example)):
        raise CorpusError(f"{config.dev_src[0]}: contains no text to validate on.\n  Give a file with text.")
    return dev, [text_hash(objective_type.key(example)) for example in dev]


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


def make_tokenizer(
    config: TrainConfig,
    objective_type: type[AnyObjective],
    n_examples: int,
    held_out: NDArray[np.int64],
    n_pairs: int,
    log: Log,
) -> Tokenizer:
    """The tokenizer of the model to start from, else one trained on the training examples.

    Args:
        n_examples: those of the training text.
        held_out: indices of those of them that are not for training.
        n_pairs: number of training examples, or of pairs with as much text, by which the vocabulary is chosen.
    """
    if config.init_from:
        tokenizer = Tokenizer.from_folder(find_model(config.init_from))
        log(f"Tokenizer: from {config.init_from}, vocabulary of {tokenizer.vocab_size:,}.")
        if tokenizer.target_warning:
            log(f"warning: {tokenizer.target_warning}.")
        return tokenizer.for_words() if objective_type.encodes_words else tokenizer
    training = compress(read_corpus(config, objective_type.task_type), is_training(n_examples, held_out))
    kind = config.tokenizer or objective_type.default_tokenizer
    tokenizer = Tokenizer.train(
        (text for example in islice(training, TOKENIZER_EXAMPLES) for text in objective_type.task_type.texts(example)),
        kind=kind,  # type: ignore[arg-type]
        vocab_size=config.vocab_size or vocab_size_for(n_pairs),
        extra_special_tokens=objective_type.special_tokens(config),
        lowercase=config.lowercase,
        add_prefix_space=objective_type.add_prefix_space,
    )
    log(f"Tokenizer: {kind}, vocabulary of {tokenizer.vocab_size:,}.")
    if kind in ("char", "byte") and config.vocab_size not in (None, tokenizer.vocab_size):
        log(f"warning: --vocab-size {config.vocab_size} has no effect: the tokenizer has an entry for each {kind}.")
    return tokenizer


def wanted_max_len(config: TrainConfig, objective_type: type[AnyObjective], tokenizer: Tokenizer) -> int:
    """`CorpusInfo.wanted_max_len`, from the first LENGTH_SAMPLE examples."""
    examples = islice(read_corpus(config, objective_type.task_type), LENGTH_SAMPLE)
    lengths = sorted(objective_type.wanted_max_len(tokenizer, example) for example in examples)
    return lengths[int(LENGTH_QUANTILE * (len(lengths) - 1))]


def text_hash(text: str) -> int:
    """64-bit hash of a text, the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "little")


def read_options(config: TrainConfig) -> ReadOptions:
    """Options for reading the corpus files."""
    return ReadOptions(config.format, config.keys, config.skip_bad, config.languages, config.fuzzy)


def set_options(config: TrainConfig, task_type: type[AnyTask], src: Sequence[Path], tgt: Sequence[Path]) -> ReadOptions:
    """Options for reading the training text or the dev set. If only one of both has columns or JSON keys, the keys are
    for it.
    """
    options = read_options(config)

    def has_keys(src: Sequence[Path], tgt: Sequence[Path]) -> bool:
        return have_fields(src, tgt, config.format, may_be_tables=task_type.may_read_tables)

    is_for_other = not has_keys(src, tgt) and (
        has_keys(config.src, config.tgt) or has_keys(config.dev_src, config.dev_tgt)
    )
    return replace(options, keys=()) if is_for_other else options


def corpus_files(config: TrainConfig) -> list[Path]:
    """All corpus files of a run."""
    return [*config.src, *config.tgt, *config.dev_src, *config.dev_tgt]


def given_models(config: TrainConfig) -> dict[str, str]:
    """SHA-256 of the manifest, by the folder, of the finished models that a run begins with."""
    manifests = (path / MANIFEST for path in (config.init_from, config.embeddings) if path)
    return {str(path.parent): sha256(path) for path in manifests if path.exists()}


def fingerprint(path: Path) -> JsonObject:
    """Path, size, modification time and SHA-256 of a file, to detect changes."""
    status = path.stat()
    return {
        "path": str(path),
        "bytes": status.st_size,
        "mtime_ns": status.st_mtime_ns,
        "sha256": sha256(path),
    }


def check_unchanged(config: TrainConfig, recorded: Sequence[JsonObject]) -> None:
    """Check that the corpus files have the contents from which the run folder was created.

    Raises:
        ConfigError: other files, or changed contents.
    """
    files = corpus_files(config)
    if len(files) != len(recorded) or changed_files(config, recorded):
        raise ConfigError(
            f"{config.out}: contains a run on other files than these, or on earlier contents of them:"
            f" {', '.join(map(str, files))}.\n  Choose another --out."
        )


def changed_files(config: TrainConfig, recorded: Sequence[JsonObject]) -> list[Path]:
    """The corpus files whose contents are not those recorded, compared in their order."""
    files = corpus_files(config)
    check_readable(*files)
    changed = []
    for path, entry in zip(files, recorded, strict=False):
        status = path.stat()
        is_as_written = (status.st_size, status.st_mtime_ns) == (entry["bytes"], entry["mtime_ns"])
        if not is_as_written and sha256(path) != entry["sha256"]:
            changed.append(path)
    return changed


def check_intact(folder: Path) -> None:
    """Verify what `write_folder_atomically` wrote; a run of an earlier version has no manifest there.

    Raises:
        CheckpointError: a file is missing or damaged.
    """
    try:
        if (folder / MANIFEST).exists():
            verify(folder)
    except CheckpointError as error:
        message = str(error).split("\n")[0]
        raise CheckpointError(f"{message}\n  Delete {folder}: training writes it again from the text.") from None


def write_folder_atomically(folder: Path, write: Callable[[Path], None]) -> None:
    """Create a folder atomically, with a manifest of its files: after a crash it is either complete or absent."""
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
        write(temporary)
        files = {
            path.name: {"bytes": path.stat().st_size, "sha256": sha256(path)} for path in sorted(temporary.iterdir())
        }
        checkpoint.write_manifest(temporary, files)
        checkpoint.sync_folder(temporary)
        os.rename(temporary, folder)
    except OSError as error:
        raise checkpoint.write_error(folder, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
