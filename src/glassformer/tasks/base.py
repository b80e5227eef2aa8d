"""Base class of all tasks: a model with its tokenizer, its inference on raw text and its metrics."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import Field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, Self, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from glassformer import checkpoint
from glassformer.config import JsonObject, format_validation_error
from glassformer.corpora.read_options import DETECT, ReadOptions
from glassformer.decode_config import INFERENCE, DecodeConfig, OptionGroup, check_groups
from glassformer.devices import Device
from glassformer.errors import CheckpointError, ConfigError, UserError
from glassformer.manifest import COPY_AGAIN, MANIFEST, read_json
from glassformer.model_config import FAMILIES, Kind, families_of_kind
from glassformer.runtime import graph_file
from glassformer.runtime.stored import KEPT, WEIGHTS_FILE, StoredModel
from glassformer.tasks.model import TaskModel, read_graph
from glassformer.tasks.origin import FILE as ORIGIN
from glassformer.tasks.origin import Origin
from glassformer.tasks.texts import Warn, python_warning
from glassformer.tokens.tokenizer import Tokenizer

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from glassformer.metrics import Score
    from glassformer.metrics.registry import OutputType
    from glassformer.metrics.score import MetricFn
    from glassformer.models.base import Model

Log = Callable[[str], None]

StoredPrecision = Literal["fp32", "int8"]
"""Precision of the weights in a model folder."""


class CorpusExample(Protocol):
    """Dataclass of one example: the texts and labels of a task, and where they were read."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def path(self) -> str:
        """File of the example."""


class Record(TypedDict):
    """JSON record of one line of input, as `--json` prints it. Tasks add fields to these two."""

    input: str
    """The line of input."""
    output: str
    """The line of output that is printed without `--json`."""


ExampleT = TypeVar("ExampleT", bound=CorpusExample)


def no_metrics(name: str) -> ConfigError:
    """Error for the evaluation of a task without examples."""
    return ConfigError(f"{name} has no metrics on test sets.\n  Apply the model to text with `glassformer run`.")


def stored_number(stored: tuple[str, ...]) -> int:
    """The number of an attribute of `Task.stored_attributes`; 0 if there is none."""
    return max((int(text) for text in stored if text.isdecimal()), default=0)


class Task(ABC, Generic[ExampleT]):
    """A trained model with its tokenizer, and what the task does with them.

    A task is called with text; `run` and `records` apply it to lines of text. `read` yields the examples of a test set,
    and `evaluate` computes the metrics on them. How a task is trained is in its objective (`glassformer.learning`).

    Type parameter: the dataclass of an example.
    """

    name: ClassVar[str]
    pipeline_tag: ClassVar[str] = "text2text-generation"
    """Name of the task on the Hugging Face Hub."""
    pipelines: ClassVar[tuple[str, ...]] = ()
    """Pipelines (`glassformer.pipelines.PIPELINES`) that apply the model. The first is the default."""
    head_task: ClassVar[str | None] = None
    """Name of the task as whose Hugging Face class a model is exported. Default: its own name."""
    source_has_end_token: ClassVar[bool] = False
    """Whether the source of a model that generates text ends with the end token."""
    command: ClassVar[str] = "run"
    """Command that applies a trained model."""
    example_input: ClassVar[str] = "some text"
    """A line of input, for the command that is suggested after the training."""
    kind: ClassVar[Kind]
    """Kind of the model families that support the task."""
    example_type: ClassVar[type[CorpusExample]]
    """Dataclass of one example: ExampleT."""
    examples_name: ClassVar[str] = "examples"
    """What examples are called in messages."""
    output_type: "ClassVar[OutputType | None]" = None
    """Type of the outputs, whose metrics in `metrics.registry` are reported. None: the task computes its own."""
    head_config: ClassVar[JsonObject] = {}
    """Fields of the model config that the task sets, such as the output head."""
    may_read_tables: ClassVar[bool] = True
    """Files of other names than those of the formats may be tables, else they are plain text."""
    read_options: ClassVar[tuple[str, ...]] = ("format", "keys")
    """Options that `read` uses."""
    option_groups: ClassVar[tuple[type[OptionGroup], ...]] = INFERENCE
    """Options of decoding that the task has."""
    has_classes: ClassVar[bool] = False
    """Labels are classes: the set of labels in the training examples."""
    stored_attributes: ClassVar[tuple[str, ...]] = ()
    """Attributes, tuples of strings, that are stored in config.json."""
    origin: Origin | None = None
    """What pipelines read of the Hugging Face folder, if the model comes from one."""
    __call__: Callable[..., Any]
    """Apply the task to a text or a list of texts. The arguments and the result depend on the task."""

    def __init__(
        self,
        model: "Model | StoredModel",
        tokenizer: Tokenizer,
        device: "torch.device | str" = "cpu",
        labels: Sequence[str] = (),
    ) -> None:
        """
        Args:
            model: a model of `kind`, or the files of one.
        """
        self.source = TaskModel(model, Device(device))
        self.tokenizer = tokenizer
        self.labels = tuple(labels)

    @property
    def model(self) -> Any:
        """The model as a module of PyTorch, which is made of the files of the folder when it is needed.

        Raises:
            UserError: the folder has no weights, since it was exported in int8; or PyTorch is not installed.
        """
        return self.source.module

    @model.setter
    def model(self, model: "Model") -> None:
        self.source = TaskModel(model, self.device)

    @property
    def config(self) -> Any:
        """Configuration of the model."""
        return self.source.config

    @property
    def device(self) -> Device:
        """Device that the model computes on."""
        return self.source.device

    @classmethod
    def families(cls) -> tuple[str, ...]:
        """Model families that support the task. The first is the default."""
        return families_of_kind(cls.kind)

    def __repr__(self) -> str:
        n_parameters = self.source.n_parameters
        size = f"{n_parameters / 1e6:.1f} M" if n_parameters >= 1e5 else f"{n_parameters:,}"
        labels = f", labels={list(self.labels[:5])}{' and more' if len(self.labels) > 5 else ''}" if self.labels else ""
        return (
            f"{type(self).__name__}(task={self.name!r}, family={self.source.family!r}, parameters={size},"
            f" vocab_size={self.tokenizer.vocab_size:,}, max_len={self.config.max_len}{labels},"
            f" device={str(self.device)!r})"
        )

    def to(self, device: "torch.device | str") -> Self:
        """Move the model to a device. Returns the task itself."""
        try:
            self.source.to(Device(device))
        except (RuntimeError, AssertionError) as error:
            raise ConfigError(f"device {device!r} is not available: {str(error).splitlines()[0]}") from None
        return self

    def save(self, folder: str | Path, *, precision: StoredPrecision = "fp32") -> None:
        """Write a model folder that `glassformer.load` reads.

        Args:
            precision: "int8": for inference on a CPU only; about 0.4 of the size, loaded faster, with less memory.

        Raises:
            ConfigError: the folder exists and is not empty.
            UserError: the folder cannot be written, or the model cannot be stored in this precision.
        """
        checkpoint.check_empty(Path(folder))
        checkpoint.save_folder(Path(folder), self.contents(precision=precision))

    # Examples

    @classmethod
    def read(
        cls, src: Sequence[Path], tgt: Sequence[Path], options: ReadOptions = DETECT, log: Log | None = None
    ) -> Iterator[ExampleT]:
        """Read the usable examples of files, in order.

        Args:
            options: format, columns and JSON keys of the files.
            log: called after the last example with a warning for each problem of the files.

        Raises:
            CorpusError: a file has the wrong format.
            ConfigError: the task has no examples, and so no metrics.
        """
        raise no_metrics(cls.name)

    @classmethod
    def texts(cls, example: ExampleT) -> Sequence[str]:
        """Texts of an example that the tokenizer is trained on."""
        return ()

    @classmethod
    def n_labels(cls, labels: Sequence[str]) -> int:
        """Number of outputs of the model's head."""
        return len(labels)

    # Inference

    @classmethod
    def check_options(cls, options: DecodeConfig) -> None:
        """Check that the task has the options that were given.

        Raises:
            ConfigError: it has not.
        """
        check_groups(options, cls.option_groups, cls.name)

    @abstractmethod
    def run(
        self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = python_warning
    ) -> list[str]:
        """Apply the task to lines of text. Returns one output line per line.

        Args:
            options: decoding options, for tasks that generate text.
            warn: called with the index of a line that was too long and a description of what was cut. Default: a Python
                warning.
        """

    def records(
        self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = python_warning
    ) -> Sequence[Record]:
        """Apply the task to lines of text. Returns one JSON record per line; `output` is the line that `run` returns.

        Args:
            warn: called with the index of a line that was too long and a description of what was cut. Default: a Python
                warning.
        """
        outputs = self.run(lines, options, warn=warn)
        return [{"input": line, "output": output} for line, output in zip(lines, outputs, strict=True)]

    def evaluate(
        self, examples: Sequence[ExampleT], options: DecodeConfig | None = None
    ) -> "tuple[list[str], list[Score]]":
        """Outputs for examples, and the metrics of these outputs.

        Raises:
            ConfigError: the task has no metrics.
        """
        raise no_metrics(self.name)

    @classmethod
    def references(cls, examples: Sequence[ExampleT]) -> list[Any]:
        """What the outputs for examples are compared with, if the task has an `output_type`."""
        raise NotImplementedError(f"{cls.__name__} has an output_type, and does not define references")

    @classmethod
    def parse_outputs(cls, outputs: Sequence[str]) -> list[Any]:
        """The values of `output_type` that the output lines of `evaluate` print."""
        return list(outputs)

    @classmethod
    def bootstrap_statistics(
        cls, outputs: Sequence[str], examples: Sequence[ExampleT], classes: Sequence[str] | None = None
    ) -> "dict[str, tuple[NDArray[np.float64], MetricFn]]":
        """Statistics for bootstrap confidence intervals, for metrics that are functions of sums over examples.

        Args:
            outputs: outputs as returned by `evaluate`.
            classes: all classes, of tasks that have them. Default: those that occur. Those of models that are compared
                are the same.

        Returns:
            For each metric the statistics of each example, and the function that computes the metric from their sums.
        """
        if cls.output_type is None:
            return {}
        from glassformer.metrics.registry import statistics_of

        statistics = statistics_of(cls.output_type, cls.parse_outputs(outputs), cls.references(examples), classes)
        return {metric.name: (rows, metric.from_sums) for metric, rows in statistics.items()}

    def predict(self, texts: Any, **options: Any) -> Any:
        """The same as calling the task."""
        return self(texts, **options)

    # Folders

    @classmethod
    def from_folder(cls, folder: Path, config: JsonObject, device: Device) -> Self:
        """Load the task from a verified folder.

        Args:
            config: the contents of config.json, without "task".

        Raises:
            CheckpointError: the folder is damaged, or its model family does not support the task.
        """
        tokenizer = Tokenizer.from_folder(folder)
        config, path = dict(config), folder / "config.json"
        family = str(config.pop("model_type", None)).removeprefix("glassformer-")
        labels, is_int8 = config.pop("labels", ()), config.pop("precision", None) == "int8"
        stored = {name: config.pop(name) for name in cls.stored_attributes if name in config}
        if family not in cls.families():
            raise CheckpointError(f"{path}: {cls.name} is not supported by model family {family!r}.")
        if not isinstance(labels, (list, tuple)) or not all(isinstance(label, str) for label in labels):
            raise CheckpointError(f"{path}: damaged: labels is {labels!r}, not a list of strings.{COPY_AGAIN}")
        try:
            model_config = FAMILIES[family].config_class.model_validate(config)
        except ValidationError as error:
            raise CheckpointError(f"{path}: {format_validation_error(error, {})}") from None
        n_labels = getattr(model_config, "n_labels", len(labels))
        if cls.has_classes and len(labels) != n_labels:
            raise CheckpointError(
                f"{path}: damaged: n_labels is {n_labels}, but labels has {len(labels)} entries.{COPY_AGAIN}"
            )
        if tokenizer.vocab_size > model_config.vocab_size:
            raise CheckpointError(
                f"{folder}: tokenizer.json has {tokenizer.vocab_size} vocabulary entries, but vocab_size in config.json"
                f" is {model_config.vocab_size}."
            )
        if (head := cls.head_config.get("head")) and (found := getattr(model_config, "head", None)) != head:
            raise CheckpointError(f"{path}: damaged: head is {found!r}, expected {head!r} for {cls.name}.{COPY_AGAIN}")
        graph = read_graph(folder, family, model_config)
        model = StoredModel(folder, family, model_config, graph, is_int8=is_int8)
        task = cls(model, tokenizer, device, labels)
        for name, value in stored.items():
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                raise CheckpointError(f"{path}: damaged: {name} is {value!r}, not a list of strings.{COPY_AGAIN}")
            setattr(task, name, tuple(value))
        if ORIGIN in read_json(folder / MANIFEST)["files"]:
            task.origin = Origin.from_file(folder / ORIGIN)
        return task

    def contents(
        self, tensors: "dict[str, Tensor] | None" = None, *, precision: StoredPrecision = "fp32"
    ) -> dict[str, str | checkpoint.Arrays]:
        """Files of a model folder from which `load` restores this task.

        Args:
            tensors: weights to write. Default: the model's.
            precision: that of the weights.

        Raises:
            UserError: the model cannot be stored in this precision.
        """
        weights: checkpoint.Arrays = tensors or (self.int8_tables() if precision == "int8" else self.source.weights)
        config = {
            "task": self.name,
            **self.family_config,
            **({"labels": self.labels} if self.labels else {}),
            **{name: value for name in self.stored_attributes if (value := getattr(self, name))},
            **({"precision": precision} if precision != "fp32" else {}),
        }
        contents: dict[str, str | checkpoint.Arrays] = {
            "config.json": checkpoint.to_json(config), **self.tokenizer.files(), WEIGHTS_FILE: weights,
        }  # fmt: skip
        if graph := self.source.graph:
            contents[graph_file.FILE] = graph_file.to_json(graph, self.family_config)
            if graph.constants:
                contents[graph_file.CONSTANTS_FILE] = graph.constants
        if self.origin:
            contents[ORIGIN] = checkpoint.to_json(self.origin.model_dump())
        return contents

    @property
    def family_config(self) -> JsonObject:
        """Family and configuration of the model, as in config.json."""
        return {"model_type": f"glassformer-{self.source.family}", **self.config.model_dump()}

    def int8_tables(self) -> checkpoint.Arrays:
        """The arrays of a folder in int8: the tables of the programs, and the weights that are used in fp32.

        Raises:
            UserError: the output layer of the model is not in the programs.
        """
        if self.head_config.get("head") == "mlm":
            raise UserError(
                "a masked language model cannot be exported in int8: its output layer is computed in fp32.\n"
                "  Use --precision int8 with the model folder itself."
            )
        programs = self.source.in_precision("int8")
        stored = self.source.stored
        weights = stored.arrays if stored is not None and stored.is_int8 else self.source.weights
        kept = {name: weight for name, weight in weights.items() if name.startswith(KEPT)}
        return {**kept, **programs.tables.to_store()}


AnyTask = Task[Any]
"""A task of any type. Its examples are only passed from one of its methods to another."""
