"""Locating and loading the model of a pipeline and its configuration files."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Union

from glassformer.config import JsonObject
from glassformer.decode_config import Precision
from glassformer.devices import Device as DeviceName
from glassformer.devices import has_torch, pick_device, require_torch
from glassformer.errors import CheckpointError, ConfigError
from glassformer.interop.hub import resolve_model_folder
from glassformer.manifest import MANIFEST, read_json
from glassformer.tasks.base import AnyTask, Task
from glassformer.tasks.origin import Origin
from glassformer.tasks.registry import load

if TYPE_CHECKING:
    import torch

Device = Union[str, int, "torch.device", None]
"""A device name or index; -1 is the CPU. None: the best available device."""
NO_ORIGIN = Origin()


@dataclass(frozen=True, slots=True)
class Source:
    """A loaded model, and what pipelines read of the files of its Hugging Face folder: empty for other models."""

    task: AnyTask
    name: str
    """Folder or name given by the caller."""
    folder: Path | None = None
    """Hugging Face folder that the model was loaded from; None for folders of glassformer."""
    precision: Precision = "fp32"
    """Arithmetic of inference."""

    @property
    def origin(self) -> Origin:
        return self.task.origin or NO_ORIGIN

    @property
    def config(self) -> JsonObject:
        """Contents of config.json."""
        return self.origin.config

    @property
    def generation_config(self) -> JsonObject:
        """Defaults of `generate`: contents of generation_config.json, or of config.json if that file does not exist."""
        return self.origin.generation_config or self.origin.config

    @property
    def tokenizer_config(self) -> JsonObject:
        """Contents of tokenizer_config.json."""
        return self.origin.tokenizer_config

    @property
    def pipelines(self) -> tuple[str, ...]:
        """Names of the pipelines that the architecture, else the task names. The first is the default."""
        return self.origin.pipelines or self.task.pipelines

    @property
    def follows_transformers(self) -> bool:
        """Whether outputs are those of transformers: for models of Hugging Face, also imported ones."""
        return self.task.origin is not None


def load_source(model: str | Path | AnyTask, *, revision: str | None = None, token: str | bool | None = None) -> Source:
    """Load a model from a glassformer or Hugging Face folder, or by its name on the Hugging Face hub.

    Args:
        model: a path, a name, or a task returned by `glassformer.load`.
        revision, token: for downloads from the hub.

    Raises:
        CheckpointError: the folder or name does not exist, or the folder holds no model.
    """
    if isinstance(model, Task):
        return Source(model, type(model).__name__)
    if not isinstance(model, (str, Path)):
        raise ConfigError(f"model = {model!r}: expected a folder, a name on the Hugging Face hub, or a loaded task.")
    try:
        folder = resolve_model_folder(str(model), revision=revision, token=token)
    except OSError as error:
        raise CheckpointError(f"{model}: {error.strerror or error}.") from None
    if is_native(folder):
        return Source(load(folder, device="cpu"), str(model))
    if not (folder / "config.json").exists():
        raise CheckpointError(
            f"{folder}: not a model folder: it has no config.json.\n"
            "  Pass a folder written by `glassformer train` or by transformers."
        )
    require_torch("A model of Hugging Face")
    from glassformer.interop.huggingface import load_hf_folder

    return Source(load_hf_folder(folder), str(model), folder)


def is_native(folder: Path) -> bool:
    """Whether a folder was written by glassformer."""
    config = folder / "config.json"
    if not config.exists():
        return (folder / "run.toml").exists() or (folder / MANIFEST).exists()
    return str(read_json(config).get("model_type")).startswith("glassformer-")


def resolve_device(device: Device) -> DeviceName:
    """Resolve a device argument of transformers: None, a name, a torch.device or an index; -1 is the CPU.

    Raises:
        ConfigError: the device is not available.
    """
    if device is None:
        return pick_device("auto")
    if isinstance(device, int):
        if device < 0:
            return DeviceName("cpu")
        n_gpus = n_cuda_devices()
        if device >= max(1, n_gpus):
            raise ConfigError(f"device {device} is not available: this machine has {n_gpus} GPUs.")
        return DeviceName(f"cuda:{device}") if n_gpus else pick_device("auto")
    type_, _, index = str(device).partition(":")
    resolved = pick_device(type_)
    if not index:
        return resolved
    if resolved.type == "cuda" and not (index.isdecimal() and int(index) < n_cuda_devices()):
        raise ConfigError(f"device {str(device)!r} is not available: this machine has {n_cuda_devices()} CUDA devices.")
    return DeviceName(device)


def n_cuda_devices() -> int:
    """Number of GPUs that PyTorch can use."""
    if not has_torch():
        return 0
    import torch

    return torch.cuda.device_count()
