"""Texts of programs by key, in one language: Java's properties, Android's and Apple's strings, JSON and ARB."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from glassformer.documents.codes import Code, Content, plain, segments
from glassformer.documents.document import Document, Entry, Language, Piece
from glassformer.documents.escaping import Escaping
from glassformer.documents.po import LETTERS, PROTECT
from glassformer.documents.text import decode
from glassformer.documents.xml import Node, decode_xml, parse
from glassformer.errors import CorpusError

PLURAL = re.compile(r"\{\s*\w+\s*,\s*(?:plural|select|selectordinal|choice)\s*,")
"""Texts of ICU with a form for each case, which are not translated."""


NO_TEXT = re.compile(
    r"#(?:[0-9A-Fa-f]{3,4}){1,2}"
    r"|[A-Za-z0-9_./@-]*[A-Za-z0-9_-]\.(?:png|jpe?g|gif|svg|webp|ico|css|js|json|html?|pdf|mp[34]|wav|woff2?|ttf)"
)
"""A color, or the name of a file."""

LOCALE = re.compile(r'"@@locale"\s*:\s*"([\w-]+)"')
"""The language of the texts of a file of ARB."""


@dataclass(frozen=True, slots=True)
class Item:
    """A text of a catalogue, and where its value is written."""

    key: str
    content: Content
    start: int
    end: int
    escaping: Escaping
    line_end: str = "\\n"
    has_quoted_braces: bool = False
    """It has braces in apostrophes, which are text in Java's MessageFormat."""

    @property
    def has_forms(self) -> bool:
        """Whether it has a form for each case, or other syntax that words cannot be put into."""
        return self.has_quoted_braces or any(PLURAL.search(part) for part in self.content if isinstance(part, str))


@dataclass(frozen=True, slots=True)
class Catalogue:
    """A file in one language."""

    text: str
    encoding: str
    items: list[Item]
    locale: re.Match[str] | None = None
    """What says which language the texts are in."""

    def document(self) -> Document:
        """The document of the file."""
        changes: list[tuple[int, int, Entry | Language]] = []
        if self.locale:
            code = self.locale[1]
            changes.append((*self.locale.span(1), Language(code, code, True, is_quoted=False, form="locale")))
        n_forms = 0
        for item in self.items:
            n_forms += item.has_forms
            text = plain(item.content)
            if item.has_forms or not any(map(str.isalpha, text)) or NO_TEXT.fullmatch(text):
                continue
            inner = segments(item.content, item.escaping, item.line_end)
            if item.escaping.endswith(("properties", "message")) and isinstance(inner[0], str) and inner[0][:1] == " ":
                inner[0] = "\\" + inner[0]
            if item.escaping == "android":
                for end in (0, -1):
                    if isinstance(space := inner[end], str) and space.isspace():
                        inner[end] = "".join(f"\\u{ord(character):04x}" for character in space)
            changes.append((item.start, item.end, Entry(self.text[item.start : item.end], "source", tuple(inner))))
        pieces: list[Piece] = []
        position = 0
        for start, end, piece in sorted(changes, key=lambda change: change[0]):
            pieces += [self.text[position:start], piece]
            position = end
        pieces.append(self.text[position:])
        notes = (f"{n_forms} texts with plural forms of ICU, or quoted braces, are not translated",) if n_forms else ()
        return Document(pieces, self.items[0].escaping, self.encoding, protect=PROTECT, notes=notes)


def read_catalogue(name: str, data: bytes) -> Document:
    """A catalogue of one language: each text is a segment, or several if it has several lines.

    Raises:
        CorpusError: not a catalogue of its suffix, or without texts.
    """
    return catalogue(name, data).document()


def catalogue(name: str, data: bytes) -> Catalogue:
    """The texts of a catalogue.

    Raises:
        CorpusError: not a catalogue of its suffix, or without texts.
    """
    suffix = name.lower().removesuffix(".gz").rpartition(".")[2]
    if suffix == "properties" and not data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        text, encoding = decode_properties(data)
    else:
        text, encoding = decode_xml(name, data) if suffix == "xml" else decode(name, data)
    readers: dict[str, Callable[[str, str], Iterator[Item]]] = {
        **{"properties": properties, "strings": apple_strings, "xml": android_strings},
        **{"json": json_texts, "arb": json_texts},
    }
    if suffix not in readers:
        raise CorpusError(
            f"{name}: no catalogue by its suffix.\n  Name it {', '.join(f'.{each}' for each in readers)}."
        )
    items = list(readers[suffix](name, text))
    if not items:
        raise CorpusError(f"{name}: no texts by key.\n  Give a file whose keys have texts.")
    if suffix == "xml":  # positions in UTF-8
        raw = text.encode()
        offsets = {}
        position = count = 0
        for offset in sorted({o for item in items for o in (item.start, item.end)}):
            count += len(raw[position:offset].decode())
            offsets[offset], position = count, offset
        items = [Item(i.key, i.content, offsets[i.start], offsets[i.end], i.escaping, i.line_end) for i in items]
    return Catalogue(text, encoding, items, LOCALE.search(text) if suffix == "arb" else None)


def decode_properties(data: bytes) -> tuple[str, str]:
    """The text of properties and their encoding: UTF-8, or ISO-8859-1, which Java read before version 9."""
    try:
        return data.decode(), "utf-8"
    except UnicodeDecodeError:
        return data.decode("latin-1"), "latin-1"


PROPERTY = re.compile(
    r"^[ \t\f]*(?![#!])((?:\\(?:\r\n|.|[\r\n])|[^\\\s:=])+)(?:[ \t\f]*[:=][ \t\f]*|[ \t\f]+)"
    r"((?:\\(?:\r\n|.|[\r\n])|[^\\\r\n])*)",
    re.MULTILINE,
)
PROPERTY_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|((?:\r\n|\r|\n)[ \t\f]*)|(.))", re.DOTALL)


def properties(name: str, text: str) -> Iterator[Item]:
    """Texts of Java's properties."""
    is_ascii = text.isascii() or max(text, default="") <= "\xff"
    position = 0
    while match := PROPERTY.search(text, position):
        position = max(match.end(), match.start() + 1)
        value = unescaped(match[2])
        escaping: Escaping = "properties" if not is_ascii else "ascii-properties"
        has_quoted_braces = False
        if re.search(r"\{\d", value):
            has_quoted_braces = bool(re.search("'[{}]", value.replace("''", "")))
            value, escaping = value.replace("''", "'"), "message"
        key, start, end = unescaped(match[1]), match.start(2), match.end(2)
        yield Item(key, [value], start, end, escaping, has_quoted_braces=has_quoted_braces)


def unescaped(value: str) -> str:
    """A text without the escapes of Java's properties."""

    def character(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        return "" if match[2] else LETTERS.get(match[3], match[3]) if match[3] in "ntrf" else match[3]

    text = PROPERTY_ESCAPE.sub(character, value)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


STRINGS = re.compile(r'/\*.*?\*/|//[^\r\n]*|(?:"((?:[^"\\]|\\.)*)"|([\w.-]+))\s*=\s*"((?:[^"\\]|\\.)*)"\s*;', re.DOTALL)
STRING_ESCAPE = re.compile(r"\\(?:[uU]([0-9A-Fa-f]{4})|(.))", re.DOTALL)


def apple_strings(name: str, text: str) -> Iterator[Item]:
    """Texts of Apple's strings.

    Raises:
        CorpusError: something else between the texts.
    """
    position = 1 if text.startswith("\ufeff") else 0
    for match in STRINGS.finditer(text):
        check_between(name, text, position, match.start())
        position = match.end()
        if match[3] is not None:
            value = STRING_ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else LETTERS.get(m[2], m[2]), match[3])
            yield Item(match[1] if match[1] is not None else match[2], [value], match.start(3), match.end(3), "strings")
    check_between(name, text, position, len(text))


def check_between(name: str, text: str, start: int, end: int) -> None:
    """Check that there is nothing but white space.

    Raises:
        CorpusError: there is.
    """
    between = text[start:end].strip()
    if between:
        line = text.count("\n", 0, text.index(between, start)) + 1
        raise CorpusError(f'{name}:{line}: expected "key" = "text"; found {between[:40]!r}.\n  Repair the file there.')


ANDROID_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))|\"", re.DOTALL)
"""An escape, or one of the quotes around a text, which are no part of it."""


def android_strings(name: str, text: str) -> Iterator[Item]:
    """Texts of Android's resources.

    Raises:
        CorpusError: not well-formed, or XML of another kind.
    """
    root, data = parse(name, text)
    if root.local != "resources":
        raise CorpusError(
            f"{name}: XML whose first element is <{root.name}>, which cannot be read.\n"
            "  XML that can be: strings of Android (<resources>), TMX and XLIFF."
        )
    for node in root.elements("string", "item", "plurals", "string-array", "array"):
        if node.get("translatable") == "false" or (node.local == "item" and node.get("type") != "string"):
            continue
        inner = [node] if node.local in ("string", "item") else list(node.elements("item"))
        for i, each in enumerate(inner):
            key = node.get("name") + (f"/{each.get('quantity') or i}" if each is not node else "")
            if each.inner != each.end and not each.text.strip().startswith(("@", "?")):
                yield Item(
                    key, android_content(each, data, is_whole=True), each.inner, each.inner_end, "android", "\\n"
                )


def android_content(node: Node, data: bytes, *, is_whole: bool = False) -> list[str | Code]:
    """The content of a text of Android.

    Args:
        is_whole: it is all of the text, whose end is without the white space of the file.
    """
    results: list[str | Code] = []
    for child in node.children:
        if isinstance(child, str):
            collapsed = " ".join(child.split())  # line ends are \n in the text
            if child[:1].isspace() and results:
                collapsed = " " + collapsed
            is_end = is_whole and child is node.children[-1]
            if child[-1:].isspace() and len(collapsed.strip()) and not is_end:
                collapsed += " "
            results.append(
                ANDROID_ESCAPE.sub(
                    lambda m: chr(int(m[1], 16)) if m[1] else LETTERS.get(m[2], m[2]) if m[2] else "", collapsed
                )
            )
        elif not child.name or child.local == "g" or child.inner == child.end:
            results.append(Code(data[child.start : child.end].decode()))
        else:
            key = str(child.start)
            results += [
                Code(data[child.start : child.inner].decode(), "open", key),
                *android_content(child, data),
                Code(data[child.inner_end : child.end].decode(), "close", key),
            ]
    return results


def is_of_chrome(whole: object) -> bool:
    """Whether JSON has the messages of an extension of Chrome: for each key an object with the text."""
    values = whole.values() if isinstance(whole, dict) else ()
    return bool(values) and all(isinstance(each, dict) and isinstance(each.get("message"), str) for each in values)


JSON_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?|[{}\[\]]')


def json_texts(name: str, text: str) -> Iterator[Item]:
    """Texts of JSON: of ARB, of the catalogues of web frameworks, and of Chrome (only `message`).

    Raises:
        CorpusError: not JSON.
    """
    try:
        whole = json.loads(text.removeprefix("\ufeff"))
    except ValueError as error:
        reason = f"{error.msg} in line {error.lineno}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise CorpusError(f"{name}: not JSON: {reason}.\n  Repair the file there.") from None
    except RecursionError:
        raise CorpusError(
            f"{name}: JSON of too great a depth.\n  Give its inner parts as files of their own."
        ) from None
    path: list[str] = []
    key = ""
    has_message = is_of_chrome(whole)
    for match in JSON_TOKEN.finditer(text):
        token = match[0][0]
        if token in "{[":
            path.append(key)
            key = ""
        elif token in "}]":
            path.pop()
        elif match[2]:
            key = json.loads(f'"{match[1]}"', strict=False)
        else:
            where = [*path[1:], key]
            is_metadata = any(part.startswith("@") for part in where) or (has_message and key != "message")
            if not is_metadata:
                value = json.loads(f'"{match[1]}"', strict=False)
                yield Item(
                    "/".join(where) + f"#{match.start()}" * (not key), [value], match.start(1), match.end(1), "json"
                )
