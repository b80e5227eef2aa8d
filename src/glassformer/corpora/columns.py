"""Inference of the fields of labeled text from the names of columns or JSON keys, and from their contents."""

import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from glassformer.corpora.language_names import CODES
from glassformer.documents.languages import best_match

ROLES = {
    **dict.fromkeys(("text", "sentence", "text1", "sentence1"), "text"),
    **dict.fromkeys(("text2", "sentence2"), "text2"),
    **dict.fromkeys(("label", "score", "class"), "label"),
}
"""Column name or JSON key -> field."""

_TEXTS = "text sentence message tweet review question content comment query utterance headline document body post sms"
_LABELS = "label class category sentiment target intent polarity score rating judgment judgement topic wellformedness"
TEXT_WORDS = frozenset(_TEXTS.split())
LABEL_WORDS = frozenset(_LABELS.split())
"""Last words of the names of columns with texts and with labels."""

MIN_WORDS = 3.0
"""Minimum mean number of words in a column of texts without a known name."""
MIN_LABELS = 5
"""Minimum number of cells in a column of labels without a known name."""


MAX_NAME_CHARS = 40
"""Maximum length of a column name."""

CLEAR_SRC_NAMES = frozenset({"src", "source", "source_text"})
CLEAR_TGT_NAMES = frozenset({"tgt", "target", "target_text", "translation"})
"""Names of source and target in a table with other columns too."""
SRC_NAMES = CLEAR_SRC_NAMES | {"input", "wrong"}
TGT_NAMES = CLEAR_TGT_NAMES | {"output", "right"}
"""Names of source and target in a table of two columns."""
SRC_WORDS = frozenset({"src", "source", "original"})
TGT_WORDS = frozenset({"tgt", "target", "translation", "translated"})
TEXTS_OF_PAIRS = frozenset({"text", "segment", "sentence", "string", "language"})
"""Last words of the names of two columns with source and target; and what may follow them: Source text."""
LABELED_NAMES = frozenset({"text", "sentence", "label", "class"})
"""Names of columns beside which source and target are not known to be pairs."""
_LANGUAGES = {*CODES, *CODES.values()}


@dataclass(frozen=True, slots=True)
class Guess:
    """Fields and their columns. If `problem` is not empty, they are a suggestion only, and it is the reason."""

    fields: Mapping[str, str]
    problem: str = ""
    text_problem: str = ""
    """The part of `problem` that is about the text."""

    def option(self) -> str:
        """The fields as an option; two texts without a label are a translation. An empty text if too few are known."""
        if {"text", "text2"} == self.fields.keys():
            return f"--keys {shlex.quote('src=' + self.fields['text'])} {shlex.quote('tgt=' + self.fields['text2'])}"
        if not {"text", "label"} <= self.fields.keys():
            return ""
        return "--keys " + " ".join(shlex.quote(f"{field}={column}") for field, column in self.fields.items())


def roles_of(names: Iterable[str]) -> dict[str, list[str]]:
    """Column names of the text, the second text and the label. Other names are ignored."""
    names_of_roles: dict[str, list[str]] = {}
    for column in names:
        if role := ROLES.get(column.strip().lower()):
            names_of_roles.setdefault(role, []).append(column)
    return names_of_roles


def is_labeled(names: Iterable[str]) -> bool:
    """Whether column names or JSON keys include a text and a label."""
    return {"text", "label"} <= roles_of(names).keys()


def unique_roles(names: Iterable[str]) -> dict[str, str]:
    """Field -> its column name.

    Raises:
        ValueError: a field has several columns, or the text or the label has none.
    """
    names_of_roles = roles_of(names)
    for role, columns in names_of_roles.items():
        if len(columns) > 1:
            raise ValueError(f"{' and '.join(columns)} both name the {role}")
    missing = [role for role in ("text", "label") if role not in names_of_roles]
    if missing:
        raise ValueError(f"nothing names the {' or the '.join(missing)}")
    return {role: columns for role, (columns,) in names_of_roles.items()}


def has_known_names(names: Iterable[str]) -> bool:
    """Whether column names include that of a text and that of a label, as whole names."""
    known = {column.strip().lower() for column in names}
    return bool(known & (TEXT_WORDS | {n for n, role in ROLES.items() if role == "text"})) and bool(
        known & (LABEL_WORDS | {n for n, role in ROLES.items() if role == "label"})
    )


def _last_word_in(column: str, words: frozenset[str]) -> bool:
    parts = words_of_name(column)
    return bool(parts) and parts[-1] in words


def _is_text(values: Sequence[str]) -> bool:
    filled = [value for value in values if value.strip()]
    return bool(filled) and sum(len(value.split()) for value in filled) >= MIN_WORDS * len(filled)


def _is_label(values: Sequence[str]) -> bool:
    """Whether the cells of a column look like classes or scores: few distinct values, or numbers with fractions."""
    filled = [value.strip() for value in values if value.strip()]
    if len(filled) < MIN_LABELS or _is_text(filled):
        return False
    numbers = [number for value in filled if (number := parse_number(value)) is not None]
    if len(numbers) == len(filled) and any(number % 1 for number in numbers):
        return True
    return 2 <= len(set(filled)) <= max(2, len(filled) // 10)


def _sibling(first: str) -> set[str]:
    """Names of the second text of a pair, by the name of the first: sentence_A -> sentence_b."""
    name = first.lower()
    swaps = (("1", "2"), ("a", "b"), ("premise", "hypothesis"))
    parts = words_of_name(first)
    return {
        name[: name.rindex(old)] + new + name[name.rindex(old) + len(old) :]
        for old, new in swaps
        if old in parts or (old == "1" and "1" in name)
    }


def guess_columns(values: Mapping[str, Sequence[str]], *, has_names: bool = True) -> Guess:
    """Guess which columns hold the text, the second text of a pair, and the label.

    Args:
        values: column -> its cells in the first rows.
        has_names: whether the names of the columns mean something; else they are numbers.
    """
    names = list(values)
    if has_names and is_labeled(names):
        try:
            return Guess(unique_roles(names))
        except ValueError as error:
            first = {role: columns[0] for role, columns in roles_of(names).items()}
            return Guess(first, str(error), str(error) if len(roles_of(names)["text"]) > 1 else "")
    labels = [column for column in names if has_names and ROLES.get(column.strip().lower()) == "label"]
    labels = labels or [
        column for column in names if has_names and _last_word_in(column, LABEL_WORDS) and not _is_text(values[column])
    ]
    labels = labels or [column for column in names if _is_label(values[column])]
    texts = [column for column in names if column not in labels[:1] and _is_text(values[column])]
    named = [column for column in names if has_names and column not in labels and _last_word_in(column, TEXT_WORDS)]
    by_lower = {column.lower(): column for column in names}
    pairs = [
        (column, by_lower[other])
        for column in texts
        for other in _sibling(column) & by_lower.keys()
        if has_names and by_lower[other] in texts
    ]
    if len(pairs) == 1:
        texts = list(pairs[0])
    elif named:
        texts = named
    # In a file sorted by class, the first rows have one label.
    suggested = labels or [c for c in names if c not in texts and 2 * len(set(values[c])) <= len(values[c])]
    suggested = sorted(suggested, key=lambda column: _label_order(values[column]))  # of equal ones the first
    fields = dict(zip(("text", "text2"), texts, strict=False)) | ({"label": suggested[0]} if suggested else {})
    label_problem = text_problem = ""
    if len(labels) != 1:
        label_problem = f"{' or '.join(labels)} may be the label" if labels else "no column looks like the label"
    is_pair = len(pairs) == 1 or (len(texts) == 2 and not named)
    if not texts:
        text_problem = "no column looks like the text"
    elif len(texts) > 1 and not is_pair:
        text_problem = f"{' or '.join(texts)} may be the text"
    return Guess(fields, "; ".join(filter(None, (label_problem, text_problem))), text_problem)


def parse_number(text: str) -> float | None:
    """Parse a finite number; None if the text is not one."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def words_of_name(column: str) -> list[str]:
    """The words of a column name in lower case: ["airline", "sentiment"] of airlineSentiment or airline_sentiment."""
    return re.findall(r"[a-z]+|\d+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", column).lower())


def normalized(column: str) -> str:
    """A column name without surrounding space, in lower case."""
    return column.strip().lower()


def is_pair_header(cells: Sequence[str]) -> bool:
    """Whether two cells are names of languages, or of source and target."""
    if len(cells) != 2:
        return False
    if all(map(is_language, cells)):
        return language_code(cells[0]) != language_code(cells[1])
    if normalized(cells[0]) in SRC_NAMES and normalized(cells[1]) in TGT_NAMES:
        return True
    return name_languages(*cells) or (_names_side(cells[0], SRC_WORDS) and _names_side(cells[1], TGT_WORDS))


def _names_side(column: str, words: frozenset[str]) -> bool:
    """Whether the name of a column ends with one of some words, such as source in "Source text"."""
    parts = words_of_name(column) if len(column) <= MAX_NAME_CHARS else []
    return bool(parts) and parts[-2 if parts[-1] in TEXTS_OF_PAIRS and len(parts) > 1 else -1] in words


def language_code(column: str) -> str:
    """The code of a language by the name of a column; other names in lower case."""
    return CODES.get(normalized(column), normalized(column))


def is_language(column: str) -> bool:
    """Whether the name of a column is that of a language."""
    return re.split("[-_]", normalized(column))[0] in _LANGUAGES


def name_languages(first: str, second: str) -> bool:
    """Whether two cells are the names of two languages: one in English or in itself, the other one also in a third
    language (Deutsch and Englisch). Two names of one language (Deutsch and German) may be a text and its translation.
    """
    codes = [CODES.get(normalized(cell)) for cell in (first, second)]
    are_short = all(code or len(cell.split()) == 1 for code, cell in zip(codes, (first, second), strict=True))
    return any(codes) and codes[0] != codes[1] and are_short


def language_columns(names: Sequence[str], languages: Sequence[str]) -> tuple[int, int] | None:
    """The indices of the columns of two languages, by their names; None if there are not both."""
    codes = tuple(map(language_code, names))
    found = [best_match(codes, language) for language in languages if language]
    if len(found) != 2 or found[0] is None or found[1] is None or found[0] == found[1]:
        return None
    return found[0], found[1]


def are_other_languages(names: Sequence[str], languages: Sequence[str]) -> bool:
    """Whether two columns are named by languages, and not both by those that are asked for."""
    return (
        is_pair_header(names)
        and all(map(is_language, names))
        and all(languages)
        and len(languages) == 2
        and not language_columns(names, languages)
    )


def pair_columns(names: Sequence[str], languages: Sequence[str] = ()) -> tuple[str, str] | None:
    """Of a header row, the names of the columns of source and target: of two columns the names of two languages, or
    source and target; of more, the only source and the only target, unless there are texts or labels too.

    Args:
        languages: source and target language, if they are known: the columns with their names are the first choice.
    """
    if found := language_columns(names, languages):
        return names[found[0]], names[found[1]]
    if is_pair_header(names):
        return names[0], names[1]
    src, tgt, other = (
        [name for name in names if normalized(name) in known]
        for known in (CLEAR_SRC_NAMES, CLEAR_TGT_NAMES, LABELED_NAMES)
    )
    return (src[0], tgt[0]) if len(src) == len(tgt) == 1 and not other else None


def is_header(first: Sequence[str], body: Sequence[Sequence[str]], keys: Iterable[str] = ()) -> bool:
    """Whether the first row of a table is a header: by its names, or because it differs from the rows below.

    Args:
        body: the rows below.
        keys: columns that the user named.
    """
    cells = [cell.strip() for cell in first]
    given = [key for key in keys if not key.isdecimal()]
    if given:
        return any(normalized(key) in map(normalized, cells) for key in given)
    if has_known_names(cells) or pair_columns(cells):
        return True
    named = [cell for cell in cells if cell]
    if not named or any(len(cell) > MAX_NAME_CHARS or parse_number(cell) is not None for cell in named):
        return False
    rows = [row for row in body if len(row) == len(cells)]
    columns = [[cell.strip() for cell in column if cell.strip()] for column in zip(*rows, strict=True)]
    below = list(zip(cells, columns, strict=False))
    if any(cell and len(values) > 1 and None not in map(parse_number, values) for cell, values in below):
        return True
    has_labels = any(len(values) > 3 and len(set(values)) <= max(2, len(values) // 4) for values in columns)
    has_texts = any(
        values and 3 * len(cell.split()) <= sum(len(value.split()) for value in values) / len(values)
        for cell, values in below
    )
    are_new = all(not cell or cell not in values for cell, values in below)
    has_languages = len({language_code(cell) for cell in cells if is_language(cell)}) > 1
    return bool(columns) and are_new and (has_languages or (has_labels and has_texts))


def may_be_header(cells: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row of a table without known names may be a header: short cells above long texts."""
    lengths = [len(cell.split()) for row in rows for cell in row if cell.strip()]
    are_names = all(0 < len(cell) <= MAX_NAME_CHARS and not re.search(r"[\d.,;:!?]", cell) for cell in cells)
    longest = max((len(cell.split()) for cell in cells), default=0)
    return are_names and bool(lengths) and MIN_WORDS * longest <= sum(lengths) / len(lengths)


def _label_order(values: Sequence[str]) -> tuple[bool, bool, int, bool]:
    """Sort key of a column that may be the label: a value in every row, several values, few, numbers."""
    distinct = set(values)
    return "" in distinct, len(distinct) == 1, len(distinct), any(parse_number(value) is None for value in distinct)
