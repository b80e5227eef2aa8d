"""Multitask text-to-text models: the input begins with the name of the task, the output is text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from glassformer.config import JsonObject
from glassformer.corpora.columns import parse_number
from glassformer.corpora.jsonl import invalid_text_reason, outline, read_objects
from glassformer.corpora.lines import check_readable
from glassformer.corpora.read_options import DETECT, ReadOptions, parse_keys
from glassformer.decode_config import DecodeConfig
from glassformer.errors import CorpusError
from glassformer.metrics import Score, bleu
from glassformer.metrics.correlation import pearson
from glassformer.metrics.labels import matthews
from glassformer.metrics.registry import scores
from glassformer.tasks.base import Log
from glassformer.tasks.text_to_text import TextToTextTask
from glassformer.tasks.texts import Warn, python_warning

MAX_CLASSES = 20
"""Maximum number of distinct targets of a classification task; with more, targets are free text."""


@dataclass(frozen=True, slots=True)
class PromptedExample:
    """Source text that begins with the name of its task, target text, and its file and line."""

    task: str
    src: str
    tgt: str
    path: str
    line: int


class Multitask(TextToTextTask[PromptedExample]):
    """Multitask text-to-text model: `cola sentence: …` -> `acceptable`, `stsb sentence1: … sentence2: …` -> `3.8`.

    Source: Raffel et al. 2019, section 2.4.
    """

    name = "multitask"
    pipelines = ("text2text-generation", "translation", "summarization")
    example_type = PromptedExample
    examples_name = "examples"
    read_options = ("keys",)
    output_type = "texts"

    @classmethod
    def families(cls) -> tuple[str, ...]:
        return "t5", "transformer"

    @classmethod
    def read(
        cls, src: Sequence[Path], tgt: Sequence[Path], options: ReadOptions = DETECT, log: Log | None = None
    ) -> Iterator[PromptedExample]:
        check_readable(*src)
        keys = parse_keys(options.keys)
        for path in src:
            for number, record in read_objects(path, keys):
                yield example_from_record(record, str(path), number)

    @classmethod
    def texts(cls, example: PromptedExample) -> Sequence[str]:
        return example.src, example.tgt

    def run(
        self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = python_warning
    ) -> list[str]:
        """Generate the output of each line. A line has the format of training: the name of the task, then the text."""
        return super().run(lines, options, warn=warn)

    def best_outputs(self, examples: Sequence[PromptedExample], options: DecodeConfig | None = None) -> list[str]:
        """Best generated text for each example."""
        return [best[0].text for best in self.translate([example.src for example in examples], options)]

    def evaluate(
        self, examples: Sequence[PromptedExample], options: DecodeConfig | None = None
    ) -> tuple[list[str], list[Score]]:
        """Generated texts, and for each task the fraction of exact matches and a metric for its type of targets."""
        outputs = self.best_outputs(examples, options)
        results = []
        for task in sorted({example.task for example in examples}):
            pairs = [(predicted, e.tgt) for predicted, e in zip(outputs, examples, strict=True) if e.task == task]
            predicted, expected = [a for a, _ in pairs], [b for _, b in pairs]
            values = [(s.name, s.value) for s in scores("texts", predicted, expected)]
            results += [
                Score(f"{task} {name}", value) for name, value in [*values, type_specific_score(predicted, expected)]
            ]
        return outputs, results

    @classmethod
    def references(cls, examples: Sequence[PromptedExample]) -> list[str]:
        return [example.tgt for example in examples]


def example_from_record(record: JsonObject, path: str, number: int) -> PromptedExample:
    """Make an example from a JSON record. The source text begins with the name of the task.

    Raises:
        CorpusError: the keys match no known format, or there is no text or no target.
    """
    texts: tuple[str, ...]
    values = {key: record[key] for key in record}
    match values:
        case {"task": str(task), "src": str(src), "tgt": str(tgt)}:
            prompt, texts = f"{task}: {src}", (src,)
        case {"task": str(task), "text": str(first), "text2": str(second), "label": str() | int() | float() as label}:
            prompt, texts, tgt = f"{task} sentence1: {first} sentence2: {second}", (first, second), str(label)
        case {"task": str(task), "text": str(first), "label": str() | int() | float() as label}:
            prompt, texts, tgt = f"{task} sentence: {first}", (first,), str(label)
        case {"task": str(task), "question": str(question), "context": str(context), "answer": str(tgt)}:
            prompt, texts = f"{task} question: {question} context: {context}", (question, context)
        case _:
            raise CorpusError(
                f"{path}:{number}: expected task, src and tgt; or task, text, label and optionally text2; or task, "
                f"question, context and answer. Found {outline(record)}.\n  Rename the keys. The label is a text or a"
                " number, the others are texts."
            )
    for value in (prompt, tgt):
        if reason := invalid_text_reason(value):
            raise CorpusError(f"{path}:{number}: {reason}.\n  Fix or delete the line.")
    for what, value in (("text", "".join(texts)), ("target", tgt)):
        if not value.strip():
            raise CorpusError(f"{path}:{number}: no {what}: it is blank.\n  Fix or delete the line.")
    return PromptedExample(task, " ".join(prompt.split()), tgt, path, number)


def type_specific_score(predicted: Sequence[str], expected: Sequence[str]) -> tuple[str, float]:
    """Name and value of a metric for the type of the targets: Pearson correlation of numbers, Matthews correlation
    coefficient of classes, BLEU of other texts. A prediction that is not a number counts as the mean of the targets.
    """
    numbers = [parse_number(text) for text in expected]
    if all(number is not None for number in numbers) and len(set(expected)) > 2:
        references = [number for number in numbers if number is not None]
        mean = sum(references) / len(references)
        predictions = [mean if (number := parse_number(text)) is None else number for text in predicted]
        return "Pearson", pearson(predictions, references)
    if len(set(expected)) <= MAX_CLASSES:
        return "MCC", matthews(predicted, expected)
    return "BLEU", bleu(predicted, expected)
