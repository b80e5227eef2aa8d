"""Readers of tagged sentences: CoNLL columns, CoNLL-U or JSONL."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path

from glassformer.corpora.jsonl import invalid_text_reason, outline, read_objects
from glassformer.corpora.lines import check_readable, name, read_lines, suffix_of
from glassformer.corpora.pair_formats import format_of
from glassformer.corpora.read_options import parse_keys
from glassformer.errors import ConfigError, CorpusError

CONLLU_COLUMNS = {"upos": 3, "xpos": 4}
_N_CONLLU = 10
_CONLLU_NUMBER = re.compile(r"\d+([-.]\d+)?")
_CONLLU_ADVICE = "A CoNLL-U file must be named .conllu."

SPAN_TAG = re.compile("O|[BIES]-.+", re.DOTALL)
"""Tags that mark spans: O, B-x, I-x, and E-x and S-x of BIOES."""


WORD_KEYS = ("words", "tokens")
TAG_ENDINGS = ("tags", "tag", "labels")
"""Keys of the words in JSON objects, and ends of the keys of their tags."""


@dataclass(frozen=True, slots=True)
class Tagged:
    """The words of a sentence, their tags, and the file and line of the first word, counted from 1."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    path: str
    line: int


def read_tagged(paths: Sequence[Path], column: str | int | None = None, keys: Sequence[str] = ()) -> Iterator[Tagged]:
    """Read tagged sentences in order, in constant memory.

    Args:
        paths: .conllu (ranges like 1-2 and empty nodes like 8.1 are skipped); .jsonl ({"words": […], "tags": […]}, or
            with other keys, see `tagging_keys`);
            any other name is CoNLL: one word per line, columns separated by tabs or spaces as in the first row, a
            blank line between sentences; -DOCSTART- lines are skipped. Each may end in .gz.
        column: column of the tag. CoNLL-U: "upos" (default) or "xpos". CoNLL: its number, by default the last.
        keys: FIELD=KEY of JSONL, as in `parse_keys`; of CoNLL-U tags=COLUMN, as `column`; of CoNLL also words=COLUMN,
            by default the first.

    Raises:
        ConfigError: the format does not have this column.
        CorpusError: a row has too few or too many columns, or no word or tag; or a file of another name is CoNLL-U.
    """
    readers = [_reader(path, column, parse_keys(keys)) for path in paths]
    check_readable(*paths)
    return chain.from_iterable(readers)


def _reader(path: Path, column: str | int | None, keys: Mapping[str, str]) -> Iterator[Tagged]:
    suffix = suffix_of(path)
    if suffix in (".jsonl", ".json", ".ndjson"):
        if column is not None:
            raise ConfigError(f"--keys tags={column}: {name(path)} is JSONL, without columns.\n  Leave it out.")
        return _read_objects(path, keys)
    columns = dict(keys) if column is None else {**keys, "tags": str(column)}
    if unused := [f"{field}={key}" for field, key in columns.items() if field not in ("words", "tags")]:
        raise ConfigError(f"--keys {' '.join(unused)}: {name(path)} has words and tags only.\n  Leave it out.")
    if suffix == ".conllu":
        if "words" in columns:
            raise ConfigError(
                f"--keys words={columns['words']}: {name(path)} is CoNLL-U, its words are in column 2.\n  Leave it out."
            )
        tags = columns.get("tags", "upos")
        if tags not in CONLLU_COLUMNS:
            raise ConfigError(f"--keys tags={tags}: {name(path)} is CoNLL-U.\n  Use upos or xpos.")
        return _sentences(path, _conllu_rows(path, tags))
    if format_of(path) not in ("lines", "tsv"):
        raise CorpusError(
            f"{name(path)}: tagged words cannot be read from this format ({format_of(path)}).\n"
            "  Use CoNLL (.conll, .txt, .tsv), CoNLL-U (.conllu) or JSONL (.jsonl)."
        )
    for field, key in columns.items():
        if not key.isdecimal() or int(key) < 1:
            raise ConfigError(
                f"--keys {field}={key}: {name(path)} is CoNLL, its columns have numbers.\n"
                f"  Give the number of the column of the {field}, 1 or more. {_CONLLU_ADVICE}"
            )
    words, tags_column = (int(columns[field]) if field in columns else None for field in ("words", "tags"))
    if tags_column == (words or 1):
        raise ConfigError(
            f"--keys tags={tags_column}: the column of the words of {name(path)}.\n"
            "  Give another one, or name both: --keys words=COLUMN tags=COLUMN"
        )
    return _sentences(path, _conll_rows(path, words, tags_column))


Row = tuple[int, str, str]
"""Line number, word and tag."""


def _sentences(path: Path, rows: Iterator[Row | None]) -> Iterator[Tagged]:
    """Group rows to sentences, which are separated by None."""
    for is_sentence, group in groupby(rows, lambda row: row is not None):
        if is_sentence:
            numbers, words, tags = zip(*(row for row in group if row), strict=True)
            yield Tagged(words, tags, str(path), numbers[0])


def _conll_rows(path: Path, words: int | None, tags: int | None) -> Iterator[Row | None]:
    """Rows of CoNLL.

    Args:
        words: number of the column of the words. Default: the first.
        tags: number of the column of the tags. Default: the last.
    """
    separator, n_columns, first = "", 0, 0
    is_inside = False  # a sentence
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            is_inside = False
            yield None
            continue
        if line.startswith("-DOCSTART-") or (not is_inside and _is_comment(line, n_columns)):
            continue
        is_inside = True
        separator = separator or ("\t" if "\t" in line else " ")
        # With tabs, a cell may be empty (a missing tag); with spaces, their number does not matter.
        cells = line.split("\t") if separator == "\t" else re.split(" +", line.strip(" "))
        if not n_columns:
            n_columns, first = len(cells), number
            _check_columns(path, number, cells, words, tags)
        if len(cells) != n_columns:
            raise CorpusError(
                f"{name(path)}:{number}: expected {n_columns} columns as in line {first}, found {len(cells)}.\n"
                f"  The line begins {line[:40]!r}. Is its tag missing? {_CONLLU_ADVICE}"
            )
        yield _row(path, number, cells[(words or 1) - 1], cells[(tags or n_columns) - 1])


def _check_columns(path: Path, number: int, cells: Sequence[str], words: int | None, tags: int | None) -> None:
    """Check that the first row of CoNLL has a word and its tag."""
    n_expected = max(2, words or 1, tags or 2)
    if len(cells) < n_expected:
        raise CorpusError(
            f"{name(path)}:{number}: expected a word and its tag in at least {n_expected} columns, "
            f"found {len(cells)}.\n  The line begins {' '.join(cells)[:40]!r}. Separate columns by tabs or spaces."
        )
    if len(cells) == _N_CONLLU and words is None and _CONLLU_NUMBER.fullmatch(cells[0]):
        raise CorpusError(
            f"{name(path)}:{number}: CoNLL-U: {_N_CONLLU} columns, of which the first has the number of the word.\n"
            f"  {_CONLLU_ADVICE} To read other columns: --keys words=COLUMN tags=COLUMN"
        )
    if tags is None and words == len(cells):
        raise ConfigError(
            f"--keys words={words}: the last column of {name(path)}, which has the tags by default.\n"
            f"  Name both: --keys words={words} tags=COLUMN"
        )


def _is_comment(line: str, n_columns: int) -> bool:
    """Whether a line before a sentence is no word "#" with its tag: `# id 12 domain=en`, `# text = Ann slept.`"""
    cells = line.split()
    if not line.startswith("# ") or len(cells) < 3 or SPAN_TAG.fullmatch(cells[-1]):
        return False
    return len(cells) != n_columns or cells[1] == "id" or cells[2] == "="


def _conllu_rows(path: Path, column: str) -> Iterator[Row | None]:
    n_words = 0
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            n_words = 0
            yield None
            continue
        if line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != _N_CONLLU:
            raise CorpusError(
                f"{name(path)}:{number}: expected the {_N_CONLLU} tab-separated columns of CoNLL-U, found {len(cells)}."
                f"\n  The line begins {line[:40]!r}. If the file is not CoNLL-U, name it .conll instead of .conllu."
            )
        if re.fullmatch(r"\d+[-.]\d+", cells[0]):
            continue
        n_words += 1
        if cells[0] != str(n_words):
            raise CorpusError(
                f"{name(path)}:{number}: expected word {n_words} of the sentence, found the number {cells[0][:20]!r}.\n"
                "  Number the words from 1, with a blank line between sentences."
            )
        tag = cells[CONLLU_COLUMNS[column]]
        yield _row(path, number, cells[1], "" if tag == "_" else tag)


def _row(path: Path, number: int, word: str, tag: str) -> Row:
    for what, cell in (("word", word), ("tag", tag)):
        if not cell.strip():
            raise CorpusError(
                f"{name(path)}:{number}: no {what}, in the row of word {word[:40]!r} and tag {tag[:40]!r}.\n"
                "  Every row needs both: fix it or delete the sentence."
            )
    check_tag(f"{name(path)}:{number}", tag.strip())
    return number, word, tag.strip()


def check_tag(where: str, tag: str) -> None:
    """Check that a tag is one word, as outputs have them separated by spaces.

    Raises:
        CorpusError: it has a space.
    """
    if len(tag.split()) > 1:
        one_word = "_".join(tag.split())
        raise CorpusError(f"{where}: the tag {tag[:40]!r} has a space.\n  Write it as one word: {one_word}")


def tagging_keys(record: Mapping[str, object]) -> dict[str, str]:
    """The keys of words and tags in a JSON object, by field. Empty: not known.

    Hugging Face's datasets have "tokens", and one or several lists of tags with names like "ner_tags".
    """
    words = next((key for key in WORD_KEYS if isinstance(record.get(key), list)), None)
    tags = [key for key, value in record.items() if isinstance(value, list) and key.lower().endswith(TAG_ENDINGS)]
    return {"words": words, "tags": tags[0]} if words and len(tags) == 1 else {}


def suggest_tagging_keys(record: Mapping[str, object]) -> str:
    """Keys for the words and tags of a JSON object: two lists of equally many words. Empty: it has none."""
    lists = {key: value for key, value in record.items() if isinstance(value, list) and value}
    words = [key for key, value in lists.items() if all(isinstance(x, str) and " " not in x for x in value)]
    is_tagged = len(words) > 1 and len(lists[words[0]]) == len(lists[words[1]])
    return f"--keys words={words[0]} tags={words[1]}" if is_tagged else ""


def _read_objects(path: Path, keys: Mapping[str, str]) -> Iterator[Tagged]:
    for number, record in read_objects(path, keys):
        where = f"{name(path)}:{number}"
        own = {} if keys else tagging_keys(record)
        words, tags = (record.get(own.get(field, field)) for field in ("words", "tags"))
        if not isinstance(words, list) or not isinstance(tags, list):
            raise CorpusError(
                f'{where}: expected {{"words": […], "tags": […]}}, found {outline(record)}.\n'
                "  Name the keys, for instance: --keys words=tokens tags=ner"
            )
        if len(words) != len(tags) or not words:
            raise CorpusError(
                f"{where}: {len(words)} words and {len(tags)} tags.\n  Give each word one tag, and at least one word."
            )
        for what, values in (("word", words), ("tag", tags)):
            for i, value in enumerate(values, 1):
                if reason := invalid_text_reason(value) or (None if value.strip() else "it is blank"):
                    is_number = what == "tag" and isinstance(value, int)
                    advice = "Write the names of the tags" if is_number else "Fix or delete the line"
                    raise CorpusError(f"{where}: {what} {i}: {reason}.\n  {advice}.")
                if what == "tag":
                    check_tag(where, value)
        yield Tagged(tuple(words), tuple(tags), str(path), number)
