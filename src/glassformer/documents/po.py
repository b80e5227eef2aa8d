"""Catalogues of gettext (PO, POT)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from glassformer.documents.codes import segments
from glassformer.documents.document import ADDRESSES, Document, Entry, Piece, Segment, State
from glassformer.documents.languages import is_swapped
from glassformer.documents.origin import Either
from glassformer.documents.text import decode
from glassformer.documents.unit import Unit
from glassformer.documents.words import NO_LETTER_AFTER
from glassformer.errors import CorpusError

NAMED = (
    r"""(?<![^\s(\[{<>«“„‘"'/$€£#=+-])(?<![)\w]["'])"""
    rf""":(?:(?:[A-Za-z][\w+-]{{0,62}}|[+-]1):(?![\w:`])|[A-Za-z_][A-Za-z0-9_]{{0,63}}(?!:|[\w+.-]{{0,63}}:`){NO_LETTER_AFTER})"""
)
"""A placeholder such as `:name` (Laravel, Rails), or an emoji by its name, such as `:smile:`: a colon that is no
punctuation, because it follows a space or an opening bracket and precedes a letter. Roles of Sphinx are neither."""

PROTECT = (*ADDRESSES, "placeholders", "tags", "entities", NAMED)
"""What stays as it is in translations of texts of programs."""

LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|$)")
KEYWORD = re.compile(r'[ \t]*(msgctxt|msgid_plural|msgid|msgstr(?:\[\d{1,3}\])?)[ \t]*("(?:[^"\\]|\\.)*")[ \t]*')
STRING = re.compile(r'[ \t]*("(?:[^"\\]|\\.)*")[ \t]*')
ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|(.))", re.DOTALL)
LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
CHARSET = re.compile(rb"charset=\s*([A-Za-z][\w.:-]{0,40})")
LANGUAGE = re.compile(r"^Language:[ \t]*(\S*)[ \t]*$", re.MULTILINE)


@dataclass(slots=True)
class Text:
    """A string of a catalogue: what follows a keyword, on one or more lines."""

    keyword: str
    start: int
    """Where its keyword is, and where its last string ends."""
    end: int
    value: str
    line: int


@dataclass(slots=True)
class Message:
    """A message of a catalogue."""

    start: int = -1
    """Where its flags, or else its keywords begin."""
    flags: list[str] = field(default_factory=list)
    flags_end: int = -1
    texts: list[Text] = field(default_factory=list)

    def text(self, keyword: str) -> Text | None:
        """The text of a keyword."""
        return next((text for text in self.texts if text.keyword == keyword), None)

    @property
    def translations(self) -> list[Text]:
        """The translations: one, or one of each plural form."""
        return [text for text in self.texts if text.keyword.startswith("msgstr")]

    @property
    def state(self) -> State:
        """The state of its translations."""
        if not all(text.value for text in self.translations):
            return "empty"
        return "fuzzy" if "fuzzy" in self.flags else "translated"


def decode_po(name: str, data: bytes) -> tuple[str, str]:
    """The text of a catalogue and its encoding, which its header says if it is not UTF-8.

    Raises:
        CorpusError: it has another one.
    """
    declared = CHARSET.search(data[:4000])
    encoding = declared[1].decode() if declared else "utf-8"
    if encoding.upper() in ("CHARSET", "UTF-8", "UTF8", "ASCII", "US-ASCII"):
        return decode(name, data)
    try:
        text = data.decode(encoding)
        if text.encode(encoding) == data:
            return text, encoding
    except (UnicodeDecodeError, LookupError):
        pass
    raise CorpusError(
        f"{name}: not {encoding}, which its header says.\n  Convert it: msgconv -t UTF-8 -o NEW.po {name}"
    )


def messages(name: str, text: str) -> Iterator[Message]:
    """The messages of a catalogue in order. Obsolete ones (`#~`) are left out.

    Raises:
        CorpusError: a line that is none of a catalogue.
    """
    message, position, number = Message(), 1 if text.startswith("\ufeff") else 0, 0
    for match in LINE.finditer(text, position):
        line = match[0].rstrip("\r\n")
        number += 1
        if match.start() == len(text):
            break
        stripped = line.strip()
        starts_message = stripped.startswith("#") or re.match(r"(msgctxt|msgid)\b", stripped)
        if starts_message and message.translations:
            yield message
            message = Message()
        elif message.text("msgid") and re.match(r"#,|(msgctxt|msgid)\b", stripped):
            message = Message()  # one without a translation
        if stripped.startswith("#~") and not message.texts:
            message = Message()  # the flags were those of an obsolete one
            continue
        if stripped.startswith("#,") and not message.texts:
            if message.start < 0:
                message.start = match.start()
            message.flags_end = match.end()
            message.flags += [flag.strip() for flag in stripped[2:].split(",") if flag.strip()]
            continue
        if not stripped or stripped.startswith("#"):
            continue
        if keyword := KEYWORD.fullmatch(line):
            if message.text(keyword[1]):
                raise no_source(name, number)
            message.start = match.start() if message.start < 0 else message.start
            end = match.start() + keyword.end(2)
            message.texts.append(Text(keyword[1], match.start() + keyword.start(1), end, unescaped(keyword[2]), number))
        elif (string := STRING.fullmatch(line)) and message.texts:
            message.texts[-1].value += unescaped(string[1])
            message.texts[-1].end = match.start() + string.end(1)
        else:
            raise CorpusError(
                f"{name}:{number}: not a line of a gettext catalogue: {line[:60]!r}.\n"
                "  Repair it there; `msgfmt -c` lists all errors of a catalogue."
            )
    if message.translations:
        yield message


def unescaped(string: str) -> str:
    """The text of a string in quotes."""

    def character(match: re.Match[str]) -> str:
        if match[1] or match[2]:
            return chr(int(match[1], 8) if match[1] else int(match[2], 16))
        return LETTERS.get(match[3], match[3])

    return ESCAPE.sub(character, string[1:-1])


TEMPLATE = "is a template: its header needs the Plural-Forms of the language, and no `#, fuzzy` (or begin with msginit)"
"""Note on a catalogue whose plural forms are those of no language."""


NO_FORMS = "has plural messages: its header needs the Plural-Forms of the language"
"""Note on a catalogue that does not say how many forms there are, and for which numbers."""


def read_po(name: str, data: bytes, languages: tuple[str, str]) -> Document:
    """A catalogue: its messages, each with the position of its translation.

    Args:
        languages: source and target language; an empty text for one that is not known.

    Raises:
        CorpusError: not a catalogue.
    """
    text, encoding = decode_po(name, data)
    pieces: list[Piece] = []
    position, found = 0, ""
    notes: tuple[str, ...] = ()
    has_forms = True
    for message in messages(name, text):
        source = message.text("msgid")
        if message.text("msgid_plural") and not has_forms:
            notes = (NO_FORMS,)
        if source is None:
            raise no_source(name, message.texts[0].line)
        if not source.value:
            header = message.translations[0]
            has_forms = "Plural-Forms:" in header.value
            if "plural=EXPRESSION" in header.value:
                notes = (TEMPLATE,)
            declared = LANGUAGE.search(header.value)
            found = declared[1] if declared else ""
            raw = text[position : header.end]
            if languages[1] and declared and not found:
                raw = re.sub(r'("Language:)[ \t]*(\\n")', rf"\1 {languages[1]}\2", raw, count=1)
            pieces.append(raw)
            position = header.end
            continue
        end = message.translations[-1].end
        pieces += [
            text[position : message.start],
            Entry(text[message.start : end], message.state, entry(text, message)),
        ]
        position = end
    if position == 0:
        raise CorpusError(
            f'{name}: no message: no line like msgid "Open".\n  Give a gettext catalogue, or another suffix.'
        )
    pieces.append(text[position:])
    return Document(pieces, "po", encoding, protect=PROTECT, languages=("", found), notes=notes)


def entry(text: str, message: Message) -> tuple[str | Segment | Either, ...]:
    """How a message is written with translations."""
    newline = "\r\n" if "\r\n" in text[message.start : message.translations[-1].end] else "\n"
    flags = [flag for flag in message.flags if flag != "fuzzy"]
    sure = f"#, {', '.join(flags)}{newline}" if flags else ""
    if message.flags_end >= 0 and "fuzzy" not in message.flags:
        sure = text[message.start : message.flags_end]
    doubtful = f"#, {', '.join(['fuzzy', *flags])}{newline}"
    first = message.translations[0]
    comments = LINE.findall(text[message.flags_end : message.texts[0].start]) if message.flags_end >= 0 else []
    previous = tuple(line for line in comments if line.lstrip().startswith("#|"))  # of which it was a translation
    kept = "".join(line for line in comments if line not in previous) + text[message.texts[0].start : first.start]
    source, plural = message.text("msgid"), message.text("msgid_plural")
    assert source
    results: list[str | Segment | Either] = [Either(sure, doubtful), kept]
    for i, translation in enumerate(message.translations):
        before = text[message.translations[i - 1].end : translation.start] if i else ""
        if translation.value and message.state == "empty":  # only other forms are missing
            results += [before, text[translation.start : translation.end]]
            continue
        is_plural = plural and (i > 0 or len(message.translations) == 1)
        of = plural.value if plural and is_plural else source.value
        end = f'\\n"{newline}"'
        inner = segments([of], "po", end)
        if inner and inner[-1] == end:
            inner[-1] = "\\n"
        start = f'""{newline}"' if end in inner else '"'
        results += [before, f"{translation.keyword} {start}", *inner, '"']
    return tuple(part for part in results if part != "")


def no_source(name: str, line: int) -> CorpusError:
    """The error for a translation without a source."""
    return CorpusError(f"{name}:{line}: a translation without msgid.\n  Repair the entry there.")


def po_units(name: str, data: bytes, languages: tuple[str, str]) -> Iterator[Unit]:
    """The messages of a catalogue with their translations; plural forms are messages of their own.

    Args:
        languages: source and target language; an empty text for one that is not known.

    Raises:
        CorpusError: not a catalogue, or in another language.
    """
    text, _ = decode_po(name, data)
    found, swapped = ("", ""), False
    for message in messages(name, text):
        source, plural = message.text("msgid"), message.text("msgid_plural")
        if source is None:
            raise no_source(name, message.texts[0].line)
        if not source.value:
            declared = LANGUAGE.search(message.translations[0].value)
            found = ("", declared[1] if declared else "")
            swapped = is_swapped(name, found, languages)
            found = found[::-1] if swapped else found
            continue
        translations = [translation.value for translation in message.translations]
        pairs = [(source.value, translations[0])]
        if plural and len(translations) > 1:
            pairs.append((plural.value, translations[-1]))
        for src, tgt in pairs:
            state = message.state if tgt else "empty"
            texts = " ".join(src.split()), " ".join(tgt.split())
            yield Unit(*(texts[::-1] if swapped else texts), state, source.line, found, is_swapped=swapped)
