"""The texts of a document and their translations as a file of two languages, for review in another program."""

import html
from collections.abc import Sequence
from typing import Literal

from glassformer.documents.document import Either, Origin, Quality
from glassformer.documents.tmx import NOT_XML, TMX_END, tmx_entry, tmx_start
from glassformer.documents.xliff import with_origin

Exchange = Literal["tmx", "xliff"]
"""A format of two languages."""

SUFFIXES: dict[Exchange, str] = {"tmx": ".tmx", "xliff": ".xlf"}


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
    if to == "tmx":
        entries = [
            tmx_entry(*pair, languages, Quality("creator").written(origin)) + "\n"
            for pair, origin in rows.items()
            if not origin.is_doubtful
        ]
        return "".join([tmx_start(languages[0]), *entries, TMX_END]).encode()
    attributes = f'source-language="{html.escape(languages[0])}" target-language="{html.escape(languages[1])}"'
    start = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'
        f'<file original="{html.escape(name)}" {attributes} datatype="plaintext">\n<body>\n'
    )
    units = [xliff_unit(number, *pair, origin) for number, (pair, origin) in enumerate(rows.items(), 1)]
    return "".join([start, *units, "</body>\n</file>\n</xliff>\n"]).encode()


def xliff_unit(number: int, text: str, translation: str, origin: Origin) -> str:
    """A unit of XLIFF 1.2."""
    source, target = (html.escape(NOT_XML.sub("", side), quote=False) for side in (text, translation))
    states = "translated", "needs-translation"
    pieces = (
        f'<trans-unit id="{number}" xml:space="preserve">\n<source>{source}</source>\n',
        *with_origin("<target>", states, "state-qualifier", Quality("qualifier"), Quality("confidence")),
        f"{target}</target>",
        Quality("proposal"),
        "\n</trans-unit>\n",
    )
    return "".join(
        (piece.doubtful if origin.is_doubtful else piece.sure)
        if isinstance(piece, Either)
        else piece.written(origin)
        if isinstance(piece, Quality)
        else piece
        for piece in pieces
    )
