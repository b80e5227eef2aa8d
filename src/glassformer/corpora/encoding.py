"""Detection of the encoding and the line ends of a table, and its conversion to UTF-8 lines."""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from glassformer.corpora.lines import content, open_bytes

MAX_LEGACY_FRACTION = 0.2
"""Maximum fraction of bytes outside of ASCII in a text that is taken for Windows-1252: more are another script."""

_INVALID = re.compile("[\udc80-\udcff]")
_UNDEFINED_IN_CP1252 = re.compile("[\udc81\udc8d\udc8f\udc90\udc9d]")


@dataclass(frozen=True, slots=True)
class Encoding:
    """Encoding of a text file, and whether its lines end in a single CR."""

    codec: str = "utf-8"
    has_cr_line_ends: bool = False
    lenient: bool = False
    """Whether bytes that are not text become U+FFFD; else the reader of the lines reports them."""

    @property
    def description(self) -> str:
        """What differs from UTF-8 with usual line ends; an empty text if nothing does."""
        names = {"utf-8": "", "utf-16": "UTF-16", "cp1252": "Windows-1252", "latin-1": "ISO-8859-1"}
        line_ends = "line ends CR" if self.has_cr_line_ends else ""
        return ", ".join(part for part in (names.get(self.codec, self.codec.upper()), line_ends) if part)

    def recode(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Convert the bytes of a file to UTF-8 with LF or CR LF as line ends."""
        if self == Encoding():
            yield from chunks
            return
        errors = "surrogateescape" if self.codec == "utf-8" and not self.lenient else "replace"
        decoder = codecs.getincrementaldecoder(self.codec)(errors=errors)
        rest = (decoder.decode(end, True) for end in (b"",))  # after the chunks
        for text in chain(map(decoder.decode, chunks), rest):
            if self.has_cr_line_ends:
                text = text.replace("\r", "\n")
            if self.lenient:
                text = text.replace("\0", "\ufffd")
            yield text.encode("utf-8", errors)


def detect_encoding(path: Path, n_bytes: int | None = None, *, lenient: bool = False) -> Encoding:
    """Detect the encoding of a text file: UTF-8, UTF-16, Windows-1252 or ISO-8859-1.

    A file with more bytes that are valid as UTF-8 outside of ASCII than bytes that are not is UTF-8 with errors, which
    its reader reports; so is a file in which too many bytes are outside of ASCII for a Western language.

    Args:
        n_bytes: number of bytes to inspect, rounded up to chunks. Default: all.
        lenient: see `Encoding`.
    """
    n = n_valid = n_invalid = 0
    is_cp1252, has_nul = True, False
    head = b""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape")
    with open_bytes(path) as file:
        for chunk in content(file, path):
            if not n:
                head = chunk
                if codec := _utf16_codec(head):
                    break
            n += len(chunk)
            text = decoder.decode(chunk)
            has_nul = has_nul or b"\0" in chunk
            if not text.isascii():
                n_bad = len(_INVALID.findall(text))
                n_valid += len(text) - len(text.encode("ascii", "ignore")) - n_bad
                n_invalid += n_bad
                is_cp1252 = is_cp1252 and not _UNDEFINED_IN_CP1252.search(text)
            if n_bytes and n >= n_bytes:
                break
        else:
            codec = ""
    if not codec:
        is_legacy = n_valid < n_invalid <= MAX_LEGACY_FRACTION * n and not has_nul
        codec = ("cp1252" if is_cp1252 else "latin-1") if is_legacy else "utf-8"
    beginning = head.decode(codec, "replace")
    return Encoding(codec, "\r" in beginning and "\n" not in beginning, lenient)


def _utf16_codec(head: bytes) -> str:
    """The codec of UTF-16 with or without a byte order mark; an empty text for other encodings."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    n_pairs = len(head) // 2
    zeros = head[: 2 * n_pairs : 2].count(0), head[1 : 2 * n_pairs : 2].count(0)
    if n_pairs and min(zeros) == 0 and max(zeros) > 0.6 * n_pairs:
        return "utf-16-be" if zeros[0] else "utf-16-le"
    return ""
