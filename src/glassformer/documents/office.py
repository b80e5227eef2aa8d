"""Files of Word, PowerPoint and Excel (OOXML)."""

import html
import re
from collections.abc import Iterator

from glassformer.documents.codes import Code, flowing, merged
from glassformer.documents.document import Document, Language
from glassformer.documents.package import Package, files_of, open_package
from glassformer.documents.part import Part, read_texts
from glassformer.documents.runs import Items, Run, codes_of, read_formats, read_part, usual_format
from glassformer.documents.xml import Node
from glassformer.errors import CorpusError

WORD = re.compile(r"word/(?:document|header\d*|footer\d*|footnotes|endnotes|comments|glossary/document)\d*\.xml")
SLIDES = re.compile(r"ppt/(?:slides|notesSlides|slideLayouts|slideMasters)/\w+\.xml")
CHARTS = re.compile(
    r"(?:word|ppt|xl)/(?:charts/(?:chart|chartEx)\d*|diagrams/(?:data|drawing)\d*|drawings/drawing\d*)\.xml"
)
CHART_LABELS = ("strCache", "strLit", "multiLvlStrCache")
"""Names of series and categories of a chart as it shows them."""
CHART_TABLES = re.compile(r"(?:word|ppt)/embeddings/.*\.xls[xbm]?")
COMMENTS = re.compile(r"(?:ppt/comments|xl/threadedComments)/\w+\.xml")
CELLS = re.compile(r"xl/(?:sharedStrings|(?:comments/)?comments?\d*|worksheets/sheet\d+)\.xml")
SHEET_TEXT = re.compile(rb'"inlineStr"|<(?:odd|even|first)(?:Header|Footer)>')
"""What a sheet has that has texts of its own; others have only references to texts, and may be large."""

PROPERTIES = "docProps/core.xml"
STYLES = re.compile(r"word/(?:styles|settings)\.xml")
FORMATS_OF_SLIDES = re.compile(r"ppt/(?:presentation|(?:notesMasters|handoutMasters|theme)/\w+)\.xml")
LANGUAGE = re.compile(r'\sw:val=("[^"]*")')
SIGNATURES = ("_xmlsignatures/", "META-INF/documentsignatures.xml")
MACROS = ("vbaProject.bin",)


def read_office(name: str, data: bytes) -> Package:
    """A document, a presentation or a workbook: sentences of all that a reader sees, with formats as codes.

    Raises:
        CorpusError: encrypted, damaged, or of another type.
    """
    with open_package(name, data) as archive:
        files = dict(files_of(name, archive))
    if not any(each.startswith(("word/", "ppt/", "xl/")) for each in files):
        raise CorpusError(
            f"{name}: not what its suffix says: an archive without word/, ppt/ or xl/."
            "\n  Give it the suffix of its format, or save it again."
        )
    headers = {text for each, content in files.items() if "xl/tables/" in each for text in table_headers(each, content)}
    parts: dict[str, Document] = {}
    for each, content in files.items():
        document = read_file(f"{name}: {each}", each, content, headers)
        if document and (
            document.segments or document.attributes or any(isinstance(p, Language) for p in document.pieces)
        ):
            parts[each] = document
    return Package(parts, tuple(notes(files, headers)))


def notes(files: dict[str, bytes], headers: set[str]) -> Iterator[str]:
    """What a person should know."""
    if any(each.startswith(SIGNATURES) for each in files):
        yield "was signed: the signature is not valid any more"
    if any(each.endswith(MACROS) for each in files):
        yield "has macros, which are copied"
    if any(b"<w:del " in data or b"<w:ins " in data for each, data in files.items() if WORD.fullmatch(each)):
        yield "has tracked changes: inserted text is translated, deleted text stays"
    if any(map(CHART_TABLES.fullmatch, files)):
        yield "has embedded tables, such as those of charts (they stay): a chart has them again when it is edited"
    if compared := compared_texts(files) - headers:
        yield (
            f"{len(compared)} texts of cells are compared in formulas, lists of values or filters, which stay: "
            + ", ".join(sorted(compared)[:3])
        )
    if headers:
        yield f"{len(headers)} names of columns of tables are not translated, because formulas may use them"


NAMESPACES = {
    prefix: re.compile(rf"""\sxmlns(?::([\w.-]+))?=["'][^"']*/{vocabulary}/(?:2006/)?main["']""".encode())
    for prefix, vocabulary in (("w", "wordprocessingml"), ("a", "drawingml"))
}
"""Usual prefix of the elements of text -> the declaration of their namespace, with the prefix that a file has."""


def check_prefix(where: str, data: bytes, prefix: str) -> None:
    """Check that the elements of text have the usual prefix.

    Raises:
        CorpusError: they have another.
    """
    found = {name.decode() for name in NAMESPACES[prefix].findall(data)}
    if found and prefix not in found:
        raise CorpusError(
            f"{where}: its elements have the prefix {min(found)!r} in place of {prefix!r}.\n"
            "  Save the file again with Word, PowerPoint or LibreOffice."
        )


def read_file(where: str, name: str, data: bytes, headers: set[str]) -> Document | None:
    """A file of the package; None if it has no texts.

    Raises:
        CorpusError: its elements have another prefix than Office writes.
    """
    if WORD.fullmatch(name):
        check_prefix(where, data, "w")
        return read_part(where, data, "w:", "w:p")
    if SLIDES.fullmatch(name) or CHARTS.fullmatch(name):
        check_prefix(where, data, "a")
        is_template = "slideLayouts" in name or "slideMasters" in name
        labels = () if name.startswith("xl/") else CHART_LABELS  # in Excel, they are those of cells
        return read_part(where, data, "a:", "a:p", is_placeholder if is_template else None, labels)
    if COMMENTS.fullmatch(name):
        return read_texts(where, data, ("text",))
    if has_cells(name, data):
        return read_cells(where, data, headers)
    if name == PROPERTIES:
        return read_texts(where, data, ("title", "subject", "description", "keywords", "category"))
    if STYLES.fullmatch(name):
        return read_languages(where, data)
    if FORMATS_OF_SLIDES.fullmatch(name):
        check_prefix(where, data, "a")
        return read_formats(where, data)
    return None


def has_cells(name: str, data: bytes) -> bool:
    """Whether a file of a workbook has texts of cells, and not only references to them."""
    return bool(CELLS.fullmatch(name) and (not name.startswith("xl/worksheets/") or SHEET_TEXT.search(data)))


def is_placeholder(node: Node) -> bool:
    """Whether a shape of a layout only shows where text of slides is."""
    return node.local == "sp" and any(True for _ in node.all("ph"))


def read_languages(where: str, data: bytes) -> Document:
    """The languages of the styles of a document."""
    part = Part.parse(where, data)
    for node in part.root.all("lang", "themeFontLang"):
        part.put_language(node, LANGUAGE)
    return part.document()


def table_headers(where: str, data: bytes) -> set[str]:
    """Names of the columns of a table, which are texts of cells too."""
    return {one_line(node.get("name")) for node in Part.parse(where, data).root.all("tableColumn")}


def one_line(text: str) -> str:
    """A text of a cell without the escapes of Excel, in one line."""
    return " ".join(CELL_ESCAPE.sub(lambda match: chr(int(match[1], 16)), text).split())


def read_cells(where: str, data: bytes, headers: set[str]) -> Document:
    """Texts of cells and of their comments: of one format, or runs of several; and the header and footer of a sheet."""
    part = Part.parse(where, data)
    for node in part.root.all("si", "is", "text"):
        runs = list(node.elements("r"))
        texts = list(node.elements("t"))
        text = one_line("".join(run.text for run in (*runs, *texts)))
        if text in headers:
            continue
        if runs:
            place_runs(part, runs)
        elif len(texts) == 1 and any(map(str.isalpha, text)):
            part.put(texts[0].inner, texts[0].inner_end, flowing(with_breaks([texts[0].text]), "html"))
    for node in part.root.all("oddHeader", "oddFooter", "evenHeader", "evenFooter", "firstHeader", "firstFooter"):
        part.put(node.inner, node.inner_end, flowing(header_content(node.text), "html"))
    return part.document()


SHEET = re.compile(r"xl/(?:worksheets/sheet|tables/table)\d+\.xml")
COMPARES = re.compile(r"<(?:\w+:)?(?:f|formula[12]?)\b[^>]*>([^<]*)</|<(?:\w+:)?filter\b[^>]*\bval=(\"[^\"]*\")")
"""A formula, a list of allowed values, or a value of a filter."""
LITERAL = re.compile('"([^"]+)"')


def compared_texts(files: dict[str, bytes]) -> set[str]:
    """Texts in formulas, lists of allowed values and filters of a workbook that are texts of cells too."""
    compared: set[str] = set()
    for name, data in files.items():
        for match in COMPARES.finditer(data.decode(errors="replace")) if SHEET.fullmatch(name) else ():
            for literal in LITERAL.findall(html.unescape(match[1] or match[2] or "")):
                compared.update((literal, *literal.split(",")))
    cells: set[str] = set()
    for name, data in files.items():
        if compared and has_cells(name, data):
            texts = Part.parse(name, data).root.all("si", "is")
            cells.update(one_line("".join(text.text for text in node.all("t"))) for node in texts)
    return {text for text in compared & cells if any(map(str.isalpha, text))}


def with_breaks(content: list[str | Code]) -> list[str | Code]:
    """The content of a cell with its line ends as codes."""
    results: list[str | Code] = []
    for part in content:
        if isinstance(part, str):
            pieces = LINE_END.split(part)  # every other one is a line end
            results += [Code(piece, is_break=True) if i % 2 else piece for i, piece in enumerate(pieces) if piece]
        else:
            results.append(part)
    return results


LINE_END = re.compile(r"((?:_x000D_)?\n)")
CELL_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")
HEADER_CODE = re.compile(r'&(?:[LCRPNDTFAGZBIUESXYOH]|"[^"]*"|K[0-9A-Fa-f]{6}|K\d\d[+-]\d{3}|\d{1,3}|&)')


def header_content(text: str) -> list[str | Code]:
    """The header of a sheet: codes such as that of the page number, and texts."""
    results: list[str | Code] = []
    position = 0
    for match in HEADER_CODE.finditer(text):
        results += [text[position : match.start()], Code(match[0].replace("&", "&amp;").replace('"', "&quot;"))]
        position = match.end()
    return merged([part for part in [*results, text[position:]] if part != ""])


def place_runs(part: Part, runs: list[Node]) -> None:
    """Put the sentences of a cell with several formats."""
    items: Items = []
    for run in runs:
        properties, text = run.first("rPr"), run.first("t")
        items.append(Run(text.text if text else "", part.raw(properties) if properties else ""))
    usual = usual_format(items) or ""
    prefix = runs[0].name.removesuffix("r")
    open_run, close_run = f'<{prefix}r>%s<{prefix}t xml:space="preserve">', f"</{prefix}t></{prefix}r>"
    content = codes_of(items, usual, open_run, close_run)
    pieces = (open_run.replace("%s", usual), *flowing(with_breaks(content), "html"), close_run)
    part.put(runs[0].start, runs[-1].end, pieces)
