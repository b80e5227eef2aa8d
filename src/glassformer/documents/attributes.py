"""Attributes of HTML tags that have text to translate, or the language of the text."""

import html
import re
from collections.abc import Iterator

from turbohtml import Token

from glassformer.documents.document import Language, Segment

TRANSLATED = frozenset(("alt", "title", "placeholder", "aria-label"))
LANGUAGE = frozenset(("lang", "xml:lang"))

LABELED = frozenset(("option", "optgroup", "track", "tabitem"))
"""Tags whose label is text; the last one is of Docusaurus."""
BUTTONS = ("submit", "button", "reset")
META = ("description", "og:title", "og:description", "twitter:title", "twitter:description")

WITHOUT_TEXT = frozenset(("link", "script", "style"))
"""Elements whose titles are names, for instance of style sheets."""

ATTRIBUTE = re.compile(r"""[\s/]*([^\s/>=][^\s/>=]*)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'>][^\s>]*))?""")
FILE_NAME = re.compile(r"\S*[./_]\S*")
"""An address or the name of a file, which is no text."""


def values(raw: str, tag: str) -> Iterator[tuple[str, int, int]]:
    """Name of each attribute of a start tag that has a value, with the position of the value and its quotes."""
    position = 1 + len(tag)
    while match := ATTRIBUTE.match(raw, position):
        if match[2]:
            yield match[1].lower(), *match.span(2)
        position = match.end()


def has_text(name: str, tag: str, known: dict[str, str]) -> bool:
    """Whether an attribute of a tag has text to translate.

    Args:
        known: the attributes of the tag.
    """
    if tag == "meta":
        return name == "content" and (known.get("name") or known.get("property") or "").lower() in META
    if tag == "input" and name == "value":
        return known.get("type", "").lower() in BUTTONS
    return name in TRANSLATED or (name == "label" and tag in LABELED)


def marked(raw: str, token: Token, attributes: list[Segment | Language]) -> str:
    """A start tag with markers in place of the values that a translation changes. These are added to `attributes`."""
    tag = token.tag or ""
    known = {name: value or "" for name, value in reversed(token.attrs or [])}  # the first of a name counts
    texts = {name for name in known if has_text(name, tag, known)}
    if tag in WITHOUT_TEXT or not (texts | LANGUAGE) & known.keys():
        return raw
    parts, end = [], 0
    for name, start, stop in values(raw, tag):
        quoted = raw[start:stop]
        value = html.unescape(quoted[1:-1] if quoted[0] in "\"'" else quoted)
        if known.pop(name, None) != value:  # repeated, or not read as a browser reads it
            continue
        if name in LANGUAGE:
            found: Segment | Language = Language(quoted, value, is_document=tag == "html")
        elif name in texts and any(map(str.isalpha, value)) and not FILE_NAME.fullmatch(value.strip()):
            found = Segment(" ".join(value.split()), source=quoted)
        else:
            continue
        parts += [raw[end:start], f"\0{len(attributes)}\0"]
        attributes.append(found)
        end = stop
    return "".join([*parts, raw[end:]])
