"""Reading of plain text and JSONL documents, shared by the tasks that train on text without labels."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from glassformer.corpora.jsonl import invalid_text_reason, outline, read_objects
from glassformer.corpora.lines import check_readable, chunks, read_lines
from glassformer.corpora.pair_formats import format_of
from glassformer.corpora.read_options import DETECT, ReadOptions, check_keys, parse_keys
from glassformer.data.ragged import Row
from glassformer.errors import CorpusError
from glassformer.tasks.base import Log, Task

LINES_PER_CHUNK = 64
"""Number of lines of a plain text file that form one document, for reading, encoding and holding out."""


@dataclass(frozen=True, slots=True)
class Document:
    """A text, or a chunk of lines of a text that continues in the next document of the same file."""

    text: str
    is_whole: bool
    """The document is a complete text, not a chunk of a longer one."""
    path: str
    line: int


class DocumentTask(Task[Document]):
    """Base class of tasks on text without labels: plain text, or JSONL {"text": …}."""

    example_type = Document
    examples_name = "texts"
    may_read_tables = False

    @classmethod
    def read(
        cls, src: Sequence[Path], tgt: Sequence[Path], options: ReadOptions = DETECT, log: Log | None = None
    ) -> Iterator[Document]:
        check_readable(*src, by_content=options.format is None)
        check_keys(options.keys, [(src, tgt)], options.format, may_be_tables=cls.may_read_tables)
        keys = parse_keys(options.keys)
        for path in src:
            is_jsonl = (options.format or format_of(path)) == "jsonl"
            yield from documents(path, keys) if is_jsonl else text_chunks(path)

    @classmethod
    def texts(cls, example: Document) -> Sequence[str]:
        return (example.text,)

    @abstractmethod
    def rows(self, examples: Sequence[Document]) -> list[Row]:
        """Token ids of texts, in the rows on which the loss is computed."""


def text_chunks(path: Path) -> Iterator[Document]:
    """Read a plain text file in chunks of LINES_PER_CHUNK lines. The last, which is held out, has at least half as
    many, if there are several. Blank lines at the end are left out.
    """
    number, before = 1, list[str]()
    for chunk in chunks(without_blank_end(read_lines(path)), LINES_PER_CHUNK):
        if before:
            n_moved = max(0, LINES_PER_CHUNK // 2 - len(chunk))
            kept, chunk = before[: len(before) - n_moved], before[len(before) - n_moved :] + chunk
            yield Document("\n".join(kept) + "\n", False, str(path), number)
            number += len(kept)
        before = chunk
    if before:
        yield Document("\n".join(before) + "\n", False, str(path), number)


def without_blank_end(lines: Iterable[str]) -> Iterator[str]:
    """Lines without the blank ones at the end, unless there are no others."""
    blank: list[str] = []
    has_text = False
    for line in lines:
        blank.append(line)
        if line.strip():
            yield from blank
            blank, has_text = [], True
    if not has_text:
        yield from blank


def documents(path: Path, keys: Mapping[str, str]) -> Iterator[Document]:
    """Read the texts of a file of JSONL {"text": …}.

    Raises:
        CorpusError: a line has no text.
    """
    for number, record in read_objects(path, keys):
        text = record.get("text")
        if not isinstance(text, str) or (reason := invalid_text_reason(text)):
            problem = reason if isinstance(text, str) else f'expected {{"text": …}}, found {outline(record)}'
            raise CorpusError(f"{path}:{number}: {problem}.\n  Fix or delete the line.")
        if text.strip():
            yield Document(text, True, str(path), number)
