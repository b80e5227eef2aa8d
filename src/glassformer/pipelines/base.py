"""Base class and common arguments of all pipelines."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeGuard, TypeVar

from glassformer import checkpoint
from glassformer.config import Config
from glassformer.devices import Device
from glassformer.errors import ConfigError
from glassformer.pipelines.source import Source
from glassformer.pipelines.tokenizer_adapter import TokenizerAdapter
from glassformer.tasks.base import AnyTask

Output = Any
"""Output of a pipeline: dictionaries and lists in the nesting of transformers 4, which depends on the arguments."""


class IndexableInputs(Protocol):
    """A data set of inputs that can be indexed but not iterated."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> object: ...


class Options(Config):
    """Arguments of every pipeline. Arguments that only concern batching are accepted and do not change the output."""

    batch_size: int | None = None
    """Number of texts processed together if the input is a generator. Lists are batched automatically."""
    num_workers: int | None = None
    """Ignored: data is not loaded in worker processes."""
    truncation: bool | str | None = None
    """Whether to truncate long texts. Texts longer than the maximum length are always truncated; without this option, a
    warning is issued."""
    padding: bool | str | None = None
    """Ignored: padding does not change the output."""
    clean_up_tokenization_spaces: bool | None = None
    """Remove spaces before punctuation from generated text."""
    _n_before: int | None = None
    """Number of texts of a generator before those of this batch; None: the texts are no part of a generator."""

    def after(self, n_texts: int) -> Self:
        """These arguments for the texts of a generator after its first `n_texts`."""
        later = self.model_copy()
        later._n_before = n_texts
        return later

    @property
    def n_before(self) -> int | None:
        return self._n_before

    @classmethod
    def merge(cls, *sets: Mapping[str, object]) -> Self:
        """Merge arguments of the pipeline and of the call. Later sets override earlier ones.

        Raises:
            ConfigError: unknown arguments or invalid values; the message lists all of them.
        """
        merged = {name: value for options in sets for name, value in options.items()}
        try:
            return cls.resolve(merged, environment={})
        except ConfigError as error:
            raise ConfigError(f"{error}\n  Arguments of this pipeline: {', '.join(cls.model_fields)}.") from None

    @property
    def truncates(self) -> bool:
        """Whether the caller requested truncation."""
        return self.truncation not in (None, False, "do_not_truncate")


OptionsT = TypeVar("OptionsT", bound=Options)


class Pipeline(ABC, Generic[OptionsT]):
    """Base class of pipelines, which map texts to dictionaries in the format of transformers 4.

    A single text gives one result, a list a list of results, and a generator a generator of results.
    """

    options_type: type[OptionsT]
    """Arguments of the calls."""
    input_names: ClassVar[tuple[str, ...]] = ()
    """Other names of the first argument, `inputs`, which it has in transformers."""
    model: AnyTask
    """The glassformer task. Its `.model` is the module of PyTorch."""

    def __init__(self, source: Source, name: str, **options: object) -> None:
        self.source, self.task = source, name
        self.model = source.task
        self.tokenizer = TokenizerAdapter(source)
        self.options = options
        self.options_type.merge(options)  # report invalid options immediately

    @classmethod
    def supports(cls, source: Source, name: str) -> bool:
        """Whether a model supports this pipeline, whose name is `name`."""
        return name in source.pipelines

    @property
    def device(self) -> Device:
        return self.model.device

    def __call__(self, inputs: object = None, **options: object) -> Output:
        """Process a text, or each text of a list or generator.

        Raises:
            ConfigError: an argument is unknown or has an invalid value.
        """
        return self.each(self.named_input(inputs, options), options)

    def named_input(self, inputs: object, options: dict[str, object]) -> object:
        """The first argument, which may have one of `input_names`: then it is removed from the options."""
        named = [name for name in self.input_names if name in options]
        return options.pop(named[0]) if inputs is None and named else inputs

    def each(self, inputs: object, options: Mapping[str, object]) -> Output:
        c = self.options_type.merge(self.options, options)
        if isinstance(inputs, list):
            return self.run(inputs, c) if inputs else []
        if isinstance(inputs, (str, Mapping, tuple)) or not is_stream(inputs):
            return self.run([inputs], c)[0]
        return self.stream(inputs, c)

    def stream(self, inputs: Iterable[object] | IndexableInputs, options: OptionsT) -> Iterator[Output]:
        items = iter(inputs) if isinstance(inputs, Iterable) else (inputs[i] for i in range(len(inputs)))
        n_before = 0
        while batch := list(islice(items, options.batch_size or 1)):
            yield from self.run(batch, options.after(n_before))
            n_before += len(batch)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the model and its tokenizer: a glassformer folder, or for a Hugging Face model a Hugging Face folder.

        Raises:
            ConfigError: the folder exists and is not empty.
        """
        if self.source.folder is None:
            self.model.save(folder)
            return
        from glassformer.interop.huggingface import hf_folder_contents

        checkpoint.check_empty(Path(folder))
        checkpoint.save_folder(Path(folder), hf_folder_contents(self.model))

    @abstractmethod
    def run(self, inputs: list[object], options: OptionsT) -> list[Output]:
        """Process a list of inputs."""

    def text(self, value: object) -> str:
        """Return the input if it is a string, else raise ConfigError."""
        if not isinstance(value, str):
            raise ConfigError(f"{self.task}: expected a text or a list of texts, found {type(value).__name__}.")
        return value


def is_stream(inputs: object) -> TypeGuard[Iterable[object] | IndexableInputs]:
    """Whether the input is a stream of texts: a generator or a dataset."""
    return isinstance(inputs, Iterable) or (hasattr(inputs, "__getitem__") and hasattr(inputs, "__len__"))


TRUNCATION_ADVICE = " Pass truncation=True to truncate without this warning."


def warn_truncated(n_tokens: int, removed: str) -> None:
    """Warn that the beginning or the end of a text was removed."""
    warnings.warn(
        f"a text exceeds the maximum length of {n_tokens} tokens: its {removed} was removed.{TRUNCATION_ADVICE}",
        UserWarning,
        stacklevel=2,
    )
