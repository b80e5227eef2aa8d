"""The model of a task: the files of a folder, of which programs are made, or a module of PyTorch, or both."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from glassformer import checkpoint
from glassformer.devices import Device, has_torch, require_torch
from glassformer.errors import CheckpointError, ConfigError, UserError
from glassformer.manifest import MANIFEST, read_json
from glassformer.model_config import FAMILIES, ModelConfig
from glassformer.runtime import graph_file
from glassformer.runtime.arrays import read_arrays
from glassformer.runtime.graph import Floats, Graph
from glassformer.runtime.model import RuntimeModel
from glassformer.runtime.stored import NO_WEIGHTS, StoredModel
from glassformer.runtime.verify import n_positions

if TYPE_CHECKING:
    from glassformer.models.base import Model


class TaskModel:
    """The model of a task. PyTorch is imported only for what the programs do not compute: training, other devices than
    the CPU, inspection, and models with operations without a kernel."""

    def __init__(self, model: "Model | StoredModel", device: Device) -> None:
        """
        Args:
            model: a module, or the files of a folder.
            device: device that it computes on.
        """
        self.stored = model if isinstance(model, StoredModel) else None
        self.device = device
        self.loaded: Any = None if isinstance(model, StoredModel) else model.to(device).eval()
        """The module, if there is one."""
        self.versions: object = None
        """Versions of the weights of a module that was made from the files."""

    @property
    def config(self) -> ModelConfig:
        """Configuration of the model."""
        return self.loaded.config if self.loaded is not None else self.stored.config  # type: ignore[union-attr]

    @property
    def family(self) -> str:
        """Name of the family of the model."""
        if self.stored is not None:
            return self.stored.family
        from glassformer.models.families import family_of

        return family_of(self.loaded)

    @property
    def graph(self) -> Graph | None:
        """The graph of the model; None if it has operations without a kernel."""
        if self.stored is not None:
            return self.stored.graph
        from glassformer.recording.graphs import graph_or_none

        return graph_or_none(self.family, self.config)

    @property
    def weights(self) -> "checkpoint.Arrays":
        """The weights by name.

        Raises:
            UserError: the folder has none, only tables in int8.
        """
        if self.loaded is None and self.stored is not None and not self.stored.is_int8:
            return self.stored.arrays
        weights: checkpoint.Arrays = self.module.state_dict()
        return weights

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a weight."""
        return self.graph.weights[name] if self.graph else tuple(self.weights[name].shape)

    def array(self, name: str) -> Floats:
        """A weight as an array, in fp32."""
        weight: Any = self.weights[name]
        if not isinstance(weight, np.ndarray):
            weight = weight.detach().float().cpu().numpy()
        return weight.astype(np.float32, copy=False)

    @property
    def has_position_limit(self) -> bool:
        """Whether the model cannot process more than `config.max_len` positions."""
        if self.loaded is not None:
            return bool(self.loaded.has_position_limit)
        return self.graph is None or n_positions(self.graph) is not None

    @property
    def n_parameters(self) -> int:
        """Number of weights."""
        if self.loaded is not None:
            return sum(p.numel() for p in self.loaded.parameters())
        names = self.graph.weights if self.graph else self.weights
        return sum(math.prod(self.shape(name)) for name in names)

    @property
    def module(self) -> Any:
        """The model as a module of PyTorch.

        Raises:
            UserError: the folder has no weights, only tables in int8; or PyTorch is not installed.
        """
        if self.loaded is None:
            assert self.stored is not None
            if self.stored.is_int8:
                raise UserError(NO_WEIGHTS)
            require_torch("This")
            from glassformer.recording.loading import module_of
            from glassformer.recording.precision import weight_versions

            try:
                self.loaded = module_of(self.family, self.stored).to(self.device).eval()
            except CheckpointError as error:
                raise CheckpointError(f"{self.stored.folder / 'model.safetensors'}: {error}") from None
            self.versions = weight_versions(self.loaded)
        return self.loaded

    def to(self, device: Device) -> None:
        """Move the model to a device."""
        if device != "cpu" or self.loaded is not None:
            self.module.to(device)
        self.device = device

    @property
    def is_as_stored(self) -> bool:
        """Whether the model computes what its files say: no module was made of them, or it was not changed."""
        if self.stored is None:
            return False
        if self.loaded is None:
            return True
        from glassformer.recording.precision import is_modified, weight_versions

        return not is_modified(self.loaded) and weight_versions(self.loaded) == self.versions

    def in_precision(self, precision: str) -> Any:
        """The model that computes in a precision of inference: programs, or a module with the same interface.

        Args:
            precision: "fp32", "bf16", "int8": 8-bit weights and activations in linear layers, on a CPU only; "auto":
                the fastest of them that the device and the model have. A folder that was exported in int8 is always
                computed in int8.

        Raises:
            ConfigError: the model does not have this precision.
            UserError: PyTorch is needed, and not installed.
        """
        if self.stored is not None and self.device.type == "cpu" and self.is_as_stored:
            if (programs := self.stored.in_precision(precision)) is not None:
                return programs
            require_torch(self.reason(precision))
        elif self.stored is not None and self.stored.is_int8:
            raise ConfigError("a model in int8 is computed on a CPU.\n  Use --device cpu.")
        from glassformer.recording.modules import with_interface
        from glassformer.recording.precision import in_precision

        return with_interface(in_precision(self.module, precision))

    @property
    def in_fp32(self) -> Any:
        """The model that computes probabilities of given texts in fp32: programs of the files of a folder; a module
        itself, as in training, where its numbers tell whether it diverges."""
        if self.stored is not None:
            return self.in_precision("fp32")
        from glassformer.recording.modules import with_interface

        return with_interface(self.module)

    def reason(self, precision: str) -> str:
        """Why PyTorch computes the model, as the beginning of a sentence."""
        if precision == "bf16":
            return "--precision bf16"
        if self.stored is None or self.stored.graph is None:
            return f"A model folder without programs, or a model with operations without a kernel ({self.family}),"
        return "The computation without a fast C library"

    def contributions(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[Floats]:
        """What each source token contributes to each target token of an encoder-decoder through cross-attention:
        [target, source]; see `runtime.cross_attention`.

        Args:
            pairs: token ids of source and target, without end-of-sentence tokens, at most of the maximum length.
        """
        if self.device.type == "cpu":
            precision = "int8" if self.stored is not None and self.stored.is_int8 else "fp32"
            model = self.in_precision(precision)
            if isinstance(model, RuntimeModel):
                return model.cross_attention.contributions(pairs)
        from glassformer.recording.cross_attention import token_weights

        return token_weights(self.module, pairs)


def read_graph(folder: Path, family: str, config: ModelConfig) -> Graph | None:
    """The graph of a model folder; of an older folder that has none, recorded if PyTorch is installed.

    Raises:
        CheckpointError: the file is damaged, must not be executed, or is of another configuration.
    """
    files = read_json(folder / MANIFEST)["files"]
    if graph_file.FILE not in files:
        if not has_torch() or FAMILIES[family].kind == "word-vectors":
            return None
        from glassformer.recording.graphs import graph_or_none

        return graph_or_none(family, config)
    has_constants = graph_file.CONSTANTS_FILE in files
    arrays = read_arrays(folder / graph_file.CONSTANTS_FILE) if has_constants else {}
    constants = {name: array.astype(np.float32, copy=False) for name, array in arrays.items()}
    record = read_json(folder / graph_file.FILE)
    # Folders of earlier versions lack the fields that were added since; the defaults of these are as before.
    stored = read_json(folder / "config.json")
    fields = {name: value for name, value in config.model_dump().items() if name in stored}
    try:
        return graph_file.from_json(record, {"model_type": f"glassformer-{family}", **fields}, constants)
    except CheckpointError as error:
        raise CheckpointError(f"{folder}: {error}") from None
