"""Reading of files by their suffix, in a process of its own.

Documents come from strangers, and their parser is written in C: a child process with limits of time and memory reads
them. It is used again for the next document, and another is started after a failure.
"""

import asyncio
import json
import struct
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import PurePath
from typing import Any

from glassformer.documents.document import Document
from glassformer.documents.package import Package
from glassformer.errors import CorpusError

READERS: dict[str, tuple[str, str]] = {
    ".txt": ("text", "read_text"),
    **dict.fromkeys((".srt", ".vtt"), ("text", "read_subtitles")),
    **dict.fromkeys((".html", ".htm", ".xhtml"), ("html", "read_html")),
    **dict.fromkeys((".po", ".pot"), ("po", "read_po")),
    **dict.fromkeys((".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff"), ("xliff", "read_xliff")),
    ".tmx": ("tmx", "read_tmx"),
    **dict.fromkeys((".md", ".markdown"), ("markdown", "read_markdown")),
    **dict.fromkeys((".docx", ".docm", ".dotx", ".dotm"), ("office", "read_office")),
    **dict.fromkeys((".pptx", ".pptm", ".potx", ".potm", ".ppsx", ".ppsm"), ("office", "read_office")),
    **dict.fromkeys((".xlsx", ".xlsm", ".xltx", ".xltm"), ("office", "read_office")),
    **dict.fromkeys((".odt", ".ods", ".odp", ".odg"), ("opendocument", "read_opendocument")),
    **dict.fromkeys((".ott", ".ots", ".otp", ".otg"), ("opendocument", "read_opendocument")),
    ".epub": ("opendocument", "read_epub"),
    **dict.fromkeys((".properties", ".strings", ".xml", ".json", ".arb"), ("catalogues", "read_catalogue")),
}
"""Suffix of a file name -> module and function."""

BILINGUAL = frozenset(("po", "xliff", "tmx"))
"""Modules of files that have two languages."""

AnyDocument = Document | Package

FORMATS = tuple(READERS)
TIME_S = 5.0
"""Seconds in which a document must be read."""

FILE_TIME_S = 300.0
"""The same for a file that the user of a command names."""

MEMORY_BYTES = 1 << 30
"""Address space of the child process."""

HEADER = struct.Struct(">I")


def read_document(name: str, data: bytes, languages: tuple[str, str] = ("", "")) -> AnyDocument:
    """Read a file by its suffix.

    Args:
        languages: source and target language; an empty text for one that the file says.

    Raises:
        CorpusError: the format is not supported, or the content is not that of the suffix.
    """
    suffix = PurePath(name).suffix.lower()
    if suffix not in READERS:
        raise CorpusError(f"{name}: format not supported.\n  Supported: {', '.join(FORMATS)}.")
    module, function = READERS[suffix]
    try:
        read = getattr(import_module(f"glassformer.documents.{module}"), function)
        document: AnyDocument = read(name, data, languages) if module in BILINGUAL else read(name, data)
    except ModuleNotFoundError as error:  # the library that reads HTML is not always installed
        raise CorpusError(
            f"{name}: needs the package {error.name}, which is not installed.\n"
            "  Install it: pip install 'glassformer[serve]'"
        ) from None
    return document


def read_in_child(name: str, data: bytes, languages: tuple[str, str], time_s: float = FILE_TIME_S) -> AnyDocument:
    """Read a file by its suffix in a process of its own.

    Args:
        languages: see `read_document`.
        time_s: seconds in which it must be read.

    Raises:
        CorpusError: it cannot be read, or not within the limits.
    """
    command = [sys.executable, "-m", "glassformer.documents.reader"]
    try:
        done = subprocess.run(
            command,
            input=request(name, data, languages),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=time_s,
        )
    except subprocess.TimeoutExpired:
        raise beyond_limits(name) from None
    if len(done.stdout) < HEADER.size:
        raise beyond_limits(name)
    return document_of(done.stdout[HEADER.size :], data)


def request(name: str, data: bytes, languages: tuple[str, str]) -> bytes:
    """A file as it is sent to the child process."""
    head = json.dumps({"name": name, "languages": languages}).encode()
    return HEADER.pack(len(head)) + head + HEADER.pack(len(data)) + data


def beyond_limits(name: str) -> CorpusError:
    """The error for a file that needs too much time or memory."""
    return CorpusError(f"{name}: cannot be read within the limits of time and memory.\n  Divide it.")


class DocumentReader:
    """Reads documents in a child process, one after another."""

    def __init__(self) -> None:
        self.process: asyncio.subprocess.Process | None = None
        self.lock = asyncio.Lock()

    async def read(
        self, name: str, data: bytes, languages: tuple[str, str] = ("", ""), time_s: float = TIME_S
    ) -> AnyDocument:
        """Read a file by its suffix.

        Args:
            languages: see `read_document`.
            time_s: seconds in which it must be read.

        Raises:
            CorpusError: it cannot be read, or not within the limits.
        """
        async with self.lock:
            try:
                async with asyncio.timeout(time_s):
                    answer = await self.ask(name, data, languages)
            except (TimeoutError, EOFError, OSError, asyncio.IncompleteReadError):
                await self.close()
                raise beyond_limits(name) from None
            except BaseException:
                await self.close()
                raise
        return await asyncio.to_thread(document_of, answer, data)

    async def ask(self, name: str, data: bytes, languages: tuple[str, str]) -> bytes:
        """Send a file to the child process. Returns its answer in JSON."""
        if self.process is None:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "glassformer.documents.reader", stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(request(name, data, languages))
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


def document_of(answer: bytes, data: bytes) -> AnyDocument:
    """The document of an answer of the child process.

    Args:
        data: the file.

    Raises:
        CorpusError: it could not be read.
    """
    record: dict[str, Any] = json.loads(answer)
    if "error" in record:
        raise CorpusError(record["error"])
    return Package.from_record(record, data) if "parts" in record else Document.from_record(record)


def main() -> None:
    """Read documents from standard input until it ends."""
    with suppress(ImportError, ValueError, OSError):  # Windows has no such limit, macOS refuses it
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    while header := stdin.read(HEADER.size):
        head = json.loads(stdin.read(*HEADER.unpack(header)))
        data = stdin.read(*HEADER.unpack(stdin.read(HEADER.size)))
        try:
            answer = read_document(head["name"], data, (head["languages"][0], head["languages"][1])).to_record()
        except CorpusError as error:
            answer = {"error": str(error)}
        body = json.dumps(answer).encode()
        stdout.write(HEADER.pack(len(body)) + body)
        stdout.flush()


if __name__ == "__main__":
    main()
