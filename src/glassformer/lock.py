"""Lock of a folder, so that only one process writes to it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from glassformer.errors import UserError

LOCKED_AT = 1 << 30
"""Position of the byte of the file that is locked on Windows."""


@contextmanager
def locked(folder: Path, work: str = "training") -> Iterator[None]:
    """Hold the lock of a folder. The operating system releases it when the process ends, even if it is killed.

    Args:
        work: what the process does, for the message to others.

    Raises:
        UserError: another process holds the lock.
    """
    with open(folder / ".lock", "a+") as file:
        try:
            if os.name == "nt":
                import msvcrt

                # A byte after the text, which others can read: where the file ends depends on the last process.
                os.lseek(file.fileno(), LOCKED_AT, os.SEEK_SET)
                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
            else:
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            holder = file.read().strip()
            raise UserError(
                f"{folder}: another process{f' ({holder})' if holder else ''} is {work} in this folder.\n"
                "  Wait for it, stop it, or choose another --out."
            ) from None
        file.seek(0)
        file.truncate()
        file.write(f"pid {os.getpid()}")
        file.flush()
        yield
