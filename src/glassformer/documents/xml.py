"""XML with the position of each element, by expat of the standard library.

A file is changed by putting other texts between parts of it that are copied: a tree that is written again would not be
the same file. Nothing is fetched, and no entity may be declared, so that a short file is no long text.
"""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from glassformer.documents.text import ENCODINGS
from glassformer.errors import CorpusError

MAX_DEPTH = 200
"""Maximum depth of elements."""

DECLARED = re.compile(rb"""^\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*["']([A-Za-z][\w.-]{0,40})["']""")
START_TAG = re.compile(rb"""<[^\s/>]+(?:\s+[^\s=]+\s*=\s*(?:"[^"]*"|'[^']*'))*\s*/?>""")


@dataclass(slots=True)
class Node:
    """An element, or a comment or processing instruction, which has no name. Positions are bytes of UTF-8."""

    name: str
    """With its prefix."""
    attributes: dict[str, str]
    start: int
    inner: int = -1
    """The end of the start tag."""
    inner_end: int = -1
    """The start of the end tag; as `inner` if there is none."""
    end: int = -1
    children: list["Node | str"] = field(default_factory=list)
    """Elements, and texts without escapes."""

    local: str = ""
    """The name without prefix."""

    def __post_init__(self) -> None:
        self.local = self.name.rpartition(":")[2]

    def elements(self, *names: str) -> Iterator["Node"]:
        """The child elements, of some names (without prefix) or all."""
        return (
            child
            for child in self.children
            if not isinstance(child, str) and child.name and (not names or child.local in names)
        )

    def first(self, name: str) -> "Node | None":
        """The first child element of a name without prefix."""
        return next((c for c in self.children if not isinstance(c, str) and c.local == name), None)

    def all(self, *names: str) -> Iterator["Node"]:
        """All elements within, of some names (without prefix) or all, in order."""
        for child in self.elements():
            if not names or child.local in names:
                yield child
            yield from child.all(*names)

    def get(self, name: str) -> str:
        """An attribute; an empty text if there is none."""
        return self.attributes.get(name, "")

    @property
    def text(self) -> str:
        """All text within."""
        return "".join(child if isinstance(child, str) else child.text for child in self.children)


def encoding_of(head: bytes) -> str:
    """The encoding of XML, by its beginning. A byte order mark is part of the text."""
    if codec := next((encoding for mark, encoding in ENCODINGS.items() if head.startswith(mark)), ""):
        return codec
    if head.startswith(b"<\0"):
        return "utf-16-le"
    if head.startswith(b"\0<"):
        return "utf-16-be"
    declared = DECLARED.match(head)
    name = declared[1].decode() if declared else "utf-8"
    return "utf-8" if name.lower().startswith(("utf-16", "utf16", "ucs-2")) else name


def check_encoding(name: str, encoding: str) -> str:
    """The name of a codec, if it is one of text.

    Raises:
        CorpusError: it is not.
    """
    try:
        info = codecs.lookup(encoding)
        "".encode(encoding)
    except (LookupError, UnicodeError):
        raise CorpusError(f"{name}: the encoding {encoding!r} is not known.\n  Save the file as UTF-8.") from None
    return info.name


def decode_xml(name: str, data: bytes) -> tuple[str, str]:
    """The text of a file, with its byte order mark, and its encoding.

    Raises:
        CorpusError: it has another encoding than it says.
    """
    encoding = check_encoding(name, encoding_of(data[:400]))
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{name}: byte {error.start:,} is not {encoding.upper()}, which the file says it is.\n"
            "  Save the file as UTF-8."
        ) from None
    if text.encode(encoding) != data:
        raise CorpusError(f"{name}: cannot be written again in {encoding.upper()} as it is.\n  Save it as UTF-8.")
    return text, encoding


class TreeBuilder:
    """Handlers of expat that make nodes.

    Args:
        wanted: names (without prefix) of the elements that are given to `found` and then forgotten. Default: the root.
    """

    def __init__(self, name: str, found: Callable[[Node], None], wanted: tuple[str, ...] = ()):
        self.name, self.found, self.wanted = name, found, wanted
        self.open: list[Node] = []
        self.depth = 0
        self.root: Node | None = None
        parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.characters
        parser.CommentHandler = self.other
        parser.ProcessingInstructionHandler = self.other
        parser.EntityDeclHandler = self.entity_declared
        parser.SkippedEntityHandler = self.entity_skipped
        parser.ExternalEntityRefHandler = None
        self.parser = parser

    def feed(self, data: bytes, *, is_last: bool) -> None:
        """Parse a part of the file, in UTF-8.

        Raises:
            CorpusError: it is not well-formed.
        """
        try:
            self.parser.Parse(data, is_last)
        except expat.ExpatError as error:
            reason = expat.errors.messages[error.code]
            raise CorpusError(
                f"{self.name}:{error.lineno}: not well-formed XML: {reason}.\n"
                "  Repair the file there, or export it again from the program that wrote it."
            ) from None

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error(f"elements within each other to a depth of more than {MAX_DEPTH}", "Not a usual file")
        node = Node(name, attributes, self.parser.CurrentByteIndex)
        self.root = self.root or node
        if self.open:
            self.open[-1].children.append(node)
            self.open.append(node)
        elif not self.wanted or node.local in self.wanted:
            self.open.append(node)

    def end(self, name: str) -> None:
        self.depth -= 1
        if not self.open:
            return
        node = self.open.pop()
        node.inner_end = self.parser.CurrentByteIndex
        if not self.open:
            self.found(node)

    def characters(self, text: str) -> None:
        if self.open:
            children = self.open[-1].children
            if children and isinstance(children[-1], str):
                children[-1] += text
            else:
                children.append(text)

    def other(self, *_: str) -> None:
        if self.open:
            self.open[-1].children.append(Node("", {}, self.parser.CurrentByteIndex))

    def entity_declared(self, name: str, *_: object) -> None:
        raise self.error(f"declares the entity {name!r}", "Entities are not read: replace them by their texts")

    def entity_skipped(self, name: str, is_parameter: bool) -> None:
        if not is_parameter:
            raise self.error(f"the entity &{name}; is not known", "Replace it by its text")

    def error(self, what: str, advice: str) -> CorpusError:
        return CorpusError(f"{self.name}:{self.parser.CurrentLineNumber}: {what}.\n  {advice}.")


def parse(name: str, text: str) -> tuple[Node, bytes]:
    """The root element of XML, and its bytes in UTF-8, which positions refer to.

    Raises:
        CorpusError: not well-formed, or with entities.
    """
    data = text.encode()
    roots: list[Node] = []
    TreeBuilder(name, roots.append).feed(data, is_last=True)
    locate(roots[0], data)
    return roots[0], data


def locate(node: Node, data: bytes) -> None:
    """Find the ends of the tags of a node and all within."""
    if not node.name:
        node.inner = node.inner_end = node.start
        node.end = data.index(b"-->" if data.startswith(b"<!--", node.start) else b"?>", node.start)
        node.end = data.index(b">", node.end) + 1
        return
    tag = START_TAG.match(data, node.start)
    assert tag, "expat has found a tag here"
    node.inner = tag.end()
    if data[node.inner - 2 : node.inner] == b"/>":
        node.inner_end = node.end = node.inner
    else:
        node.end = data.index(b">", node.inner_end) + 1
    for child in node.children:
        if isinstance(child, Node):
            locate(child, data)


def stream(name: str, chunks: Iterable[bytes], wanted: tuple[str, ...]) -> Iterator[Node]:
    """The elements of some names (without prefix) of a file that is read in parts, and before them its root without
    content. They have no positions.

    Raises:
        CorpusError: not well-formed, or with entities.
    """
    found: list[Node] = []
    builder = TreeBuilder(name, found.append, wanted)
    decoder: codecs.IncrementalDecoder | None = None
    has_root = False
    for chunk in chunks:
        if decoder is None:
            decoder = codecs.getincrementaldecoder(check_encoding(name, encoding_of(chunk[:400])))()
        try:
            data = decoder.decode(chunk).encode()
        except UnicodeDecodeError as error:
            raise CorpusError(
                f"{name}: not {error.encoding.upper()}, which the file says it is: {error.reason}.\n"
                "  Save the file as UTF-8."
            ) from None
        builder.feed(data, is_last=False)
        if builder.root and not has_root:
            has_root = True
            yield Node(builder.root.name, builder.root.attributes, 0)
        yield from found
        found.clear()
    builder.feed(b"", is_last=True)
