"""Glossaries in TBX (ISO 30042), versions 2 and 3."""

from collections.abc import Iterator

from glassformer.documents.codes import plain
from glassformer.documents.languages import best_match
from glassformer.documents.markup import content_of
from glassformer.documents.xml import Node, decode_xml, parse
from glassformer.errors import CorpusError

UNWANTED = ("deprecated", "superseded", "obsolete", "rejected")
"""What the administrative status of a term that should not be used begins with."""


def tbx_terms(name: str, data: bytes, languages: tuple[str, str]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The concepts with terms in both languages: the terms of the source language, and those of the target language
    without deprecated ones.

    Args:
        languages: source and target language.

    Raises:
        CorpusError: not well-formed, not TBX, or without the languages.
    """
    text, _ = decode_xml(name, data)
    root, _ = parse(name, text)
    if root.local not in ("martif", "tbx"):
        raise CorpusError(
            f"{name}: not a glossary in TBX: its first element is <{root.name}>, not <tbx> or <martif>."
            "\n  Export it as TBX, or as a table: TSV or CSV."
        )
    results, known = [], set[str]()
    for concept in (node for kind in ("termEntry", "conceptEntry") for node in root.all(kind)):
        sections = [node for kind in ("langSet", "langSec") for node in concept.elements(kind)]
        codes = tuple(section.get("xml:lang") for section in sections)
        known.update(filter(None, codes))
        found = [best_match(codes, language) for language in languages]
        if found[0] is None or found[1] is None or found[0] == found[1]:
            continue
        sources = tuple(term for term, _ in terms_of(sections[found[0]]))
        targets = tuple(term for term, is_wanted in terms_of(sections[found[1]]) if is_wanted)
        if sources and targets:
            results.append((sources, targets))
    if not results:
        instead = f"; its languages: {', '.join(sorted(known))}" if known else ""
        raise CorpusError(
            f"{name}: no terms in both {languages[0]} and {languages[1]}{instead}."
            "\n  Give a glossary of these languages."
        )
    return results


def terms_of(section: Node) -> Iterator[tuple[str, bool]]:
    """The terms of a language, and whether each may be used in translations."""
    for group in section.elements("tig", "ntig", "termSec"):
        for node in group.all("term"):
            if term := " ".join(plain(content_of(node)).split()):
                yield term, not status_of(group).startswith(UNWANTED)


def status_of(group: Node) -> str:
    """The administrative status of a term; an empty text if it has none."""
    for node in group.all("termNote", "administrativeStatus"):
        if node.local == "administrativeStatus" or node.get("type") == "administrativeStatus":
            return plain(content_of(node)).strip().lower()
    return ""
