"""Lines of standard input, in chunks that are processed together."""

import os
import queue
import stat
import sys
import threading
from collections.abc import Iterator
from typing import Any, TypeVar

from glassformer.corpora.lines import STDIN, read_lines

Item = TypeVar("Item")

MAX_CHUNK_LINES = 4096
"""Maximum number of lines processed together: enough to form batches of lines of equal length."""

PAUSE_S = 0.05
"""Seconds without a further line after which the lines that were read are processed."""


def input_chunks(size: int) -> Iterator[list[str]]:
    """Lines of standard input in lists of up to `size` lines. Those of a file depend on the file only."""
    try:
        is_file = stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode)
    except (OSError, ValueError, AttributeError):  # closed, or replaced by an object without a descriptor
        is_file = False
    return available_chunks(read_lines(STDIN), size, None if is_file else PAUSE_S)


def available_chunks(items: Iterator[Item], size: int, pause_s: float | None = PAUSE_S) -> Iterator[list[Item]]:
    """Split an iterator into lists of up to `size` items.

    So a program that sends one line and waits gets its output, and a file is processed in large chunks.

    Args:
        pause_s: a list ends early after this number of seconds without a new item. None: never.
    """
    received: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(maxsize=2 * size)
    end = object()

    def read() -> None:
        error = None
        try:
            for item in items:
                received.put((item, None))
        except BaseException as problem:
            error = problem
        received.put((end, error))

    threading.Thread(target=read, daemon=True).start()
    while True:
        chunk: list[Item] = []
        while len(chunk) < size:
            try:
                item, error = received.get(timeout=pause_s if chunk else None)
            except queue.Empty:
                break
            if item is end:
                if chunk:
                    yield chunk
                if error is not None:
                    raise error
                return
            chunk.append(item)
        yield chunk
