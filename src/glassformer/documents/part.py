"""A file of XML in a package, such as the text of a document or the styles."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from glassformer.documents.codes import flowing
from glassformer.documents.document import Document, Entry, Form, Language, Segment
from glassformer.documents.splicer import Splicer
from glassformer.documents.xml import Node, decode_xml, parse

Marks = list[tuple[str, str]]
"""Elements as they are written, without and with markers in place of the texts in them."""


@dataclass(slots=True)
class Part:
    """A file of XML that is read, and the texts within texts of it, such as those of a text box."""

    root: Node
    splicer: Splicer
    encoding: str
    prefix: str = ""
    """Of the elements of a run: `w:` or `a:`."""
    nested: list[Segment | Language | Entry] = field(default_factory=list)
    """Texts within texts, in the place of which are markers."""

    @classmethod
    def parse(cls, name: str, data: bytes, prefix: str = "") -> "Part":
        """Read a file.

        Raises:
            CorpusError: not well-formed XML.
        """
        text, encoding = decode_xml(name, data)
        root, raw = parse(name, text)
        return cls(root, Splicer(raw), encoding, prefix)

    def document(self) -> Document:
        """The file with the texts that were put into it."""
        return Document(self.splicer.pieces(), "html", self.encoding, tuple(self.nested))

    def raw(self, node: Node) -> str:
        """An element as it is written."""
        return self.splicer.raw(node.start, node.end)

    def put(self, start: int, end: int, pieces: Sequence[str | Segment], marks: Sequence[tuple[str, str]] = ()) -> None:
        """Put the pieces of a text in the place of a part of the file, which stays if no translation differs.

        Args:
            marks: elements of this part that have texts.
        """
        kept = self.splicer.raw(start, end)
        for raw, marked in marks:
            kept = kept.replace(raw, marked, 1)
        self.splicer.replace(start, end, Entry(kept, "source", tuple(pieces)))

    def put_text(self, node: Node) -> None:
        """Put the sentences of an element that has only text."""
        text = node.text
        if any(map(str.isalpha, text)) and all(isinstance(child, str) for child in node.children):
            self.put(node.inner, node.inner_end, flowing([text], "html"))

    def put_language(self, node: Node, attribute: re.Pattern[str], country: re.Pattern[str] | None = None) -> None:
        """Put the language of an element.

        Args:
            attribute: matches the attribute that has it; its first group is the value with its quotes.
            country: the same for the region, if it has an attribute of its own.
        """
        tag = self.splicer.raw(node.start, node.inner)
        match = attribute.search(tag)
        code = match[1][1:-1] if match else "none"
        if code in ("none", "zxx"):
            return
        forms: dict[Form, re.Match[str] | None] = {"tag": match}
        if country:
            forms = {"language": match, "country": country.search(tag)}
        for form, found in forms.items():
            if found:
                start = node.start + len(tag[: found.start(1)].encode())
                language = Language(found[1], code, is_document=False, form=form)
                self.splicer.replace(start, start + len(found[1].encode()), language)

    def put_language_text(self, node: Node) -> None:
        """Put the language of the file, which is the text of an element."""
        if text := node.text.strip():
            language = Language(text, text, is_document=True, is_quoted=False)
            self.splicer.replace(node.inner, node.inner_end, language)

    def marked(self, node: Node, inner: Callable[["Part", Node], None], marks: Marks) -> str:
        """An element as it is written, with markers in place of the texts in it.

        Args:
            inner: puts the texts of an element.
            marks: gets the element, if it has texts.
        """
        part = Part(self.root, Splicer(self.splicer.data), self.encoding, self.prefix, self.nested)
        inner(part, node)
        pieces = part.splicer.pieces(node.start, node.end)
        text = "".join(piece if isinstance(piece, str) else self.marker(piece) for piece in pieces)
        if text != self.raw(node):
            marks.append((self.raw(node), text))
        return text

    def marker(self, piece: Segment | Language | Entry) -> str:
        """What is in the place of a text within a text."""
        self.nested.append(piece)
        return f"\0{len(self.nested) - 1}\0"


def read_texts(name: str, data: bytes, names: Sequence[str]) -> Document:
    """A file with texts in elements of some names, without prefix, and its language.

    Raises:
        CorpusError: not well-formed XML.
    """
    part = Part.parse(name, data)
    for node in part.root.all(*names):
        part.put_text(node)
    for node in part.root.all("language"):
        part.put_language_text(node)
    return part.document()
