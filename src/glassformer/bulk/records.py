"""Records of what is done in an output folder, on disk: one file for each of several runs that share the folder."""

import json
import os
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

from glassformer.bulk.chunks import Chunk, Outputs
from glassformer.checkpoint import sync_folder, write_error
from glassformer.errors import UserError
from glassformer.journal import complete_lines

MANIFEST = "manifest.jsonl"


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """A chunk that is done."""

    file: str
    chunk: int
    n: int
    """Number of its items."""
    input: str
    """SHA-256 of its items."""
    output: str
    """SHA-256 of the file of its outputs."""
    failed: list[tuple[int, str]] = field(default_factory=list)
    """Number in the file and reason, of the items that failed."""
    warned: list[tuple[int, str]] = field(default_factory=list)
    """Number in the file and message, of the items that there is something to say about."""

    @classmethod
    def of(cls, chunk: Chunk, output: str, outputs: Outputs) -> "ChunkRecord":
        """The record of a chunk."""
        failed = [(chunk.number(i), why.partition("\n")[0]) for i, why in outputs.failed]
        warned = [(chunk.number(i), what) for i, what in outputs.warned]
        return cls(chunk.file, chunk.index, len(chunk.items), chunk.digest, output, failed, warned)


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A file whose chunks were put together."""

    file: str
    n: int
    input: str
    """SHA-256 of the digests of its chunks."""
    output: str
    """SHA-256 of the file of its outputs."""


class Records:
    """What is done, by all runs that share a folder. Only records of one's own are added."""

    def __init__(self, folder: Path, own: str) -> None:
        """
        Args:
            folder: the folder of the records of all runs.
            own: name of the folder in it of this run.

        Raises:
            UserError: a file cannot be read or written, or is damaged.
        """
        self.folder, self.path = folder, folder / own / MANIFEST
        self.chunks: dict[tuple[str, int], ChunkRecord] = {}
        self.files: dict[str, FileRecord] = {}
        self.written: dict[str, set[str]] = {}
        """File -> SHA-256 of all that was ever written to it."""
        self.positions: Counter[Path] = Counter()
        """How far each file was read, in bytes."""
        self.read()
        try:
            complete_lines(self.path, repair=True)
            self.file: IO[str] = open(self.path, "a", encoding="utf-8", newline="\n")
            sync_folder(self.path.parent)  # a power failure takes no name of a file whose lines are flushed
        except OSError as error:
            raise write_error(self.path, error) from None

    def read(self) -> None:
        """Read the records of all runs that were added since."""
        for path in sorted(self.folder.glob(f"*/{MANIFEST}")):
            for line in complete_lines(path, self.positions[path]):
                self.positions[path] += len(line) + 1
                try:
                    record = json.loads(line)
                    self.keep(ChunkRecord(**record) if "chunk" in record else FileRecord(**record))
                except (ValueError, TypeError, RecursionError):
                    raise UserError(
                        f"{path}: the line that begins {line[:40]!r} is damaged.\n"
                        "  Delete it: what it says was done is done again."
                    ) from None

    def keep(self, record: ChunkRecord | FileRecord) -> None:
        """Know a record."""
        if isinstance(record, ChunkRecord):
            self.chunks[record.file, record.chunk] = record
        else:
            self.files[record.file] = record
            self.written.setdefault(record.file, set()).add(record.output)

    def add(self, record: ChunkRecord | FileRecord) -> None:
        """Add a record. It is on the disk when this returns.

        Raises:
            UserError: it cannot be written.
        """
        try:
            self.file.write(json.dumps(asdict(record), ensure_ascii=False) + "\n")
            self.file.flush()
            os.fsync(self.file.fileno())
        except OSError as error:
            raise write_error(self.path, error) from None
        self.keep(record)

    def close(self) -> None:
        """Close the file."""
        self.file.close()
