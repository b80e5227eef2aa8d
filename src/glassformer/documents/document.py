"""A file as its texts and what is between them."""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from glassformer.documents.escaping import MARKUP, Escaping, escaped
from glassformer.documents.inline import Detached, Inner, Position, aligned_positions, put_at, tag_pairs
from glassformer.documents.languages import primary, region
from glassformer.documents.origin import Either, Origin, Quality, common_origin
from glassformer.documents.words import unit_spans
from glassformer.errors import CorpusError


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
    escaping: Escaping | None = None
    """How it is written, if not as the other texts of the file."""
    codes: tuple[str, ...] = ()
    """Tags as they are written in the file. In `detached`, `<c0>`, `</c0>` or `<c0/>` is in the place of the first."""


Form = Literal["tag", "locale", "language", "country"]
"""A tag (`pt-BR`), a locale (`pt_BR`), or only the language or the region of a tag."""


@dataclass(frozen=True, slots=True)
class Language:
    """What says in the file which language the text is in."""

    source: str
    """The value as it is written in the file, with its quotes."""
    code: str
    is_document: bool
    """It is that of the whole document."""
    is_quoted: bool = True
    """It is the value of an attribute."""
    form: Form = "tag"

    def written(self, languages: tuple[str, str] | None) -> str:
        """The value for a translation: the target language in place of the source language."""
        is_changed = languages and (self.is_document or primary(self.code) == primary(languages[0]))
        if not languages or not is_changed:
            return self.source
        code = languages[1]
        match self.form:
            case "locale":
                code = code.replace("-", "_")
            case "language":
                code = primary(code)
            case "country":
                code = region(code) or "none"
        code = html.escape(code)
        return f'"{code}"' if self.is_quoted else code


State = Literal["empty", "fuzzy", "translated", "locked", "source"]
"""State of the translation in a file of two languages. Fuzzy: to be checked by a person. Locked: not to be changed.
Source: the file has one language."""

Only = Literal["empty", "fuzzy", "all"]
"""Which entries of a file of two languages are translated: those without a translation; besides, the fuzzy ones; or
all that are not locked."""

SELECTED: dict[Only, tuple[State, ...]] = {
    "empty": ("empty", "source"),
    "fuzzy": ("empty", "fuzzy", "source"),
    "all": ("empty", "fuzzy", "translated", "source"),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A text of a file of two languages, with the place for its translation; or one with markup in a file of one."""

    kept: str
    """How it is written in the file if it is not translated or, in a file of one language, is its translation."""
    state: State
    pieces: tuple["str | Segment | Either | Quality", ...]
    """How it is written with a translation."""


Piece = str | Segment | Language | Entry

MARKER = re.compile("\0(\\d+)\0")
"""What is in place of an attribute: NUL, which no file has, its index, and NUL."""

CODE = re.compile(r"<(/?)c(\d+)(/?)>")
"""What is in place of a tag in `Segment.detached`."""

EMPTY_PAIR = re.compile(r"<c(\d+)></c\1>")
"""A pair of tags without text."""

LINK = re.compile(r"<(?:a|text:a|w:hyperlink)\s|^\[|HYPERLINK|<a:hlinkClick\s", re.IGNORECASE)
"""What the first tag of a link has, in HTML, OpenDocument, Word, Markdown and PowerPoint."""

EMPHASIS = frozenset("*_~")
"""Marks of Markdown around a text."""


ADDRESSES = ("urls", "emails")
"""What stays as it is in the texts of all documents, as in `DecodeConfig.protect`."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file.

    `render` returns the file with translations in place of the texts. Everything else keeps its bytes.
    """

    pieces: Sequence[Piece]
    """What is kept, and the segments, in order."""
    escaping: Escaping = "none"
    """How texts are written in the file."""
    encoding: str = "utf-8"
    attributes: tuple[Segment | Language | Entry, ...] = ()
    """What markers in the pieces are in the place of: values of attributes, and texts within texts, inner first."""
    protect: tuple[str, ...] = ADDRESSES
    """What stays as it is in the translations, as in `DecodeConfig.protect`."""
    languages: tuple[str, str] | None = None
    """The languages that the file itself names; an empty text for one that it does not."""
    notes: tuple[str, ...] = ()
    """What a person should know, such as texts that are not translated."""

    @property
    def segments(self) -> list[Segment]:
        """The texts to translate: those of the pieces, then those of the attributes."""
        pieces = (*self.pieces, *self.attributes)
        inner = (part for piece in pieces for part in (piece.pieces if isinstance(piece, Entry) else (piece,)))
        return [part for part in inner if isinstance(part, Segment)]

    @property
    def entries(self) -> list[Entry]:
        """The entries of a file of two languages."""
        return [piece for piece in self.pieces if isinstance(piece, Entry) and piece.state != "source"]

    def only(self, only: Only) -> "Document":
        """The document in which other entries of a file of two languages stay as they are."""
        selected = SELECTED[only]
        pieces = [p.kept if isinstance(p, Entry) and p.state not in selected else p for p in self.pieces]
        return replace(self, pieces=pieces)

    def render(
        self,
        translations: Sequence[str],
        positions: Sequence[Sequence[Position]] = (),
        languages: tuple[str, str] | None = None,
        origins: Sequence[Origin] = (),
    ) -> bytes:
        """The file with translations.

        Args:
            translations: the translation of each segment. Without a word, the text or the entry stays as it is.
            positions: where the tags of each segment belong, empty for one without; see `inline.aligned_positions`.
                Default: in proportion to their position in the source.
            languages: source and target language, for what says in the file which language it is in. Default: stays.
            origins: where each translation comes from. A file of two languages says so, and whether a person has to
                check it; a translation memory, which cannot say this, does not get such a translation. Default: of the
                model, and not to be checked.

        Raises:
            CorpusError: a translation has a lone surrogate.
        """
        if not self.entries:
            pairs = zip(self.segments, translations, strict=True)
            translations = [text if text.strip() else segment.text for segment, text in pairs]
        at = positions or [
            aligned_positions(segment.detached, text, ()) if segment.detached else ()
            for segment, text in zip(self.segments, translations, strict=True)
        ]
        results = iter(zip(translations, at, origins or [Origin()] * len(translations), strict=True))
        text = "".join(text for piece in self.pieces for text in self.parts(piece, results, languages))
        values: list[str] = []
        for attribute in self.attributes:
            if isinstance(attribute, Segment):
                translation, *_ = next(results)
                is_same = translation == attribute.text
                values.append(str(attribute.source) if is_same else f'"{html.escape(translation)}"')
            else:
                value = "".join(self.parts(attribute, results, languages))
                values.append(MARKER.sub(lambda match: values[int(match[1])], value))
        text = MARKER.sub(lambda match: values[int(match[1])], text) if values else text
        return encoded(text, self.encoding, self.escaping)

    def parts(
        self, piece: Piece, results: Iterator[tuple[str, Sequence[Position], Origin]], languages: tuple[str, str] | None
    ) -> Iterator[str]:
        """A piece as it is written with translations, each with the positions of its tags and its origin."""
        match piece:
            case str():
                yield piece
            case Language():
                yield piece.written(languages)
            case Segment():
                translation, positions, _ = next(results)
                yield self.written(piece, translation, positions)
            case Entry():
                texts_of_entry = [part for part in piece.pieces if isinstance(part, Segment)]
                own = [next(results) for _ in texts_of_entry]
                is_same = all(part.text == text for part, (text, _, _) in zip(texts_of_entry, own, strict=True))
                if not own or (is_same and piece.state == "source"):
                    yield piece.kept
                    return
                if piece.state != "source" and any(
                    part.text and not text.strip() for part, (text, _, _) in zip(texts_of_entry, own, strict=True)
                ):
                    yield piece.kept
                    return
                origin = common_origin([origin for _, _, origin in own])
                if (
                    origin.is_doubtful
                    and piece.state != "source"
                    and not any(isinstance(p, Either) for p in piece.pieces)
                ):
                    yield piece.kept
                    return
                inner = iter(own)
                for part in piece.pieces:
                    if isinstance(part, Either):
                        yield part.doubtful if origin.is_doubtful else part.sure
                    elif isinstance(part, Quality):
                        yield part.written(origin)
                    else:
                        yield from self.parts(part, inner, languages)

    def written(self, segment: Segment, translation: str, positions: Sequence[Position]) -> str:
        """A translation as it is written in the file."""
        if translation == segment.text and segment.source is not None:
            return segment.source
        escaping = segment.escaping or self.escaping
        text = escaped(" ".join(translation.split()), escaping) if escaping in MARKUP else " ".join(translation.split())
        if segment.detached:
            text = put_at(segment.detached, text, with_words_in_links(segment, len(unit_spans(text)), positions))
        if escaping in ("none", "paragraph"):  # marks of emphasis around nothing would be seen
            text = EMPTY_PAIR.sub(
                lambda match: "" if EMPHASIS.issuperset(segment.codes[int(match[1])]) else match[0], text
            )
        lines = wrapped(text, segment.width, segment.max_lines) if segment.width else [text]
        if segment.codes:
            lines = [CODE.sub(lambda match: code_of(segment.codes, match), line) for line in lines]
        if escaping not in MARKUP:
            lines = [escaped(line, escaping) for line in lines]
        return segment.line_end.join(lines)

    def to_record(self) -> dict[str, Any]:
        """The document as JSON-serializable data."""
        pieces = [piece if isinstance(piece, str) else asdict(piece) for piece in self.pieces]
        attributes = [asdict(attribute) for attribute in self.attributes]
        own = {name: getattr(self, name) for name in ("escaping", "encoding", "protect", "languages", "notes")}
        return {"pieces": pieces, "attributes": attributes, **own}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "Document":
        """The document of a record."""
        languages = record["languages"]
        return cls(
            pieces=list(map(piece_of, record["pieces"])),
            escaping=record["escaping"],
            encoding=record["encoding"],
            attributes=tuple(map(attribute_of, record["attributes"])),
            protect=tuple(record["protect"]),
            notes=tuple(record["notes"]),
            languages=(languages[0], languages[1]) if languages else None,
        )


def with_words_in_links(segment: Segment, n_units: int, positions: Sequence[Position]) -> list[Position]:
    """Positions of tags, in which a link whose words have no translation is around a word beside it: around nothing, it
    would be lost.

    Args:
        n_units: number of units of the translation.
    """
    results = list(positions)
    inner = segment.detached.inner if segment.detached else ()
    for start, end in tag_pairs([span.text for span in inner]):
        code = CODE.fullmatch(inner[start].text)
        tag = code_of(segment.codes, code) if code and segment.codes else inner[start].text
        is_empty = inner[start].unit < inner[end].unit and results[start][0] >= results[end][0]
        if n_units and is_empty and LINK.search(tag):
            place = min(results[start][0], n_units - 1)
            results[start], results[end] = (place, False), (place + 1, True)
    return results


def code_of(codes: Sequence[str], match: re.Match[str]) -> str:
    """The tag that `CODE` is in place of. Those of a pair follow each other in `codes`."""
    return codes[int(match[2]) + bool(match[1])]


NO_CHARSET = re.compile(r'(^"Content-Type:[^"]*charset=)(?i:CHARSET|(?:US-)?ASCII)\b', re.MULTILINE)
"""The header of a catalogue that has none but English texts yet."""

UTF_8_PO = "convert the file, with its header: msgconv -t UTF-8 -o NEW.po OLD.po"


def encoded(text: str, encoding: str, escaping: Escaping) -> bytes:
    """The bytes of a file. Characters that its encoding does not have are written as XML's references.

    Raises:
        CorpusError: a lone surrogate, or a character that the encoding does not have.
    """
    if escaping == "po" and encoding == "utf-8" and not text.isascii():
        text = NO_CHARSET.sub(r"\1UTF-8", text, count=1)
    try:
        return text.encode(encoding, "xmlcharrefreplace" if escaping in MARKUP and encoding != "utf-8" else "strict")
    except UnicodeEncodeError as error:
        raise CorpusError(
            f"a translation cannot be written as {encoding.upper()}: {error.reason}.\n"
            + (
                "  Remove lone surrogates (U+D800 to U+DFFF) from it."
                if encoding.startswith("utf")
                else f"  It has {text[error.start]!r}: {UTF_8_PO if escaping == 'po' else 'save the file as UTF-8'}."
            )
        ) from None


def piece_of(record: Any) -> Piece:
    """The piece of a record."""
    if isinstance(record, str):
        return record
    if "kept" in record:
        inner = tuple(
            part
            if isinstance(part, str)
            else Either(**part)
            if "sure" in part
            else Quality(**part)
            if "form" in part
            else segment_of(part)
            for part in record["pieces"]
        )
        return Entry(record["kept"], record["state"], inner)
    return Language(**record) if "code" in record else segment_of(record)


def attribute_of(record: Any) -> Segment | Language | Entry:
    """What is in the place of a marker, from its record."""
    piece = piece_of(record)
    assert not isinstance(piece, str)
    return piece


def segment_of(record: dict[str, Any]) -> Segment:
    """The segment of a record."""
    detached = record["detached"]
    if detached:
        inner = tuple(Inner(**span) for span in detached["inner"])
        detached = Detached(**{**detached, "inner": inner})
    return Segment(**{**record, "detached": detached, "codes": tuple(record["codes"])})


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
