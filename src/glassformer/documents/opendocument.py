"""OpenDocument (Writer, Calc, Impress) and EPUB."""

import re

from glassformer.documents.codes import Code, flowing
from glassformer.documents.document import Document
from glassformer.documents.package import Package, files_of, open_package
from glassformer.documents.part import Marks, Part, read_texts
from glassformer.documents.spans import TAG
from glassformer.documents.xml import Node
from glassformer.errors import CorpusError

PARAGRAPHS = frozenset(("text:p", "text:h"))
AROUND_TEXT = frozenset(("text:span", "text:a", "text:meta", "text:ruby", "text:ruby-base", "text:placeholder"))
NOT_TRANSLATED = frozenset(("text:tracked-changes", "office:forms", "office:scripts", "text:table-of-content-source"))
BREAKS = frozenset(("text:line-break", "text:tab"))
CONTENT: tuple[str, ...] = ("content.xml", "styles.xml")
PROPERTIES = ("title", "subject", "description", "keyword")
PROMPTS = frozenset(("title", "subtitle", "outline", "text", "notes"))
"""Shapes of a master page that only show where text of slides is."""

DESCRIPTIONS = frozenset(("svg:title", "svg:desc"))
LANGUAGE = re.compile(r'\s(?:fo|number):language=("[^"]*")')
XML_LANGUAGE = re.compile(r"""\sxml:lang=("[^"]*"|'[^']*')""")
COUNTRY = re.compile(r'\s(?:fo|number):country=("[^"]*")')
SIGNATURE = "META-INF/documentsignatures.xml"


def read_opendocument(name: str, data: bytes) -> Package:
    """A file of LibreOffice: sentences of its paragraphs, with formats as codes.

    Raises:
        CorpusError: encrypted, damaged, or of another type.
    """
    with open_package(name, data) as archive:
        files = dict(files_of(name, archive))
    if not files.keys() & set(CONTENT):
        raise CorpusError(
            f"{name}: not what its suffix says: an archive without content.xml."
            "\n  Give it the suffix of its format, or save it again."
        )
    if b"manifest:encryption-data" in files.get("META-INF/manifest.xml", b""):
        raise CorpusError(f"{name}: encrypted.\n  Remove the password, and save it again.")
    names = [each for each in files if each in CONTENT or each.endswith("/content.xml")]  # of a chart
    parts = {each: read_content(f"{name}: {each}", files[each]) for each in names}
    if "meta.xml" in files:
        parts["meta.xml"] = read_texts(f"{name}: meta.xml", files["meta.xml"], PROPERTIES)
    found = []
    if SIGNATURE in files:
        found.append("was signed: the signature is not valid any more")
    if b"<text:tracked-changes" in files.get("content.xml", b""):
        found.append("has tracked changes: inserted text is translated, deleted text stays")
    return Package(parts, tuple(found))


def read_content(where: str, data: bytes) -> Document:
    """The paragraphs of a file, and the languages of its styles."""
    part = Part.parse(where, data)
    paragraphs(part, part.root)
    return part.document()


def paragraphs(part: Part, node: Node) -> None:
    """Put the segments of all paragraphs within an element."""
    for child in node.elements():
        is_prompt = node.local == "master-page" and child.get("presentation:class") in PROMPTS
        is_computed = child.local == "table-cell" and child.get("table:formula")
        if child.name in NOT_TRANSLATED or is_prompt or is_computed:
            continue
        if child.name in PARAGRAPHS:
            place_paragraph(part, child)
        elif child.name in DESCRIPTIONS:
            part.put_text(child)
        else:
            if child.local == "text-properties":
                part.put_language(child, LANGUAGE, COUNTRY)
            paragraphs(part, child)


def place_paragraph(part: Part, node: Node) -> None:
    """Put the segments of a paragraph."""
    if not any(map(str.isalpha, own_text(node))):
        paragraphs(part, node)
        return
    marks: Marks = []
    part.put(node.inner, node.inner_end, flowing(content_of(part, node, marks), "html"), marks)


def own_text(node: Node) -> str:
    """The text of a paragraph, without that of paragraphs in it."""
    parts = []
    for child in node.children:
        if isinstance(child, str):
            parts.append(child)
        elif child.name in AROUND_TEXT:
            parts.append(own_text(child))
    return "".join(parts)


def content_of(part: Part, node: Node, marks: Marks) -> list[str | Code]:
    """The content of a paragraph as texts and codes.

    Args:
        marks: gets each element that has texts.
    """
    results: list[str | Code] = []
    for child in node.children:
        if isinstance(child, str):
            results.append(child)
        elif child.name in AROUND_TEXT and any(map(str.isalnum, own_text(child))):
            key = str(child.start)
            results += [
                Code(part.splicer.raw(child.start, child.inner), "open", key),
                *content_of(part, child, marks),
                Code(part.splicer.raw(child.inner_end, child.end), "close", key),
            ]
        else:
            results.append(Code(part.marked(child, paragraphs, marks), is_break=child.name in BREAKS))
    return results


PAGE = re.compile(rb"<html[\s>]")
MAX_BEGINNING = 2000
"""Bytes of a file of XML in which a page of a book begins."""


def read_epub(name: str, data: bytes) -> Package:
    """A book (EPUB): sentences of its pages, of its table of contents, and its title.

    Raises:
        CorpusError: encrypted, damaged, or of another type.
    """
    from glassformer.documents.html import read_html

    with open_package(name, data) as archive:
        files = dict(files_of(name, archive))
    if files.get("mimetype", b"").strip() != b"application/epub+zip":
        raise CorpusError(
            f"{name}: not what its suffix says: its mimetype is not that of EPUB."
            "\n  Give it the suffix of its format, or save it again."
        )
    if "META-INF/encryption.xml" in files and b"EncryptedKey" in files["META-INF/encryption.xml"]:
        raise CorpusError(f"{name}: protected against copying.\n  Get it without protection.")
    parts = {}
    for each, content in files.items():
        is_page = each.lower().endswith((".xhtml", ".html", ".htm"))
        if is_page or (each.lower().endswith(".xml") and PAGE.search(content[:MAX_BEGINNING])):
            parts[each] = read_html(f"{name}: {each}", content)
        elif each.endswith((".ncx", ".opf")):
            parts[each] = read_index(f"{name}: {each}", content)
    return Package(parts)


def read_index(where: str, data: bytes) -> Document:
    """The table of contents of a book, or its properties."""
    part = Part.parse(where, data)
    authors = {text.start for author in part.root.all("docAuthor") for text in author.all("text")}
    for node in part.root.all("text", "title", "description"):
        if node.start not in authors and not TAG.search(node.text):  # descriptions may be HTML
            part.put_text(node)
    part.put_language(part.root, XML_LANGUAGE)
    for node in part.root.all("language"):
        part.put_language_text(node)
    return part.document()
