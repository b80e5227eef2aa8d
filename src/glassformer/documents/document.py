"""A file as its texts and what is between them."""

import html
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from glassformer.documents.inline import Detached, Inner, put_back
from glassformer.errors import CorpusError

Alignment = Sequence[Sequence[int]]
"""Pairs of a word of a text and a word of its translation, separated by white space and counted from 0."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A text that is translated on its own, such as a sentence."""

    text: str
    """In one line, without markup."""
    detached: Detached | None = None
    """Tags that were taken out, in the escaped form of the file; None if there were none."""
    width: int | None = None
    """Length of the lines of its translation, in characters; None: one line."""
    max_lines: int = 1
    """Maximum number of these lines: if it is reached, they are longer."""
    line_end: str = "\n"
    """What separates these lines."""
    source: str | None = None
    """The text as it is written in the file, with its tags; kept if the translation is equal to the text."""


@dataclass(frozen=True, slots=True)
class Language:
    """The attribute of a tag that says which language the text is in."""

    source: str
    """The value as it is written in the file, with its quotes."""
    code: str
    is_document: bool
    """It is that of the whole document."""

    def written(self, languages: tuple[str, str] | None) -> str:
        """The value for a translation: the target language in place of the source language."""
        primary = self.code.lower().partition("-")[0]
        is_changed = languages and (self.is_document or primary == languages[0].lower().partition("-")[0])
        return f'"{html.escape(languages[1])}"' if languages and is_changed else self.source


MARKER = re.compile("\0(\\d+)\0")
"""What is in place of an attribute: NUL, which no file has, its index, and NUL."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file.

    `render` returns the file with translations in place of the texts. Everything else keeps its bytes.
    """

    pieces: list[str | Segment]
    """What is kept, and the segments, in order."""
    escaping: Literal["html", "none"] = "none"
    """How texts are written in the file."""
    encoding: str = "utf-8"
    attributes: tuple[Segment | Language, ...] = ()
    """Values of attributes, for which markers are in the pieces."""

    @property
    def segments(self) -> list[Segment]:
        """The texts to translate: those of the pieces, then those of the attributes."""
        return [part for part in (*self.pieces, *self.attributes) if isinstance(part, Segment)]

    def render(
        self,
        translations: Sequence[str],
        alignments: Sequence[Alignment] | None = None,
        languages: tuple[str, str] | None = None,
    ) -> bytes:
        """The file with translations.

        Args:
            translations: the translation of each segment.
            alignments: the word alignment of each; only those of segments with tags are used. Without it, tags are
                placed in proportion to their position.
            languages: source and target language, for the attributes that have the language. Default: they stay.

        Raises:
            CorpusError: a translation has a lone surrogate.
        """
        parts = []
        index = 0
        for piece in self.pieces:
            if isinstance(piece, str):
                parts.append(piece)
                continue
            alignment = alignments[index] if alignments else ()
            parts.append(self.written(piece, translations[index], [(pair[0], pair[1]) for pair in alignment]))
            index += 1
        values = []
        for attribute in self.attributes:
            if isinstance(attribute, Language):
                values.append(attribute.written(languages))
                continue
            is_same = translations[index] == attribute.text
            values.append(str(attribute.source) if is_same else f'"{html.escape(translations[index])}"')
            index += 1
        text = "".join(parts)
        text = MARKER.sub(lambda match: values[int(match[1])], text) if values else text
        try:
            return text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise CorpusError(
                f"a translation cannot be written as {self.encoding.upper()}: {error.reason}.\n"
                "  Remove lone surrogates (U+D800 to U+DFFF) from it."
            ) from None

    def written(self, segment: Segment, translation: str, alignment: Sequence[tuple[int, int]]) -> str:
        """A translation as it is written in the file."""
        if translation == segment.text and segment.source is not None:
            return segment.source
        text = " ".join(translation.split())
        text = html.escape(text, quote=False) if self.escaping == "html" else text
        if segment.detached:
            text = put_back(segment.detached, text, alignment)
        return segment.line_end.join(wrapped(text, segment.width, segment.max_lines)) if segment.width else text

    def to_record(self) -> dict[str, Any]:
        """The document as JSON-serializable data."""
        pieces = [piece if isinstance(piece, str) else asdict(piece) for piece in self.pieces]
        attributes = [asdict(attribute) for attribute in self.attributes]
        return {"pieces": pieces, "escaping": self.escaping, "encoding": self.encoding, "attributes": attributes}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "Document":
        """The document of a record."""
        pieces = [piece if isinstance(piece, str) else segment_of(piece) for piece in record["pieces"]]
        attributes = tuple(Language(**a) if "code" in a else segment_of(a) for a in record["attributes"])
        return cls(pieces, record["escaping"], record["encoding"], attributes)


def segment_of(record: dict[str, Any]) -> Segment:
    """The segment of a record."""
    detached = record["detached"]
    if detached:
        inner = tuple(Inner(**span) for span in detached["inner"])
        detached = Detached(**{**detached, "inner": inner})
    return Segment(**{**record, "detached": detached})


def wrapped(text: str, width: int, max_lines: int) -> list[str]:
    """A text in lines of about equal length, broken at spaces: as few as `width` allows, and at most `max_lines`."""
    for n_lines in range(-(-len(text) // width), max_lines):
        lines = balanced(text, n_lines)
        if max(map(len, lines)) <= width:
            return lines
    return balanced(text, max_lines)


def balanced(text: str, n_lines: int) -> list[str]:
    """A text in lines of about equal length, broken at spaces. There are fewer if it has too few words."""
    lines: list[str] = []
    while n_lines > 1 and " " in text:
        middle = len(text) // n_lines
        ends = [i for i in (text.rfind(" ", 0, middle + 1), text.find(" ", middle)) if i > 0]
        if not ends:
            break
        end = min(ends, key=lambda i: abs(i - middle))
        lines.append(text[:end])
        text = text[end + 1 :]
        n_lines -= 1
    return [*lines, text]
