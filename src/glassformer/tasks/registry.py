"""From a name or a folder to a task: what `glassformer.load` gives."""

import importlib
import sys
from pathlib import Path
from typing import Any

import torch

from glassformer import checkpoint
from glassformer.errors import CheckpointError, ConfigError
from glassformer.tasks.base import Task

TASKS = {
    "translation": "translation:Translator",
    "classification": "classification:Classifier",
    "regression": "classification:Regressor",
    "tagging": "tagging:Tagger",
    "question-answering": "question_answering:QuestionAnswerer",
    "causal-lm": "causal_lm:LanguageModel",
    "summarization": "summarization:Summarizer",
    "multitask": "multitask:Multitask",
    "span-corruption": "span_corruption:SpanCorruption",
    "skip-gram": "skip_gram:WordVectors",
    "feature-extraction": "feature_extraction:FeatureExtractor",
    "masked-lm": "masked_lm:MaskedLM",
    "bert-pretraining": "masked_lm:BertPretraining",
}
"""Of each task its module and class, imported when asked for."""


def task_class(name: str) -> type[Task]:
    """The class of a task."""
    module, _, kind = TASKS[name].partition(":")
    return getattr(importlib.import_module(f"glassformer.tasks.{module}"), kind)  # type: ignore[no-any-return]


def load(folder: str | Path, *, device: str = "auto") -> Any:
    """The trained task in a model folder, ready to be called with text.

    A run folder whose training has not ended gives its best checkpoint so far, and says so on standard error.

    Args:
        device: auto (CUDA, else MPS, else CPU), cpu, cuda or mps.

    Raises:
        CheckpointError: the folder is missing, incomplete, damaged, or not ours.
        ConfigError: the device is not there.
    """
    try:
        place = find_model(Path(folder))
    except OSError as error:
        raise CheckpointError(f"{folder}: {error.strerror}.") from None
    named = checkpoint.verify(place)["files"]
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        if name not in named:
            raise CheckpointError(f"{place}: not a model folder: its {checkpoint.MANIFEST} does not name {name}.")
    config = checkpoint.read_json(place / "config.json")
    name = str(config.pop("task", None))
    if name not in TASKS:
        raise CheckpointError(f"{place / 'config.json'}: names no task that this version knows ({', '.join(TASKS)}).")
    return task_class(name).from_folder(place, config, pick_device(device))


def find_model(folder: Path) -> Path:
    """The folder itself if it holds a finished model, else the best, else the newest checkpoint of its run."""
    if (folder / checkpoint.MANIFEST).exists() or not (folder / "run.toml").exists():
        return folder
    place = checkpoint.newest(folder / "best") or checkpoint.newest(folder / "checkpoints")
    if place is None:
        raise CheckpointError(f"{folder}: its training has not made a checkpoint yet.")
    print(f"note: the training in {folder} has not ended; using {place.relative_to(folder)}.", file=sys.stderr)
    return place


def pick_device(name: str) -> torch.device:
    """The device of a name; "auto" is CUDA, else MPS, else the CPU."""
    present: dict[str, Any] = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if name == "auto":
        name = next(kind for kind, there in present.items() if there)
    if not present.get(name):
        known = ", ".join(kind for kind, there in present.items() if there)
        raise ConfigError(f"device {name!r} is not here; this machine has: {known}.")
    return torch.device(name)
