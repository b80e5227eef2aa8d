"""Texts with codes in TMX and XLIFF."""

import re
from typing import Literal

from glassformer.documents.codes import Code
from glassformer.documents.xml import Node

AROUND_TEXT = frozenset(("g", "pc", "hi", "mrk"))
"""Elements whose content is text. That of other elements is code."""
OPENING = frozenset(("bpt", "bx", "sc", "sm"))
CLOSING = frozenset(("ept", "ex", "ec", "em"))
"""Elements that stand for one of two codes of a pair."""
PARTNERS = {"bpt": "pt", "ept": "pt", "bx": "x", "ex": "x", "sc": "c", "ec": "c", "sm": "m", "em": "m"}
PAIR_ATTRIBUTES = ("i", "startRef", "rid", "id")
"""Attributes that the two have in common."""


def is_protected(node: Node) -> bool:
    """Whether the content of an element is not to be translated."""
    return node.get("translate") == "no" or node.get("mtype") == "protected"


def content_of(node: Node, data: bytes = b"") -> list[str | Code]:
    """The content of an element as texts and codes.

    Args:
        data: the file; without it, codes are empty.
    """
    results: list[str | Code] = []

    def raw(start: int, end: int) -> str:
        return data[start:end].decode() if data else ""

    for child in node.children:
        if isinstance(child, str):
            results.append(child)
        elif child.local in AROUND_TEXT and not is_protected(child) and child.children:
            key = f"{child.local}@{id(child)}"
            results += [
                Code(raw(child.start, child.inner), "open", key),
                *content_of(child, data),
                Code(raw(child.inner_end, child.end), "close", key),
            ]
        elif child.local == "cp" and re.fullmatch(r"[0-9A-Fa-f]{1,6}", child.get("hex")):
            results.append(Code(raw(child.start, child.end)))
        elif child.local in PARTNERS:
            kind: Literal["open", "close"] = "open" if child.local in OPENING else "close"
            own = next((child.get(name) for name in PAIR_ATTRIBUTES if child.get(name)), "")
            results.append(Code(raw(child.start, child.end), kind, f"{PARTNERS[child.local]}@{own}", is_mark=True))
        else:
            results.append(Code(raw(child.start, child.end)))
    return results


def with_attribute(tag: str, name: str, value: str) -> str:
    """A start tag with an attribute."""
    pattern = re.compile(rf"""(\s{re.escape(name)}\s*=\s*)("[^"]*"|'[^']*')""")
    if pattern.search(tag):
        return pattern.sub(rf'\g<1>"{value}"', tag, count=1)
    end = "/>" if tag.endswith("/>") else ">"
    return f'{tag[: -len(end)].rstrip()} {name}="{value}"{end}'


def without_prefix(tag: str, prefix: str) -> str:
    """A start tag without the attributes of a namespace prefix, and its declaration."""
    return re.sub(rf"""\s(?:xmlns:{prefix}|{prefix}:[\w.-]+)\s*=\s*(?:"[^"]*"|'[^']*')""", "", tag)


def opened(tag: str) -> str:
    """The start tag of an element with content."""
    return tag[:-2].rstrip() + ">" if tag.endswith("/>") else tag
