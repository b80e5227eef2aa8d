"""Translation memories in translations."""

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glassformer.corpora.bilingual import SKIP_ADVICE, files_in
from glassformer.corpora.corpus import detect_format, read_pairs
from glassformer.corpora.memory import Memory
from glassformer.data.dataset import Dataset
from glassformer.decode_config import DecodeConfig
from glassformer.errors import ConfigError, CorpusError
from glassformer.tasks.terms import modified_at
from glassformer.tasks.texts import evenly_spaced
from glassformer.tokens.codes import code_ids
from glassformer.tokens.tags import tags_of
from glassformer.tokens.tokenizer import Tokenizer

SIDES = "src", "tgt"
N_CHECKED, MIN_KEPT = 100, 0.9
"""Number of lines of a dev set that are checked, and fraction of their texts that the tokens must have whole."""

if TYPE_CHECKING:
    from glassformer.tasks.text_to_text import TextToTextTask


def memory_of(task: "TextToTextTask[Any]", options: DecodeConfig) -> Memory | None:
    """The memory of the options; None if there is none. It is read again when its files have changed.

    Raises:
        ConfigError: files that are no memory.
        CorpusError: they cannot be read, or have other languages.
    """
    if not options.memory:
        return None
    languages = tuple(getattr(task, "languages", ()))
    return read_memory(options.memory, tuple(map(state_of, options.memory)), languages)


def state_of(path: Path) -> tuple[tuple[str, float], ...]:
    """The files of a memory, and when they were modified."""
    is_folder_of_files = path.is_dir() and not (path / "data" / "train").is_dir()
    return tuple((str(file), modified_at(file)) for file in (files_in(path) if is_folder_of_files else [path]))


@lru_cache(maxsize=16)
def read_memory(paths: tuple[Path, ...], state: tuple[object, ...], languages: tuple[str, ...]) -> Memory:
    """The memory of files: TMX, XLIFF, PO, archives and tables of pairs; folders of them; run folders.

    Args:
        state: `state_of` of each, so that changed files are read again.
    """

    def pairs() -> Iterator[tuple[str, str]]:
        for path in paths:
            if (path / "data" / "train").is_dir():
                yield from training_text(path)
                continue
            files = files_in(path) if path.is_dir() else [path]
            check_are_pairs(files)
            try:
                for example in read_pairs(files, languages=languages):
                    if example.has_both_sides:
                        yield example.src, example.tgt
            except (CorpusError, ConfigError) as error:
                raise CorpusError(without_options(str(error))) from None

    memory = Memory(pairs())
    if not len(memory):
        which = f" from {languages[0]} to {languages[1]}" if languages else ""
        raise ConfigError(f"--memory {paths[0]}: no text with a translation{which}.\n  Name a memory that has some.")
    return memory


def without_options(message: str) -> str:
    """The error for a file without remedies by options, which translation does not have."""
    lines = message.removesuffix(SKIP_ADVICE).split("\n")
    kept = [line for line in lines if " --" not in line]
    if len(kept) < len(lines):
        kept.append("  Name a memory of the languages of the model, or a table with the columns source and target.")
    return "\n".join(kept)


def check_are_pairs(files: Sequence[Path]) -> None:
    """Check that files have both languages.

    Raises:
        ConfigError: one is plain text.
    """
    for path in files:
        if detect_format(path) == "lines":
            raise ConfigError(
                f"--memory {path}: has no translations.\n"
                "  Name files with both languages (TMX, XLIFF, PO, TSV, CSV, JSONL), or the folder of a training."
            )


def check_keeps_text(folder: Path, tokenizer: Tokenizer) -> None:
    """Check that the training text of a run folder, which is stored as tokens, can be read from them: in most lines of
    its dev set, the tokens have the whole text.

    Raises:
        ConfigError: they do not.
    """
    path = folder / "data" / "dev.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    records = map(json.loads, evenly_spaced(lines, N_CHECKED))
    texts = [(t, record[side].strip()) for record in records for t, side in zip(tokenizer.sides, SIDES, strict=True)]
    kept = [t.decode(t.encode(text)).strip() == text for t, text in texts]
    if texts and sum(kept) < MIN_KEPT * len(texts):
        raise ConfigError(
            f"{folder}: its training text is stored as tokens, which do not have all of it: {len(kept) - sum(kept)} of"
            f" {len(kept)} texts of its dev set differ (--tokenizer word or wordpiece, --lowercase).\n"
            "  Give the text itself to --memory; corrections (update) need a model with --tokenizer bpe."
        )


def training_text(folder: Path) -> Iterator[tuple[str, str]]:
    """Pairs of the training of a run folder, as they are in its files."""
    return ((src, tgt) for _, src, tgt in tagged_training_text(folder))


def tagged_training_text(folder: Path, n: int | None = None) -> Iterator[tuple[str, str, str]]:
    """Pairs of the training of a run folder, as they are in its files, each after its tag, or an empty text.

    Args:
        n: number of evenly spaced ones. Default: all.

    Raises:
        ConfigError: the tokens do not have the text.
    """
    tokenizer = Tokenizer.from_folder(folder)
    check_keeps_text(folder, tokenizer)
    tags = {token_id: tag for tag, token_id in tags_of(tokenizer).items()}
    dataset = Dataset(folder / "data" / "train", SIDES)
    codes = set(code_ids(tokenizer).values())
    for i in evenly_spaced(range(len(dataset)), n):
        src, tgt = dataset[i]
        if not codes.isdisjoint(src):
            continue  # made from another
        yield tags.get(src[0], ""), tokenizer.decode(list(src)), tokenizer.decode(list(tgt))
