"""Answers of a teacher, on disk: what was asked once is not asked again, also after `kill -9`."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from glassformer.checkpoint import write_error
from glassformer.errors import UserError
from glassformer.journal import complete_lines

ANSWERS = "answers.jsonl"
"""File of the answers."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a teacher answers to a source."""

    texts: tuple[str, ...] = ()
    """Translations, best first; empty if the teacher refused the source."""
    is_truncated: bool = False
    """The best translation ended at the maximum length."""
    score: float | None = None
    """Of the best translation: mean natural log-probability of its tokens; None if it is not known."""
    tokens: tuple[int, int] = (0, 0)
    """Tokens of the request and of the answer that an endpoint counted."""


class Answers:
    """The answers in a file, a JSON object on each line."""

    def __init__(self, path: Path, teacher: str) -> None:
        """
        Args:
            path: the file; it is created, or continued.
            teacher: what determines the answers: models and options.

        Raises:
            UserError: the file cannot be read or written.
        """
        self.path, self.teacher = path, teacher
        self.found: dict[str, Answer] = {}
        try:
            self.read()
            self.file: TextIO = open(path, "a", encoding="utf-8", newline="\n")
        except OSError as error:
            raise write_error(path, error) from None

    def read(self) -> None:
        """Read the answers of earlier runs. A line that a kill cut off is removed."""
        for number, line in enumerate(complete_lines(self.path, repair=True), 1):
            try:
                record = json.loads(line)
                n_in, n_out = map(int, record["tokens"])
                score = None if record["score"] is None else float(record["score"])
                texts = tuple(map(str, record["texts"]))
                self.found[str(record["key"])] = Answer(texts, bool(record["is_truncated"]), score, (n_in, n_out))
            except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
                raise UserError(
                    f"{self.path}:{number}: damaged.\n  Delete this line: its source is asked again."
                ) from None

    def key(self, source: str) -> str:
        """What an answer is found by."""
        return hashlib.blake2b(f"{self.teacher}\0{source}".encode(), digest_size=16).hexdigest()

    def get(self, source: str) -> Answer | None:
        """The answer to a source, if there is one."""
        return self.found.get(self.key(source))

    def missing(self, sources: Sequence[str]) -> list[str]:
        """The different sources without an answer, in order."""
        return [source for source in dict.fromkeys(sources) if self.key(source) not in self.found]

    def add(self, answers: Sequence[tuple[str, Answer]]) -> None:
        """Add the answers to sources. They are in the file when this returns.

        Raises:
            UserError: the file cannot be written.
        """
        lines = []
        for source, answer in answers:
            key = self.key(source)
            self.found[key] = answer
            lines.append(json.dumps({"key": key, **asdict(answer)}, ensure_ascii=False) + "\n")
        try:
            self.file.write("".join(lines))
            self.file.flush()
        except OSError as error:
            raise write_error(self.path, error) from None

    def close(self) -> None:
        """Close the file."""
        self.file.close()
