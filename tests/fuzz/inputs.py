"""Inputs of targets: files, and choices made by bytes."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)

Item = TypeVar("Item")


def chosen(data: bytes, names: Sequence[str]) -> tuple[str, bytes]:
    """The name that the first byte chooses, and the rest of the input."""
    return names[data[0] % len(names)] if data else names[0], data[1:]


def file_of(suffix: str, data: bytes) -> Path:
    """A file with a content."""
    path = FOLDER / f"input{suffix}"
    path.write_bytes(data)
    return path


class Choices:
    """The bytes of an input as choices, with the functions of `random.Random` that `tests.runtime.fuzz` uses.

    So an input is a list of changes of a graph, and each input is a graph that is nearly right.
    """

    def __init__(self, data: bytes) -> None:
        self.data, self.position = data, 0

    @property
    def are_left(self) -> bool:
        """Whether there are bytes that were not used."""
        return self.position < len(self.data)

    def integer(self, n_bytes: int) -> int:
        """A number of some bytes; 0 after the last one."""
        start, self.position = self.position, self.position + n_bytes
        return int.from_bytes(self.data[start : self.position], "little")

    def randrange(self, n: int) -> int:
        """A number below n."""
        return self.integer(1 if n <= 256 else 2 if n <= 1 << 16 else 4) % n

    def random(self) -> float:
        """A number in [0, 1)."""
        return self.integer(1) / 256

    def choice(self, items: Sequence[Item]) -> Item:
        """One of some items."""
        return items[self.randrange(len(items))]
