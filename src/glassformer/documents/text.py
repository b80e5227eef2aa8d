"""Plain text and subtitles."""

import re

from glassformer.documents.document import ADDRESSES, Document, Language, Segment
from glassformer.documents.inline import detach
from glassformer.documents.spans import TAG
from glassformer.errors import CorpusError

LINE_END = re.compile(r"(\r\n|\n|\r)")
TIME = r"(?:\d+:)?\d\d:\d\d[,.]\d+"
TIMES = re.compile(rf"\s*{TIME}\s*-->\s*{TIME}.*")
MARK = re.compile(rf"{TAG.pattern}|<{TIME}>|\{{\\[^{{}}]{{1,100}}\}}")
"""What is no text in a subtitle: tags, times of words, and the overrides of SubStation Alpha (`{\\an8}`)."""
CUE = re.compile(r"((?:[ \t]*(?:\r\n|\n|\r))+)")
"""Empty lines between the cues of subtitles."""

SUBTITLE_WIDTH = 42
"""Usual maximum length of a line of subtitles, in characters. A translation has no more lines than its source."""

SIGNATURES = {
    b"PK\x03\x04": "a zip archive, such as an office document", b"%PDF": "a PDF file", b"\x1f\x8b": "a gzip file",
    b"\x89PNG": "an image", b"\xff\xd8\xff": "an image", b"{\\rtf": "an RTF file",
}  # fmt: skip
ENCODINGS = {b"\xef\xbb\xbf": "utf-8", b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
"""Encodings by byte order mark."""


def decode(name: str, data: bytes) -> tuple[str, str]:
    """The text of a file, with its byte order mark, and its encoding: UTF-8, or UTF-16 with a byte order mark.

    Raises:
        CorpusError: it is no text, or has another encoding.
    """
    for signature, kind in SIGNATURES.items():
        if data.startswith(signature):
            raise CorpusError(f"{name}: this is {kind}, not text.\n  Save it as plain text in UTF-8.")
    encoding = next((encoding for mark, encoding in ENCODINGS.items() if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{name}: byte {error.start:,} is not {encoding.upper()}.\n  Save the file as text in UTF-8."
        ) from None
    if "\0" in text:
        raise CorpusError(f"{name}: has the character NUL: not text.\n  Save the file as text in UTF-8.")
    return text, encoding


def read_text(name: str, data: bytes) -> Document:
    """Plain text: each line is a segment.

    Raises:
        CorpusError: it is no text, or not in UTF-8 or UTF-16.
    """
    text, encoding = decode(name, data)
    pieces: list[str | Segment] = []
    for i, line in enumerate(LINE_END.split(text)):
        if i % 2 or not any(map(str.isalpha, line)):
            pieces.append(line)
        else:
            pieces += surrounded(line.strip("\ufeff \t"), line)
    return Document(pieces, encoding=encoding)


def surrounded(inner: str, line: str, segment: Segment | None = None) -> list[str | Segment]:
    """A segment with the space around it."""
    start = line.index(inner)
    return [line[:start], segment or Segment(" ".join(inner.split()), source=inner), line[start + len(inner) :]]


TURN = re.compile(r"^(?=[ \t]*[-\u2010-\u2015][^-\u2010-\u2015])", re.MULTILINE)
"""The beginning of what another person says."""


def cue_pieces(whole: str) -> list[str | Segment]:
    """The text of a cue as a segment, and what is around it."""
    inner = whole.strip("\r\n \t")
    if any(map(str.isalpha, inner)):
        line = " ".join(inner.split())
        spans = [match.span() for match in MARK.finditer(line)]
        detached = detach(line, spans) if spans else None
        if detached is None or any(map(str.isalpha, detached.core)):
            end = "\r\n" if "\r\n" in whole else "\n"
            n_lines = len(LINE_END.findall(inner)) + 1
            segment = Segment(detached.core if detached else line, detached, SUBTITLE_WIDTH, n_lines, end, inner)
            return surrounded(inner, whole, segment)
    return [whole]


def is_number(lines: list[str], i: int) -> bool:
    """Whether a line is the number of a cue: the times are in the next line.

    Args:
        lines: lines and line ends, one after the other.
    """
    return lines[i].strip().isdecimal() and i + 2 < len(lines) and TIMES.fullmatch(lines[i + 2]) is not None


VTT_LANGUAGE = re.compile(r"(Language:[ \t]*)([A-Za-z][\w-]*)([ \t]*)")
"""What the header of WebVTT says of the language, as players read it."""


def read_subtitles(name: str, data: bytes) -> Document:
    """Subtitles (SubRip, WebVTT): the lines of a cue are one segment, those of several persons one for each. Numbers,
    times and positions keep their bytes. Only in WebVTT does an empty line end a cue; in SubRip, the next number does.

    Raises:
        CorpusError: it is no text, or has no cue.
    """
    text, encoding = decode(name, data)
    pieces: list[str | Segment | Language] = []
    n_cues = 0
    lines = LINE_END.split(text)
    cue: list[str] = []  # the lines and line ends of the text of a cue
    in_cue = False
    is_webvtt = text.lstrip("\ufeff")[:6] == "WEBVTT"

    def close() -> None:
        whole = "".join(cue)
        cue.clear()
        for part in TURN.split(whole) if len(TURN.findall(whole)) > 1 else [whole]:
            pieces.extend(cue_pieces(part))

    for i in range(0, len(lines), 2):
        line, end = lines[i], lines[i + 1] if i + 1 < len(lines) else ""
        if TIMES.fullmatch(line):
            close()
            in_cue, n_cues = True, n_cues + 1
            pieces.append(line + end)
        elif in_cue and line.strip() and not is_number(lines, i):
            cue += [line, end]
        else:
            close()
            in_cue = in_cue and not line.strip() and not is_webvtt
            if is_webvtt and not n_cues and (match := VTT_LANGUAGE.fullmatch(line)):
                pieces += [match[1], Language(match[2], match[2], is_document=True, is_quoted=False), match[3] + end]
            else:
                pieces.append(line + end)
    close()
    if not n_cues:
        raise CorpusError(
            f"{name}: no subtitles: no line like 00:00:01,000 --> 00:00:02,500.\n  Save it as SubRip or WebVTT."
        )
    return Document(pieces, encoding=encoding, protect=(*ADDRESSES, "entities") if is_webvtt else ADDRESSES)
