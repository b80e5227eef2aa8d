"""Public Python API: `import glassformer as gf`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar, Unpack, overload

from glassformer.inspection.inspect import inspect
from glassformer.inspection.record import record_activations
from glassformer.synthetic.monolingual import train_with_all as run
from glassformer.tasks.base import AnyTask, Task
from glassformer.train_config import Files, TrainConfig, TrainOptions
from glassformer.training.options import known_names

__all__ = ["inspect", "record_activations", "train"]

FILES = ("dev_src", "dev_tgt", "more_tgt", "more_src", "tagged")
"""Options that are one or more files."""

TaskT = TypeVar("TaskT", bound=AnyTask)


@overload
def train(
    src: Files, tgt: Files = (), *, out: str | Path, task: type[TaskT], quiet: bool = False,
    **options: Unpack[TrainOptions],
) -> TaskT: ...  # fmt: skip
@overload
def train(
    src: Files, tgt: Files = (), *, out: str | Path, task: str | None = None, quiet: bool = False,
    **options: Unpack[TrainOptions],
) -> AnyTask: ...  # fmt: skip
def train(
    src: Files,
    tgt: Files = (),
    *,
    out: str | Path,
    task: str | type[AnyTask] | None = None,
    quiet: bool = False,
    **options: Unpack[TrainOptions],
) -> AnyTask:
    """Train a model on text files. The task is inferred from the files unless `task` is given. Repeating the call
    resumes an interrupted training.

    Args:
        src: training text, one or more files; for translation the source text, or TSV or JSONL with pairs.
        tgt: for translation the target text, line by line.
        out: run folder.
        task: name of the task, or its class, such as `glassformer.tasks.translation.Translator`. With the class, type
            checkers know the type of the result.
        quiet: print no progress.
        options: fields of `TrainConfig`, as on the command line: preset, minutes, dev_src, init_from, ...

    Returns:
        The trained task, as returned by `load`.

    Raises:
        UserError: a file or an option cannot be used.
    """
    if isinstance(task, type) and not issubclass(task, Task):
        raise TypeError(f"task: the name or the class of a task was expected, got the class {task.__name__}")
    name = task.name if isinstance(task, type) else task
    given: dict[str, object] = {"src": paths(src), "tgt": paths(tgt), "out": out, "task": name, **options}
    given |= {option: paths(given[option]) for option in FILES if option in given}  # type: ignore[arg-type]
    return run(TrainConfig.resolve(given, known=known_names()), quiet=quiet)


def paths(files: Files) -> tuple[Path, ...]:
    """One or more files as a tuple of paths."""
    if isinstance(files, (str, Path)):
        return (Path(files),)
    if not isinstance(files, Sequence):
        raise TypeError(f"a path or a list of paths was expected, got {type(files).__name__}")
    return tuple(map(Path, files))
