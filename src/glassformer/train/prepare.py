"""Corpus files to what training reads: a tokenizer, ids in memory-mapped files, a held-out dev set."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from glassformer import checkpoint
from glassformer.config import TrainConfig
from glassformer.corpora.corpus import Example, read_pairs
from glassformer.corpora.doctor import PairChecker
from glassformer.corpora.lines import STDIN, check_readable
from glassformer.data.dataset import PairDataset
from glassformer.errors import ConfigError, CorpusError
from glassformer.presets import vocab_size_for
from glassformer.tokens.tokenizer import Tokenizer

MAX_DEV = 1000
TOKENIZER_PAIRS = 1_000_000
NAMED = 3
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A corpus ready for training."""

    tokenizer: Tokenizer
    train: PairDataset
    dev: list[tuple[str, str]]
    n_pairs: int


def prepare(config: TrainConfig, say: Say) -> Prepared:
    """The run folder's `data/`, made if it is not there yet.

    Raises:
        CorpusError: a file cannot be used.
        ConfigError: the folder was made from other files, or the same files have changed.
    """
    folder = config.out / "data"
    if not (config.out / "run.toml").exists():  # begun with other options, perhaps
        shutil.rmtree(folder, ignore_errors=True)
    if not (folder / "corpus.json").exists():
        fresh = config.out / ".data.tmp"
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            fresh.mkdir(parents=True)
            build(config, fresh, say)
            checkpoint.sync_folder(fresh)
            os.rename(fresh, folder)
        except OSError as error:
            raise checkpoint.write_error(folder, error) from error
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    known = checkpoint.read_json(folder / "corpus.json")
    check_unchanged(config, known["files"])
    return Prepared(
        tokenizer=Tokenizer.from_json((folder / "tokenizer.json").read_text(encoding="utf-8")),
        train=PairDataset(folder / "train"),
        dev=[(example.src, example.tgt) for example in read_pairs([folder / "dev.jsonl"])],
        n_pairs=known["n_pairs"],
    )


def build(config: TrainConfig, folder: Path, say: Say) -> None:
    """Write everything that training reads into a folder."""
    if STDIN in corpus_files(config):
        raise ConfigError(
            "standard input (-) can be read only once, training reads its text several times.\n  Put it into a file."
        )
    check_readable(*corpus_files(config))
    files = [fingerprint(path) for path in corpus_files(config)]
    checker = PairChecker(n_shown=1)
    hashes = np.fromiter((text_hash(e.src) for e in usable(config, checker)), dtype=np.uint64)
    for kind, _, n, place, meaning in checker.diagnosis().rows():
        left_out = ", left out" if kind in ("blank-side", "blank-both") else ""
        say(f"warning: {kind}: {n:,}{left_out}: {meaning} ({place})")
    if checker.diagnosis().counts:
        say("`glassformer doctor` names every such line and can mend most.")
    if not len(hashes):
        raise CorpusError(f"{config.src[0]}: no sentence pair that could be trained on.")
    if config.dev_src:
        dev = [(e.src, e.tgt) for e in read_pairs(config.dev_src, config.dev_tgt) if e.src.strip() and e.tgt.strip()]
        if not dev:
            raise CorpusError(f"{config.dev_src[0]}: no sentence pair to validate on.")
        say(f"Dev set: {len(dev):,} pairs, as given.")
        warn_of_overlap(hashes, dev, config, say)
        held_out: frozenset[int] = frozenset()
    else:
        held_out = choose_held_out(hashes, config.src[0])
        examples = (e for e in usable(config) if text_hash(e.src) in held_out)
        dev = [(e.src, e.tgt) for e in islice(examples, MAX_DEV)]
        say(f"Dev set: {len(dev):,} pairs held out of the {len(hashes):,}; none of their sources stays in training.")

    def training() -> Iterator[Example]:
        return (e for e in usable(config) if text_hash(e.src) not in held_out)

    n_train = sum(int(h) not in held_out for h in hashes)
    wanted = config.vocab_size or vocab_size_for(n_train)
    tokenizer = Tokenizer.train(
        (text for e in islice(training(), TOKENIZER_PAIRS) for text in (e.src, e.tgt)),
        kind=config.tokenizer,
        vocab_size=wanted,
    )
    say(f"Tokenizer: {config.tokenizer}, {tokenizer.vocab_size:,} units for both languages.")

    too_long: list[str] = []

    def encoded() -> Iterator[tuple[list[int], list[int]]]:
        for block in blocks(training(), 4096):
            src = tokenizer.encode_batch([e.src for e in block])
            tgt = tokenizer.encode_batch([e.tgt for e in block])
            for example, pair in zip(block, zip(src, tgt, strict=True), strict=True):
                if max(map(len, pair)) >= config.max_len:
                    too_long.append(f"{example.path}:{example.line}")
                else:
                    yield pair

    train = PairDataset.write(folder / "train", encoded(), tokenizer.vocab_size)
    if too_long:
        places = ", ".join(too_long[:NAMED]) + (", …" if len(too_long) > NAMED else "")
        say(f"warning: {len(too_long):,} pairs longer than {config.max_len - 1} tokens left out (--max-len): {places}")
    if not len(train.src.ends):
        raise CorpusError(
            f"{config.src[0]}: every pair is longer than {config.max_len - 1} tokens.\n  Raise --max-len."
        )
    n_pairs = len(train)
    say(f"Training set: {n_pairs:,} pairs, {train.src.ends[-1]:,} + {train.tgt.ends[-1]:,} tokens.")
    rows = (json.dumps({"src": src, "tgt": tgt}) + "\n" for src, tgt in dev)
    checkpoint.write_synced(folder / "dev.jsonl", "".join(rows).encode())
    checkpoint.write_synced(folder / "tokenizer.json", tokenizer.to_json().encode())
    record = {
        "files": files,
        "n_pairs": n_pairs,
        "n_dev": len(dev),
        "vocab_size": tokenizer.vocab_size,
    }
    checkpoint.write_synced(folder / "corpus.json", checkpoint.to_json(record).encode())


def usable(config: TrainConfig, checker: PairChecker | None = None) -> Iterator[Example]:
    """The pairs with text on both sides."""
    for example in read_pairs(config.src, config.tgt):
        if checker:
            checker.check(example)
        if example.src.strip() and example.tgt.strip():
            yield example


def text_hash(text: str) -> int:
    """64 bits of a text, the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "little")


def choose_held_out(hashes: np.ndarray[Any, np.dtype[np.uint64]], path: Path) -> frozenset[int]:
    """Hashes of the source sentences to hold out: a function of the texts alone, 5% of them and at most MAX_DEV.

    Whole sources are held out, so no translation of a dev sentence is trained on.
    """
    distinct = np.unique(hashes)
    if len(distinct) < 2:
        raise CorpusError(f"{path}: one distinct source sentence; training and validation need at least one each.")
    n_dev = min(MAX_DEV, max(1, len(distinct) // 20))
    return frozenset(distinct[:n_dev].tolist())


def warn_of_overlap(
    hashes: np.ndarray[Any, np.dtype[np.uint64]], dev: Sequence[tuple[str, str]], config: TrainConfig, say: Say
) -> None:
    """Say so if dev sentences are trained on."""
    known = set(hashes.tolist())
    lines = [n for n, (src, _) in enumerate(dev, 1) if text_hash(src) in known]
    if lines:
        say(
            f"warning: {len(lines):,} of the {len(dev):,} dev sources are in the training text too"
            f" ({config.dev_src[0]}:{lines[0]} is the first): the dev score will be too good."
        )


def blocks(items: Iterable[Example], size: int) -> Iterator[list[Example]]:
    """Up to `size` items at a time."""
    source = iter(items)
    while block := list(islice(source, size)):
        yield block


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
