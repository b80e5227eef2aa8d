"""Base class of all tasks: a model with its tokenizer, its training loss, its metrics and its inference on raw text."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import Field
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Protocol, Self, TypedDict, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import ValidationError
from torch import Tensor

from glassformer import checkpoint
from glassformer.config import DecodeConfig, JsonObject, TrainConfig, format_validation_error
from glassformer.corpora.read_options import DETECT, ReadOptions
from glassformer.data.batch import BatchT
from glassformer.data.dataset import IDS, Dataset
from glassformer.data.ragged import Row
from glassformer.errors import CheckpointError, ConfigError
from glassformer.metrics import Score
from glassformer.metrics.registry import OutputType, statistics_of
from glassformer.metrics.score import MetricFn
from glassformer.models.base import Kind, Model
from glassformer.models.families import FAMILIES, families_of_kind, family_of
from glassformer.runtime.precision import in_precision
from glassformer.runtime.storage import int8_tensors, model_of_int8
from glassformer.tasks.held_out import HeldOut, SmallestHashes
from glassformer.tasks.texts import Warn, no_op
from glassformer.tokens.tokenizer import Tokenizer

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


class Task(ABC, Generic[ExampleT, BatchT]):
    """A trained model with its tokenizer, and what the task does with them.

    The methods in the order of a training: `read` yields the examples of files, `encode` makes rows of token ids from
    them, `batch` collates rows, `loss` computes the loss of a batch, and `validate` the metrics on dev examples. A
    trained task is called with text; `run` and `records` apply it to lines of text, and `evaluate` computes its metrics
    on a test set.

    Type parameters: the dataclass of an example, and the batch type.
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
    targets_name: ClassVar[str] = "tokens"
    """What the targets of the loss are called in messages."""
    too_long_advice: ClassVar[str | None] = None
    """Advice for a corpus in which many examples are too long."""
    kind: ClassVar[Kind]
    """Kind of the model families that support the task."""
    example_type: ClassVar[type[CorpusExample]]
    """Dataclass of one example: ExampleT."""
    examples_name: ClassVar[str] = "examples"
    """What examples are called in messages."""
    fields: ClassVar[dict[str, str]] = {"src": IDS, "tgt": IDS}
    """Names and types of the fields of an encoded example."""
    metric: ClassVar[str]
    """The metric returned by `validate` that selects the best checkpoint."""
    output_type: ClassVar[OutputType | None] = None
    """Type of the outputs, whose metrics in `metrics.registry` are reported. None: the task computes its own."""
    head_config: ClassVar[JsonObject] = {}
    """Fields of the model config that the task sets, such as the output head."""
    rows_are_examples: ClassVar[bool] = True
    """Each example becomes one row of the training set, or a few. False for text that is split into windows."""
    validation_decodes: ClassVar[bool] = False
    """`validate` decodes, and takes `n_decoded`: the number of examples to decode."""
    static_shapes: ClassVar[bool] = False
    """`Batch.pad_to` pads batches to fixed shapes, and `loss` does not wait for the GPU: a CUDA graph can hold it."""
    can_pack: ClassVar[bool] = False
    """`packed_batch` makes batches without padding."""
    read_options: ClassVar[tuple[str, ...]] = ("format", "keys")
    """Options that `read` uses."""
    held_out: ClassVar[type[HeldOut]] = SmallestHashes
    """Selection of the dev examples, if no dev set is given."""
    has_classes: ClassVar[bool] = False
    """Labels are classes: the set of labels in the training examples."""
    add_prefix_space: ClassVar[bool] = True
    """Encode texts with a leading space, so that the first word has the same tokens as within a text."""
    default_tokenizer: ClassVar[str] = "bpe"
    """Tokenizer type used without --tokenizer."""
    n_truncated: int = 0
    """Number of examples of which `encode` cut off a part."""
    stored_attributes: ClassVar[tuple[str, ...]] = ()
    """Attributes, tuples of strings, that are stored in config.json."""
    extra_special_tokens: ClassVar[tuple[str, ...]] = ()
    """Special tokens of the tokenizer besides padding, start and end."""

    map_parts: Callable[[Callable[[list[Any]], list[Any]], Sequence[Any]], list[Any]] = staticmethod(
        lambda function, items: function(list(items))
    )
    """Results of a function for all items. In a training by several processes, each computes a part: `validate` calls
    it for what takes time. The function returns a list with a result for each item of a list, as JSON-serializable
    data; a result must not depend on the other items, nor on random numbers."""

    model: Any  # a model of `kind`; tasks of one family narrow the type
    __call__: Callable[..., Any]
    """Apply the task to a text or a list of texts. The arguments and the result depend on the task."""

    def __init__(
        self,
        model: Model,
        tokenizer: Tokenizer,
        device: torch.device | str = "cpu",
        labels: Sequence[str] = (),
    ) -> None:
        self.device = torch.device(device)
        self.model = model.to(self.device).eval()
        self.tokenizer = tokenizer
        self.labels = tuple(labels)

    @classmethod
    def families(cls) -> tuple[str, ...]:
        """Model families that support the task. The first is the default."""
        return families_of_kind(cls.kind)

    def __repr__(self) -> str:
        n_parameters = sum(p.numel() for p in self.model.parameters())
        size = f"{n_parameters / 1e6:.1f} M" if n_parameters >= 1e5 else f"{n_parameters:,}"
        labels = f", labels={list(self.labels[:5])}{' and more' if len(self.labels) > 5 else ''}" if self.labels else ""
        return (
            f"{type(self).__name__}(task={self.name!r}, family={family_of(self.model)!r}, parameters={size},"
            f" vocab_size={self.tokenizer.vocab_size:,}, max_len={self.model.config.max_len}{labels},"
            f" device={str(self.device)!r})"
        )

    def to(self, device: torch.device | str) -> Self:
        """Move the model to a device. Returns the task itself."""
        try:
            self.model.to(torch.device(device))
        except (RuntimeError, AssertionError) as error:
            raise ConfigError(f"device {device!r} is not available: {str(error).splitlines()[0]}") from None
        self.device = torch.device(device)
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

    def configure(self, config: TrainConfig) -> None:
        """Set attributes from training options that only this task uses. By default none."""

    def fit_statistics(self, data: Dataset) -> None:
        """Compute statistics of the training set before training. By default none."""

    # Examples

    @classmethod
    @abstractmethod
    def read(
        cls, src: Sequence[Path], tgt: Sequence[Path], options: ReadOptions = DETECT, log: Log | None = None
    ) -> Iterator[ExampleT]:
        """Read the usable examples of files, in order.

        Args:
            options: format, columns and JSON keys of the files.
            log: called after the last example with a warning for each problem of the files.

        Raises:
            CorpusError: a file has the wrong format.
        """

    @classmethod
    @abstractmethod
    def texts(cls, example: ExampleT) -> Sequence[str]:
        """Texts of an example that the tokenizer is trained on."""

    @classmethod
    def key(cls, example: ExampleT) -> str:
        """Text that identifies an example: equal keys are never both in the training set and in the dev set."""
        return cls.texts(example)[0]

    @classmethod
    def labels_in(cls, example: ExampleT) -> Iterable[str]:
        """Labels of an example, if the task has labels."""
        return ()

    @classmethod
    def group(cls, example: ExampleT) -> str:
        """Name of the task that an example belongs to, in a mixture of tasks."""
        return ""

    @classmethod
    def label_set(cls, labels: Iterable[str]) -> tuple[str, ...]:
        """The labels to store with the model, from those of the training examples."""
        return tuple(sorted(set(labels)))

    @classmethod
    def n_labels(cls, labels: Sequence[str]) -> int:
        """Number of outputs of the model's head."""
        return len(labels)

    # Training

    @abstractmethod
    def encode(self, examples: Sequence[ExampleT]) -> tuple[list[Row], list[ExampleT]]:
        """Encode examples as rows of `fields`. Returns the rows, and the examples that are too long for the model."""

    def lengths(self, data: Dataset) -> NDArray[np.int64]:
        """Length of each row in a padded batch, in tokens."""
        return data.lengths

    def needed_max_len(self, example: ExampleT) -> int:
        """Smallest `max_len` of a model with which `encode` does not leave this example out."""
        return max(map(len, self.tokenizer.encode_batch(self.texts(example)))) + 1

    @classmethod
    def wanted_max_len(cls, tokenizer: Tokenizer, example: ExampleT) -> int:
        """`max_len` with which nothing of an example is cut off, for tasks whose default length follows the data; 0 for
        others."""
        return 0

    def n_tokens(self, data: Dataset) -> list[int]:
        """Number of tokens of each field that holds token ids."""
        return [len(field.values) for name, field in data.fields.items() if self.fields[name] == IDS]

    @abstractmethod
    def batch(self, rows: Sequence[Row]) -> BatchT:
        """Collate rows to a batch."""

    def packed_batch(self, rows: Sequence[Row], n_tokens: int, n_sequences: int, longest: int) -> BatchT:
        """Collate rows to a batch without padding, for models that take it (`Model.can_pack`).

        Args:
            n_tokens: number of positions of each side.
            n_sequences: number of sequences, with those of padding that fill the positions.
            longest: number of positions of the longest sequence.
        """
        raise NotImplementedError

    @abstractmethod
    def loss(self, batch: BatchT, *, label_smoothing: float = 0.0) -> Tensor:
        """Loss of a batch, summed over its targets, in nats."""

    @abstractmethod
    def validate(self, examples: Sequence[ExampleT]) -> dict[str, float]:
        """Metrics on dev examples: at least `metric`, and the loss if it is defined."""

    # Inference

    @abstractmethod
    def run(self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = no_op) -> list[str]:
        """Apply the task to lines of text. Returns one output line per line.

        Args:
            options: decoding options, for tasks that generate text.
            warn: called with the index of a line that was too long and a description of what was cut.
        """

    def records(
        self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = no_op
    ) -> Sequence[Record]:
        """Apply the task to lines of text. Returns one JSON record per line; `output` is the line that `run` returns.

        Args:
            warn: called with the index of a line that was too long and a description of what was cut.
        """
        outputs = self.run(lines, options, warn=warn)
        return [{"input": line, "output": output} for line, output in zip(lines, outputs, strict=True)]

    @abstractmethod
    def evaluate(
        self, examples: Sequence[ExampleT], options: DecodeConfig | None = None
    ) -> tuple[list[str], list[Score]]:
        """Outputs for examples, and the metrics of these outputs."""

    @classmethod
    def references(cls, examples: Sequence[ExampleT]) -> list[Any]:
        """What the outputs for examples are compared with, if the task has an `output_type`."""
        return []

    @classmethod
    def parse_outputs(cls, outputs: Sequence[str]) -> list[Any]:
        """The values of `output_type` that the output lines of `evaluate` print."""
        return list(outputs)

    @classmethod
    def bootstrap_statistics(
        cls, outputs: Sequence[str], examples: Sequence[ExampleT]
    ) -> dict[str, tuple[NDArray[np.float64], MetricFn]]:
        """Statistics for bootstrap confidence intervals, for metrics that are functions of sums over examples.

        Args:
            outputs: outputs as returned by `evaluate`.

        Returns:
            For each metric the statistics of each example, and the function that computes the metric from their sums.
        """
        if cls.output_type is None:
            return {}
        statistics = statistics_of(cls.output_type, cls.parse_outputs(outputs), cls.references(examples))
        return {metric.name: (rows, metric.from_sums) for metric, rows in statistics.items()}

    def predict(self, texts: Any, **options: Any) -> Any:
        """The same as calling the task."""
        return self(texts, **options)

    # Folders

    @classmethod
    def from_folder(cls, folder: Path, config: JsonObject, device: torch.device) -> Self:
        """Load the task from a verified folder.

        Args:
            config: the contents of config.json, without "task".

        Raises:
            CheckpointError: the folder is damaged, or its model family does not support the task.
        """
        tokenizer = Tokenizer.from_folder(folder)
        config = dict(config)
        family = str(config.pop("model_type", None)).removeprefix("glassformer-")
        labels, is_int8 = config.pop("labels", ()), config.pop("precision", None) == "int8"
        stored = {name: config.pop(name) for name in cls.stored_attributes if name in config}
        if family not in cls.families():
            raise CheckpointError(f"{folder / 'config.json'}: {cls.name} is not supported by model family {family!r}.")
        if not isinstance(labels, (list, tuple)) or not all(isinstance(label, str) for label in labels):
            raise CheckpointError(f"{folder / 'config.json'}: damaged: labels is {labels!r}, not a list of strings.")
        model_class = FAMILIES[family]
        try:
            model_config = model_class.config_class.model_validate(config)
        except ValidationError as error:
            raise CheckpointError(f"{folder / 'config.json'}: {format_validation_error(error, {})}") from None
        n_labels = getattr(model_config, "n_labels", len(labels))
        if cls.has_classes and len(labels) != n_labels:
            raise CheckpointError(
                f"{folder / 'config.json'}: damaged: n_labels is {n_labels}, but labels has {len(labels)} entries."
            )
        if tokenizer.vocab_size > model_config.vocab_size:
            raise CheckpointError(
                f"{folder}: tokenizer.json has {tokenizer.vocab_size} vocabulary entries, but vocab_size in config.json"
                f" is {model_config.vocab_size}."
            )
        if (head := cls.head_config.get("head")) and (found := getattr(model_config, "head", None)) != head:
            raise CheckpointError(
                f"{folder / 'config.json'}: damaged: head is {found!r}, expected {head!r} for {cls.name}."
            )
        tensors = checkpoint.read_tensors(folder / "model.safetensors")
        try:
            if is_int8:
                model = model_of_int8(model_class, model_config, tensors)
            else:
                model = model_class.from_state_dict(model_config, tensors)
        except CheckpointError as error:
            raise CheckpointError(f"{folder / 'model.safetensors'}: {error}") from None
        task = cls(model, tokenizer, device, labels)
        for name, value in stored.items():
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                raise CheckpointError(f"{folder / 'config.json'}: damaged: {name} is {value!r}, not a list of strings.")
            setattr(task, name, tuple(value))
        return task

    def contents(
        self, tensors: dict[str, Tensor] | None = None, *, precision: StoredPrecision = "fp32"
    ) -> dict[str, checkpoint.FileContent]:
        """Files of a model folder from which `load` restores this task.

        Args:
            tensors: weights to write. Default: the model's.
            precision: that of the weights.

        Raises:
            UserError: the model cannot be stored in this precision.
        """
        if precision == "int8":
            tensors = int8_tensors(self.model, in_precision(self.model, "int8"))
        config = {
            "task": self.name,
            "model_type": f"glassformer-{family_of(self.model)}",
            **self.model.config.model_dump(),
            **({"labels": self.labels} if self.labels else {}),
            **{name: value for name in self.stored_attributes if (value := getattr(self, name))},
            **({"precision": precision} if precision != "fp32" else {}),
        }
        return {
            "config.json": checkpoint.to_json(config),
            **self.tokenizer.files(),
            "model.safetensors": tensors or self.model.state_dict(),
        }


AnyTask = Task[Any, Any]
"""A task of any type. Its examples and batches are only passed from one of its methods to another."""
