"""Bytes to lines: the one streaming reader under every corpus format, with its limits."""

import os
import shlex
import stat
import sys
import threading
import zlib
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import BinaryIO

from glassformer import limits
from glassformer.errors import ConfigError, CorpusError

CHUNK_BYTES = 1 << 16
STDIN = Path("-")
BOM = b"\xef\xbb\xbf"
GZIP_MAGIC = b"\x1f\x8b"


class BadLine(Exception):
    """One line that cannot become text or a pair; the reader stops at it, the doctor notes it and goes on."""

    def __init__(self, kind: str, detail: str, repair: str):
        super().__init__(detail)
        self.kind, self.detail, self.repair = kind, detail, repair

    def at(self, path: Path, number: int) -> CorpusError:
        """The error that stops a strict reader."""
        return CorpusError(f"{name(path)}:{number}: {self.detail}.\n  {self.repair}")


def name(path: Path) -> str:
    """How messages name the file."""
    return "standard input" if path == STDIN else str(path)


def suffix_of(path: Path) -> str:
    """The suffix that tells the format, in lower case: the last one before any .gz."""
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


def refuse_streams(paths: Iterable[Path], why: str) -> None:
    """Refuse what can be read only once, for work that reads its files several times.

    Args:
        why: ends the sentence "… can be read only once, ".

    Raises:
        ConfigError: one of the paths is standard input, a pipe or a terminal.
    """
    for path in paths:
        if is_stream(path):
            what = "standard input (-)" if path == STDIN else f"{path}: a pipe or device; it"
            raise ConfigError(f"{what} can be read only once, {why}.\n  Save the text to a file and name that file.")


def open_bytes(path: Path) -> BinaryIO:
    """The file opened, or a CorpusError that says why not."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISFIFO(mode):
            return os.fdopen(_open_pipe(path), "rb")
        if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not _is_finite_device(path)):
            raise CorpusError(f"{path}: is a device, not a text file.\n  Name a file.")
        return path.open("rb")
    except FileNotFoundError:
        raise CorpusError(f"{path}: no such file.\n  Check the path and the current folder.") from None
    except IsADirectoryError:
        raise CorpusError(f"{path}: is a folder, not a file.\n  Name the text file inside it.") from None
    except PermissionError:
        raise CorpusError(
            f"{path}: permission denied.\n  Make it readable: chmod u+r {shlex.quote(str(path))}"
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise CorpusError(f"{path}: cannot be opened ({error}).\n  Check the path and the disk.") from None


def _open_pipe(path: Path) -> int:
    """A descriptor of a FIFO, once a program has opened it for writing."""
    found: list[int | OSError] = []

    def wait() -> None:
        try:
            found.append(os.open(path, os.O_RDONLY))  # returns when there is a writer
        except OSError as error:
            found.append(error)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    thread.join(limits.MAX_PIPE_WAIT_S)
    if not found:
        with suppress(OSError):  # ends the waiting thread
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        thread.join(1)
        for descriptor in found:
            if isinstance(descriptor, int):
                os.close(descriptor)
        raise CorpusError(
            f"{path}: a pipe that no program has opened for writing in {limits.MAX_PIPE_WAIT_S:g} s.\n"
            "  Start the program that writes to it first, or name a file."
        )
    if isinstance(found[0], OSError):
        raise found[0]
    return found[0]


def _is_finite_device(path: Path) -> bool:
    """Whether a character device is a terminal or /dev/null, which end; /dev/zero and /dev/random do not."""
    if os.path.exists(os.devnull) and os.path.samefile(path, os.devnull):
        return True
    with path.open("rb") as file:
        return file.isatty()


UNSUPPORTED = {
    **{".po": "a gettext catalogue", ".pot": "a gettext template", ".tmx": "a translation memory (TMX)"},
    **{".xliff": "an XLIFF file", ".xlf": "an XLIFF file", ".properties": "a Java properties file"},
    **{".docx": "a Word document", ".pdf": "a PDF document", ".xlsx": "an Excel sheet", ".html": "an HTML page"},
    **{".parquet": "a Parquet file", ".arrow": "an Arrow file", ".zip": "a zip archive", ".tar": "a tar archive"},
}
"""Suffixes of formats that users have and that cannot be read."""


def check_readable(*paths: Path, by_content: bool = True) -> None:
    """Open and close each file, so that a missing one is reported before hours of reading the others.

    Args:
        by_content: refuse formats that cannot be read; False if the user named the format.

    A pipe is not opened: closing it again would end the program that writes to it.

    Raises:
        CorpusError: a file is missing, a folder, or not permitted.
    """
    for path in paths:
        if not is_stream(path) or _is_device(path):
            open_bytes(path).close()
        if by_content and (what := UNSUPPORTED.get(suffix_of(path))):
            raise CorpusError(
                f"{path}: {what}, which cannot be read.\n"
                "  Files that can be read: text with one sentence on each line, TSV, CSV, JSONL, CoNLL, CoNLL-U and"
                " SQuAD's JSON, each also as .gz.\n  Export the texts to one of these."
            )


def _is_device(path: Path) -> bool:
    return path != STDIN and stat.S_ISCHR(path.stat().st_mode)


def _read_chunks(file: BinaryIO, path: Path) -> Iterator[bytes]:
    read = getattr(file, "read1", file.read)  # read1: a line typed into a pipe is not held back until a chunk is full
    try:
        while chunk := read(CHUNK_BYTES):
            yield chunk
    except OSError as error:
        raise CorpusError(f"{name(path)}: reading failed ({error.strerror}).\n  Check the disk or the pipe.") from None


def _gunzip(chunks: Iterator[bytes], path: Path) -> Iterator[bytes]:
    n_in = n_out = 0
    member = zlib.decompressobj(wbits=31)
    broken = "Fetch or compress the file again; test it with: gzip -t " + shlex.quote(str(path))
    for data in chunks:
        n_in += len(data)
        while data:
            if member.eof:  # a .gz may be several joined by cat, padded with zeros
                data = data.lstrip(b"\0")
                if not data:
                    break
                member = zlib.decompressobj(wbits=31)
            try:
                out = member.decompress(data, CHUNK_BYTES)
            except zlib.error as error:
                raise CorpusError(f"{name(path)}: corrupt gzip after {n_out} bytes ({error}).\n  {broken}") from None
            data = member.unused_data if member.eof else member.unconsumed_tail
            n_out += len(out)
            if n_out - (1 << 20) > limits.MAX_GZIP_RATIO * n_in:
                raise CorpusError(
                    f"{name(path)}: gzip expands more than {limits.MAX_GZIP_RATIO} times: a bomb rather than text.\n"
                    f"  If you trust it, unpack it first: gunzip {shlex.quote(str(path))}"
                )
            yield out
    if not member.eof:
        raise CorpusError(f"{name(path)}: truncated gzip, it ends after {n_out} bytes of text.\n  {broken}")


def _content(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """Chunks of text bytes; the content decides whether it is gzip, since names lie both ways."""
    chunks = _read_chunks(file, path)
    head = b""
    while len(head) < 4 and (chunk := next(chunks, b"")):
        head += chunk

    def whole() -> Iterator[bytes]:
        yield head
        yield from chunks

    return _gunzip(whole(), path) if head.startswith(GZIP_MAGIC) else whole()


def byte_lines(path: Path) -> Iterator[bytes]:
    r"""Lines as bytes without their "\n", in constant memory, undecoded and with any BOM and "\r" still there.

    A line over MAX_LINE_BYTES comes cut to MAX_LINE_BYTES + 1 bytes, so that the caller sees it and can go on.

    Raises:
        CorpusError: what makes the whole file useless: not readable, empty, UTF-16, corrupt or oversized gzip.
    """
    keep = limits.MAX_LINE_BYTES + 1
    n_bytes = n_line = 0
    rest = b""
    # Unbuffered: a thread that waits in a buffered read holds a lock that the interpreter needs to exit.
    stdin = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer) if path == STDIN else None
    with nullcontext(stdin) if stdin else open_bytes(path) as file:
        for chunk in _content(file, path):
            if n_bytes < 4 and (rest + chunk).startswith((b"\xff\xfe", b"\xfe\xff")):
                raise _utf16(path)
            n_bytes += len(chunk)
            if n_bytes > limits.MAX_FILE_BYTES:
                raise CorpusError(
                    f"{name(path)}: more than {limits.MAX_FILE_BYTES} bytes of text.\n"
                    f"  Split it: split -n l/2 {shlex.quote(str(path))}"
                )
            # One join per chunk; a cut `rest` stays cut because what follows it is cut again.
            first, *others = chunk.split(b"\n")
            n_line += len(first)
            if n_line > limits.MAX_UNBROKEN_BYTES:
                raise CorpusError(
                    f"{name(path)}: more than {limits.MAX_UNBROKEN_BYTES} bytes without a line end: not text.\n"
                    "  Give a text file with one sentence or document on each line."
                )
            rest = rest + first if len(rest) < keep else rest
            if others:
                n_line = len(others[-1])
                yield rest[:keep]
                for line in others[:-1]:
                    yield line[:keep] if len(line) > keep else line
                rest = others[-1]
            rest = rest[:keep]
    if n_bytes == 0 or (n_bytes == len(BOM) and rest == BOM):
        if path != STDIN:  # an empty pipe is a valid answer: no lines in, no lines out
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
    r"""The line's text, without one trailing "\r".

    Args:
        offset: where the line begins in the file, in bytes.

    Raises:
        BadLine: too long, or not UTF-8.
    """
    if len(raw) > limits.MAX_LINE_BYTES:
        raise BadLine(
            "over-limit",
            f"line longer than {limits.MAX_LINE_BYTES} bytes; it begins {raw[:40]!r}",
            "A corpus has one sentence a line: split this one, or check that the file is text with line ends.",
        )
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise _not_utf8(raw, path, offset, error) from None
    return text.removesuffix("\r")


def _not_utf8(raw: bytes, path: Path, offset: int, error: UnicodeDecodeError) -> BadLine:
    around = raw[max(0, error.start - 12) : error.start + 8]
    encoding = "WINDOWS-1252"
    try:
        guess = around.decode("cp1252")
    except UnicodeDecodeError:
        encoding, guess = "ISO-8859-1", around.decode("latin-1")
    return BadLine(
        "not-utf8",
        f"not UTF-8: byte 0x{raw[error.start]:02x} at byte {offset + error.start} of the file, in {around!r}"
        f" (as {encoding}: {guess!r})",
        f"If the whole file is {encoding}: {_iconv(encoding, path)}\n"
        "  If only some lines are, `glassformer doctor` names them all.",
    )


def read_lines(path: Path) -> Iterator[str]:
    r"""Lines of a UTF-8 text file, gzip or plain, split on "\n" only; `-` is standard input.

    One "\r" before the "\n" and a byte order mark at the start are dropped; a last line without "\n" counts.

    Raises:
        CorpusError: the file or a line of it is not readable as text; names file, line and remedy.
    """
    offset = 0
    for number, raw in enumerate(byte_lines(path), 1):
        if b"\0" in raw:
            sixteen = raw[1::2].count(0) > len(raw) // 4 or raw[::2].count(0) > len(raw) // 4
            remedy = f"It may be UTF-16: {_iconv('UTF-16LE', path)}" if sixteen else "Name a text file"
            raise CorpusError(
                f"{name(path)}:{number}: binary data: a NUL byte at byte {offset + raw.index(0)} of the file.\n"
                f"  {remedy}; `glassformer doctor` names every such line."
            )
        try:
            line = decode(raw, path, offset)
        except BadLine as bad:
            raise bad.at(path, number) from None
        yield line[1:] if number == 1 and line.startswith("\ufeff") else line
        offset += len(raw) + 1


def read_whole(path: Path) -> str:
    """The text of a UTF-8 file that has no meaning line by line, gzip or plain, without a byte order mark.

    Raises:
        CorpusError: the file is not readable as text, or has more than MAX_JSON_BYTES.
    """
    data = bytearray()
    with nullcontext(sys.stdin.buffer) if path == STDIN else open_bytes(path) as file:
        for chunk in _content(file, path):
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
        raise _not_utf8(bytes(data), path, 0, error).at(path, line) from None
