"""Markdown: sentences of its paragraphs, headings, list items and tables."""

import html
import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference

from glassformer.documents.codes import Code, flowing, merged
from glassformer.documents.document import Document, Entry, Language, Piece, Segment
from glassformer.documents.markdown_blocks import standard
from glassformer.documents.text import decode

FRONT_MATTER = re.compile(
    r"\ufeff?(?:---[ \t]*\r?\n.*?^(?:---|\.\.\.)|\+\+\+[ \t]*\r?\n.*?^\+\+\+)[ \t]*\r?\n", re.DOTALL | re.MULTILINE
)
CODE = re.compile(
    r"""(?P<escape>\\[!-/:-@\[-`{-~])
    |(?P<code>(?:\{[\w:+-]{1,40}\})?(?<!`)(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`))
    |(?P<math>(?:\A|(?<=\n))[ ]*\$\$[^$]{1,1000}\$\$(?=[ ]*(?:\n|\Z))
        |\$\$(?=\S)[^$\n]{1,1000}?(?<=\S)\$\$(?![\w$])|\$(?=\S)[^$\n]{1,300}?(?<=\S)\$(?!\w))
    |(?P<template>\{%.{1,300}?%\}|\{\{.{1,300}?\}\}|\{[:.\#][^{}\n]{1,100}\})
    |(?P<image>!\[[\W\d_]{0,100}?\](?:\([^)\s]*(?:\s+"[^"]*")?\)|\[[^\]]*\])?
        |!\[[^\[\]]*\](?!\([^)\s]*(?:\s+(?:"[^"]*"|'[^']*'))?\)|\[[^\]]*\]))
    |(?P<note>\[\^[^\]\s]+\]|\[\[[^\[\]\n]{1,100}\]\](?![(\[]))
    |(?P<open>!?\[)(?=[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\](?:\(\s{0,3}[^)\n]*\n?\)|\[[^\]]*\]))
    |(?P<close>\](?:\(\s{0,3}[^)\s]*(?:\s+(?:"[^"]*"|'[^']*'))?\s{0,3}\)|\[[^\]]*\]))
    |(?P<shortcut>\[(?P<label>[^\[\]]{1,300})\](?![(\[:]))
    |(?P<auto><(?:https?|ftp|mailto):[^>\s]*>|https?://[^\s<>()]+)
    |(?P<tag></?[A-Za-z][^<>]*>|<!--.*?-->)
    |(?P<strong>\*\*\*|\*\*|~~|(?<!\w)___|(?<!\w)__|___(?!\w)|__(?!\w)|\*(?=\S)|(?<=\S)\*|(?<!\w)_(?=\S)|(?<=\S)_(?!\w))
    |(?P<break>(?:\\|[ ]{2,})\n)
    |(?P<entity>&(?:[A-Za-z]\w{1,30}|\#\d{1,7}|\#[xX][0-9A-Fa-f]{1,6});)""",
    re.VERBOSE | re.DOTALL,
)
"""What is no text."""

LIKE_ENTITY = re.compile(r"[#\w]+;")
"""After `&amp;`: without it, this would be an entity."""

TASK_BOX = re.compile(r"^\[[ xX]\][ \t]+")
"""The box of a task, at the beginning of an item of a list."""

DEFINITION = re.compile(r"[ \t]*(?:\[\^[^\]\s]+\]:[ \t]+|\*\[[^\]]+\]:[ \t]+|(?P<term>:[ \t]+))")
"""The beginning of a footnote, of an abbreviation, or of the definition of the term in the line before."""

NOT_HTML = re.compile(r"\{\{|\{%|=\{|\{/\*|=>|^[ \t]*[{}]|<[^<>]*\smarkdown\b", re.MULTILINE)
"""Templates, programs (JSX), and tags with Markdown in them, in a block of HTML."""

QUOTED = re.compile(r"^[ \t]*>", re.MULTILINE)
"""A line of a quotation."""


def read_markdown(name: str, data: bytes) -> Document:
    """Markdown (CommonMark with tables and strikethrough): each sentence is a segment. Code, addresses and front matter
    stay.

    Raises:
        CorpusError: it is no text, or not in UTF-8 or UTF-16.
    """
    text, encoding = decode(name, data)
    front = FRONT_MATTER.match(text)
    start = front.end() if front else int(text.startswith("\ufeff"))
    body = text[start:]
    pieces: list[Piece] = [text[:start]]
    position = 0
    env: dict[str, Any] = {}
    attributes: list[Segment | Language] = []
    n_kept = 0
    for begin, end, content, is_paragraph in paragraphs(body, env):
        kept = body[begin:end]
        pieces.append(body[position:begin])
        if content is None:
            block = html_pieces(kept, attributes)
            n_kept += block is None
            pieces += [kept] if block is None else block
        else:
            inner = flowing(codes(content, env.get("references", {})), "none")
            if is_paragraph and inner and isinstance(inner[0], Segment):
                inner[0] = replace(inner[0], escaping="paragraph")
            prefix = prefix_of(kept)
            pieces.append(Entry(kept, "source", tuple(with_prefix(piece, prefix) for piece in inner)))
        position = end
    pieces.append(body[position:])
    reason = (
        "have templates, programs or Markdown in them"
        if find_spec("turbohtml")
        else "need pip install 'glassformer[serve]'"
    )
    notes = (f"{n_kept} blocks of HTML are not translated: they {reason}",) if n_kept else ()
    return Document(pieces, "none", encoding, tuple(attributes), notes=notes)


def html_pieces(text: str, attributes: list[Segment | Language]) -> list[str | Segment] | None:
    """The pieces of a block of HTML; None if it has more than HTML, or without the package that reads it.

    Args:
        attributes: gets the attributes in place of which there are markers.
    """
    if NOT_HTML.search(text) or not find_spec("turbohtml"):
        return None
    from glassformer.documents.html import pieces_of

    pieces = pieces_of(text, attributes)
    return [replace(piece, escaping="html") if isinstance(piece, Segment) else piece for piece in pieces]


def with_prefix(piece: str | Segment, prefix: str) -> str | Segment:
    """A piece with a line end and what follows it in place of line ends."""
    if isinstance(piece, str):
        return piece.replace("\n", prefix)
    return replace(piece, codes=tuple(code.replace("\n", prefix) for code in piece.codes))


def paragraphs(text: str, env: dict[str, Any]) -> Iterator[tuple[int, int, str | None, bool]]:
    """Start and end of each inline text of a file, the text without the marks at the beginnings of its lines (None
    for a block of HTML), and whether it is a paragraph, of which the beginning matters.

    Args:
        env: gets what the file defines.
    """
    starts = [0]
    for match in re.finditer(r"\r\n|\n|\r", text):
        starts.append(match.end())
    starts.append(len(text))
    end = 0
    is_paragraph = False
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(standard(text), env):
        is_paragraph = token.type == "paragraph_open" or (is_paragraph and token.type == "inline")
        if token.type not in ("inline", "html_block") or not token.map or not token.content.strip():
            continue
        position = max(end, starts[token.map[0]])
        limit = starts[min(token.map[1], len(starts) - 1)]
        if token.type == "html_block":
            if position < limit and not QUOTED.search(text, position, limit):
                end = limit
                yield position, end, None, False
            continue
        for content in definitions(TASK_BOX.sub("", token.content)):
            begin = -1
            lines = [line.strip() for line in content.split("\n")]
            for line in lines:
                in_cell = line.replace("|", "\\|")
                found, line = next(
                    ((at, each) for each in (line, in_cell) if (at := text.find(each, position, limit)) >= 0),
                    (-1, line),
                )
                if found < 0:  # written in another way, such as with tabs
                    begin = -1
                    break
                begin = found if begin < 0 else begin
                position = found + len(line)
            if begin >= 0:
                end = position
                yield begin, end, content if len(lines) > 1 else line, is_paragraph


def definitions(content: str) -> Iterator[str]:
    """The texts of a paragraph: of footnotes, abbreviations and definitions one for each, without their marks."""
    lines: list[str] = []
    for line in content.split("\n"):
        if (match := DEFINITION.match(line)) and (lines or not match["term"]):
            if lines:
                yield "\n".join(lines)
            lines = [line[match.end() :]]
        else:
            lines.append(line)
    if lines:
        yield "\n".join(lines)


def prefix_of(raw: str) -> str:
    """The line end and the marks before the second line of a text."""
    match = re.search(r"(\r\n|\n|\r)([ \t>]*)", raw)
    return match[1] + match[2] if match else "\n"


def codes(content: str, references: Collection[str]) -> list[str | Code]:
    """The text of a paragraph, in one line, and the codes in it.

    Args:
        references: labels of addresses that the file defines. A link whose text is such a label gets one of its own,
            which stays.
    """
    results: list[str | Code] = []
    position = 0
    opened: list[str] = []
    starts: list[int] = []  # of the texts of links
    content = "\n".join(line.lstrip() if i else line for i, line in enumerate(content.split("\n"))).rstrip()
    scanned = 0
    while match := CODE.search(content, scanned):
        label = match["label"]
        if label and normalizeReference(label) not in references:
            scanned = match.start() + 1  # the bracket is text
            continue
        results.append(content[position : match.start()].replace("\n", " "))
        position = scanned = match.end()
        kind, raw = match.lastgroup or "", match[0]
        name = "[" if kind in ("open", "close") else raw
        if kind == "tag" and (tag := re.match(r"</?([A-Za-z][\w-]*)", raw)):
            name = f"<{tag[1].lower()}"
        if label:
            close = Code(f"][{' '.join(label.split())}]", "close", "[")
            results += [Code("[", "open", "["), *codes(label, references), close]
            continue
        if kind == "open":
            starts.append(match.end())
        if kind == "close" and starts and raw == "][]":
            raw = f"][{' '.join(content[starts[-1] : match.start()].split())}]"
        if kind == "close" and starts:
            starts.pop()
        is_sign = raw in ("&lt;", "&gt;") or (raw == "&amp;" and LIKE_ENTITY.match(content, position))
        if kind == "escape" or (kind == "entity" and not is_sign):
            results.append(raw if kind == "escape" else html.unescape(raw))
            continue
        is_close = kind == "close" or (kind == "strong" and raw in opened) or (kind == "tag" and raw.startswith("</"))
        if is_close:
            opened = opened[: len(opened) - 1 - opened[::-1].index(name)] if name in opened else opened
            results.append(Code(raw, "close", name))
        elif kind in ("open", "strong", "tag"):
            opened.append(name)
            results.append(Code(raw, "open", name))
        else:
            results.append(Code(raw, is_break=kind == "break"))
    results.append(content[position:].replace("\n", " "))
    return merged([part for part in results if part != ""])
