"""The texts of a document and their translations as a file of two languages, for review in another program."""

import html
from collections.abc import Mapping, Sequence
from typing import Literal

from glassformer.documents.document import Document, Entry, Piece, Segment
from glassformer.documents.escaping import escaped
from glassformer.documents.origin import Origin, Quality
from glassformer.documents.tmx import TMX_END, tmx_start
from glassformer.documents.xliff import target_tag

Exchange = Literal["tmx", "xliff"]
"""A format of two languages."""

SUFFIXES: Mapping[Exchange, str] = {"tmx": ".tmx", "xliff": ".xlf"}


def exchanged(
    to: Exchange,
    name: str,
    languages: tuple[str, str],
    texts: Sequence[str],
    translations: Sequence[str],
    origins: Sequence[Origin],
) -> bytes:
    """A file of texts and translations, each once, without tags. A memory has none that a person has to check.

    Args:
        name: that of the document.
        languages: source and target language.
    """
    rows = {
        (text, translation): origin
        for text, translation, origin in zip(texts, translations, origins, strict=True)
        if text.strip()
    }
    source, target = map(html.escape, languages)
    pieces: list[Piece]
    if to == "tmx":
        entries = [tmx_tu(text, source, target) for text, _ in rows]
        pieces = [tmx_start(languages[0]), *entries, TMX_END]
    else:
        start = (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'
            f'<file original="{html.escape(name)}" source-language="{source}" target-language="{target}"'
            ' datatype="plaintext">\n<body>\n'
        )
        entries = [trans_unit(number, text) for number, (text, _) in enumerate(rows, 1)]
        pieces = [start, *entries, "</body>\n</file>\n</xliff>\n"]
    return Document(pieces, "html").render([translation for _, translation in rows], origins=[*rows.values()])


def tmx_tu(text: str, source: str, target: str) -> Entry:
    """An entry of a memory.

    Args:
        source, target: the languages.
    """
    start = f'<tu><tuv xml:lang="{source}"><seg>{escaped(text, "html")}</seg></tuv><tuv xml:lang="{target}"'
    return Entry("", "empty", (start, Quality("creator"), "><seg>", Segment(text), "</seg></tuv></tu>\n"))


def trans_unit(number: int, text: str) -> Entry:
    """A unit of XLIFF 1.2."""
    start = f'<trans-unit id="{number}" xml:space="preserve">\n<source>{escaped(text, "html")}</source>\n'
    end = "</target>", Quality("proposal"), "\n</trans-unit>\n"
    return Entry("", "empty", (start, *target_tag("<target>"), Segment(text), *end))
