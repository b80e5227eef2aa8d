"""Base class of all objectives: the encoding of training examples, batches, the loss, and validation of a task."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Generic

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from glassformer.data.batch import BatchT
from glassformer.data.dataset import IDS, Dataset
from glassformer.data.ragged import Row
from glassformer.decode_config import Precision
from glassformer.learning.held_out import HeldOut, SmallestHashes
from glassformer.tasks.base import AnyTask, ExampleT, Log, Task
from glassformer.tokens.tokenizer import Tokenizer
from glassformer.train_config import TrainConfig

MapParts = Callable[[Callable[[list[Any]], list[Any]], Sequence[Any]], list[Any]]
"""Computes the results of a function for all items. The function returns a list with a result for each item of a list.
"""


def map_all(function: Callable[[list[Any]], list[Any]], items: Sequence[Any]) -> list[Any]:
    """Results of a function for all items, in one call."""
    return function(list(items))


class Objective(ABC, Generic[ExampleT, BatchT]):
    """Training objective of a task.

    The methods in the order of a training: `encode` makes rows of token ids from examples, `batch` collates rows,
    `loss` computes the loss of a batch, and `validate` the metrics on dev examples. The class methods are used before
    there is a model.

    Type parameters: the dataclass of an example, and the batch type.
    """

    task_type: ClassVar[type[AnyTask]]
    """Class of the task."""
    metric: ClassVar[str]
    """The metric returned by `validate` that selects the best checkpoint."""
    fields: ClassVar[dict[str, str]] = {"src": IDS, "tgt": IDS}
    """Names and types of the fields of an encoded example."""
    targets_name: ClassVar[str] = "tokens"
    """What the targets of the loss are called in messages."""
    too_long_advice: ClassVar[str | None] = None
    """Advice for a corpus in which many examples are too long."""
    rows_are_examples: ClassVar[bool] = True
    """Each example becomes one row of the training set, or a few. False for text that is split into windows."""
    vocabulary_by_bytes: ClassVar[bool] = False
    """The default vocabulary is chosen by the size of the text, not by the number of examples."""
    validation_decodes: ClassVar[bool] = False
    """`validate` decodes, and takes `n_decoded`: the number of examples to decode."""
    static_shapes: ClassVar[bool] = False
    """`Batch.pad_to` pads batches to fixed shapes, and `loss` does not wait for the GPU: a CUDA graph can hold it."""
    can_pack: ClassVar[bool] = False
    """`packed_batch` makes batches without padding."""
    held_out: ClassVar[type[HeldOut]] = SmallestHashes
    """Selection of the dev examples, if no dev set is given."""
    add_prefix_space: ClassVar[bool] = True
    """Encode texts with a leading space, so that the first word has the same tokens as within a text."""
    encodes_words: ClassVar[bool] = False
    """Each word is encoded separately, without the space before it (see `Tokenizer.for_words`)."""
    default_tokenizer: ClassVar[str] = "bpe"
    """Tokenizer type used without --tokenizer."""
    extra_special_tokens: ClassVar[tuple[str, ...]] = ()
    """Special tokens of the tokenizer besides padding, start and end."""

    task: Task[ExampleT]
    """The task, whose model is trained; objectives narrow the type."""
    decoding_precision: Precision | None = None
    """Arithmetic in which `validate` decodes. None: that of the task, which may be a faster one than fp32."""
    n_truncated: int = 0
    """Number of examples of which `encode` cut off a part."""
    options: ClassVar[tuple[str, ...]] = ("label_smoothing",)
    """Options of `TrainConfig` that not every objective has, and this one has. Default: that which `loss` takes."""

    def __init__(self, task: Task[ExampleT]) -> None:
        self.task = task
        self.map_parts: MapParts = map_all
        """`validate` calls it for what takes time. In a training by several processes, each computes a part. Results
        are JSON-serializable; a result must not depend on the other items, nor on random numbers."""

    @property
    def model(self) -> Any:
        """Model of the task."""
        return self.task.model

    @property
    def tokenizer(self) -> Tokenizer:
        """Tokenizer of the task."""
        return self.task.tokenizer

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the task."""
        return self.task.labels

    @property
    def device(self) -> torch.device:
        """Device of the model."""
        return torch.device(self.task.device)

    @classmethod
    def special_tokens(cls, config: TrainConfig) -> tuple[str, ...]:
        """Special tokens of a new tokenizer, besides padding, start and end."""
        return cls.extra_special_tokens

    def configure(self, config: TrainConfig) -> None:
        """Set attributes from training options that only this task uses. By default none."""

    def fit_statistics(self, data: Dataset) -> None:
        """Compute statistics of the training set before training. By default none."""

    # Examples

    @classmethod
    def key(cls, example: ExampleT) -> str:
        """Text that identifies an example. Equal keys are never both in the training set and in a dev set that
        `SmallestHashes` holds out. `LastExamples` does not compare them: a repeated document may be in both."""
        return cls.task_type.texts(example)[0]

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

    # Training

    def extended(
        self, examples: Iterator[ExampleT], training: Callable[[], Iterator[ExampleT]], log: Log
    ) -> Iterator[ExampleT]:
        """The examples with others made of them. By default none.

        Args:
            examples: those of the training, some of them several times.
            training: returns each once.
        """
        return examples

    @property
    def too_long(self) -> str:
        """What examples are that `encode` leaves out, for messages."""
        return f"longer than {self.model.config.max_len - 1} tokens"

    @abstractmethod
    def encode(self, examples: Sequence[ExampleT]) -> tuple[list[Row], list[ExampleT]]:
        """Encode examples as rows of `fields`. Returns the rows, and the examples that are too long for the model."""

    def lengths(self, data: Dataset) -> NDArray[np.int64]:
        """Length of each row in a padded batch, in tokens."""
        return data.lengths

    def needed_max_len(self, example: ExampleT) -> int:
        """Smallest `max_len` of a model with which `encode` does not leave this example out."""
        return max(map(len, self.tokenizer.encode_batch(self.task.texts(example)))) + 1

    @classmethod
    def wanted_max_len(cls, tokenizer: Tokenizer, example: ExampleT) -> int:
        """`max_len` with which nothing of an example is cut off, for tasks whose default length follows the data; 0 for
        others."""
        return 0

    def n_tokens(self, data: Dataset) -> list[int]:
        """Number of tokens of each field that holds token ids."""
        return [len(field.values) for name, field in data.fields.items() if self.fields[name] == IDS]

    @property
    def varies(self) -> bool:
        """Whether `varied` changes rows. By default it does not."""
        return False

    def varied(self, rows: Sequence[Row], generators: Sequence[np.random.Generator], max_len: int) -> Sequence[Row]:
        """The rows as one update is trained on them. By default as they are.

        Args:
            generators: random numbers of each row, which depend on the seed, the update and the row.
            max_len: maximum length of a field in tokens, without special tokens; rows that would be longer stay.
        """
        return rows

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


AnyObjective = Objective[Any, Any]
"""An objective of any type. Its examples and batches are only passed from one of its methods to another."""
