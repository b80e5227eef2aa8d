"""Languages of parallel text, from the names of its files."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from glassformer.corpora.bilingual import Languages, declared_languages
from glassformer.corpora.columns import is_language, language_code, language_columns
from glassformer.corpora.jsonl import parse_json
from glassformer.corpora.lines import LineError
from glassformer.corpora.pair_formats import format_of, is_nested, named_texts
from glassformer.corpora.pair_tables import first_lines, open_pair_table
from glassformer.corpora.read_options import parse_keys
from glassformer.corpora.tables import open_table
from glassformer.errors import ConfigError

CODE = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z]{2,4}){0,2}")
"""Code of a language: ISO 639, with a script or a region."""

NOT_CODES = {"bpe", "csv", "raw", "ref", "src", "tgt", "tok", "tsv", "txt", "xml"}
"""Usual suffixes and keys that are no codes."""


def language_pair(codes: Sequence[str]) -> Languages:
    """Source and target language that the user gave; empty texts if none is given.

    Raises:
        ConfigError: the codes are not two different codes.
    """
    if not codes:
        return "", ""
    if len(codes) != 2 or codes[0] == codes[1] or not all(map(CODE.fullmatch, codes)):
        raise ConfigError(f"--languages {' '.join(codes)}: expected two different codes, for example: en fr.")
    return codes[0], codes[1]


def languages_of(
    src: Sequence[Path], tgt: Sequence[Path], keys: Sequence[str] = (), given: Sequence[str] = ()
) -> tuple[str, ...]:
    """Codes of source and target language; empty if they are not known.

    Args:
        src: source files.
        tgt: target files; none if the source files have both sides.
        keys: columns or JSON keys, each as FIELD=KEY.
        given: the codes, if the user gave them.

    Raises:
        ConfigError: the codes given are not two different codes.
    """
    if given:
        return language_pair(given)
    if tgt:
        names = [{path.name.removesuffix(".gz").rpartition(".")[2] for path in side} for side in (src, tgt)]
    else:
        fields = parse_keys(keys)
        if not fields and (codes := _header_codes(src)):
            fields = dict(zip(("src", "tgt"), map(language_code, codes), strict=True))
        if not fields and src and (found_codes := declared_languages(src[0])):
            return found_codes
        names = [{fields[side].rpartition(".")[2]} if side in fields else set() for side in ("src", "tgt")]
    found = [
        name for side in names if len(side) == 1 for name in side if CODE.fullmatch(name) and name not in NOT_CODES
    ]
    return tuple(found) if len(found) == 2 and found[0] != found[1] else ()


def has_columns_of(path: Path, format: str | None, languages: Sequence[str]) -> bool:
    """Whether a file is a table with columns, or JSON with keys, that are named by two languages.

    Args:
        format: a name in PAIR_FORMATS. Default: by the name of the file.
    """
    if not languages or not path.is_file():
        return False
    match format or format_of(path):
        case "csv" | "tsv" as format:
            table = open_table(path, format=format, whole=False, lenient=True)
            return table.has_header and language_columns(table.names, languages) is not None
        case "jsonl":
            return language_columns(list(first_texts(path)), languages) is not None
    return False


def _header_codes(src: Sequence[Path]) -> tuple[str, str] | None:
    """Names of the columns of the first file, if it is a table of pairs; of JSON the keys, if they are languages."""
    if not src or not src[0].is_file():
        return None
    match format_of(src[0]):
        case "csv" | "tsv" as format:
            table = open_pair_table(src[0], format, {}, whole=False, lenient=True)
            return table.names if table else None
        case "jsonl":
            names = named_texts(first_texts(src[0]))
            return names if names and all(map(is_language, names)) else None
    return None


def first_texts(path: Path) -> dict[str, Any]:
    """The object with the texts in the first line of a file; empty if there is none, which the command reports."""
    try:
        record = parse_json(next(first_lines(path, 1), ""))
    except LineError:
        return {}
    if not isinstance(record, dict):
        return {}
    return record["translation"] if is_nested(record) else record
