"""Classification and regression of texts and pairs of texts with an encoder."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, TypedDict, overload

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from glassformer.config import DecodeConfig, JsonObject
from glassformer.corpora.labeled import Labeled, parse_number, read_labeled
from glassformer.corpora.read_options import DETECT, ReadOptions
from glassformer.data.batch import Batch, BatchT, pad
from glassformer.data.dataset import FLOATS, IDS, INTS, Dataset, Row
from glassformer.errors import CheckpointError, UserError
from glassformer.generate.engine import batches_by_length
from glassformer.metrics import Score
from glassformer.metrics.correlation import pearson
from glassformer.metrics.labels import accuracy, matthews
from glassformer.metrics.registry import scores
from glassformer.models.bert import Bert
from glassformer.models.decoding import PAD_TO_MULTIPLE_OF
from glassformer.tasks.base import ExampleT, Log, Record, Task, Text, Warn, check_texts, map_nonblank, no_op

Texts = list[str] | list[tuple[str, str]] | list[Text]
"""A list of texts, of pairs, or of both."""

BATCH_TOKENS = 4096
"""Maximum number of tokens per batch at inference, including padding."""


@dataclass(frozen=True, slots=True)
class LabelBatch(Batch):
    """Padded texts with the label of each: a class index, or a number."""

    ids: Int[Tensor, "batch length"]
    token_type_ids: Int[Tensor, "batch length"]
    labels: Int[Tensor, " batch"] | Float[Tensor, " batch"]


class LabelProbability(TypedDict):
    """A label with its probability."""

    label: str
    probability: float


class ClassificationRecord(Record):
    """JSON record of a classified line: `output` is the label."""

    probabilities: dict[str, float]
    """Probability of each label; empty for a blank line."""


class EncoderTask(Task[ExampleT, BatchT]):
    """Base class of encoder tasks: input format of texts and pairs of texts."""

    kind = "encoder"
    model: Bert

    @property
    def n_separators(self) -> int:
        """Number of separators between the texts of a pair. RoBERTa, recognized by its position offset, has two."""
        return 2 if self.model.config.position_offset else 1

    @property
    def n_specials(self) -> int:
        """Number of special tokens of a pair."""
        return 2 + self.n_separators

    def add_special_tokens(self, first: Sequence[int], second: Sequence[int]) -> tuple[list[int], list[int]]:
        """[CLS] first [SEP], or [CLS] first [SEP] second [SEP]: token ids and token type ids."""
        t = self.tokenizer
        if not second:
            return [t.bos_id, *first, t.eos_id], [0] * (len(first) + 2)
        prefix = [t.bos_id, *first, *[t.eos_id] * self.n_separators]
        return [*prefix, *second, t.eos_id], [0] * len(prefix) + [1] * (len(second) + 1)

    def truncate_pair(self, first: list[int], second: list[int]) -> tuple[list[int], list[int]]:
        """Truncate a pair in place to the maximum length, the longer text first."""
        n_excess = len(first) + len(second) + self.n_specials - self.model.config.max_len
        while n_excess > 0:
            longer = first if len(first) >= len(second) else second
            n = min(n_excess, max(1, abs(len(first) - len(second))))
            del longer[-n:]
            n_excess -= n
        return first, second

    def encode_texts(self, texts: Sequence[Text]) -> list[tuple[list[int], list[int]]]:
        """Token ids of the first and the second text, without special tokens."""
        pairs = [(text, "") if isinstance(text, str) else text for text in texts]
        first = self.tokenizer.encode_batch([pair[0] for pair in pairs])
        second = self.tokenizer.encode_batch([pair[1] for pair in pairs])
        return [(a, b if pair[1] else []) for a, b, pair in zip(first, second, pairs, strict=True)]

    def encode_truncated(self, texts: Sequence[Text], warn: Warn) -> list[tuple[list[int], list[int]]]:
        """`encode_texts`, truncated to the maximum length. `warn` is called for each truncated text."""
        rows = self.encode_texts(texts)
        limit = self.model.config.max_len - self.n_specials
        for i, (first, second) in enumerate(rows):
            if len(first) + len(second) > limit:
                warn(i, f"longer than the maximum length of {limit} tokens: its end was cut off")
                self.truncate_pair(first, second)
        return rows

    def hidden(self, rows: Sequence[tuple[list[int], list[int]]]) -> Iterator[tuple[list[int], Tensor, Tensor]]:
        """Run the encoder on rows, in batches of similar length.

        Yields:
            The indices of the rows in the batch, the encoder output, and the padded token ids.
        """
        sequences = [self.add_special_tokens(*row) for row in rows]
        for indices in batches_by_length([len(ids) for ids, _ in sequences], BATCH_TOKENS):
            ids = pad([sequences[i][0] for i in indices], self.tokenizer.pad_id, PAD_TO_MULTIPLE_OF).to(self.device)
            token_type_ids = pad([sequences[i][1] for i in indices], 0, PAD_TO_MULTIPLE_OF).to(self.device)
            with torch.inference_mode():  # not around the yield: it would apply to the caller
                hidden = self.model(ids, token_type_ids)
            yield indices, hidden, ids


class LabelTask(EncoderTask[Labeled, LabelBatch]):
    """Base class of tasks that predict one label per text or pair of texts."""

    example_type = Labeled
    head_config = {"head": "sequence", "pooler": True}

    @classmethod
    def read(
        cls, src: Sequence[Path], tgt: Sequence[Path], options: ReadOptions = DETECT, log: Log | None = None
    ) -> Iterator[Labeled]:
        n_blank, first_blank = 0, ""
        for example in read_labeled(src, options.columns, options.keys):
            if example.text.strip() or (example.text2 or "").strip():
                yield example
            else:
                n_blank, first_blank = n_blank + 1, first_blank or f"{example.path}:{example.line}"
        if log and n_blank:
            log(f"warning: {n_blank:,} lines without text were left out (first: {first_blank})")

    @classmethod
    def texts(cls, example: Labeled) -> Sequence[str]:
        return (example.text, example.text2) if example.text2 else (example.text,)

    @classmethod
    def key(cls, example: Labeled) -> str:
        return "\t".join(cls.texts(example))

    @classmethod
    def labels_in(cls, example: Labeled) -> Iterable[str]:
        return (example.label,)

    def encode(self, examples: Sequence[Labeled]) -> tuple[list[Row], list[Labeled]]:
        limit = self.model.config.max_len - self.n_specials
        rows: list[Row] = []
        too_long = []
        for example, (first, second) in zip(examples, self.encode_texts(list(map(text_of, examples))), strict=True):
            if len(first) + len(second) <= limit:
                rows.append((first, second, [self.target(example)]))
            else:
                too_long.append(example)
        return rows, too_long

    def needed_max_len(self, example: Labeled) -> int:
        return sum(map(len, self.tokenizer.encode_batch(self.texts(example)))) + self.n_specials

    def target(self, example: Labeled) -> float:
        """Training target of an example."""
        raise NotImplementedError

    def lengths(self, data: Dataset) -> NDArray[np.int64]:
        first, second = list(data.fields.values())[:2]
        return first.lengths + second.lengths + self.n_specials

    def batch(self, rows: Sequence[Row]) -> LabelBatch:
        sequences = [self.add_special_tokens(first, second) for first, second, _ in rows]
        return LabelBatch(
            n_targets=len(rows),
            ids=pad([ids for ids, _ in sequences], self.tokenizer.pad_id),
            token_type_ids=pad([token_type_ids for _, token_type_ids in sequences], 0),
            labels=torch.tensor([label for _, _, (label,) in rows]),
        )

    def logits(self, texts: Sequence[Text], warn: Warn = no_op) -> Float[Tensor, "texts labels"]:
        """Outputs of the head for each text, in fp32 on the CPU."""
        rows = self.encode_truncated(texts, warn)
        logits = torch.empty(len(rows), self.model.config.n_labels)
        for indices, hidden, ids in self.hidden(rows):
            with torch.inference_mode():
                logits[indices] = self.model.label_logits(hidden, ids).float().cpu()
        return logits


def text_of(example: Labeled) -> Text:
    """The text or the pair of texts of an example."""
    return (example.text, example.text2) if example.text2 is not None else example.text


def text_of_line(line: str) -> Text:
    """The text of a line, or a pair of texts separated by a tab."""
    first, tab, second = line.partition("\t")
    return (first, second) if tab else line


class Classifier(LabelTask):
    """Predicts a class for each text or pair of texts."""

    name = "classification"
    pipeline_tag = "text-classification"
    pipelines = ("text-classification", "zero-shot-classification")
    fields = {"ids": IDS, "ids2": IDS, "label": INTS}
    metric = "accuracy"
    output_type = "classes"
    has_classes = True

    def target(self, example: Labeled) -> int:
        return self.labels.index(example.label)

    def loss(self, batch: LabelBatch, *, label_smoothing: float = 0.0) -> Tensor:
        logits = self.model.label_logits(self.model(batch.ids, batch.token_type_ids), batch.ids).float()
        return F.cross_entropy(logits, batch.labels, reduction="sum", label_smoothing=label_smoothing)

    def probabilities(self, texts: Sequence[Text], warn: Warn = no_op) -> Float[Tensor, "texts labels"]:
        """Probability of each label, in the order of `labels`."""
        return self.logits(texts, warn).softmax(-1)

    @overload
    def __call__(self, texts: Text, *extra: object, return_all: Literal[False] = False) -> str: ...
    @overload
    def __call__(self, texts: Texts, *extra: object, return_all: Literal[False] = False) -> list[str]: ...
    @overload
    def __call__(self, texts: Text, *extra: object, return_all: Literal[True]) -> list[LabelProbability]: ...
    @overload
    def __call__(self, texts: Texts, *extra: object, return_all: Literal[True]) -> list[list[LabelProbability]]: ...
    def __call__(
        self, texts: Text | Texts, *extra: object, return_all: bool = False
    ) -> str | list[str] | list[LabelProbability] | list[list[LabelProbability]]:
        """The most probable label of a text, or of each text of a list; a pair is a tuple.

        Args:
            return_all: return for each text all labels, most probable first, as a list of
                {"label": …, "probability": …}.

        Raises:
            TypeError: not a text, a pair or a list of them.
        """
        probabilities = self.probabilities(check_texts(self, texts, *extra, pairs=True)).tolist()
        ranked: list[list[LabelProbability]] = [
            [{"label": self.labels[i], "probability": row[i]} for i in sorted(range(len(row)), key=lambda i: -row[i])]
            for row in probabilities
        ]
        if return_all:
            return ranked if isinstance(texts, list) else ranked[0]
        best = [labels[0]["label"] for labels in ranked]
        return best if isinstance(texts, list) else best[0]

    def run(self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = no_op) -> list[str]:
        return map_nonblank(lines, self.predict_labels, warn)

    def predict_labels(self, lines: Sequence[str], warn: Warn) -> list[str]:
        """The most probable class of each line."""
        return [self.labels[i] for i in self.logits([*map(text_of_line, lines)], warn).argmax(-1).tolist()]

    def records(
        self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = no_op
    ) -> list[ClassificationRecord]:
        """For each line its label and the probabilities of all labels; for a blank line neither."""
        indices = [i for i, line in enumerate(lines) if line.strip()]
        texts = [text_of_line(lines[i]) for i in indices]
        records: list[ClassificationRecord] = [{"input": line, "output": "", "probabilities": {}} for line in lines]
        rows = self.probabilities(texts, lambda i, what: warn(indices[i], what)).tolist()
        for i, row in zip(indices, rows, strict=True):
            records[i]["output"] = self.labels[max(range(len(row)), key=row.__getitem__)]
            records[i]["probabilities"] = dict(zip(self.labels, row, strict=True))
        return records

    def evaluate(
        self, examples: Sequence[Labeled], options: DecodeConfig | None = None
    ) -> tuple[list[str], list[Score]]:
        predicted = self([text_of(example) for example in examples])
        return predicted, scores("classes", predicted, self.references(examples))

    @classmethod
    def references(cls, examples: Sequence[Labeled]) -> list[str]:
        return [example.label for example in examples]

    def validate(self, examples: Sequence[Labeled]) -> dict[str, float]:
        log_probs = self.logits([text_of(example) for example in examples]).log_softmax(-1)
        expected = [example.label for example in examples]
        predicted = [self.labels[i] for i in log_probs.argmax(-1).tolist()]
        targets = torch.tensor([self.target(example) for example in examples])
        return {
            "accuracy": accuracy(predicted, expected),
            "mcc": matthews(predicted, expected),
            "loss": float(F.nll_loss(log_probs, targets)),
        }


class Regressor(LabelTask):
    """Predicts a number for each text or pair of texts.

    Training targets are scaled to [-0.5, 0.5] by the range of the training labels, which is stored in `labels`.
    """

    name = "regression"
    pipeline_tag = "sentence-similarity"
    pipelines = ("text-classification", "sentence-similarity")
    head_task = "classification"
    fields = {"ids": IDS, "ids2": IDS, "label": FLOATS}
    metric = "pearson"
    output_type = "numbers"

    @classmethod
    def read(
        cls, src: Sequence[Path], tgt: Sequence[Path], options: ReadOptions = DETECT, log: Log | None = None
    ) -> Iterator[Labeled]:
        for example in super().read(src, tgt, options, log):
            example.number()  # raises CorpusError if the label is not a number
            yield example

    @classmethod
    def label_set(cls, labels: Iterable[str]) -> tuple[str, ...]:
        numbers = [float(label) for label in labels]
        if min(numbers) == max(numbers):
            raise UserError(
                f"every label is {numbers[0]:g}: regression needs at least two different labels.\n"
                "  Add examples with other labels."
            )
        return repr(min(numbers)), repr(max(numbers))

    @classmethod
    def n_labels(cls, labels: Sequence[str]) -> int:
        return 1

    @classmethod
    def from_folder(cls, folder: Path, config: JsonObject, device: torch.device) -> Self:
        labels = config.get("labels")
        if isinstance(labels, list) and all(isinstance(label, str) for label in labels):
            numbers = [parse_number(label) for label in labels]
            low, high = numbers if len(numbers) == 2 else (None, None)
            if low is None or high is None or low >= high:
                raise CheckpointError(
                    f"{folder / 'config.json'}: damaged: labels is {labels!r}, not the lowest and the highest number."
                )
        return super().from_folder(folder, config, device)

    @property
    def range(self) -> tuple[float, float]:
        """Minimum and maximum of the training labels."""
        low, high = map(float, self.labels)
        return low, high

    def target(self, example: Labeled) -> float:
        low, high = self.range
        return (example.number() - low) / (high - low) - 0.5

    def loss(self, batch: LabelBatch, *, label_smoothing: float = 0.0) -> Tensor:
        predicted = self.model.label_logits(self.model(batch.ids, batch.token_type_ids), batch.ids).float()
        return F.mse_loss(predicted[:, 0], batch.labels, reduction="sum")

    def predict_numbers(self, texts: Sequence[Text], warn: Warn = no_op) -> list[float]:
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

    def run(self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = no_op) -> list[str]:
        return map_nonblank(
            lines,
            lambda nonblank, warn: [f"{x:.4f}" for x in self.predict_numbers([*map(text_of_line, nonblank)], warn)],
            warn,
        )

    def evaluate(
        self, examples: Sequence[Labeled], options: DecodeConfig | None = None
    ) -> tuple[list[str], list[Score]]:
        predicted = self.predict_numbers([text_of(example) for example in examples])
        return [f"{x:.4f}" for x in predicted], scores("numbers", predicted, self.references(examples))

    @classmethod
    def references(cls, examples: Sequence[Labeled]) -> list[float]:
        return [example.number() for example in examples]

    @classmethod
    def parse_outputs(cls, outputs: Sequence[str]) -> list[float]:
        return list(map(float, outputs))

    def validate(self, examples: Sequence[Labeled]) -> dict[str, float]:
        predicted = self.logits([text_of(example) for example in examples])[:, 0]
        targets = torch.tensor([self.target(example) for example in examples])
        return {
            "pearson": pearson(predicted.tolist(), [example.number() for example in examples]),
            "loss": float(F.mse_loss(predicted, targets)),
        }
