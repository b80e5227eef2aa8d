"""The Python door: what `import glassformer as gf` gives."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from glassformer.config import TrainConfig
from glassformer.inspection.inspect import inspect
from glassformer.inspection.record import record
from glassformer.tasks.registry import load
from glassformer.training.run import train as run

__all__ = ["inspect", "load", "record", "train"]

Files = str | Path | Sequence[str | Path]


def train(src: Files, tgt: Files = (), *, out: str | Path, quiet: bool = False, **options: Any) -> Any:
    """Train on text files, what for follows from them; the same call again goes on where it was broken off.

    Args:
        src: the text to learn from, one file or several; of a translation the source text, or TSV or JSONL of pairs.
        tgt: of a translation the target text, line by line.
        out: the run folder.
        options: those of `TrainConfig`, as on the command line: task, preset, minutes, dev_src, init_from, ...

    Raises:
        UserError: what the user can mend.
    """
    return run(TrainConfig.resolve({"src": paths(src), "tgt": paths(tgt), "out": out, **options}), quiet=quiet)


def paths(files: Files) -> tuple[Path, ...]:
    if isinstance(files, (str, Path)):
        return (Path(files),)
    if not isinstance(files, Sequence):
        raise TypeError(f"a path or a list of paths was expected, got {type(files).__name__}")
    return tuple(map(Path, files))
