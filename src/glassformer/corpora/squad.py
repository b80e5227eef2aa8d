"""Reader of question answering data in the JSON format of SQuAD, versions 1.1 and 2.0."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeVar

from glassformer.corpora.jsonl import invalid_text_reason, outline
from glassformer.corpora.lines import check_readable, name, read_whole
from glassformer.errors import CorpusError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class QAExample:
    """A question with its context, its file, and its number in the file, counted from 1.

    `answers` are the (text, start) of the annotators, with start in characters of the context; empty if the context
    has no answer.
    """

    id: str
    question: str
    context: str
    answers: tuple[tuple[str, int], ...]
    path: str
    index: int


def read_questions(paths: Sequence[Path]) -> Iterator[QAExample]:
    """Read the questions of SQuAD files in order, optionally gzip-compressed. One file at a time is in memory.

    If an answer is not at its start but occurs exactly once in the context, the start is corrected.

    Raises:
        CorpusError: a file has another format, or an answer is not in its context.

    Source: Rajpurkar et al. 2016; 2018 for questions without an answer (`is_impossible`).
    """
    check_readable(*paths)
    return chain.from_iterable(map(_read, paths))


def _read(path: Path) -> Iterator[QAExample]:
    index = 0
    for i, article in enumerate(_list(_load(path), "data", name(path))):
        for j, paragraph in enumerate(_list(article, "paragraphs", f"{name(path)}: data[{i}]")):
            where = f"{name(path)}: data[{i}].paragraphs[{j}]"
            context = _text(paragraph, "context", where)
            for k, record in enumerate(_list(paragraph, "qas", where)):
                index += 1
                number = record.get("id") if isinstance(record, Mapping) else None
                id = str(number) if type(number) is int else _text(record, "id", f"{where}.qas[{k}]")
                at = f"{name(path)}: question {id}"
                answers = _answers(record, context, at)
                yield QAExample(id, _text(record, "question", at), context, answers, str(path), index)


def _load(path: Path) -> object:
    try:
        return json.loads(read_whole(path))
    except json.JSONDecodeError as error:
        raise CorpusError(
            f"{name(path)}:{error.lineno}: not JSON: {error.msg} at column {error.colno}.\n"
            "  A SQuAD file is one JSON object; was it written completely?"
        ) from None
    # RecursionError: extremely deep nesting. ValueError: an integer of thousands of digits.
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{name(path)}: not usable JSON ({error}).\n  Name a SQuAD file.") from None


def _field(record: object, key: str, value_type: type[T], where: str) -> T:
    value = record.get(key) if isinstance(record, Mapping) else None
    if not isinstance(value, value_type) or isinstance(value, bool):
        raise CorpusError(
            f"{where}: expected the key {key!r} of type {value_type.__name__}, found {outline(record)}.\n"
            '  SQuAD: {"data": [{"paragraphs": [{"context": …, "qas": [{"id": …, "question": …, "answers": '
            '[{"text": …, "answer_start": …}]}]}]}]}'
        )
    return value


def _list(record: object, key: str, where: str) -> list[object]:
    return _field(record, key, list, where)


def _text(record: object, key: str, where: str) -> str:
    text = _field(record, key, str, where)
    if reason := invalid_text_reason(text):
        raise CorpusError(f"{where}: {key}: {reason}.\n  Remove it.")
    return text


def _answers(record: object, context: str, where: str) -> tuple[tuple[str, int], ...]:
    is_impossible = isinstance(record, Mapping) and record.get("is_impossible") is True
    if is_impossible and isinstance(record, Mapping) and not record.get("answers"):
        return ()
    answers = []
    for answer in _list(record, "answers", where):
        text, start = _text(answer, "text", where), _field(answer, "answer_start", int, where)
        answers.append((text, _start(text, start, context, where)))
    if is_impossible:
        raise CorpusError(
            f"{where}: is_impossible, but it has answers: {answers[0][0][:40]!r}.\n  Drop one of the two."
        )
    return tuple(answers)


def _start(text: str, start: int, context: str, where: str) -> int:
    """Start of the answer: `start` if the answer is there, else its only occurrence in the context."""
    if not text.strip():
        raise CorpusError(f"{where}: an empty answer.\n  A question without an answer has the answers [].")
    if start >= 0 and context.startswith(text, start):
        return start
    unique_start = context.find(text)
    if unique_start >= 0 and context.find(text, unique_start + 1) < 0:
        return unique_start
    text_at_start = repr(context[start : start + len(text)][:60]) if 0 <= start < len(context) else "nothing"
    occurrences = "nowhere in it" if unique_start < 0 else "several times"
    raise CorpusError(
        f"{where}: the answer {text[:60]!r} is not at {start} of its context: {text_at_start} is there.\n"
        f"  The text occurs {occurrences}: set answer_start, in characters from 0, or fix the text."
    )
