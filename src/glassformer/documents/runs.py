"""Paragraphs of Office: runs of text with a format each.

A run is an element with its format and its text, `<w:r><w:rPr>…</w:rPr><w:t>text</w:t></w:r>`. The format that most of
a paragraph has is its usual one; a run of another format is text between two codes, of which the first ends a run of
the usual format and begins one of the other, and the second the reverse. So the codes make well-formed XML in any order
of the words of a translation.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Literal

from glassformer.documents.codes import Code, flowing, merged
from glassformer.documents.document import Document, Segment
from glassformer.documents.part import Marks, Part
from glassformer.documents.xml import Node

DROPPED = frozenset(("proofErr", "lastRenderedPageBreak", "softHyphen"))
"""Marks of a text that a translation does not have."""

BREAK = re.compile(
    r"<w:r>(?:<w:rPr>.*</w:rPr>)?<w:(?:br|tab|cr)(?:\s[^>]*)?/></w:r>|<a:br\s*/>|<a:br>.*</a:br>", re.DOTALL
)
"""A new line or a tab, as it is written in the file."""

WITH_RUNS = frozenset(("hyperlink", "ins", "smartTag", "sdt", "sdtContent", "dir", "bdo", "moveTo", "customXml"))
"""Elements in a paragraph that have runs."""

DESCRIBED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("docPr", "cNvPr"), ("descr", "title")),
    **{"shape": ("alt",), "textpath": ("string",)},  # of VML: the second one is the text of a watermark
    **dict.fromkeys(("tblCaption", "tblDescription"), ("w:val",)),
}
"""Elements with texts in attributes, such as an alternative text."""

PROOFING = re.compile(rb"<(?:w:lang|w:noProof)\b[^>]*/>|\s(?:lang|altLang|dirty|err|noProof)=\"[^\"]*\"")
"""Parts of a format that are not seen."""


FORMATS = ("rPr", "endParaRPr", "defRPr")
FORMAT_LANGUAGE = re.compile(r'\slang=("[^"]*")')
"""Formats of DrawingML that have a language: of a run, of the end of a paragraph, and of a style."""


@dataclass(frozen=True, slots=True)
class Run:
    """A text with its format."""

    text: str
    format: str


@dataclass(frozen=True, slots=True)
class Group:
    """Runs within an element, such as a link."""

    start: str
    end: str
    items: "list[Run | Group | Range | str]"


@dataclass(frozen=True, slots=True)
class Range:
    """The beginning or the end of a range of text, such as of a comment."""

    raw: str
    kind: Literal["open", "close"]
    pair: str


Items = list[Run | Group | Range | str]
"""Runs, groups of them, and what is neither, as it is written in the file."""


def read_part(
    name: str,
    data: bytes,
    prefix: str,
    paragraph: str,
    skip: Callable[[Node], bool] | None = None,
    labels: Collection[str] = (),
) -> Document:
    """A file of paragraphs of runs, and of pictures with alternative texts.

    Args:
        prefix: of the elements of a run.
        paragraph: name of the elements that are paragraphs.
        skip: elements that are not translated.
        labels: names of elements whose values are texts, without prefix.

    Raises:
        CorpusError: not well-formed XML.
    """
    part = Part.parse(name, data, prefix)

    def paragraphs(part: Part, node: Node) -> None:
        for child in node.elements():
            if skip and skip(child):
                put_languages(part, child)
                continue
            if prefix == "a:" and child.local in FORMATS:
                part.put_language(child, FORMAT_LANGUAGE)
            if child.name == paragraph:
                place_paragraph(part, child, paragraphs)
            elif child.local in labels:
                for value in child.all("v"):
                    part.put_text(value)
            elif child.local in DESCRIBED:
                describe(part, child)
                paragraphs(part, child)
            else:
                paragraphs(part, child)

    paragraphs(part, part.root)
    return part.document()


def read_formats(name: str, data: bytes) -> Document:
    """A file of DrawingML of which only the languages of formats change.

    Raises:
        CorpusError: not well-formed XML.
    """
    part = Part.parse(name, data)
    put_languages(part, part.root)
    return part.document()


def put_languages(part: Part, node: Node) -> None:
    """Put the languages of all formats of DrawingML within an element."""
    for format in node.all(*FORMATS):
        part.put_language(format, FORMAT_LANGUAGE)


def describe(part: Part, node: Node) -> None:
    """Put the texts of an element in its attributes: markers in its tag."""
    tag = part.splicer.raw(node.start, node.inner)
    marked = tag
    for attribute in DESCRIBED[node.local]:
        text = node.get(attribute)
        match = re.search(rf"""(\s{attribute}=)("[^"]*"|'[^']*')""", marked)
        if match and any(map(str.isalpha, text)):
            marker = part.marker(Segment(" ".join(text.split()), source=match[2]))
            marked = marked[: match.start(2)] + marker + marked[match.end(2) :]
    if marked != tag:
        part.splicer.replace(node.start, node.inner, marked)


def place_paragraph(part: Part, node: Node, nested: Callable[[Part, Node], None]) -> None:
    """Put the segments of a paragraph."""
    begin, end = bounds(node)
    if not any(map(str.isalpha, own_text(node))):
        nested(part, node)  # only what is in texts of it
        return
    marks: Marks = []
    n_nested = len(part.nested)
    items = list(items_of(part, node, nested, marks))
    usual = usual_format(items)
    if usual is None:
        del part.nested[n_nested:]
        nested(part, node)
        return
    if part.prefix == "a:":
        for format in node.all(*FORMATS):
            if not begin <= format.start < end:
                part.put_language(format, FORMAT_LANGUAGE)
    space = ' xml:space="preserve"' if part.prefix == "w:" else ""
    run, text = f"<{part.prefix}r>", f"<{part.prefix}t{space}>"
    open_run = f"{run}{usual}{text}"
    close_run = f"</{part.prefix}t></{part.prefix}r>"
    content = codes_of(items, usual, f"{run}%s{text}", close_run)
    pieces = flowing(content, "html")
    part.put(begin, end, (open_run, *pieces, close_run), marks)


def own_text(node: Node) -> str:
    """The text of the runs of a paragraph, without that of paragraphs in it."""
    texts = []
    for child in node.elements():
        if child.local == "t":
            texts.append(child.text)
        elif child.local == "r" or child.local in WITH_RUNS:
            texts.append(own_text(child))
    return "".join(texts)


def bounds(node: Node) -> tuple[int, int]:
    """Start of the first and end of the last child of a paragraph that may have text."""
    children = [child for child in node.elements() if child.local not in ("pPr", "endParaRPr")]
    return (children[0].start, children[-1].end) if children else (-1, -1)


def items_of(
    part: Part, node: Node, nested: Callable[[Part, Node], None], marks: Marks
) -> Iterator[Run | Group | Range | str]:
    """The runs of an element, and what is between them.

    Args:
        marks: gets each element that has texts.
    """
    return items_among(part, [child for child in node.children if isinstance(child, Node)], nested, marks)


def items_among(
    part: Part, children: list[Node], nested: Callable[[Part, Node], None], marks: Marks
) -> Iterator[Run | Group | Range | str]:
    """The runs among elements, and what is between them; see `items_of`."""
    skipped_until = -1
    for i, child in enumerate(children):
        if child.start < skipped_until or child.local in DROPPED or child.local in PROPERTIES_OF_PARTS:
            continue
        if child.name == f"{part.prefix}r":
            found = field_at(children, i)
            if found and not found.is_link:
                skipped_until = children[found.end].end
                yield part.splicer.raw(child.start, skipped_until)
            elif found and found.text <= found.end:
                skipped_until = children[found.end].end
                start = part.splicer.raw(child.start, children[found.text - 1].end)
                inside = children[found.text : found.end]
                yield Group(start, part.raw(children[found.end]), list(items_among(part, inside, nested, marks)))
            else:
                yield from run_items(part, child, nested, marks)
        elif child.local in WITH_RUNS and any(grandchild.local == "t" for grandchild in child.all("t")):
            inner = child.first("sdtContent") or child if child.local == "sdt" else child
            first = next(iter(inner.elements()), None)  # properties come first
            begin = first.end if first and first.local in ("smartTagPr", "customXmlPr") else inner.inner
            start, end_tag = part.splicer.raw(child.start, begin), part.splicer.raw(inner.inner_end, child.end)
            yield Group(start, end_tag, list(items_of(part, inner, nested, marks)))
        elif child.local.endswith(("RangeStart", "RangeEnd", "bookmarkStart", "bookmarkEnd")):
            kind: Literal["open", "close"] = "open" if child.local.endswith("Start") else "close"
            name = child.local.removesuffix("Start").removesuffix("End")
            yield Range(part.raw(child), kind, f"{name} {child.get('w:id')}")
        elif child.name:
            yield part.marked(child, nested, marks)


PROPERTIES_OF_PARTS = frozenset(("pPr", "endParaRPr", "sdtPr", "smartTagPr", "customXmlPr"))
"""Elements of a paragraph that are no part of its text."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field among the elements of a paragraph."""

    text: int
    """Index of the first element of its text; that of its end if it has none."""
    end: int
    """Index of the run that ends it."""
    is_link: bool


def field_at(children: list[Node], start: int) -> Field | None:
    """The field that a run begins, if it ends among these elements."""
    depth, instructions, text = 0, "", -1
    for i in range(start, len(children)):
        for each in children[i].elements("fldChar", "instrText"):
            if each.local == "instrText":
                instructions += each.text
                continue
            kind = each.get("w:fldCharType")
            depth += 1 if kind == "begin" else -1 if kind == "end" else 0
            if kind == "separate" and depth == 1:
                text = i + 1
        if depth == 0:
            return Field(text if text > 0 else i, i, "HYPERLINK" in instructions) if i > start else None
    return None


def run_items(part: Part, run: Node, nested: Callable[[Part, Node], None], marks: Marks) -> Iterator[Run | str]:
    """The texts of a run, and what else it has, each as a run of its own."""
    properties = run.first("rPr")
    format = PROOFING.sub(b"", part.raw(properties).encode()).decode() if properties else ""
    format = "" if re.fullmatch(r"<\w+:rPr\s*/>|<\w+:rPr>\s*</\w+:rPr>", format) else format
    for child in run.elements():
        if child.local == "t":
            if child.text:
                yield Run(child.text, format)
        elif child.local == "noBreakHyphen":
            yield Run("-", format)
        elif child.local not in DROPPED and child is not properties:
            yield f"<{part.prefix}r>{format}{part.marked(child, nested, marks)}</{part.prefix}r>"


def usual_format(items: Items) -> str | None:
    """The format of most characters; None without text."""
    counts: Counter[str] = Counter()

    def count(items: Items) -> None:
        for item in items:
            if isinstance(item, Run):
                counts[item.format] += len(item.text)
            elif isinstance(item, Group):
                count(item.items)

    count([item for item in items if isinstance(item, Run)])
    if not counts:
        count(items)
    return counts.most_common(1)[0][0] if counts else None


def is_other(item: Run | Group | Range | str) -> bool:
    """Whether an item is neither text nor a break."""
    return isinstance(item, str) and not BREAK.fullmatch(item)


def ends_a_run(results: list[str | Code]) -> bool:
    """Whether the last part is the end of a run of another format than the usual one."""
    return bool(results) and isinstance(last := results[-1], Code) and last.kind == "close" and last.pair[:4] == "run "


def codes_of(items: Items, usual: str, open_run: str, close_run: str) -> list[str | Code]:
    """The text of runs with codes, within a run of the usual format.

    Args:
        open_run: the beginning of a run, with `%s` in place of its format.
    """
    results: list[str | Code] = []
    for i, item in enumerate(items):
        if isinstance(item, Range):
            raw = close_run + item.raw + open_run.replace("%s", usual)
            results.append(Code(raw, item.kind, item.pair, is_mark=True))
        elif isinstance(item, str) and BREAK.fullmatch(item):
            results.append(Code(close_run + item + open_run.replace("%s", usual), is_break=True))
        elif isinstance(item, str) and i and is_other(items[i - 1]):
            last = results.pop()  # what follows each other stays so
            assert isinstance(last, Code)
            begun = last.raw.removesuffix(open_run.replace("%s", usual))
            results.append(Code(begun + item + open_run.replace("%s", usual)))
        elif isinstance(item, str):
            results.append(Code(close_run + item + open_run.replace("%s", usual)))
        elif isinstance(item, Group):
            own = usual_format(item.items) or ""
            key = f"group {i} {len(results)}"
            results += [
                Code(close_run + item.start + open_run.replace("%s", own), "open", key),
                *codes_of(item.items, own, open_run, close_run),
                Code(close_run + item.end + open_run.replace("%s", usual), "close", key),
            ]
        elif item.format == usual:
            results.append(item.text)
        elif i and isinstance(before := items[i - 1], Run) and before.format == item.format and ends_a_run(results):
            results.insert(len(results) - 1, item.text)  # one text in several runs
        elif not item.text.strip():
            results.append(item.text)
        else:
            key = f"run {i} {len(results)}"
            results += [
                Code(close_run + open_run.replace("%s", item.format), "open", key),
                item.text,
                Code(close_run + open_run.replace("%s", usual), "close", key),
            ]
    return merged(results)
