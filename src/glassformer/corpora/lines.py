"""Streaming reader of lines, used for all corpus formats, with size limits."""

import os
import shlex
import stat
import sys
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext, suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TypeVar

from glassformer import limits
from glassformer.errors import ConfigError, CorpusError

Item = TypeVar("Item")

CHUNK_BYTES = 1 << 16
STDIN = Path("-")
BOM = b"\xef\xbb\xbf"
GZIP_MAGIC = b"\x1f\x8b"


class LineError(Exception):
    """A line that is not text or not a pair. Readers raise an error; `glassformer doctor` reports it and continues."""

    def __init__(self, kind: str, detail: str, advice: str):
        super().__init__(detail)
        self.kind, self.detail, self.advice = kind, detail, advice

    def at(self, path: Path, number: int) -> CorpusError:
        """The CorpusError for this line."""
        return CorpusError(f"{name(path)}:{number}: {self.detail}.\n  {self.advice}")


@lru_cache(maxsize=10_000)
def source_of(path: str, sources: frozenset[str]) -> str:
    """The source that a file is, or the archive that it is in; else the file itself."""
    return next((each for each in (path, *map(str, Path(path).parents)) if each in sources), path)


def name(path: Path) -> str:
    """Name of a file in messages."""
    return "standard input" if path == STDIN else str(path)


def suffix_of(path: Path) -> str:
    """Lower-case suffix of a file name, ignoring .gz."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def is_stream(path: Path) -> bool:
    """Whether the path is a pipe or a terminal, which can be read only once: standard input, a FIFO, `<(…)`."""
    if path == STDIN:
        return True
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode)


def refuse_streams(paths: Iterable[Path], reason: str) -> None:
    """Check that all files can be read several times.

    Args:
        reason: why the files are read several times; completes the message "… can be read only once, but ".

    Raises:
        ConfigError: one of the paths is standard input, a pipe or a terminal.
    """
    for path in paths:
        if is_stream(path):
            subject = "standard input (-)" if path == STDIN else f"{path}: a pipe or device; it"
            raise ConfigError(
                f"{subject} can be read only once, but {reason}.\n  Save the text to a file and name that file."
            )


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading.

    Raises:
        CorpusError: the file cannot be opened.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISFIFO(mode):
            return os.fdopen(_open_pipe(path), "rb")
        if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not _is_finite_device(path)):
            raise CorpusError(f"{path}: is a device, not a text file.\n  Name a file.")
        return path.open("rb")
    except FileNotFoundError:
        raise CorpusError(f"{path}: no such file.\n  Check the path and the current folder.") from None
    except (IsADirectoryError, PermissionError):  # the second on Windows, for folders too
        if path.is_dir():
            raise CorpusError(f"{path}: is a folder, not a file.\n  Name the text file inside it.") from None
        raise CorpusError(
            f"{path}: permission denied.\n  Make it readable: chmod u+r {shlex.quote(str(path))}"
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise CorpusError(f"{path}: cannot be opened ({error}).\n  Check the path and the disk.") from None


def _open_pipe(path: Path) -> int:
    """Open a FIFO, after another program has opened it for writing. Returns the file descriptor."""
    results: list[int | OSError] = []

    def wait() -> None:
        try:
            results.append(os.open(path, os.O_RDONLY))  # returns when there is a writer
        except OSError as error:
            results.append(error)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    thread.join(limits.MAX_PIPE_WAIT_S)
    if not results:
        with suppress(OSError):  # ends the waiting thread
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        thread.join(1)
        for descriptor in results:
            if isinstance(descriptor, int):
                os.close(descriptor)
        raise CorpusError(
            f"{path}: a pipe that no program has opened for writing in {limits.MAX_PIPE_WAIT_S:g} s.\n"
            "  Start the program that writes to it first, or name a file."
        )
    if isinstance(results[0], OSError):
        raise results[0]
    return results[0]


def _is_finite_device(path: Path) -> bool:
    """Whether a character device is finite: a terminal or /dev/null, unlike /dev/zero and /dev/random."""
    if os.path.exists(os.devnull) and os.path.samefile(path, os.devnull):
        return True
    with path.open("rb") as file:
        return file.isatty()


UNSUPPORTED = {
    **{
        ".pot": "a gettext template without translations",
        ".docx": "a Word document",
        ".pdf": "a PDF document",
        ".xlsx": "an Excel sheet",
        ".html": "an HTML page",
    },
    **{".parquet": "a Parquet file", ".arrow": "an Arrow file"},
}
"""File name suffixes of common formats that are not supported."""


def check_readable(*paths: Path, by_content: bool = True) -> None:
    """Check that files can be opened, before any of them is read. Pipes are not opened, since closing a pipe would
    terminate the program that writes to it.

    Args:
        by_content: also reject unsupported formats; False if the format is given by the user.

    Raises:
        CorpusError: a file is missing, a folder, not permitted, or of an unsupported format.
    """
    for path in paths:
        if not is_stream(path) or _is_device(path):
            open_bytes(path).close()
        if by_content and (file_type := UNSUPPORTED.get(suffix_of(path))):
            raise CorpusError(
                f"{path}: {file_type}, which cannot be read.\n"
                "  Files that can be read: text with one sentence on each line, TSV, CSV, JSONL, TMX, XLIFF, PO, CoNLL,"
                " CoNLL-U and SQuAD's JSON, each also as .gz.\n  Export the texts to one of these."
            )


def _is_device(path: Path) -> bool:
    return path != STDIN and stat.S_ISCHR(path.stat().st_mode)


def _read_chunks(file: BinaryIO, path: Path) -> Iterator[bytes]:
    read = getattr(file, "read1", file.read)  # read1: returns a line from a pipe before a chunk is full
    try:
        while chunk := read(CHUNK_BYTES):
            yield chunk
    except OSError as error:
        raise CorpusError(f"{name(path)}: reading failed ({error.strerror}).\n  Check the disk or the pipe.") from None


def _gunzip(chunks: Iterator[bytes], path: Path) -> Iterator[bytes]:
    n_in = n_out = 0
    member = zlib.decompressobj(wbits=31)
    advice = "Fetch or compress the file again; test it with: gzip -t " + shlex.quote(str(path))
    for data in chunks:
        n_in += len(data)
        while data:
            if member.eof:  # a .gz file may consist of several members, with zero padding
                data = data.lstrip(b"\0")
                if not data:
                    break
                member = zlib.decompressobj(wbits=31)
            try:
                out = member.decompress(data, CHUNK_BYTES)
            except zlib.error as error:
                raise CorpusError(f"{name(path)}: corrupt gzip after {n_out} bytes ({error}).\n  {advice}") from None
            data = member.unused_data if member.eof else member.unconsumed_tail
            n_out += len(out)
            if n_out - (1 << 20) > limits.MAX_GZIP_RATIO * n_in:
                raise CorpusError(
                    f"{name(path)}: gzip expands more than {limits.MAX_GZIP_RATIO} times: a bomb rather than text.\n"
                    f"  If you trust it, unpack it first: gunzip {shlex.quote(str(path))}"
                )
            yield out
    if not member.eof:
        raise CorpusError(f"{name(path)}: truncated gzip, it ends after {n_out} bytes of text.\n  {advice}")


def content(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """Chunks of decompressed bytes of a file: see `decompressed`."""
    return decompressed(_read_chunks(file, path), path)


def decompressed(chunks: Iterator[bytes], path: Path) -> Iterator[bytes]:
    """Chunks of decompressed bytes. gzip is detected by content, since file names are not reliable."""
    head = b""
    while len(head) < 4 and (chunk := next(chunks, b"")):
        head += chunk

    def all_chunks() -> Iterator[bytes]:
        yield head
        yield from chunks

    return _gunzip(all_chunks(), path) if head.startswith(GZIP_MAGIC) else all_chunks()


Recode = Callable[[Iterator[bytes]], Iterator[bytes]]
"""Conversion of the bytes of a file to UTF-8, in chunks."""


def byte_lines(path: Path, recode: Recode | None = None) -> Iterator[bytes]:
    r"""Read lines as bytes without "\n", in constant memory. A byte order mark and "\r" are kept.

    A line longer than MAX_LINE_BYTES is truncated to MAX_LINE_BYTES + 1 bytes, so that callers can detect it.

    Raises:
        CorpusError: the file is not readable, empty, UTF-16, or corrupt or oversized gzip.
    """
    keep = limits.MAX_LINE_BYTES + 1
    n_bytes = n_line = 0
    rest = b""
    # Unbuffered: a thread waiting in a buffered read holds a lock that the interpreter needs to exit.
    stdin = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer) if path == STDIN else None
    with nullcontext(stdin) if stdin else open_bytes(path) as file:
        blocks = content(file, path)
        for chunk in recode(blocks) if recode else blocks:
            if n_bytes < 4 and (rest + chunk).startswith((b"\xff\xfe", b"\xfe\xff")):
                raise _utf16(path)
            n_bytes += len(chunk)
            if n_bytes > limits.MAX_FILE_BYTES:
                raise CorpusError(
                    f"{name(path)}: more than {limits.MAX_FILE_BYTES} bytes of text.\n"
                    f"  Split it: split -n l/2 {shlex.quote(str(path))}"
                )
            # One concatenation per chunk; a truncated `rest` is truncated again below.
            first, *lines = chunk.split(b"\n")
            n_line += len(first)
            if n_line > limits.MAX_UNBROKEN_BYTES:
                raise CorpusError(
                    f"{name(path)}: more than {limits.MAX_UNBROKEN_BYTES} bytes without a line end: not text.\n"
                    "  Give a text file with one sentence or document on each line."
                )
            rest = rest + first if len(rest) < keep else rest
            if lines:
                n_line = len(lines[-1])
                yield rest[:keep]
                for line in lines[:-1]:
                    yield line[:keep] if len(line) > keep else line
                rest = lines[-1]
            rest = rest[:keep]
    if n_bytes == 0 or (n_bytes == len(BOM) and rest == BOM):
        if path != STDIN:  # an empty pipe is valid input without lines
            raise CorpusError(f"{path}: empty file.\n  It needs at least one line; was it written completely?")
    elif rest:
        yield rest


def _utf16(path: Path) -> CorpusError:
    return CorpusError(
        f"{name(path)}:1: UTF-16, not UTF-8 (it begins with a UTF-16 byte order mark).\n"
        f"  Save it as UTF-8: {_iconv('UTF-16', path)}"
    )


def _iconv(encoding: str, path: Path) -> str:
    if path == STDIN:
        return f"… | iconv -f {encoding} -t UTF-8 | …"
    source = shlex.quote(str(path))
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    target = shlex.quote(str(plain.with_stem(plain.stem + "-utf8")))
    if path.suffix == ".gz":
        return f"gunzip -c {source} | iconv -f {encoding} -t UTF-8 > {target}"
    return f"iconv -f {encoding} -t UTF-8 {source} > {target}"


def decode(raw: bytes, path: Path, offset: int = 0) -> str:
    r"""Decode a line, without one trailing "\r".

    Args:
        offset: offset of the line in the file in bytes, for messages.

    Raises:
        LineError: too long, or not UTF-8.
    """
    if len(raw) > limits.MAX_LINE_BYTES:
        raise LineError(
            "over-limit",
            f"line longer than {limits.MAX_LINE_BYTES} bytes; it begins {raw[:40]!r}",
            "A corpus has one sentence per line: split this line, or check that the file is text with line ends.",
        )
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise _not_utf8(raw, path, offset, error) from None
    return text.removesuffix("\r")


def _not_utf8(raw: bytes, path: Path, offset: int, error: UnicodeDecodeError, *, has_lines: bool = True) -> LineError:
    around = raw[max(0, error.start - 12) : error.start + 8]
    encoding = "WINDOWS-1252"
    try:
        guess = around.decode("cp1252")
    except UnicodeDecodeError:
        encoding, guess = "ISO-8859-1", around.decode("latin-1")
    advice = f"If the whole file is {encoding}: {_iconv(encoding, path)}"
    if has_lines and not is_stream(path):
        advice += "\n  If only some lines are, `glassformer doctor` lists them."
    return LineError(
        "not-utf8",
        f"not UTF-8: byte 0x{raw[error.start]:02x} at byte {offset + error.start} of the file, in {around!r}"
        f" (as {encoding}: {guess!r})",
        advice,
    )


def read_lines(path: Path, recode: Recode | None = None) -> Iterator[str]:
    r"""Lines of a UTF-8 text file, gzip or plain, split on "\n" only; `-` is standard input.

    One "\r" before the "\n" and a byte order mark at the start are dropped; a last line without "\n" counts.

    Raises:
        CorpusError: the file or a line of it is not readable as text.
    """
    offset = 0
    for number, raw in enumerate(byte_lines(path, recode), 1):
        if b"\0" in raw:
            is_utf16 = raw[1::2].count(0) > len(raw) // 4 or raw[::2].count(0) > len(raw) // 4
            remedy = f"It may be UTF-16: {_iconv('UTF-16LE', path)}" if is_utf16 else "Name a text file"
            listed = "" if is_stream(path) else "; `glassformer doctor` lists all such lines"
            raise CorpusError(
                f"{name(path)}:{number}: binary data: a NUL byte at byte {offset + raw.index(0)} of the file.\n"
                f"  {remedy}{listed}."
            )
        try:
            line = decode(raw, path, offset)
        except LineError as error:
            raise error.at(path, number) from None
        yield line[1:] if number == 1 and line.startswith("\ufeff") else line
        offset += len(raw) + 1


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Split an iterable into lists of up to `size` items."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def read_whole(path: Path) -> str:
    """Read a complete UTF-8 file, optionally gzip-compressed, without a byte order mark.

    Raises:
        CorpusError: the file is not readable as text, or has more than MAX_JSON_BYTES.
    """
    data = bytearray()
    with nullcontext(sys.stdin.buffer) if path == STDIN else open_bytes(path) as file:
        for chunk in content(file, path):
            data += chunk
            if len(data) > limits.MAX_JSON_BYTES:
                raise CorpusError(
                    f"{name(path)}: more than {limits.MAX_JSON_BYTES} bytes, too many to read at once.\n"
                    "  Split it into several files."
                )
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _utf16(path)
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _not_utf8(bytes(data), path, 0, error, has_lines=False).at(path, line) from None
