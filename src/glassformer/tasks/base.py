"""What every task is: a model with its tokenizer, from raw text to raw text, and how it learns from examples."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import ValidationError
from torch import Tensor

from glassformer import checkpoint
from glassformer.config import TrainConfig, describe
from glassformer.corpora.read_options import DETECT, ReadOptions
from glassformer.data.batch import Batch
from glassformer.data.dataset import IDS, Dataset, Row
from glassformer.errors import CheckpointError, ConfigError, CorpusError
from glassformer.metrics import Score
from glassformer.metrics.score import MetricFn
from glassformer.models.families import FAMILIES, family_of
from glassformer.tokens.tokenizer import Tokenizer

no_op: Callable[..., None] = lambda *_: None  # noqa: E731
Log = Callable[[str], None]
Warn = Callable[[int, str], None]

MAX_HELD_OUT = 1000
"""Most examples held out for validation."""


def map_nonblank(
    lines: Sequence[str], answer: Callable[[list[str], Warn], Sequence[str]], warn: Warn = no_op
) -> list[str]:
    """The answers to lines, asked for those alone that are not blank: a blank line is answered by an empty one.

    Args:
        answer: of some lines as many answers; what it warns of by place among these is told by place among all.
    """
    there = [i for i, line in enumerate(lines) if line.strip()]
    found = answer([lines[i] for i in there], lambda i, what: warn(there[i], what))
    out = [""] * len(lines)
    for i, text in zip(there, found, strict=True):
        out[i] = text
    return out


def check_texts(task: "Task", texts: Any, *extra: Any, pairs: bool = False) -> list[Any]:
    """The texts that a task was called with, as a list.

    Args:
        extra: further positional arguments, which are an error.
        pairs: a text may be a pair of texts, as a tuple.

    Raises:
        TypeError: neither a text nor a sequence of texts; says what was expected.
    """
    single = "a text (str) or a pair of texts (tuple)" if pairs else "a text (str)"
    expected = f"{type(task).__name__}(…) takes {single}, or a list of them"

    def is_text(value: Any) -> bool:
        is_pair = isinstance(value, tuple) and len(value) == 2 and all(isinstance(side, str) for side in value)
        return isinstance(value, str) or (pairs and is_pair)

    if extra:
        hint = (
            " Write a pair as one tuple: task((a, b))." if pairs else " Write several texts as one list: task([a, b])."
        )
        raise TypeError(f"{expected}; got {1 + len(extra)} arguments.{hint}")
    if is_text(texts):
        return [texts]
    if isinstance(texts, list) and all(map(is_text, texts)):
        return list(texts)
    wrong = next((t for t in texts if not is_text(t)), texts) if isinstance(texts, list | tuple) else texts
    found = "a list with " + type(wrong).__name__ if wrong is not texts else type(texts).__name__
    raise TypeError(f"{expected}; got {found}.")


class Task(ABC):
    """A trained model with its tokenizer."""

    name: ClassVar[str]
    families: ClassVar[tuple[str, ...]]
    """Families of models that can do it, the usual one first."""
    example_type: ClassVar[Any]
    """The record of one example."""
    examples_name: ClassVar[str] = "examples"
    fields: ClassVar[dict[str, str]] = {"src": IDS, "tgt": IDS}
    """Of a row that training reads."""
    metric: ClassVar[str]
    """The figure of `validate` that decides which weights are kept."""
    larger_is_better: ClassVar[bool] = True
    head: ClassVar[dict[str, Any]] = {}
    """Sizes that the task decides."""
    rows_are_examples: ClassVar[bool] = True
    """Each example becomes one row of the training set, or a few; False for text that is cut into windows."""
    validation_decodes: ClassVar[bool] = False
    """`validate` decodes, and takes `n_decoded`: the number of examples to decode."""
    has_classes: ClassVar[bool] = False
    """Its labels are a closed set: those of the training text."""
    add_prefix_space: ClassVar[bool] = True
    """Its texts begin where others do, with a word: a space before it makes the word the same as elsewhere."""
    default_tokenizer: ClassVar[str] = "bpe"
    """Kind of units, unless another is asked for."""
    streams: ClassVar[bool] = False
    """Whether `stream` gives the output of a text token by token."""
    extra_special_tokens: ClassVar[tuple[str, ...]] = ()
    """Special tokens that its tokenizer has besides pad, start and end."""

    def __init__(
        self,
        model: Any,
        tokenizer: Tokenizer,
        device: torch.device | str = "cpu",
        labels: Sequence[str] = (),
    ) -> None:
        self.device = torch.device(device)
        self.model = model.to(self.device).eval()
        self.tokenizer = tokenizer
        self.labels = tuple(labels)

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
            raise ConfigError(f"device {device!r} is not here: {str(error).splitlines()[0]}") from None
        self.device = torch.device(device)
        return self

    def save(self, folder: str | Path) -> None:
        """Write a model folder that `glassformer.load` reads.

        Raises:
            ConfigError: the folder exists and is not empty.
            UserError: the folder cannot be written.
        """
        checkpoint.check_empty(Path(folder))
        checkpoint.save_folder(Path(folder), self.contents())

    def configure(self, config: TrainConfig) -> None:  # noqa: B027
        """Take what only training asks for from its options; most tasks need nothing."""

    def fit_statistics(self, data: Dataset) -> None:  # noqa: B027
        """Look at the whole training set before training; most tasks need not."""

    # Examples

    @classmethod
    @abstractmethod
    def read(
        cls, src: Sequence[Path], tgt: Sequence[Path], options: ReadOptions = DETECT, log: Log | None = None
    ) -> Iterator[Any]:
        """The usable examples of files, in order.

        Args:
            options: format, columns and JSON keys of the files.
            say: told, at the end, what is wrong with the files.
        """

    @classmethod
    @abstractmethod
    def texts(cls, example: Any) -> Sequence[str]:
        """What the tokenizer is to see of an example."""

    @classmethod
    def key(cls, example: Any) -> str:
        """Text that must not be in training and validation both."""
        return cls.texts(example)[0]

    @classmethod
    def labels_in(cls, example: Any) -> Iterable[str]:
        """The labels of an example, where a task has a closed set of them."""
        return ()

    @classmethod
    def group(cls, example: Any) -> str:
        """Which of several tasks an example is of, where they are mixed."""
        return ""

    @classmethod
    def label_set(cls, labels: Iterable[str]) -> tuple[str, ...]:
        """What the model has to know of the labels that occur in training."""
        return tuple(sorted(set(labels)))

    @classmethod
    def n_labels(cls, labels: Sequence[str]) -> int:
        """Outputs of the model's head."""
        return len(labels)

    @classmethod
    def held_out(cls, hashes: NDArray[np.uint64], path: Path) -> NDArray[np.bool_]:
        """Which examples to validate on: a function of their keys alone, 5% of these and at most N_HELD_OUT.

        Args:
            hashes: of each example's key.
        """
        distinct = np.unique(hashes)
        if len(distinct) < 2:
            raise CorpusError(f"{path}: one distinct example; training and validation need at least one each.")
        n_dev = min(MAX_HELD_OUT, max(1, len(distinct) // 20))
        return hashes <= distinct[n_dev - 1]

    # Learning

    @abstractmethod
    def encode(self, examples: Sequence[Any]) -> tuple[list[Row], list[Any]]:
        """Rows of `fields`, and the examples that are too long for the model."""

    def lengths(self, data: Dataset) -> NDArray[np.int64]:
        """What each row takes in a padded batch, in tokens."""
        return data.lengths

    def needed_max_len(self, example: Any) -> int:
        """Smallest `max_len` of a model with which `encode` does not leave this example out."""
        return max(map(len, self.tokenizer.encode_batch(self.texts(example)))) + 1

    def n_tokens(self, data: Dataset) -> list[int]:
        """Tokens there are to learn from, of each field that holds any."""
        return [int(field.lengths.sum()) for name, field in data.fields.items() if self.fields[name] == IDS]

    @abstractmethod
    def batch(self, rows: Sequence[Any]) -> Batch:
        """A batch of rows."""

    @abstractmethod
    def loss(self, batch: Any, *, label_smoothing: float = 0.0) -> Tensor:
        """The summed loss of a batch, in nats."""

    @abstractmethod
    def validate(self, examples: Sequence[Any]) -> dict[str, float]:
        """Figures on held-out examples: `metric`, and the loss where there is one."""

    # Use

    @abstractmethod
    def run(self, lines: Sequence[str], options: Any = None, *, warn: Callable[[int, str], None] = no_op) -> list[str]:
        """Lines of text to as many lines of text.

        Args:
            warn: told the index of a line that was too long, and what was done about it.
        """

    def records(
        self, lines: Sequence[str], options: Any = None, *, warn: Callable[[int, str], None] = no_op
    ) -> list[dict[str, Any]]:
        """One record for each line, for programs; a blank line has a record with an empty output.

        Args:
            warn: called with the index of a line that was too long and a description of what was cut.
        """
        outputs = self.run(lines, options, warn=warn)
        return [{"text": line, "output": output} for line, output in zip(lines, outputs, strict=True)]

    @abstractmethod
    def scores(self, examples: Sequence[Any], options: Any = None) -> tuple[list[str], list[Score]]:
        """The task's answers to examples, and its metrics of them."""

    @classmethod
    def bootstrap_statistics(
        cls, outputs: Sequence[str], examples: Sequence[Any]
    ) -> dict[str, tuple[NDArray[np.float64], MetricFn]]:
        """Of metrics that are made of sums over examples, these sums' terms and what they mean: for intervals.

        Args:
            outputs: answers as `scores` gives them.
        """
        return {}

    # Folders

    @classmethod
    def from_folder(cls, folder: Path, config: dict[str, Any], device: torch.device) -> Self:
        """The task in a verified folder, given what its config.json says."""
        tokenizer = Tokenizer.from_folder(folder)
        config = dict(config)
        family = str(config.pop("model_type", None)).removeprefix("glassformer-")
        labels = config.pop("labels", ())
        if family not in cls.families:
            raise CheckpointError(f"{folder / 'config.json'}: {cls.name} by {family!r}, which this version cannot do.")
        if not isinstance(labels, (list, tuple)) or not all(isinstance(label, str) for label in labels):
            raise CheckpointError(f"{folder / 'config.json'}: damaged: labels is {labels!r}, not a list of strings.")
        sizes_type, model_type = FAMILIES[family]
        try:
            sizes = sizes_type.model_validate(config)
        except ValidationError as error:
            raise CheckpointError(f"{folder / 'config.json'}: {describe(error, {})}") from None
        n_labels = getattr(sizes, "n_labels", len(labels))
        if cls.has_classes and len(labels) != n_labels:
            raise CheckpointError(
                f"{folder / 'config.json'}: damaged: n_labels is {n_labels}, but labels has {len(labels)} entries."
            )
        if tokenizer.vocab_size > sizes.vocab_size:
            raise CheckpointError(
                f"{folder}: tokenizer.json has {tokenizer.vocab_size} units, config.json says {sizes.vocab_size}."
            )
        if (head := cls.head.get("head")) and (found := getattr(sizes, "head", None)) != head:
            raise CheckpointError(f"{folder / 'config.json'}: damaged: head is {found!r}, of {cls.name} {head!r}.")
        tensors = checkpoint.read_tensors(folder / "model.safetensors")
        try:
            model = model_type.from_state_dict(sizes, tensors)
        except CheckpointError as error:
            raise CheckpointError(f"{folder / 'model.safetensors'}: {error}") from None
        return cls(model, tokenizer, device, labels)

    def contents(self, tensors: dict[str, Tensor] | None = None) -> dict[str, str | dict[str, Tensor]]:
        """The files of a model folder that `load` turns into this task again.

        Args:
            tensors: weights to write in place of the model's own.
        """
        config = {
            "task": self.name,
            "model_type": f"glassformer-{family_of(self.model)}",
            **self.model.config.model_dump(),
            **({"labels": self.labels} if self.labels else {}),
        }
        return {
            "config.json": checkpoint.to_json(config),
            **self.tokenizer.files(),
            "model.safetensors": tensors or self.model.state_dict(),
        }
