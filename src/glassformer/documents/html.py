"""HTML: sentences of its text, with inline tags taken off.

The tokens are those of the WHATWG standard. Texts of attributes (`attributes.TRANSLATED`) are segments too.
"""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from turbohtml import Token, TokenType, tokenize

from glassformer.documents.attributes import marked
from glassformer.documents.codes import MAX_CODES, SENTENCE_END
from glassformer.documents.document import Document, Language, Segment
from glassformer.documents.inline import detach
from glassformer.documents.spans import TAG
from glassformer.documents.text import decode

INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark math nobr q rb rp rt ruby s"  # noqa: SIM905
    " samp small span strike strong sub sup svg time tt u var wbr".split()
)
"""Elements within a sentence. All others separate sentences."""

KEPT = frozenset(
    "script style pre textarea xmp iframe noembed noframes noscript plaintext template object code kbd samp var"  # noqa: SIM905
    " math svg".split()
)
"""Elements that are not translated. What is in noscript is markup or text, depending on the browser's settings."""

FOREIGN = frozenset(("math", "svg"))
"""Elements that `/>` ends. Others begin with such a tag as with any start tag, but in pages in XML."""

ONCE = frozenset(("a", "nobr"))
"""Elements that end where another one of the same name begins."""

VOID = frozenset(
    "area base br col embed hr img input link meta param source track wbr".split()  # noqa: SIM905
)
"""Elements without an end tag."""

COMMENT = next(tokenize("<!---->"))
"""The token of what is kept and is no tag."""

MARKUP = re.compile(r"<[A-Za-z/!?]")
CHARSET = re.compile(
    r"""<meta\b[^<>]*\bcharset\s*=\s*["']?([\w-]+)|<\?xml\b[^<>]*\bencoding\s*=\s*["']([\w-]+)""", re.IGNORECASE
)
"""The encoding that a page declares."""
UTF_8 = ("utf-8", "utf8")
XHTML = re.compile(r"\ufeff?\s*(?:<\?xml|<!DOCTYPE[^>]*XHTML|<html\b[^>]*xmlns=)")
"""The beginning of a page in XML."""
EMPTY = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<(script|style)\b[^<>]*(?<!/)>.*?(?:</\1\s*>|\Z)"
    r"|(?P<empty><(?:script|style|title|textarea|iframe|noscript|noframes|noembed|xmp|plaintext)\b[^<>]*/>)",
    re.DOTALL,
)
"""In XML, an element without content that HTML reads up to its end tag; or what such a tag may be a part of."""
WHITE_SPACE = re.compile(r"[ \t\n\r\f]+")
LINE_BREAK = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the file."""

    raw: str
    kind: str
    """"text"; "tag", inline; or "block", which separates sentences."""
    opens: int = 0
    """1 for a start tag, -1 for an end tag."""
    tag: str = ""


def read_html(name: str, data: bytes) -> Document:
    """HTML, a page or a part of one: each sentence is a segment.

    Raises:
        CorpusError: it is no text, or not in UTF-8 or UTF-16.
    """
    text, encoding = decode(name, data)
    declared = CHARSET.search(text)
    if text.isascii() and declared and (declared[1] or declared[2]).lower() not in UTF_8:
        encoding = "ascii"  # with references to other characters, which any encoding can write
    attributes: list[Segment | Language] = []
    return Document(list(pieces_of(text, attributes)), "html", encoding, tuple(attributes))


def pieces_of(text: str, attributes: list[Segment | Language]) -> Iterator[str | Segment]:
    """The segments of a page, or of a part of one, and what is between them.

    Args:
        attributes: gets the attributes in place of which there are markers.
    """
    run: list[Piece] = []
    for piece in parts(text, attributes):
        if piece.kind == "block":
            yield from segments(run)
            run = []
            yield piece.raw
        else:
            run.append(piece)
    yield from segments(run)


def parts(text: str, attributes: list[Segment | Language]) -> Iterator[Piece]:
    """The parts of a file. Elements that are not translated are one part.

    Args:
        attributes: gets the attributes in place of which the parts have markers.
    """
    is_xml = XHTML.match(text) is not None
    kept: list[str] = []  # the parts of an element that is not translated
    open_tag, depth = "", 0
    for token, raw in slices(text):
        tag = token.tag or ""
        is_empty = tag in VOID or (token.self_closing and (is_xml or tag in FOREIGN))
        if open_tag:
            kept.append(raw)
            if tag == open_tag:
                is_start = token.type == TokenType.START_TAG and not is_empty
                depth += 1 if is_start else -1 if token.type == TokenType.END_TAG else 0
            if depth == 0 and open_tag == "noscript" and not is_complete("".join(kept[1:-1])):
                open_tag, depth = "the rest", 1  # no tag ends it
            elif depth == 0:
                yield Piece("".join(kept), "tag" if open_tag in INLINE else "block")
                open_tag = ""
        elif token.type == TokenType.TEXT:
            yield Piece(raw, "text")
        elif token.type == TokenType.START_TAG and is_kept(token) and not is_empty:
            kept, open_tag, depth = [raw if is_excluded(token) else marked(raw, token, attributes)], tag, 1
        elif token.type in (TokenType.START_TAG, TokenType.END_TAG) and tag in INLINE:
            is_start = token.type == TokenType.START_TAG
            raw = marked(raw, token, attributes) if is_start and not is_excluded(token) else raw
            yield Piece(raw, "tag", 0 if is_empty else 1 if is_start else -1, tag)
        elif token.type == TokenType.COMMENT and raw.endswith(">"):  # else it is not finished at the end of the file
            yield Piece(raw, "tag")
        elif token.type == TokenType.START_TAG and not is_excluded(token):
            yield Piece(marked(raw, token, attributes), "block")
        else:
            yield Piece(raw, "block")
    if open_tag:
        yield Piece("".join(kept), "block")


def is_kept(token: Token) -> bool:
    """Whether the element of a start tag is not translated."""
    return token.tag in KEPT or is_excluded(token)


def is_excluded(token: Token) -> bool:
    """Whether a start tag says that its element is not to be translated."""
    attributes = {name: value or "" for name, value in reversed(token.attrs or [])}
    return attributes.get("translate", "").lower() == "no" or "notranslate" in attributes.get("class", "").split()


def is_complete(text: str) -> bool:
    """Whether what follows a part of a file is read as markup: the part ends neither in a tag nor in a comment."""
    return any(token.tag == "p" for token in list(tokenize(f"{text}<p>"))[-1:])


def slices(text: str) -> Iterator[tuple[Token, str]]:
    """Each token with its characters in the file. Elements without content of pages in XML are as comments."""
    position = 0
    for match in EMPTY.finditer(text) if XHTML.match(text) else ():
        if match["empty"]:
            yield from tokens_of(text[position : match.start()])
            yield COMMENT, match["empty"]
            position = match.end()
    yield from tokens_of(text[position:])


def tokens_of(text: str) -> Iterator[tuple[Token, str]]:
    """Each token of HTML with its characters."""
    lines = [0, *(match.end() for match in LINE_BREAK.finditer(text))]
    tokens = list(tokenize(text))
    if not tokens:
        if text:
            yield COMMENT, text
        return
    starts = [lines[token.line - 1] + token.col for token in tokens]
    for token, start, end in zip(tokens, starts, [*starts[1:], len(text)], strict=True):
        raw = text[start:end]
        # A tag that is not finished at the end of the file has no token.
        if token.type == TokenType.TEXT and end == len(text) and (match := MARKUP.search(raw)):
            yield token, raw[: match.start()]
            yield COMMENT, raw[match.start() :]
        else:
            yield token, raw


def segments(run: Sequence[Piece]) -> Iterator[str | Segment]:
    """The sentences of what is between two block tags, and the space between them."""
    for sentence in sentences(run):
        if sum(piece.kind == "tag" for piece in sentence) > MAX_CODES or not are_nested(sentence):
            for piece in sentence:
                yield from [piece.raw] if piece.kind == "tag" else segments([piece])
            continue
        raw = "".join(piece.raw for piece in sentence)
        rich, spans = "", []
        for piece in sentence:
            if piece.kind == "tag":
                spans.append((len(rich), len(rich) + len(piece.raw)))
                rich += piece.raw
            else:
                rich += WHITE_SPACE.sub(" ", html.escape(html.unescape(piece.raw), quote=False))
        inner = rich.strip(" ")
        start = len(rich) - len(rich.lstrip(" "))
        detached = detach(inner, [(a - start, b - start) for a, b in spans]) if spans else None
        core = html.unescape(detached.core if detached else inner)
        if not any(map(str.isalpha, core)):
            yield raw
            continue
        stripped = raw.strip(" \t\n\r\f")
        at = raw.index(stripped)
        yield raw[:at]
        yield Segment(" ".join(core.split()), detached, source=stripped)
        yield raw[at + len(stripped) :]


def are_nested(sentence: Sequence[Piece]) -> bool:
    """Whether all inline elements begin and end in the sentence, and are nested. Other tags keep their order: for an
    end tag at another position, a browser makes other elements. So do those that are written in an unusual way.
    """
    opened: list[str] = []
    for piece in sentence:
        if piece.opens and not ((match := TAG.fullmatch(piece.raw)) and match[2].lower() == piece.tag and not match[3]):
            return False
        if piece.opens > 0:
            if piece.tag in ONCE and piece.tag in opened:
                return False
            opened.append(piece.tag)
        elif piece.opens < 0 and (not opened or opened.pop() != piece.tag):
            return False
    return not opened


def sentences(run: Sequence[Piece]) -> Iterator[list[Piece]]:
    """Split at the ends of sentences that are outside of all inline elements."""
    sentence: list[Piece] = []
    depth = 0
    for piece in run:
        depth = max(0, depth + piece.opens)
        if piece.kind == "text" and depth == 0:
            start = 0
            for match in SENTENCE_END.finditer(piece.raw):
                yield [*sentence, Piece(piece.raw[start : match.end()], "text")]
                sentence, start = [], match.end()
            piece = Piece(piece.raw[start:], "text")
        if piece.raw:
            sentence.append(piece)
    if sentence:
        yield sentence
