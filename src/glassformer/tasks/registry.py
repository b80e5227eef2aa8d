"""Registry of task names and classes, and `glassformer.load`."""

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar, overload

from glassformer import checkpoint
from glassformer.devices import pick_device
from glassformer.errors import CheckpointError, ConfigError
from glassformer.manifest import COPY_AGAIN, MANIFEST, read_json, verified
from glassformer.tasks.base import AnyTask

TaskT = TypeVar("TaskT", bound=AnyTask)


class TaskRow(NamedTuple):
    """Where a task is defined."""

    module: str
    """Name of its module in `tasks`, and of that of its objective in `learning`."""
    task: str
    """Name of its class."""
    objective: str | None
    """Name of the class of its objective. None: the task cannot be trained."""


TASKS = {
    "translation": TaskRow("translation", "Translator", "TranslationObjective"),
    "classification": TaskRow("classification", "Classifier", "ClassificationObjective"),
    "regression": TaskRow("regression", "Regressor", "RegressionObjective"),
    "tagging": TaskRow("tagging", "Tagger", "TaggingObjective"),
    "question-answering": TaskRow("question_answering", "QuestionAnswerer", "QuestionAnsweringObjective"),
    "causal-lm": TaskRow("causal_lm", "LanguageModel", "CausalLMObjective"),
    "summarization": TaskRow("summarization", "Summarizer", "SummarizationObjective"),
    "multitask": TaskRow("multitask", "Multitask", "MultitaskObjective"),
    "span-corruption": TaskRow("span_corruption", "SpanCorruption", "SpanCorruptionObjective"),
    "skip-gram": TaskRow("skip_gram", "WordVectors", "SkipGramObjective"),
    "feature-extraction": TaskRow("feature_extraction", "SentenceEmbedder", None),
    "masked-lm": TaskRow("masked_lm", "MaskedLM", "MaskedLMObjective"),
    "bert-pretraining": TaskRow("masked_lm", "BertPretraining", "BertPretrainingObjective"),
}
"""All tasks. Their modules are imported when needed."""


def task_class(name: str) -> type[AnyTask]:
    """The class of a task."""
    row = TASKS[name]
    return getattr(importlib.import_module(f"glassformer.tasks.{row.module}"), row.task)


@overload
def load(folder: str | Path, *, task: type[TaskT], device: str = "auto") -> TaskT: ...
@overload
def load(folder: str | Path, *, device: str = "auto") -> AnyTask: ...
def load(folder: str | Path, *, task: type[AnyTask] | None = None, device: str = "auto") -> AnyTask:
    """Load a trained task from a model folder. The task is callable with text.

    From a run folder whose training has not finished, load the best checkpoint, with a note on standard error.

    Args:
        task: class of the task, such as `glassformer.tasks.translation.Translator`, so that type checkers know the type
            of the result. Default: any task.
        device: auto (CUDA, else CPU), cpu or cuda.

    Raises:
        CheckpointError: the folder is missing, incomplete, damaged, or not a glassformer model.
        ConfigError: the device is not available, or the model was trained for another task.
    """
    try:
        model_folder = find_model(Path(folder))
    except OSError as error:
        raise CheckpointError(f"{folder}: {error.strerror}.") from None
    with verified(model_folder) as manifest:
        return load_verified(Path(folder), model_folder, manifest["files"], task, device)


def load_verified(
    folder: Path, model_folder: Path, files: Mapping[str, object], task: type[AnyTask] | None, device: str
) -> AnyTask:
    """`load` from a folder whose checksums are right.

    Args:
        folder: the folder that was named.
        model_folder: the folder of the model, which may be a checkpoint in it.
        files: the files in its manifest.
    """
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        if name not in files:
            raise CheckpointError(
                f"{model_folder}: not a model folder: its {MANIFEST} does not list {name}.{COPY_AGAIN}"
            )
    config = read_json(model_folder / "config.json")
    name = str(config.pop("task", None))
    if name not in TASKS:
        raise CheckpointError(
            f"{model_folder / 'config.json'}: unknown task {name!r}. Known tasks: {', '.join(TASKS)}."
        )
    loaded_type = task_class(name)
    if task and not issubclass(loaded_type, task):
        raise ConfigError(f"{folder}: was trained for {name}, not for {getattr(task, 'name', task.__name__)}.")
    if config.get("precision") == "int8" and device == "auto":
        device = "cpu"
    return loaded_type.from_folder(model_folder, config, pick_device(device))


def find_model(folder: Path) -> Path:
    """The folder itself if it contains a finished model, else the best checkpoint of the run, else the newest.

    Raises:
        CheckpointError: the run has no checkpoint.
    """
    if (folder / MANIFEST).exists() or not (folder / "run.toml").exists():
        return folder
    step_folder = checkpoint.newest(folder / "best") or checkpoint.newest(folder / "checkpoints")
    if step_folder is None:
        raise CheckpointError(
            f"{folder}: the training has not saved a checkpoint yet.\n  Repeat its command: it goes on, and saves one."
        )
    print(f"note: the training in {folder} has not finished; using {step_folder.relative_to(folder)}.", file=sys.stderr)
    return step_folder
