"""Regression: a number for each text or pair of texts, with an encoder."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self, overload

from glassformer.config import JsonObject
from glassformer.corpora.columns import parse_number
from glassformer.corpora.labeled import Labeled
from glassformer.corpora.read_options import DETECT, ReadOptions
from glassformer.decode_config import DecodeConfig
from glassformer.devices import Device
from glassformer.errors import CheckpointError, CorpusError
from glassformer.manifest import COPY_AGAIN
from glassformer.metrics import Score
from glassformer.metrics.registry import scores
from glassformer.tasks.base import Log
from glassformer.tasks.classification import LabelTask, text_of
from glassformer.tasks.encoder import Texts
from glassformer.tasks.texts import Text, Warn, check_texts, map_nonblank, python_warning


class Regressor(LabelTask):
    """Predicts a number for each text or pair of texts.

    Training targets are scaled to [-0.5, 0.5] by the range of the training labels, which is stored in `labels`.
    """

    name = "regression"
    pipeline_tag = "sentence-similarity"
    pipelines = ("text-classification", "sentence-similarity")
    head_task = "classification"
    output_type = "numbers"

    @classmethod
    def read(
        cls, src: Sequence[Path], tgt: Sequence[Path], options: ReadOptions = DETECT, log: Log | None = None
    ) -> Iterator[Labeled]:
        n_bad, first_bad = 0, ""
        for example in super().read(src, tgt, options, log):
            try:
                example.number()
            except CorpusError as error:
                if not options.skip_bad:
                    raise
                n_bad, first_bad = n_bad + 1, first_bad or str(error).split("\n")[0].rstrip(".")
            else:
                yield example
        if log and n_bad:
            log(f"warning: {n_bad:,} labels are not numbers and were left out (--skip-bad). The first: {first_bad}.")

    @classmethod
    def n_labels(cls, labels: Sequence[str]) -> int:
        return 1

    @classmethod
    def from_folder(cls, folder: Path, config: JsonObject, device: Device) -> Self:
        labels = config.get("labels")
        if isinstance(labels, list) and all(isinstance(label, str) for label in labels):
            numbers = [parse_number(label) for label in labels]
            low, high = numbers if len(numbers) == 2 else (None, None)
            if low is None or high is None or low >= high:
                raise CheckpointError(
                    f"{folder / 'config.json'}: damaged: labels is {labels!r}, not the lowest and the highest number."
                    f"{COPY_AGAIN}"
                )
        return super().from_folder(folder, config, device)

    def written(self, number: float) -> str:
        """A number with four decimals; with more if the labels are that close together."""
        low, high = self.range
        return f"{number:.{max(4, 3 - math.floor(math.log10(high - low)))}f}"

    @property
    def range(self) -> tuple[float, float]:
        """Minimum and maximum of the training labels."""
        low, high = map(float, self.labels)
        return low, high

    def predict_numbers(self, texts: Sequence[Text], warn: Warn = python_warning) -> list[float]:
        """Predicted number of each text."""
        low, high = self.range
        return [low + (high - low) * (x + 0.5) for x in self.logits(texts, warn)[:, 0].tolist()]

    @overload
    def __call__(self, texts: Text, *extra: object) -> float: ...
    @overload
    def __call__(self, texts: Texts, *extra: object) -> list[float]: ...
    def __call__(self, texts: Text | Texts, *extra: object) -> float | list[float]:
        """The predicted number of a text, or of each text of a list; a pair is a tuple.

        Raises:
            TypeError: not a text, a pair or a list of them.
        """
        numbers = self.predict_numbers(check_texts(self, texts, *extra, pairs=True))
        return numbers if isinstance(texts, list) else numbers[0]

    def run(
        self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = python_warning
    ) -> list[str]:
        return map_nonblank(
            lines,
            lambda nonblank, warn: [*map(self.written, self.predict_numbers([*map(self.read_line, nonblank)], warn))],
            warn,
        )

    def evaluate(
        self, examples: Sequence[Labeled], options: DecodeConfig | None = None
    ) -> tuple[list[str], list[Score]]:
        predicted = self.predict_numbers([text_of(example) for example in examples])
        return [*map(self.written, predicted)], scores("numbers", predicted, self.references(examples))

    @classmethod
    def references(cls, examples: Sequence[Labeled]) -> list[float]:
        return [example.number() for example in examples]

    @classmethod
    def parse_outputs(cls, outputs: Sequence[str]) -> list[float]:
        return list(map(float, outputs))
