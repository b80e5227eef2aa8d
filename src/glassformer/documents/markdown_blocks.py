"""Blocks of Markdown's dialects: admonitions, alerts, tabs, formulas."""

import re
from dataclasses import dataclass, field

LINE = re.compile(r"\r\n|\n|\r")
MARKS = r"(?P<marks>[ \t>]*)"
CONTAINER = re.compile(
    MARKS + r":{3,}[ \t]*(?:\{[^{}]*\}|[\w-]+)?[ \t]*"
    r"(?:\[(?P<label>[^\[\]]*)\]|(?P<title>[^:{}\[\]]*))(?:\{[^{}]*\})?[ \t]*"
)
"""The first or the last line of a container: `:::tip Title` of Docusaurus, VitePress, Pandoc and MyST."""
ADMONITION = re.compile(
    MARKS + r"(?:(?:!!!|\?\?\?\+?)[ \t]+[\w-]+(?:[ \t]+[\w-]+)*(?:[ \t]+\"(?P<title>[^\"\\]*)\")?"
    r"|===[+!]?[ \t]+\"(?P<tab>[^\"\\]*)\")[ \t]*"
)
"""The line before an indented block: `!!! note "Title"` of Python-Markdown and MkDocs, `=== "Title"` of a tab."""
EMPTY_ADMONITION = re.compile(r"[ \t>]*(?:!!!|\?\?\?\+?)[ \t]+[a-z-]+[ \t]*")
"""One that may have no text."""
ALERT = re.compile(MARKS + r"\[![A-Za-z]+\][+-]?(?P<title>.*)")
"""The first line of an alert in a quotation: `> [!NOTE]` of GitHub, `> [!tip] Title` of Obsidian."""
FENCE = re.compile(MARKS + r"(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(?P<fence>`{3,}|~{3,})(?P<info>[^`]*)")
DIRECTIVE = re.compile(
    r"\{(?:admonition|attention|caution|danger|error|hint|important|note|seealso|sidebar|tip|topic|warning)\}(?P<title>.*)"
)
"""Directives of MyST in a fence that have text."""
OPTION = re.compile(r"[ \t>]*:[\w-]+:.*")
"""An option of a directive of MyST, before its text."""
MODULE = re.compile(
    r"""import\s(?:.*\sfrom\s)?\s*(?:'[^']*'|"[^"]*");?[ \t]*"""
    r"|export\s+(?:const|let|var)\s+\w+\s*=.*|export\s+default\s.*;[ \t]*"
)
"""A statement of JavaScript in MDX (Docusaurus)."""
INDENT = 4
"""Columns by which the text of an admonition is indented."""


@dataclass(slots=True)
class Blocks:
    """What is open at a line of a file."""

    indents: list[int] = field(default_factory=list)
    """Columns of the texts of admonitions, one within another."""
    code: str = ""
    """The fence of a block of code."""
    directives: list[str] = field(default_factory=list)
    """The fences of directives."""
    has_options: bool = False
    """Options of a directive may follow."""
    in_formula: bool = False
    after_text: bool = False
    """The line before is not blank."""


def standard(text: str) -> str:
    """A file in CommonMark, line by line: blank lines in place of those that only begin or end a block of a dialect,
    titles of blocks as headings, and texts of blocks without their indentation.
    """
    blocks = Blocks()
    lines = LINE.split(text)
    ends, indents = formula_ends(lines), next_indents(lines)
    results = []
    for line in zip(lines, ends, indents, strict=True):
        results.append(standard_line(*line, blocks))
        blocks.after_text = bool(results[-1].strip())
    return "\n".join(results)


def indent_of(line: str) -> int:
    """Number of columns before the text of a line."""
    return len(line[: len(line) - len(line.lstrip(" \t"))].expandtabs(INDENT))


def next_indents(lines: list[str]) -> list[int]:
    """For each line, the indentation of the next one that is not blank."""
    results, indent = [], 0
    for line in reversed(lines):
        results.append(indent)
        indent = indent_of(line) if line.strip() else indent
    return results[::-1]


def formula_ends(lines: list[str]) -> list[bool]:
    """For each line, whether a formula that begins in it ends in a later one, before an empty line."""
    results, has_end = [], False
    for line in reversed(lines):
        results.append(has_end)
        has_end = bool(line.strip(" \t>")) and (has_end or line.count("$$") % 2 == 1)
    return results[::-1]


def standard_line(line: str, has_end: bool, next_indent: int, blocks: Blocks) -> str:
    """A line in CommonMark; as `standard` makes it.

    Args:
        has_end: a formula that begins in it has an end.
        next_indent: indentation of the next line that is not blank.
    """
    width = indent_of(line)
    line = " " * width + line.lstrip(" \t")
    while blocks.indents and line.strip() and width < blocks.indents[-1]:
        blocks.indents.pop()
    line = line[min(width, INDENT * len(blocks.indents)) :]
    fence = FENCE.fullmatch(line)
    if blocks.code:
        if fence and fence["fence"].startswith(blocks.code) and not fence["info"].strip():
            blocks.code = ""
        return line
    is_mark = line.count("$$") % 2 == 1
    if blocks.in_formula or (is_mark and has_end and line.lstrip(" \t>").startswith("$$")):
        blocks.in_formula ^= is_mark
        return ""
    if blocks.has_options and OPTION.fullmatch(line):
        return ""
    blocks.has_options = False
    if fence:
        directive = DIRECTIVE.fullmatch(fence["info"].strip())
        if directive:
            blocks.directives.append(fence["fence"])
            blocks.has_options = True
            return heading(line, fence["marks"], directive["title"].strip())
        if blocks.directives and fence["fence"].startswith(blocks.directives[-1]) and not fence["info"].strip():
            blocks.directives.pop()
            return ""
        blocks.code = fence["fence"]
        return line
    if not blocks.after_text and MODULE.fullmatch(line):
        return ""
    if match := CONTAINER.fullmatch(line):
        return heading(line, match["marks"], (match["label"] or match["title"] or "").strip())
    has_text = next_indent >= width + INDENT
    if (match := ADMONITION.fullmatch(line)) and (has_text or EMPTY_ADMONITION.fullmatch(line)):
        blocks.indents.append(width + INDENT)
        return heading(line, match["marks"], match["title"] or match["tab"] or "")
    if (match := ALERT.fullmatch(line)) and ">" in match["marks"]:
        return heading(line, match["marks"], match["title"].strip())
    return line


def heading(line: str, marks: str, title: str) -> str:
    """A heading in place of a line that begins a block; a blank line if it has no title, or has the same text twice."""
    is_found = title and line.find(title) == line.rindex(title)
    return f"{marks}# {title}" if is_found else marks.rstrip()
