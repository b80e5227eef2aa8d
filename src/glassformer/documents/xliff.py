"""XLIFF 1.2 and 2."""

import html
from collections.abc import Iterator

from glassformer.documents.codes import marked_pair, plain, segments
from glassformer.documents.document import Document, Entry, Segment, State
from glassformer.documents.languages import best_match, differing, is_swapped
from glassformer.documents.markup import content_of, opened, with_attribute, without_prefix
from glassformer.documents.origin import MEMORY, Either, Quality
from glassformer.documents.splicer import Splicer
from glassformer.documents.unit import Unit
from glassformer.documents.xml import Node, decode_xml, parse
from glassformer.errors import CorpusError

FINAL_STATES = frozenset(("final", "signed-off", "reviewed"))
OPEN_STATES = frozenset(("new", "needs-translation"))
"""States of a target that is a copy of the source or nothing."""
MACHINE_QUALIFIERS = frozenset(("mt-suggestion", "leveraged-mt", "fuzzy-match", "id-match", "leveraged-glossary"))


CONFIRMED = frozenset(("Translated", "ApprovedTranslation", "ApprovedSignOff"))
"""States of a segment of Trados that a person has confirmed."""


def read_xliff(name: str, data: bytes, languages: tuple[str, str]) -> Document:
    """A file in XLIFF: the sources, each with the position of its target.

    Args:
        languages: source and target language; an empty text for the one that the file says.

    Raises:
        CorpusError: not well-formed, not XLIFF, of several languages, or a unit with two targets.
    """
    text, encoding = decode_xml(name, data)
    root, raw = parse(name, text)
    splicer = Splicer(raw)
    for unit, source, target in units_of(name, root, raw):
        content = content_of(source, raw)
        if not plain(content):
            continue
        if unit.local == "segment":
            place_in_segment(splicer, unit, source, target, languages[1])
        else:
            place_in_unit(splicer, unit, source, target, languages[1])
    found = languages_of(name, root)
    for node, attribute in ((root, "trgLang"), *((file, "target-language") for file in root.elements("file"))):
        is_missing = node.get("srcLang" if node is root else "source-language") and not node.get(attribute)
        if is_missing and languages[1]:
            tag = splicer.raw(node.start, node.inner)
            splicer.replace(node.start, node.inner, with_attribute(tag, attribute, html.escape(languages[1])))
    return Document(splicer.pieces(), "html", encoding, languages=found)


def languages_of(name: str, root: Node) -> tuple[str, str]:
    """The languages that a document names; an empty text for one that it does not.

    Raises:
        CorpusError: the files in it are of several languages.
    """
    found = [
        (root.get("srcLang") or file.get("source-language"), root.get("trgLang") or file.get("target-language"))
        for file in list(root.elements("file")) or [root]
    ]
    for other in found:
        if differing(found[0], other):
            both = " and ".join(f"from {src or '?'} to {tgt or '?'}" for src, tgt in (found[0], other))
            raise CorpusError(f"{name}: files {both} in one document.\n  Make a document of each.")
    return found[0]


def units_of(name: str, root: Node, data: bytes) -> Iterator[tuple[Node, Node, Node | None]]:
    """Each unit (1.2) or segment (2) that is to be translated, its source and its target.

    Raises:
        CorpusError: a unit with two targets; or not XLIFF.
    """
    if root.local != "xliff":
        raise CorpusError(
            f"{name}: not XLIFF: its first element is <{root.name}>, not <xliff>."
            "\n  Export it as XLIFF, or give it the suffix of its format."
        )

    def units(node: Node, *, is_kept: bool) -> Iterator[Node]:
        for child in node.elements():
            kept = is_kept if not child.get("translate") else child.get("translate") == "no"
            if child.local in ("trans-unit", "segment"):
                if not kept:
                    yield child
            elif child.local in ("file", "body", "group", "unit"):
                yield from units(child, is_kept=kept)

    for unit in units(root, is_kept=False):
        source = unit.first("source")
        targets = list(unit.elements("target"))
        if len(targets) > 1:
            line = data.count(b"\n", 0, targets[1].start) + 1
            raise CorpusError(f"{name}:{line}: a second <target> in one unit.\n  Remove one of them.")
        if source:
            yield unit, source, targets[0] if targets else None


def state_of(unit: Node, source: Node, target: Node | None) -> State:
    """The state of a target."""
    text = plain(content_of(target)) if target else ""
    if target is None:
        return "empty"
    if unit.get("approved") == "yes" or {target.get("state"), unit.get("state")} & FINAL_STATES:
        return "locked"
    state = target.get("state") or unit.get("state")
    if not text or (state in OPEN_STATES and text == plain(content_of(source))):
        return "empty"
    if state.startswith(("needs", "new", "initial")) or target.get("state-qualifier") in MACHINE_QUALIFIERS:
        return "fuzzy"
    if not is_confirmed(unit):
        return "fuzzy"
    return "translated" if state or unit.local == "trans-unit" else "fuzzy"


def is_confirmed(unit: Node) -> bool:
    """Whether a person has confirmed a unit, by what the programs of Trados, memoQ and Phrase add to XLIFF; true for
    others."""
    own = {name.rpartition(":")[2]: value for name, value in unit.attributes.items() if ":" in name}
    if "confirmed" in own:  # Phrase
        return own["confirmed"] == "1"
    if "status" in own:  # memoQ
        return own["status"].endswith(("Confirmed", "ProofRead", "Proofread"))
    segments = [node for definitions in unit.elements("seg-defs") for node in definitions.elements("seg")]  # Trados
    return all(node.get("conf") in CONFIRMED for node in segments)


def start_of_target(splicer: Splicer, target: Node | None, prefix: str, language: str) -> str:
    """The start tag of a target, which names no other language than that of the translation."""
    if target is None:
        return f"<{prefix}target>"
    tag = opened(splicer.raw(target.start, target.inner))
    own = target.attributes.get("xml:lang")
    is_other = own is not None and language and best_match((own,), language) is None
    return with_attribute(tag, "xml:lang", html.escape(language)) if is_other else tag


def place_in_unit(splicer: Splicer, unit: Node, source: Node, target: Node | None, language: str) -> None:
    """Put the target of a unit of XLIFF 1.2."""
    segmented = unit.first("seg-source")
    pieces = segmented_pieces(splicer, segmented) if segmented else segments(content_of(source, splicer.data), "html")
    prefix = source.name.removesuffix("source")
    tag = start_of_target(splicer, target, prefix, language)
    inner = (*target_tag(without_prefix(tag, "its")), *pieces, f"</{prefix}target>", Quality("proposal", prefix))
    if target:
        proposals = (each for each in unit.elements("alt-trans") if each.get("origin") == MEMORY)
        end = next((each.end for each in proposals if each.start == target.end), target.end)  # of an earlier run
        kept = splicer.raw(target.start, end)
        splicer.replace(target.start, end, Entry(kept, state_of(unit, source, target), inner))
    else:
        end = segmented.end if segmented else source.end
        splicer.replace(end, end, Entry("", "empty", (splicer.space_before(source), *inner)))


VALUE = "\1"
"""The value of an attribute until it is known: a character that XML does not have."""


def target_tag(tag: str) -> tuple[Either | Quality | str, ...]:
    """The start tag of a target of XLIFF 1.2, which says where the translation comes from."""
    states = "translated", "needs-translation"
    return with_origin(tag, states, "state-qualifier", Quality("qualifier"), Quality("confidence"))


def with_origin(
    tag: str, states: tuple[str, str], attribute: str, origin: Quality, *more: Quality
) -> tuple[Either | Quality | str, ...]:
    """A start tag with attributes that say where the translation comes from.

    Args:
        states: the value of `state` for a translation, and for one that a person has to check.
        attribute: name of the attribute of the origin.
        more: other attributes.
    """
    tags = [with_attribute(with_attribute(tag, "state", state), attribute, VALUE) for state in states]
    befores, afters = zip(*(each.removesuffix(">").split(VALUE) for each in tags), strict=True)
    return Either(*befores), origin, Either(*afters), *more, ">"


def segmented_pieces(splicer: Splicer, node: Node) -> list[str | Segment]:
    """The pieces of a source that is divided into segments."""
    inner = Splicer(splicer.data)
    marks = [mark for mark in node.all("mrk") if mark.get("mtype") == "seg" and plain(content_of(mark))]
    for mark in marks or [node]:
        inner.replace(mark.inner, mark.inner_end, *segments(content_of(mark, splicer.data), "html"))
    return [piece for piece in inner.pieces(node.inner, node.inner_end) if isinstance(piece, str | Segment)]


def place_in_segment(splicer: Splicer, unit: Node, source: Node, target: Node | None, language: str) -> None:
    """Put the target of a segment of XLIFF 2, and its state."""
    prefix = source.name.removesuffix("source")
    tag = splicer.raw(unit.start, unit.inner)
    start = start_of_target(splicer, target, prefix, language)
    before = (
        splicer.raw(unit.inner, target.start)
        if target
        else splicer.raw(unit.inner, source.end) + splicer.space_before(source)
    )
    after = splicer.raw(target.end if target else source.end, unit.end)
    texts = segments(content_of(source, splicer.data), "html")
    tags = with_origin(tag, ("translated", "initial"), "subState", Quality("sub-state"))
    pieces = (*tags, before, start, *texts, f"</{prefix}target>", after)
    entry = Entry(splicer.raw(unit.start, unit.end), state_of(unit, source, target), pieces)
    splicer.replace(unit.start, unit.end, entry)


def xliff_units(name: str, data: bytes, languages: tuple[str, str]) -> Iterator[Unit]:
    """The texts of a file with their translations.

    Args:
        languages: source and target language; an empty text for the one that the file says.

    Raises:
        CorpusError: not well-formed, not XLIFF, or a unit with two targets; not these languages.
    """
    text, _ = decode_xml(name, data)
    root, raw = parse(name, text)
    found = languages_of(name, root)
    swapped = is_swapped(name, found, languages)
    found = found[::-1] if swapped else found
    line = position = 0
    for unit, source, target in units_of(name, root, raw):
        line += raw.count(b"\n", position, source.start)
        position = source.start
        state = state_of(unit, source, target)
        contents = [content_of(source), content_of(target) if target and state != "empty" else []]
        if swapped:
            contents.reverse()
        src, tgt = map(plain, contents)
        yield Unit(src, tgt, state, line + 1, found, marked_pair(*contents), swapped)
