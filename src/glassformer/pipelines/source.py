"""From a folder or a name to a model, and what its files say of how it is to be used."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from glassformer import checkpoint
from glassformer.errors import CheckpointError, ConfigError
from glassformer.interop.hub import folder_of
from glassformer.interop.huggingface import read_folder
from glassformer.tasks.base import Task
from glassformer.tasks.registry import load, pick_device

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Source:
    """A model, and what a folder of transformers says besides; of a folder of ours the records are empty."""

    task: Task
    name: str
    """What the caller named."""
    folder: Path | None = None
    """The folder of transformers that it was read from; None for ours."""
    config: Record = field(default_factory=dict)
    """config.json"""
    generation: Record = field(default_factory=dict)
    """What `generate` is to do unless told otherwise: generation_config.json, before that was known config.json."""
    settings: Record = field(default_factory=dict)
    """tokenizer_config.json"""

    @property
    def is_ours(self) -> bool:
        """Whether it is a folder of ours, used by our rules."""
        return self.folder is None


def find_source(model: Any, *, revision: str | None = None, token: str | bool | None = None) -> Source:
    """The model of a folder of ours, of a folder of transformers, or of a name on the Hugging Face hub.

    Args:
        model: a path, a name, or a task that `glassformer.load` gave.
        revision, token: for the hub alone.

    Raises:
        CheckpointError: no such folder and no such name, or a folder without a model.
    """
    if isinstance(model, Task):
        return Source(model, type(model).__name__)
    if not isinstance(model, (str, Path)):
        raise ConfigError(f"model = {model!r}: expected a folder, a name on the Hugging Face hub, or a loaded task.")
    folder = folder_of(str(model), revision=revision, token=token)
    if is_ours(folder):
        return Source(load(folder, device="cpu"), str(model))
    if not (folder / "config.json").exists():
        raise CheckpointError(
            f"{folder}: not a model folder: it has no config.json.\n"
            "  Name a folder written by `glassformer train`, or one of transformers'."
        )
    config, settings = record(folder / "config.json"), record(folder / "tokenizer_config.json")
    generation = record(folder / "generation_config.json") or config
    return Source(read_folder(folder), str(model), folder, config, generation, settings)


def is_ours(folder: Path) -> bool:
    """Whether `glassformer.load` is to read it."""
    config = folder / "config.json"
    if not config.exists():
        return (folder / "run.toml").exists() or (folder / checkpoint.MANIFEST).exists()
    return str(record(config).get("model_type")).startswith("glassformer-")


def record(path: Path) -> Record:
    """The object in a JSON file; of one that is not there, nothing."""
    return checkpoint.read_json(path) if path.exists() else {}


def device_of(device: Any) -> torch.device:
    """The device as transformers' users name it: None, a name, a torch.device, or a number: -1 is the CPU.

    Raises:
        ConfigError: it is not there.
    """
    if device is None:
        return pick_device("auto")
    if isinstance(device, int):
        if device < 0:
            return torch.device("cpu")
        return torch.device("cuda", device) if torch.cuda.is_available() else pick_device("auto")
    kind, _, number = str(device).partition(":")
    found = pick_device(kind)
    if not number:
        return found
    if found.type == "cuda" and not (number.isdecimal() and int(number) < torch.cuda.device_count()):
        raise ConfigError(f"device {str(device)!r} is not here: there are {torch.cuda.device_count()}.")
    return torch.device(str(device))
