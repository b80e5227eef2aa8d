"""Reading of files by their suffix, in a process of its own.

Documents come from strangers, and their parser is written in C: a child process with limits of time and memory reads
them. It is used again for the next document, and another is started after a failure.
"""

import asyncio
import json
import resource
import struct
import sys
from contextlib import suppress
from pathlib import PurePath
from typing import Any

from glassformer.documents.document import Document
from glassformer.errors import CorpusError

FORMATS = (".txt", ".srt", ".html", ".htm")
TIME_S = 5.0
"""Seconds in which a document must be read."""

MEMORY_BYTES = 1 << 30
"""Address space of the child process."""

HEADER = struct.Struct(">I")


def read_document(name: str, data: bytes) -> Document:
    """Read a file by its suffix.

    Raises:
        CorpusError: the format is not supported, or the content is not that of the suffix.
    """
    match PurePath(name).suffix.lower():
        case ".txt":
            from glassformer.documents.text import read_text

            return read_text(name, data)
        case ".srt":
            from glassformer.documents.text import read_subtitles

            return read_subtitles(name, data)
        case ".html" | ".htm":
            from glassformer.documents.html import read_html

            return read_html(name, data)
    raise CorpusError(f"{name}: format not supported.\n  Supported: {', '.join(FORMATS)}.")


class DocumentReader:
    """Reads documents in a child process, one after another."""

    def __init__(self) -> None:
        self.process: asyncio.subprocess.Process | None = None
        self.lock = asyncio.Lock()

    async def read(self, name: str, data: bytes) -> Document:
        """Read a file by its suffix.

        Raises:
            CorpusError: it cannot be read, or not within the limits.
        """
        async with self.lock:
            try:
                async with asyncio.timeout(TIME_S):
                    answer = await self.ask(name, data)
            except (TimeoutError, EOFError, OSError, asyncio.IncompleteReadError):
                await self.close()
                raise CorpusError(f"{name}: cannot be read within the limits of time and memory.") from None
            except BaseException:
                await self.close()
                raise
        return await asyncio.to_thread(document_of, answer)

    async def ask(self, name: str, data: bytes) -> bytes:
        """Send a file to the child process. Returns its answer in JSON."""
        if self.process is None:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "glassformer.documents.reader", stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        assert self.process.stdin
        assert self.process.stdout
        head = json.dumps({"name": name}).encode()
        self.process.stdin.write(HEADER.pack(len(head)) + head + HEADER.pack(len(data)) + data)
        await self.process.stdin.drain()
        (length,) = HEADER.unpack(await self.process.stdout.readexactly(HEADER.size))
        return await self.process.stdout.readexactly(length)

    async def close(self) -> None:
        """End the child process."""
        process, self.process = self.process, None
        if process:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def document_of(answer: bytes) -> Document:
    """The document of an answer of the child process.

    Raises:
        CorpusError: it could not be read.
    """
    record: dict[str, Any] = json.loads(answer)
    if "error" in record:
        raise CorpusError(record["error"])
    return Document.from_record(record)


def main() -> None:
    """Read documents from standard input until it ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    while header := stdin.read(HEADER.size):
        head = json.loads(stdin.read(*HEADER.unpack(header)))
        data = stdin.read(*HEADER.unpack(stdin.read(HEADER.size)))
        try:
            answer = read_document(head["name"], data).to_record()
        except CorpusError as error:
            answer = {"error": str(error)}
        body = json.dumps(answer).encode()
        stdout.write(HEADER.pack(len(body)) + body)
        stdout.flush()


if __name__ == "__main__":
    main()
