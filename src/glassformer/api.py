"""Public Python API: `import glassformer as gf`."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar, Unpack, overload

from glassformer.inspection.inspect import inspect
from glassformer.inspection.record import record_activations
from glassformer.synthetic.ask import print_log
from glassformer.synthetic.distillation import distill as run_distillation
from glassformer.synthetic.distillation import make_teacher
from glassformer.synthetic.train import train as run
from glassformer.tasks.base import AnyTask, Task
from glassformer.tasks.texts import no_op
from glassformer.train_config import Files, TrainConfig, TrainOptions
from glassformer.training.options import check_preset, known_names

__all__ = ["distill", "inspect", "record_activations", "train"]

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
    return run(options_of({"src": src, "tgt": tgt, "out": out, "task": name, **options}), quiet=quiet)


def distill(
    teachers: Files,
    src: Files,
    tgt: Files = (),
    *,
    out: str | Path,
    beam: int | None = None,
    endpoint_model: str | None = None,
    prompt: str | None = None,
    per_minute: float | None = None,
    connections: int | None = None,
    quiet: bool = False,
    **options: Unpack[TrainOptions],
) -> AnyTask:
    """Train a student on the translations of teachers. Repeating the call resumes an interrupted one.

    Args:
        teachers: model folders, of which several are an ensemble, or the address of one server with the chat
            completions of OpenAI, such as "http://127.0.0.1:8000/v1". Its key is in the environment variable
            OPENAI_API_KEY.
        src: text to translate, one or more files.
        tgt: references of it, if there are: the student is trained on these as well, and of several translations the
            one nearest to the reference is used.
        out: run folder of the student.
        beam: beam size of model folders. Default: 4.
        endpoint_model: name of the model at the server.
        prompt: the message to the server, in which {text} is replaced by each source.
        per_minute: maximum number of requests to the server in a minute.
        connections: number of requests at the same time. Default: 8.
        quiet: print no progress.
        options: options of the student's training, as in `train`.

    Returns:
        The student, as returned by `load`.

    Raises:
        UserError: a teacher, a file or an option cannot be used.
    """
    names = [teachers] if isinstance(teachers, (str, Path)) else list(teachers)
    config = options_of({"src": src, "tgt": tgt, "out": out, **options})
    teacher = make_teacher(
        names, config, beam=beam, endpoint_model=endpoint_model, prompt=prompt, per_minute=per_minute,
        connections=connections, api_key=os.environ.get("OPENAI_API_KEY"),
    )  # fmt: skip
    return run_distillation(config, teacher, no_op if quiet else print_log, quiet=quiet)


def options_of(given: Mapping[str, object]) -> TrainConfig:
    """The options of a training from keyword arguments, in which one file may be given without a list."""
    fields = TrainConfig.model_fields
    are_files = {name for name in given if name in fields and fields[name].annotation == tuple[Path, ...]}
    resolved = {name: paths(value) if name in are_files else value for name, value in given.items()}
    config = TrainConfig.resolve(resolved, known=known_names())
    check_preset(resolved, config)
    return config


def paths(files: object) -> tuple[Path, ...]:
    """One or more files as a tuple of paths."""
    if isinstance(files, (str, Path)):
        return (Path(files),)
    if not isinstance(files, Sequence):
        raise TypeError(f"a path or a list of paths was expected, got {type(files).__name__}")
    return tuple(map(Path, files))
