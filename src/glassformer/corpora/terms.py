"""Terms of a glossary, and patterns of what stays as it is in a translation."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, permutations, starmap
from pathlib import Path
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any

from glassformer.corpora.columns import SRC_NAMES, TGT_NAMES, is_pair_header, language_columns, normalized
from glassformer.corpora.lines import check_readable, read_lines
from glassformer.corpora.tables import open_table
from glassformer.documents.tbx import tbx_terms
from glassformer.documents.words import FULL_WIDTH, NO_LETTER_AFTER, UNSPACED_RANGES, continues_word
from glassformer.errors import ConfigError, CorpusError
from glassformer.limits import MAX_DOCUMENT_BYTES

NO_ADDRESS = rf"\s<>{UNSPACED_RANGES}{FULL_WIDTH}“”„«»‘’…—"
"""What no address has: white space, letters and punctuation of such scripts, quotes and dashes of texts."""
ADDRESS_REST = rf"(?:[^{NO_ADDRESS}\"'()\[\]{{}}]|\([^{NO_ADDRESS}()]{{0,200}}\)){{1,2000}}(?<![.,;:!?])"
"""What follows the scheme of an address: parentheses in pairs only, and no punctuation at the end."""
WORD_CHARACTER = rf"(?:(?![{UNSPACED_RANGES}])\w)"
"""A letter or digit, but of a script without spaces between words."""

UNITS = (
    "%|‰|°[CF]?|km/h|[kcmµn]?m[²³]?|mph|[kmµ]?g|t|[cmd]?l|[kMGT]i?B|[kMG]?Hz|[kM]?W|[kM]?Wh|[kM]?V|m?A|s|ms|min|h|px|pt|dpi|"
    "€|\\$|£|¥"
)
PATTERNS = {
    "placeholders": r"%(?:\(\w{1,64}\))?(?:\d{1,2}\$)?[-+#0,]{0,4}\d{0,3}(?:\.\d{1,3})?(?:hh|h|ll|l|q|j|z|t|L)?"
    rf"[sdifuxXocreEgGpn@]{NO_LETTER_AFTER}|%\d{{1,2}}(?![%$]){NO_LETTER_AFTER}"
    r"|\$t\([^()]{1,200}\)|\{\{[^{}]{0,100}\}\}|[%$#]?\{[^{}\s]{0,100}\}"
    r"|\{\w{1,64}, ?(?:number|date|time|spellout|ordinal|duration)(?:, ?[^{}]{0,60})?\}"
    rf"|\$[A-Za-z_]{WORD_CHARACTER}{{0,64}}",
    "markers": r"\[X\d{1,6}X\]|</?[A-Za-z]\d{1,5}/?>",
    "tags": r"</?[A-Za-z][^<>]{0,480}>|<!--.{0,480}?-->",
    "entities": r"(?<!\w)[A-Z0-9]{1,4}(?:&amp;[A-Z0-9]{1,4}){1,3}(?!\w)"  # AT&T, Q&A
    r"|&(?:[A-Za-z][A-Za-z0-9]{1,30}|#\d{1,7}|#[xX][0-9A-Fa-f]{1,6});",
    "urls": rf"(?:[hH][tT][tT][pP][sS]?|[fF][tT][pP])://{ADDRESS_REST}|[wW]{{3}}\.{ADDRESS_REST}",
    "emails": rf"(?:{WORD_CHARACTER}|[.+-]){{1,64}}@(?:{WORD_CHARACTER}|-){{1,63}}"
    rf"(?:\.(?:{WORD_CHARACTER}|-){{1,63}}){{1,8}}",
    "units": r"(?<![\w.,])[-+]?\d(?:[\d.,]|(?<=\d)[ \u00a0\u202f'’](?=\d{3}(?!\d))){0,20}"
    rf"[ \u00a0\u202f]?(?:{UNITS})(?:/(?:s|min|h|[kc]?m[²³]?|[kmµ]?g|l))?{NO_LETTER_AFTER}",
}
"""Names of `--protect` -> regular expressions. All repetitions are bounded. Markers are what Weblate ([X7X]) and OmegaT
(<f0>, </f0>, <x1/>) send in place of placeholders and tags."""

REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)

MAX_WINDOW = 1000
"""Number of characters that patterns are applied to at once."""

MAX_REPEATS = 3
"""Number of unlimited repetitions in a regular expression: its time grows with this power of the window."""

MAX_REPORTED = 5
"""Number of errors of a glossary that are listed."""


@dataclass(frozen=True, slots=True)
class Term:
    """A row of a glossary."""

    sources: tuple[str, ...]
    """Forms in the source language. A form in lower case stands for any case."""
    targets: tuple[str, ...]
    """Forms in the target language."""


@dataclass(frozen=True, slots=True)
class Required:
    """A term in a source text, whose translation is required."""

    start: int
    end: int
    """Position of the term."""
    targets: tuple[str, ...]
    """Texts of which one must occur."""

    @property
    def forms(self) -> list[str]:
        """The texts, also with an upper-case first letter."""
        return list(dict.fromkeys(form for target in self.targets for form in (target, capitalized(target))))


SPELLINGS = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2011": "-", "’": "'"})
"""Characters that a text may have instead of those of a glossary, one for one."""


class Glossary:
    """Terms and their translations.

    Args:
        terms: the terms; those with the same source form are one term with the forms of all.
    """

    def __init__(self, terms: Iterable[Term]) -> None:
        self.terms = tuple(terms)
        targets: dict[str, dict[str, None]] = defaultdict(dict)
        for term in self.terms:
            for source in term.sources:
                targets[source.translate(SPELLINGS)] |= dict.fromkeys(term.targets)
        self.by_first_word: dict[str, list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
        """First word of a source form, in lower case -> the form and its translations, the longest form first."""
        for source in sorted(targets, key=lambda text: (-len(text), text)):
            first = next(words(source))[0].lower()
            self.by_first_word[first].append((source, tuple(targets[source])))

    @classmethod
    def read(cls, path: Path, languages: Sequence[str] = ()) -> "Glossary":
        """Read a glossary: TBX; CSV; or on each line a term, a tab, and its translation. Inflected forms are separated
        by `|`. Blank lines, lines that begin with # and a first line with the names of two languages are skipped.

        Args:
            languages: source and target language, by which the terms of TBX and the columns of CSV are found.

        Raises:
            CorpusError: the file cannot be read, or lines are not terms; the message names the lines.
            ConfigError: the languages are needed and not known.
        """
        if path.suffix.lower() == ".tbx":
            return cls(starmap(Term, read_tbx(path, languages)))
        terms, errors = [], []
        for number, cells in rows_of(path, languages):
            sides = [tuple(form.strip() for form in side.split("|")) for side in cells]
            if len(sides) != 2:
                errors.append(f"  line {number}: {len(sides)} columns instead of 2")
            elif not all(form and next(words(form), None) for side in sides for form in side):
                errors.append(f"  line {number}: an empty form")
            else:
                terms.append(Term(*sides))
        if errors:
            more = [f"  and {len(errors) - MAX_REPORTED} more"] if len(errors) > MAX_REPORTED else []
            raise CorpusError(
                "\n".join([f"{path}: not a glossary:", *errors[:MAX_REPORTED], *more])
                + "\n  Write a term, a tab and its translation on each line; several forms are separated by |."
            )
        if not terms:
            raise CorpusError(
                f"{path}: a glossary without terms.\n  Write a term, a tab and its translation on a line."
            )
        return cls(terms)

    def find(self, text: str) -> Iterator[Required]:
        """Terms in a text, from left to right, of overlapping ones the first and longest."""
        text = text.translate(SPELLINGS)
        end = 0
        for word, start in words(text):
            if start < end:
                continue
            for source, targets in self.by_first_word.get(word.lower(), ()):
                found = text[start : start + len(source)]
                is_equal = found == source or (source == source.lower() and found.lower() == source)
                if is_equal and not continues_word(text, start) and not continues_word(text, start + len(source)):
                    end = start + len(source)
                    yield Required(start, end, targets)
                    break


def read_tbx(path: Path, languages: Sequence[str]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The terms of a glossary in TBX in two languages.

    Raises:
        CorpusError: it cannot be read, or does not have the languages.
        ConfigError: the languages are not known.
    """
    if not languages:
        raise ConfigError(
            f"{path}: of which languages? The model does not say its own.\n"
            "  Save the terms as a table: a term, a tab and its translation on each line."
        )
    check_readable(path)
    if path.stat().st_size > MAX_DOCUMENT_BYTES:
        raise CorpusError(f"{path}: more than {MAX_DOCUMENT_BYTES:,} bytes.\n  Split it.")
    return tbx_terms(str(path), path.read_bytes(), (languages[0], languages[1]))


def rows_of(path: Path, languages: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    """Line number and cells of the rows of a table, without a header row: of CSV those of source and target.

    Raises:
        CorpusError: it cannot be read.
        ConfigError: the columns of source and target are not known.
    """
    if path.suffix.lower() == ".csv":
        table = open_table(path)
        first = table.names if table.has_header else table.sample[0] if table.sample else ()
        named = named_columns(first, languages)
        if named is None and (table.has_header or len(first) != 2):
            raise unknown_columns(path, table.outline(), languages)
        is_header = named is not None and not table.has_header  # one that the table was not known to have
        for number, cells in islice(table.rows(), int(is_header), None):
            if any(cells):
                columns = named or (0, 1)
                cells = table.checked(cells, number, columns)
                yield number, [cells[column] for column in columns]
        return
    named = 0, 1
    for number, line in enumerate(read_lines(path), 1):
        cells = line.split("\t")
        if number == 1 and is_pair_header(cells):
            named = named_columns(cells, languages)
            if named is None:
                raise unknown_columns(path, f"  Its first line: {line}", languages)
        elif line.strip() and not line.startswith("#"):
            yield number, [cells[column] for column in named] if len(cells) == 2 else cells


def named_columns(names: Sequence[str], languages: Sequence[str]) -> tuple[int, int] | None:
    """Indices of the columns of source and target by their names: languages, or source and target."""
    if found := language_columns(names, languages):
        return found
    lower = list(map(normalized, names))
    pairs = list(permutations(range(len(lower)), 2))
    named = (pair for pair in pairs if lower[pair[0]] in SRC_NAMES and lower[pair[1]] in TGT_NAMES)
    by_order = (pair for pair in pairs if not languages and is_pair_header([lower[i] for i in pair]))
    return next(named, None) or next(by_order, None)


def unknown_columns(path: Path, outline: str, languages: Sequence[str]) -> ConfigError:
    """The error for a table whose columns of source and target are not known."""
    which = f" {languages[0]} and {languages[1]}" if languages else ", such as en and fr"
    return ConfigError(
        f"{path}: the columns of source and target are not known.\n{outline}\n"
        f"  Name them in the first row: by the languages{which}, or source and target."
    )


def words(text: str) -> Iterator[tuple[str, int]]:
    """Words and symbols of a text, with their positions; letters of scripts without spaces are words of their own."""
    if text.isascii():
        yield from ((match.group(), match.start()) for match in re.finditer(r"\w+|[^\w\s]", text))
        return
    start = 0
    for end in range(1, len(text) + 1):
        if end == len(text) or not continues_word(text, end):
            if not text[start:end].isspace():
                yield text[start:end], start
            start = end


def protect_pattern(protect: Sequence[str]) -> re.Pattern[str] | None:
    """One pattern for all arguments of `--protect`: names of `PATTERNS`, "all", or regular expressions.

    Raises:
        ConfigError: not a regular expression, one that matches the empty text, or one that can take too long.
    """
    names = [name for argument in protect for name in (PATTERNS if argument == "all" else [argument])]
    parts = [PATTERNS.get(name) or checked_pattern(name) for name in dict.fromkeys(names)]
    return re.compile("|".join(f"(?:{part})" for part in parts)) if parts else None


def checked_pattern(text: str) -> str:
    """A regular expression of the user.

    Raises:
        ConfigError: see `protect_pattern`.
    """
    where = f"--protect {text!r}"
    names = f"  Give a regular expression, all, or a name: {', '.join(PATTERNS)}."
    try:
        parsed = sre_parser.parse(text)
        matches_empty = re.compile(text).match("") is not None
    except (re.error, OverflowError, RecursionError, ValueError) as error:
        raise ConfigError(f"{where}: not a regular expression: {error}.\n{names}") from None
    if matches_empty or parsed.getwidth()[0] == 0:
        raise ConfigError(f"{where}: matches the empty text.\n{names}")
    if parsed.state.groups > 1 and any(op in (sre.GROUPREF, sre.GROUPREF_EXISTS) for op, _ in nodes(parsed)):
        raise ConfigError(f"{where}: refers to a group; several patterns are joined.\n{names}")
    if parsed.state.flags & ~re.UNICODE.value:
        raise ConfigError(f"{where}: sets flags for all patterns.\n  Write (?i:…) with a colon instead.")
    if may_be_slow(parsed):
        raise ConfigError(
            f"{where}: can take too long: a repetition contains another or alternatives, or there are more than"
            f" {MAX_REPEATS}.\n"
            r"  Write the inner part without repetition: (\w+\s?)+ as [\w\s]+, (ab|ac)+ as (a[bc])+."
        )
    return text


def nodes(parsed: Any) -> Iterator[tuple[Any, Any]]:
    """All nodes of a parsed regular expression."""
    for op, argument in parsed:
        yield op, argument
        for inner in inner_patterns(argument):
            yield from nodes(inner)


def inner_patterns(argument: Any) -> Iterator[Any]:
    """The patterns in the argument of a node."""
    if isinstance(argument, sre_parser.SubPattern):
        yield argument
    elif isinstance(argument, tuple | list):
        for item in argument:
            yield from inner_patterns(item)


def may_be_slow(parsed: Any) -> bool:
    """Whether a repetition contains a variable repetition or alternatives, or there are many repetitions."""
    repeats = [argument for op, argument in nodes(parsed) if op in REPEATS and argument[1] > 1]
    for _, _, body in repeats:
        for op, inner in nodes(body):
            if op == sre.BRANCH or (op in REPEATS and inner[0] != inner[1]):
                return True
    return sum(most > MAX_WINDOW for _, most, _ in repeats) > MAX_REPEATS


def matches(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each match of a pattern. One of more than half a window may be cut."""
    begin = 0
    while begin < len(text):
        end = min(len(text), begin + MAX_WINDOW)
        # Those that begin later are found in the next window, with all that follows them.
        following = last = len(text) if end == len(text) else begin + MAX_WINDOW // 2
        for match in pattern.finditer(text, begin, end):
            if match.start() >= last:
                break
            if begin < match.start() and match.end() == end < len(text):
                following = match.start()
                break
            yield match.span()
            following = max(following, match.end())
        begin = following


def capitalized(text: str) -> str:
    """The text with an upper-case first letter."""
    return text[:1].upper() + text[1:]


def unmet(required: Sequence[Required], output: str) -> list[Required]:
    """Those that an output does not contain, as often as the source requires. A position counts for one term only:
    for the longer form, if forms overlap, and for the term with the fewest positions, if several have the form.
    """
    forms = {term.targets: term.forms for term in required}
    needed = Counter(term.targets for term in required)
    positions = {
        targets: {(at, at + len(form)) for form in forms[targets] for at in positions_of(form, output)}
        for targets in forms
    }
    used: list[tuple[int, int]] = []
    for start, end in sorted(
        set[tuple[int, int]]().union(*positions.values()), key=lambda span: (span[0] - span[1], span)
    ):
        lacking = [targets for targets in forms if needed[targets] and (start, end) in positions[targets]]
        if lacking and all(end <= a or b <= start for a, b in used):
            needed[min(lacking, key=lambda targets: len(positions[targets]))] -= 1
            used.append((start, end))
    wrong: list[Required] = []
    for targets, n in needed.items():
        equal = [term for term in required if term.targets == targets]
        wrong += equal[len(equal) - n :]
    return wrong


def positions_of(form: str, text: str) -> Iterator[int]:
    """Positions of a form as whole words."""
    form, text = form.translate(SPELLINGS), text.translate(SPELLINGS)
    start = text.find(form)
    while start >= 0:
        if not continues_word(text, start) and not continues_word(text, start + len(form)):
            yield start
        start = text.find(form, start + 1)
