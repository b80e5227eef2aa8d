"""Translation memories (TMX 1.1 to 1.4b)."""

import html
import re
from collections.abc import Iterable, Iterator

from glassformer.documents.codes import Content, marked_pair, plain, segments
from glassformer.documents.document import Document, Entry, State
from glassformer.documents.languages import best_match, primary
from glassformer.documents.markup import content_of, opened
from glassformer.documents.origin import Quality
from glassformer.documents.splicer import Splicer
from glassformer.documents.unit import Unit
from glassformer.documents.xml import Node, decode_xml, parse, stream
from glassformer.errors import CorpusError
from glassformer.version import __version__

NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML does not have."""

ALL_LANGUAGES = "*all*"
"""Value of `srclang` of a memory for any direction."""

LANGUAGES_ADVICE = "\n  Name two of them: --languages"
"""Beginning of the remedy for a memory of several languages."""

MACHINE = ("mt", "mt!", "machine", "machine translation")
"""Who has made a translation, if it was no person."""


MAKER = re.compile(r"""\s(?:creation|change)(?:id|date)\s*=\s*(?:"[^"]*"|'[^']*')""")
"""Attributes that say who made a text, and when."""


def read_tmx(name: str, data: bytes, languages: tuple[str, str]) -> Document:
    """A translation memory: the texts of the source language with the place of each in the target language.

    Args:
        languages: source and target language; an empty text for the one that the file says.

    Raises:
        CorpusError: not well-formed, or without the source language.
    """
    text, encoding = decode_xml(name, data)
    root, raw = parse(name, text)
    check_root(name, root)
    header = root.first("header")
    src_language = languages[0] or usual(header.get("srclang") if header else "")
    splicer = Splicer(raw)
    n_found = 0
    for unit in root.all("tu"):
        variants = list(unit.elements("tuv"))
        codes = tuple(map(language_of, variants))
        own = usual(unit.get("srclang"))
        source = best_match(codes, src_language or own) if src_language or own else 0 if variants else None
        if source is None or not (seg := variants[source].first("seg")):
            continue
        content = content_of(seg, raw)
        if not plain(content):
            continue
        n_found += 1
        target = best_match(codes, languages[1]) if languages[1] else (1 - source if len(variants) == 2 else None)
        place = variants[target].first("seg") if target is not None and target != source else None
        inner = segments(content, "html")
        if place:
            state: State = (
                "empty"
                if not plain(content_of(place))
                else "fuzzy"
                if is_machine(variants[target or 0])
                else "translated"
            )
            variant = variants[target or 0]
            tag = MAKER.sub("", splicer.raw(variant.start, variant.inner)).removesuffix(">")
            start = ">" + splicer.raw(variant.inner, place.start) + opened(splicer.raw(place.start, place.inner))
            made = (tag, Quality("creator"), start, *inner, f"</{place.name}>")
            splicer.replace(variant.start, place.end, Entry(splicer.raw(variant.start, place.end), state, made))
        elif languages[1]:
            variant = variants[source]
            attribute = "xml:lang" if "xml:lang" in variant.attributes or "lang" not in variant.attributes else "lang"
            start = f'{splicer.space_before(variant)}<{variant.name} {attribute}="{html.escape(languages[1])}"'
            end = f"</{seg.name}></{variant.name}>"
            entry = Entry("", "empty", (start, Quality("creator"), f"><{seg.name}>", *inner, end))
            splicer.replace(variant.end, variant.end, entry)
    if not n_found and found_instead(root) and not has_language(root, src_language):
        raise CorpusError(f"{name}: no text in {src_language or 'any language'}{found_instead(root)}.")
    return Document(splicer.pieces(), "html", encoding, languages=(src_language, languages[1]))


def has_language(root: Node, code: str) -> bool:
    """Whether a memory has texts of a language."""
    return best_match(tuple(language_of(variant) for variant in root.all("tuv")), code) is not None


def found_instead(root: Node) -> str:
    """The languages of a memory, for messages."""
    codes = sorted({language_of(variant) for variant in root.all("tuv")})
    return f"; its languages: {', '.join(codes)}" if codes else ""


def check_root(name: str, root: Node) -> None:
    """Check that XML is a memory.

    Raises:
        CorpusError: it is not.
    """
    if root.local != "tmx":
        raise CorpusError(
            f"{name}: not a translation memory: its first element is <{root.name}>, not <tmx>."
            "\n  Export it as TMX, or give it the suffix of its format."
        )


def usual(code: str) -> str:
    """A language code; an empty text for any language."""
    return "" if code.lower() == ALL_LANGUAGES else code


def language_of(variant: Node) -> str:
    """The language of a text."""
    return variant.get("xml:lang") or variant.get("lang")


def is_machine(node: Node) -> bool:
    """Whether a text was translated by a machine, by what the memory says."""
    makers = [node.attributes[name] for name in ("creationid", "changeid") if name in node.attributes]
    makers += [p.text for p in node.elements("prop") if p.get("type").lower() in ("x-mt", "mt", "x-origin", "x-is-mt")]
    makers = [maker.strip().lower() for maker in makers if maker.strip()]
    return any(maker in MACHINE or maker.startswith("mt!") for maker in makers[-1:] or makers)


def tmx_units(name: str, chunks: Iterable[bytes], languages: tuple[str, str]) -> Iterator[Unit]:
    """The texts of a memory in two languages, in constant memory.

    Args:
        languages: source and target language; an empty text for the one that the file says, or that alone remains.

    Raises:
        CorpusError: not well-formed; or not known which languages.
    """
    src_language, tgt_language = languages
    number = 0
    for node in stream(name, chunks, ("header", "tu")):
        if node.local == "header":
            src_language = src_language or usual(node.get("srclang"))
            continue
        if node.local != "tu":
            check_root(name, node)
            continue
        number += 1
        variants = list(node.elements("tuv"))
        codes = tuple(map(language_of, variants))
        if not src_language:
            src_language = usual(node.get("srclang")) or (codes[0] if codes else "")
        source = best_match(codes, src_language)
        others = [code for i, code in enumerate(codes) if i != source]
        if source is not None:  # variants of the source language only if there is no other one
            others = [code for code in others if primary(code) != primary(codes[source])] or others
        if not tgt_language and source is not None and others:
            if len(others) > 1:
                raise CorpusError(
                    f"{name}: texts in {len(codes)} languages: {', '.join(codes)}."
                    f"{LANGUAGES_ADVICE} {codes[source]} {others[0]}"
                )
            tgt_language = others[0]
        target = best_match(codes, tgt_language) if tgt_language else None
        target = None if target == source else target
        contents = [content_in(variants[i]) if i is not None else () for i in (source, target)]
        src, tgt = map(plain, contents)
        state: State = "empty"
        if target is not None and src and tgt:
            state = "fuzzy" if is_machine(variants[target]) or is_machine(node) else "translated"
        yield Unit(src, tgt, state, number, (src_language, tgt_language), marked_pair(*contents))


TMX_END = "</body>\n</tmx>\n"


def tmx_start(src_language: str) -> str:
    """The beginning of a memory."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n<header creationtool="glassformer"'
        f' creationtoolversion="{__version__}" segtype="sentence" o-tmf="glassformer" adminlang="en"'
        f' srclang="{html.escape(src_language)}" datatype="plaintext"/>\n<body>\n'
    )


def tmx_entry(src: str, tgt: str, languages: tuple[str, str]) -> str:
    """A text and its translation in a memory, without a line end."""
    variants = (
        f'<tuv xml:lang="{html.escape(language)}"><seg>{html.escape(NOT_XML.sub("", text), quote=False)}</seg></tuv>'
        for language, text in zip(languages, (src, tgt), strict=True)
    )
    return f"<tu>{''.join(variants)}</tu>"


def content_in(variant: Node) -> Content:
    """The text of a variant, with its codes."""
    seg = variant.first("seg")
    return content_of(seg) if seg else ()
