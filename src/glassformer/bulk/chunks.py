"""Chunks of items, and what becomes of them."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

Item = str | list[str]
"""What is processed: a line, or several texts that belong together."""

CHUNK_ITEMS = 1024
"""Number of items of a chunk: enough for batches of equal length; what a kill loses at most, for each worker."""


@dataclass(frozen=True)
class Chunk:
    """Consecutive items of a file."""

    file: str
    """Name of the file of its outputs."""
    index: int
    """Number of the chunk in the file, counted from 0."""
    items: list[Item]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the items."""
        return hashlib.sha256(json.dumps(self.items, ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()

    def number(self, i: int) -> int:
        """Number in the file of the item at position `i`, counted from 1."""
        return self.index * CHUNK_ITEMS + i + 1

    def describe(self) -> str:
        """Name of the chunk in messages."""
        return f"{self.file}, lines {self.number(0):,} to {self.number(len(self.items) - 1):,}"


@dataclass(slots=True)
class Outputs:
    """What becomes of the items of a chunk."""

    texts: list[str]
    """For each item a line, or several separated by newlines. Empty for an item that failed."""
    failed: list[tuple[int, str]] = field(default_factory=list)
    """Position in the chunk and reason, of the items that failed."""
    warned: list[tuple[int, str]] = field(default_factory=list)
    """Position in the chunk and message, of the items that there is something to say about."""
    n_known: int = 0
    """Number of items that are equal to earlier ones, whose outputs were taken."""


Process = Callable[[list[Item]], Outputs]
"""Computes the outputs of items."""


class Workers(Protocol):
    """What processes chunks."""

    def process(self, chunks: Iterable[Chunk]) -> Iterator[tuple[Chunk, Outputs]]:
        """The chunks with their outputs, in any order, as they are finished."""
        ...

    def close(self) -> None:
        """End the work."""
