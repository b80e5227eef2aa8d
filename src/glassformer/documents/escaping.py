"""How texts are written in a file: the characters that have a meaning there."""

import html
import json
import re
from typing import Literal

Escaping = Literal[
    "none", "paragraph", "html", "android", "po", "strings", "properties", "ascii-properties", "message", "json"
]
"""Plain text; the beginning of a paragraph of Markdown; HTML and XML; strings of Android; gettext catalogues; strings
of Apple; properties of Java, in ASCII, and with the apostrophes of Java's MessageFormat, in ASCII; JSON."""

MARKUP: tuple[Escaping, ...] = ("html", "android")
"""Text is escaped before tags are put into it."""

BLOCK_MARK = re.compile(r"^(\d{1,9}(?=[.)](?:\s|$))|(?=(?:[-+*]|#{1,6})(?:\s|$)|>))")
"""What begins a list, a heading or a quotation in Markdown."""
CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that XML does not have. They are left out of markup."""

C_ESCAPES = {
    **{"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"},
    **{"\b": "\\b", "\f": "\\f", "\v": "\\v"},
}
"""Escapes of the strings of C, which gettext and Apple write."""
PROPERTIES_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\f": "\\f"}
ANDROID_ESCAPES = {"\\": "\\\\", '"': '\\"', "'": "\\'"}


def escaped(text: str, escaping: Escaping) -> str:
    """A text as it is written in a file."""
    match escaping:
        case "html":
            return html.escape(CONTROLS.sub("", text), quote=False)
        case "android":
            found = html.escape(CONTROLS.sub("", replaced(text, ANDROID_ESCAPES)), quote=False)
            return "\\" + found if found[:1] in ("@", "?") else found  # else it would be a reference
        case "paragraph":
            return BLOCK_MARK.sub(r"\1\\", text)
        case "po" | "strings":
            return replaced(text, C_ESCAPES)
        case "properties":
            return replaced(text, PROPERTIES_ESCAPES)
        case "ascii-properties":
            return ascii_only(replaced(text, PROPERTIES_ESCAPES))
        case "message":
            return ascii_only(replaced(text.replace("'", "''"), PROPERTIES_ESCAPES))
        case "json":
            return json.dumps(text, ensure_ascii=False)[1:-1]
        case _:
            return text


def plain_of(text: str, escaping: Escaping) -> str:
    """A text without the escapes that are within markup."""
    return re.sub(r"\\(.)", r"\1", text) if escaping == "android" else text


def replaced(text: str, escapes: dict[str, str]) -> str:
    """A text with escapes in place of characters."""
    return "".join(escapes.get(character, character) for character in text)


def ascii_only(text: str) -> str:
    """A text with Java's escapes in place of what is not ASCII: units of UTF-16 in four digits."""
    return "".join(c if c.isascii() else "".join(f"\\u{unit:04x}" for unit in units(c)) for c in text)


def units(character: str) -> list[int]:
    """The one or two units of UTF-16 of a character."""
    data = character.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[i : i + 2]) for i in range(0, len(data), 2)]
