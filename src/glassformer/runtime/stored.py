"""Models in folders, used without torch."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from glassformer.errors import CheckpointError, ConfigError
from glassformer.kernels.library import Kernels, load_or_warn
from glassformer.kernels.program import Array
from glassformer.model_config import ModelConfig
from glassformer.runtime.arrays import read_arrays
from glassformer.runtime.encoder import RuntimeEncoder
from glassformer.runtime.graph import Floats, Graph
from glassformer.runtime.model import RuntimeModel
from glassformer.runtime.precision import fast_kernels, measured_choice
from glassformer.runtime.tables import PREFIX

WEIGHTS_FILE = "model.safetensors"

KEPT = ("pooler.", "classifier.")
"""Prefixes of the weights that a folder in int8 has in fp32: those of the heads of encoders."""

NO_WEIGHTS = (
    "this model folder was exported in int8: it is used by translate, run and evaluate, on a CPU, and has no"
    " weights for anything else.\n  Use the folder that it was exported from."
)


class StoredModel:
    """The files of a model: its weights, or its tables in int8, mapped into memory, and its graph."""

    def __init__(self, folder: Path, family: str, config: ModelConfig, graph: Graph | None, *, is_int8: bool) -> None:
        """
        Args:
            folder: folder of `WEIGHTS_FILE`.
            family: name of the family of the model.
            graph: None: the model has operations without a kernel, or the graph is not known.

        Raises:
            CheckpointError: the files do not fit together.
        """
        self.folder, self.family, self.config, self.graph, self.is_int8 = folder, family, config, graph, is_int8
        self.arrays = read_arrays(folder / WEIGHTS_FILE)
        self.kept: dict[str, RuntimeModel | RuntimeEncoder] = {}
        """Precision -> model."""
        try:
            shapes = config.weight_shapes() if graph is None else graph.weights
            if shapes is not None:
                check_shapes(shapes, self.arrays, is_int8=is_int8)
            check_finite(self.arrays)
            if is_int8 and graph is not None:
                self.kept["int8"] = self.programs(load_or_warn(), is_quantized=True)
        except CheckpointError as error:
            raise CheckpointError(f"{folder / WEIGHTS_FILE}: {error}") from None

    def in_precision(self, precision: str) -> RuntimeModel | RuntimeEncoder | None:
        """The model as programs of kernels on a CPU, in a precision of inference. None: PyTorch computes it, since it
        has operations without a kernel, or there is no fast C library for this precision.

        Args:
            precision: "fp32", "bf16", "int8", or "auto": the faster of fp32 and int8. A folder in int8 is always
                computed in int8.

        Raises:
            CheckpointError: the programs do not fit the configuration.
            ConfigError: bf16, and the folder is in int8.
        """
        if self.is_int8:
            if precision == "bf16":
                raise ConfigError("precision bf16: the weights of this folder are in int8.\n  Leave out --precision.")
            precision = "int8"
        if precision == "auto":
            choice = measured_choice(self.config) if self.graph else None
            precision = choice.name if choice else "fp32"
        if precision not in self.kept:
            if self.graph is None or precision == "bf16" or (precision == "fp32" and fast_kernels() is None):
                return None
            is_quantized = precision == "int8"
            kernels = load_or_warn() if is_quantized else fast_kernels()
            try:
                self.kept[precision] = self.programs(kernels, is_quantized=is_quantized)
            except CheckpointError as error:
                raise CheckpointError(f"{self.folder}: {error}") from None
        return self.kept[precision]

    def programs(self, kernels: Kernels | None, *, is_quantized: bool) -> RuntimeModel | RuntimeEncoder:
        """The programs of the graph.

        Raises:
            CheckpointError: the tables of a folder in int8 do not fit the graph.
        """
        assert self.graph is not None
        runtime_class = RuntimeModel if "step" in self.graph.programs else RuntimeEncoder
        stored = {name: array for name, array in self.arrays.items() if name.startswith(PREFIX)}
        made = runtime_class(
            self.graph, self.config, kernels, self.weights(), stored if self.is_int8 else None,
            is_quantized=is_quantized,
        )  # fmt: skip
        if self.is_int8 and len(made.tables.arrays) != len(stored):
            raise CheckpointError(f"{len(stored)} tables, expected {len(made.tables.arrays)} for the config.")
        return made

    def weights(self) -> dict[str, Floats]:
        """The weights that the folder has, in fp32."""
        return {
            name: array.astype(np.float32, copy=False)
            for name, array in self.arrays.items()
            if not (self.is_int8 and name.startswith(PREFIX))
        }


def check_shapes(shapes: Mapping[str, tuple[int, ...]], arrays: Mapping[str, Array], *, is_int8: bool) -> None:
    """Check names and shapes of the weights of a folder.

    Args:
        shapes: those of the config.

    Raises:
        CheckpointError: a weight is missing, unexpected, or of another shape than that of the config.
    """
    expected = {name: shape for name, shape in shapes.items() if not is_int8 or name.startswith(KEPT)}
    actual = {name: array.shape for name, array in arrays.items() if not (is_int8 and name.startswith(PREFIX))}
    if expected != actual:
        names = sorted(name for name in expected.keys() | actual.keys() if expected.get(name) != actual.get(name))
        lines = [f"  {name}: {actual.get(name, 'missing')}, expected {expected.get(name, 'none')}" for name in names]
        raise CheckpointError("the weights do not match the sizes in config.json:\n" + "\n".join(lines[:10]))


def check_finite(arrays: Mapping[str, Array]) -> None:
    """Check the numbers of weights.

    Raises:
        CheckpointError: a weight is not of floats, or not finite.
    """
    for name, array in arrays.items():
        if name.startswith(PREFIX):
            continue
        # The sum is fast and not finite if an element is not; it can also be too large for the data type.
        with np.errstate(over="ignore", invalid="ignore"):
            is_finite = array.dtype.kind == "f" and (np.isfinite(array.sum()) or np.isfinite(array).all())
        if not is_finite:
            raise CheckpointError(f"the weight {name} contains values that are not finite.")
