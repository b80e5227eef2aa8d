"""Verified export: what was written is read again and compared with the original, before it gets its name."""

import importlib
import json
from pathlib import Path
from typing import Any, Literal

from glassformer import checkpoint
from glassformer.corpora.lines import read_lines
from glassformer.errors import CorpusError, UserError
from glassformer.interop.tokenizer import export_tokenizer
from glassformer.interop.verification import Agreement, Source, compare, encode_lines, random_sources
from glassformer.tasks.base import AnyTask
from glassformer.tasks.registry import load
from glassformer.tasks.texts import evenly_spaced

Format = Literal["ctranslate2", "onnx"]

MAX_DEV_EXAMPLES = 200
"""Number of examples of the dev set that are compared."""


def export_verified(folder: Path, out: Path, to: Format, src: Path | None = None) -> str:
    """Convert a model folder to a folder of another program, with the tokenizer beside the model.

    The folder is read again and its outputs are compared with those of the original. Nothing is written if they differ.

    Args:
        src: file with lines of text to compare. Default: the dev set of a run folder, else random tokens.

    Returns:
        Description of the result.

    Raises:
        UserError: the program has no such model, its package is missing, or the outputs differ.
    """
    checkpoint.check_empty(out)
    target = import_target(to)
    task = load(folder, device="cpu")
    sources, description = read_sources(task, folder, src)
    with checkpoint.replace_folder(out) as temporary:
        contents = target.save(task, temporary)
        for name, text in export_tokenizer(task).items():
            (temporary / name).write_text(text, encoding="utf-8", newline="\n")
        agreement: Agreement = compare(task, target.load(temporary, task), sources)
        try:
            agreement.check()
        except UserError as error:
            raise UserError(f"{out}: compared on {description}: {error}") from None
    return f"{contents}. Compared with the original on {description}: {agreement}."


def import_target(to: Format) -> Any:
    """The module that writes and reads a format.

    Raises:
        UserError: a package that it needs is not installed.
    """
    try:
        return importlib.import_module(f"glassformer.interop.{to}")
    except ImportError as error:
        raise UserError(
            f"--to {to} needs the package {error.name}, which is not installed.\n"
            "  Install it with: pip install 'glassformer[export]'"
        ) from None


def read_sources(task: AnyTask, folder: Path, src: Path | None) -> tuple[list[Source], str]:
    """The sources to compare, and their description.

    Raises:
        CorpusError: the file has no text.
    """
    dev = folder / "data" / "dev.jsonl"
    if src is None and not dev.exists():
        sources = random_sources(task)
        return sources, f"{len(sources)} sources of random tokens"
    if src is not None:
        lines, name = list(read_lines(src)), str(src)
    else:
        examples = [task.example_type(**json.loads(line)) for line in read_lines(dev)]
        texts = [task.texts(example) for example in evenly_spaced(examples, MAX_DEV_EXAMPLES)]
        # The first text is the source; a pair is the input of an encoder.
        lines, name = ["\t".join(text) if task.kind == "encoder" else text[0] for text in texts], "the dev set"
    sources = encode_lines(task, lines)
    if not sources:
        raise CorpusError(f"{name}: no text for the comparison.\n  --src takes a file with lines of text.")
    return sources, f"{len(sources):,} lines of {name}"
