"""What all pipelines share: how they are called, and which arguments they take."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, ClassVar, Self

from glassformer.config import Config
from glassformer.errors import ConfigError
from glassformer.pipelines.source import Source
from glassformer.pipelines.tokenizer_adapter import TokenizerAdapter


class Options(Config):
    """Arguments of every pipeline. What concerns batches alone is taken and changes no output."""

    batch_size: int | None = None
    """Of a generator, how many texts are read together; a list is read as fits the machine."""
    num_workers: int | None = None
    """Of no effect: nothing is read by other processes."""
    truncation: bool | str | None = None
    """Whether it is meant that a text longer than the model reads is cut; it is in any case, but not without a word."""
    padding: bool | str | None = None
    """Of no effect: an output does not depend on what stands beside it."""
    clean_up_tokenization_spaces: bool | None = None
    """Take away the spaces before punctuation in what is said."""

    @classmethod
    def given(cls, *sets: Mapping[str, Any]) -> Self:
        """The arguments of the pipeline and of the call, the latter before the former.

        Raises:
            ConfigError: naming every unknown and impossible one.
        """
        merged = {name: value for options in sets for name, value in options.items()}
        try:
            return cls.resolve(merged, environment={})
        except ConfigError as error:
            raise ConfigError(f"{error}\n  This pipeline takes {', '.join(cls.model_fields)}.") from None

    @property
    def cuts(self) -> bool:
        """Whether the caller knows that long texts are cut."""
        return self.truncation not in (None, False, "do_not_truncate")


class Pipeline(ABC):
    """Texts to dictionaries, as transformers 4 gave them.

    A text gives what there is to say of it, a list of texts a list, a generator a generator.
    """

    tasks: ClassVar[tuple[str, ...]] = ()
    """Our tasks that do it."""
    options_type: ClassVar[type[Options]] = Options
    model: Any

    def __init__(self, source: Source, name: str, **options: Any) -> None:
        self.source, self.task = source, name
        self.model = source.task
        self.tokenizer = TokenizerAdapter(source)
        self.options = options
        self.options_type.given(options)  # what is wrong with them is said at once

    @classmethod
    def supports(cls, source: Source) -> bool:
        """Whether a model was trained for it."""
        return source.task.name in cls.tasks

    @property
    def device(self) -> Any:
        return self.model.device

    def __call__(self, inputs: Any, **options: Any) -> Any:
        """What there is to say of a text, or of each text of a list or a generator.

        Raises:
            ConfigError: an argument that this pipeline does not take, or of an impossible value.
        """
        return self.each(inputs, options)

    def each(self, inputs: Any, options: Mapping[str, Any]) -> Any:
        c = self.options_type.given(self.options, options)
        if isinstance(inputs, list):
            return self.run(inputs, c) if inputs else []
        if isinstance(inputs, (str, Mapping, tuple)) or not is_stream(inputs):
            return self.run([inputs], c)[0]
        return self.stream(inputs, c)

    def stream(self, inputs: Any, options: Any) -> Iterator[Any]:
        rest = iter(inputs) if isinstance(inputs, Iterable) else (inputs[i] for i in range(len(inputs)))
        while batch := list(islice(rest, options.batch_size or 1)):
            yield from self.run(batch, options)

    @abstractmethod
    def run(self, inputs: list[Any], options: Any) -> list[Any]:
        """What there is to say of each input."""

    def text(self, given: Any) -> str:
        """The input, which must be a text."""
        if not isinstance(given, str):
            raise ConfigError(f"{self.task}: expected a text or a list of texts, found {type(given).__name__}.")
        return given


def is_stream(inputs: Any) -> bool:
    """Whether it gives one input after the other: a generator, a data set."""
    return isinstance(inputs, Iterable) or (hasattr(inputs, "__getitem__") and hasattr(inputs, "__len__"))


def warn_cut(n_tokens: int, what: str) -> None:
    """Say that a text was cut."""
    warnings.warn(
        f"a text is longer than the {n_tokens} tokens that the model reads: its {what} was not read."
        " truncation=True says that this is meant.",
        UserWarning,
        stacklevel=2,
    )
