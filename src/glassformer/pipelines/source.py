"""Locating and loading the model of a pipeline and its configuration files."""

from dataclasses import dataclass, field
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
from glassformer.tasks.registry import load

if TYPE_CHECKING:
    import torch

Device = Union[str, int, "torch.device", None]
"""A device name or index; -1 is the CPU. None: the best available device."""


@dataclass(frozen=True, slots=True)
class Source:
    """A loaded model and the configuration files of its folder. For glassformer folders the contents are empty."""

    task: AnyTask
    name: str
    """Folder or name given by the caller."""
    folder: Path | None = None
    """Hugging Face folder that the model was loaded from; None for glassformer models."""
    config: JsonObject = field(default_factory=dict)
    """Contents of config.json."""
    generation_config: JsonObject = field(default_factory=dict)
    """Defaults of `generate`: contents of generation_config.json, or of config.json if that file does not exist."""
    tokenizer_config: JsonObject = field(default_factory=dict)
    """Contents of tokenizer_config.json."""
    precision: Precision = "fp32"
    """Arithmetic of inference."""

    @property
    def pipelines(self) -> tuple[str, ...]:
        """Names of the pipelines that the architecture, else the task names. The first is the default."""
        if self.is_native:
            return self.task.pipelines
        from glassformer.interop.architectures import ARCHITECTURES

        architecture = ARCHITECTURES.get(str(self.config.get("model_type")))
        return (architecture.pipelines if architecture else ()) or self.task.pipelines

    @property
    def is_native(self) -> bool:
        """Whether the model is a glassformer model and not a Hugging Face model."""
        return self.folder is None


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
    config, tokenizer_config = (
        read_json_or_empty(folder / "config.json"),
        read_json_or_empty(folder / "tokenizer_config.json"),
    )
    generation_config = read_json_or_empty(folder / "generation_config.json") or config
    require_torch("A model of Hugging Face")
    from glassformer.interop.huggingface import load_hf_folder

    return Source(load_hf_folder(folder), str(model), folder, config, generation_config, tokenizer_config)


def is_native(folder: Path) -> bool:
    """Whether a folder was written by glassformer."""
    config = folder / "config.json"
    if not config.exists():
        return (folder / "run.toml").exists() or (folder / MANIFEST).exists()
    return str(read_json_or_empty(config).get("model_type")).startswith("glassformer-")


def read_json_or_empty(path: Path) -> JsonObject:
    """Contents of a JSON file; empty if the file does not exist."""
    return read_json(path) if path.exists() else {}


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
