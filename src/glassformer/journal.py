"""Files of records, one on each line, that are only ever continued: what was written survives a kill."""

import os
from pathlib import Path


def complete_lines(path: Path, start: int = 0, *, repair: bool = False) -> list[bytes]:
    """The lines of a file that may not exist, without a last one that a kill cut off or another process is writing.

    Args:
        start: position in the file, in bytes, from which it is read.
        repair: also remove an incomplete last line, so that the file can be continued.

    Raises:
        OSError: the file cannot be read or written.
    """
    if not path.exists():
        return []
    with open(path, "rb") as file:
        file.seek(start)
        content = file.read()
    complete = content.rfind(b"\n") + 1
    if repair and complete < len(content):
        os.truncate(path, start + complete)
    return content[:complete].split(b"\n")[:-1]
