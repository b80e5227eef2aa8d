"""Formats of sentence pairs, by name. A new format is a file with a parser, and a row of PAIR_FORMATS."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from glassformer.corpora.bilingual import ARCHIVES, SUFFIXES, both_sided_format
from glassformer.corpora.columns import are_other_languages, is_language, pair_columns
from glassformer.corpora.jsonl import SURROGATE, outline, parse_json, replaced, select_fields, suggest_keys
from glassformer.corpora.lines import LineError, suffix_of
from glassformer.errors import ConfigError

SUMMARY_KEYS = (("text", "summary"), ("document", "summary"), ("dialogue", "summary"), ("article", "highlights"))
"""JSON keys of a text and its summary."""


class PairParser(Protocol):
    """Parser of the lines of a single-file format: line -> (src, tgt). Raises LineError."""

    def parse(self, line: str) -> tuple[str, str]: ...

    def render(self, src: str, tgt: str) -> str: ...


class Tsv:
    """src TAB tgt, without quoting."""

    def parse(self, line: str) -> tuple[str, str]:
        """Source and target of a line.

        Raises:
            LineError: not two columns.
        """
        cells = line.split("\t")
        if len(cells) != 2:
            raise LineError(
                "malformed",
                f"expected 2 tab-separated columns (src, tgt), found {len(cells)}.\n  The line begins {line[:40]!r}",
                "Fix the line, or use --format lines for one sentence per line."
                if line.strip()
                else "Delete the line. For words with tags, train with --task tagging.",
            )
        return cells[0], cells[1]

    def render(self, src: str, tgt: str) -> str:
        """Format a pair as a line, the inverse of `parse`."""
        return f"{src}\t{tgt}"


class Jsonl:
    """Pairs as JSON objects: {"src": …, "tgt": …}, {"translation": {"en": …, "fr": …}}, a text with its summary (see
    SUMMARY_KEYS), with keys that name source and target as columns do (`pair_columns`), or with the keys given by
    `field_keys`. All lines must have the keys of the first line.
    """

    def __init__(self, field_keys: Mapping[str, str] | None = None, languages: Sequence[str] = ()) -> None:
        """
        Args:
            field_keys: field (src, tgt; text, summary) -> key, as in `select_fields`.
            languages: source and target language, if they are known.
        """
        self.field_keys, self.languages = field_keys, languages
        self.record: dict[str, Any] = {}
        """The object of the last line."""
        self.paths = ("src", "tgt")
        """Where it has the texts."""
        self.nested = False
        self.keys: tuple[str, str] | None = None
        self.named: tuple[str, str] | None = None
        """The keys of the first line, if they name source and target in another way."""

    def parse(self, line: str) -> tuple[str, str]:
        """Source and target of a line. Under "translation", the keys are those of the languages; if these are not
        known, the first key of the first line is the source.

        Raises:
            LineError: the line is not such an object.
        """
        record = parse_json(line)
        texts = self._texts(record, line)
        self.record = record if isinstance(record, dict) else {}
        for text in texts:
            if SURROGATE.search(text):
                raise self._line_error("an unpaired surrogate, which is not a character", line)
        return texts

    def _texts(self, record: object, line: str) -> tuple[str, str]:
        if self.field_keys and isinstance(record, dict):
            src, tgt = ("src", "tgt") if "src" in self.field_keys else ("text", "summary")
            self.paths = self.field_keys.get(src, src), self.field_keys.get(tgt, tgt)
            try:
                record = select_fields(record, self.field_keys)
            except KeyError as error:
                raise LineError(
                    "malformed",
                    f"no key {error.args[0]!r} (named by --keys); found {outline(record)}",
                    "Fix --keys, or fix or delete the line.",
                ) from None
        if isinstance(record, dict) and (names := summary_keys(record)):
            self.paths = self.paths if self.field_keys else names
            record = {"src": record[names[0]], "tgt": record[names[1]]}
        elif isinstance(record, dict) and record.keys() != {"src", "tgt"} and not is_nested(record) and not self.keys:
            if are_other_languages(list(record), self.languages):
                raise self._line_error(f"texts in {', '.join(record)}, not in {', '.join(self.languages)}", line)
            self.named = named_texts(record, self.languages)
        if isinstance(record, dict) and self.named and set(self.named) <= record.keys():
            self.paths = self.named
            record = {"src": record[self.named[0]], "tgt": record[self.named[1]]}
        nested = is_nested(record)
        pair = record["translation"] if nested and isinstance(record, dict) else record
        if not isinstance(pair, dict) or len(pair) != 2 or not (nested or pair.keys() == {"src", "tgt"}):
            raise self._line_error(f"found {outline(record)}", line, record)
        if self.keys is None:
            codes = list(pair)
            if nested and are_other_languages(codes, self.languages):
                raise self._line_error(f"texts in {', '.join(codes)}, not in {', '.join(self.languages)}", line)
            src_key, tgt_key = (pair_columns(codes, self.languages) or codes) if nested else ("src", "tgt")
            self.nested, self.keys = nested, (src_key, tgt_key)
        if nested != self.nested or pair.keys() != set(self.keys):
            raise self._line_error(
                f"earlier lines have the keys {', '.join(self.keys)}, this one {', '.join(pair)}", line
            )
        if nested:
            self.paths = f"translation.{self.keys[0]}", f"translation.{self.keys[1]}"
        src, tgt = (pair[key] for key in self.keys)
        if not isinstance(src, str) or not isinstance(tgt, str):
            found = {path: pair[key] for path, key in zip(self.paths, self.keys, strict=True)}
            raise self._line_error(f"both must be strings, found {outline(found)}", line)
        return src, tgt

    def _line_error(self, problem: str, line: str, record: object = None) -> LineError:
        suggested = None
        if isinstance(record, dict):
            languages = [key for key in record if is_language(key) and isinstance(record[key], str)]
            suggested = "--keys src={} tgt={}".format(*languages) if len(languages) == 2 else suggest_keys([record])
        expected = '{"src": …, "tgt": …} or {"translation": {"en": …, "fr": …}}'
        if self.named:
            expected = '{{"{}": …, "{}": …}}'.format(*self.named)
        if self.keys:  # known by a line before, or by --keys
            advice = "Fix --keys, or fix or delete the line." if self.field_keys else "Fix or delete the line."
        else:
            advice = f"Name the keys of the two texts, for instance: {suggested or '--keys src=en tgt=fr'}"
        return LineError(
            "malformed",
            f"expected {expected}, the same on every line: {problem}.\n  The line begins {line[:40]!r}",
            advice,
        )

    def render(self, src: str, tgt: str) -> str:
        """The last line with other texts."""
        record = self.record
        for path, text in zip(self.paths, (src, tgt), strict=True):
            record = replaced(record, path, text)
        return json.dumps(record, ensure_ascii=False)


def named_texts(record: Mapping[str, object], languages: Sequence[str] = ()) -> tuple[str, str] | None:
    """The keys of two texts of a JSON object that name source and target as columns do; None if there are none."""
    keys = pair_columns(list(record), languages)
    return keys if keys and all(isinstance(record[key], str) for key in keys) else None


def is_nested(record: object) -> bool:
    """Whether a JSON object has the two texts in an object, by their languages."""
    return isinstance(record, dict) and isinstance(record.get("translation"), dict)


def summary_keys(keys: Mapping[str, object]) -> tuple[str, str] | None:
    """The keys of the text and its summary in a JSON object, or None."""
    return next((pair for pair in SUMMARY_KEYS if pair[0] in keys and pair[1] in keys), None)


@dataclass(frozen=True, slots=True)
class PairFormat:
    """A format of sentence pairs."""

    make_parser: Callable[[Mapping[str, str], Sequence[str]], PairParser] | None
    """Creates a parser of the lines of a file, given the JSON keys of the fields and the languages. None: not read line
    by line, or parallel files of plain lines."""
    suffixes: tuple[str, ...] = ()
    """Suffixes of file names, lower-case, without .gz."""
    has_both_sides: bool = True
    """A file contains source and target. False: two files."""
    holds_pairs_only: bool = True
    """Files with these suffixes contain pairs. False: their content decides between translation and other tasks."""


PAIR_FORMATS: dict[str, PairFormat] = {
    "lines": PairFormat(None, has_both_sides=False, holds_pairs_only=False),
    "tsv": PairFormat(lambda *_: Tsv(), (".tsv",), holds_pairs_only=False),
    "csv": PairFormat(lambda *_: Tsv(), (".csv",), holds_pairs_only=False),  # read as a table: corpora/pair_tables.py
    "jsonl": PairFormat(Jsonl, (".jsonl", ".json", ".ndjson"), holds_pairs_only=False),
    **{name: PairFormat(None, suffixes) for name, suffixes in SUFFIXES.items()},
    "archive": PairFormat(None, ARCHIVES),
    "catalogue": PairFormat(None, (".properties", ".strings", ".arb", ".xml"), has_both_sides=False),
}
"""Name, as in --format -> format."""


def check_format(format: str | None) -> None:
    """Check the name of a format.

    Raises:
        ConfigError: there is no such format.
    """
    if format is not None and format not in PAIR_FORMATS:
        raise ConfigError(f"--format {format}: unknown.\n  Use one of: {', '.join(PAIR_FORMATS)}.")


ENTRY_FORMATS = (*SUFFIXES, "archive")
"""Formats of entries with both languages: see corpora/bilingual.py."""


def format_of(path: Path) -> str:
    """Format by file name, without .gz."""
    if format := both_sided_format(path):
        return format
    suffix = suffix_of(path)
    return next((name for name, format in PAIR_FORMATS.items() if suffix in format.suffixes), "lines")


def has_entries(path: Path, format: str | None) -> bool:
    """Whether a file has entries with both languages.

    Args:
        format: its format. Default: by its name.
    """
    return (format or format_of(path)) in ENTRY_FORMATS


def parser_of(format: str, keys: Mapping[str, str], languages: Sequence[str] = ()) -> PairParser | None:
    """A new parser for a single-file format, or None for parallel files of plain lines."""
    make_parser = PAIR_FORMATS[format].make_parser
    return make_parser(keys, languages) if make_parser else None
