"""Inference of the task from corpus files."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal

from glassformer.corpora.columns import guess_columns, is_labeled, pair_columns, parse_number, roles_of
from glassformer.corpora.corpus import N_DETECTION_LINES
from glassformer.corpora.encoding import Encoding, detect_encoding
from glassformer.corpora.jsonl import column_values, outline, read_each, suggest_keys
from glassformer.corpora.labeled import check_known
from glassformer.corpora.lines import (
    STDIN,
    byte_lines,
    check_readable,
    name,
    read_lines,
    refuse_streams,
    suffix_of,
)
from glassformer.corpora.pair_formats import PAIR_FORMATS, format_of, is_nested, named_texts, summary_keys
from glassformer.corpora.read_options import DETECT, ReadOptions, parse_keys
from glassformer.corpora.tables import SAMPLE_BYTES, Table, open_table
from glassformer.corpora.tagged import SPAN_TAG, suggest_tagging_keys, tagging_keys
from glassformer.errors import ConfigError, CorpusError

TaskName = Literal[
    "translation",
    "causal-lm",
    "classification",
    "regression",
    "tagging",
    "question-answering",
    "multitask",
    "summarization",
]

TASK_FORMATS: Mapping[TaskName, str] = {
    "translation": 'two text files, line n to line n; src TAB tgt; CSV with src, tgt; or JSONL {"src": …, "tgt": …}',
    "causal-lm": "one text file",
    "classification": 'CSV or TSV with text and label, and text2 for pairs; or JSONL {"text": …, "label": …}',
    "regression": "as for classification, with numbers as labels; preferably in a column named score",
    "tagging": 'CoNLL or CoNLL-U; or JSONL {"words": […], "tags": […]}',
    "question-answering": "SQuAD's JSON",
    "multitask": 'JSONL {"task": …, …}',
    "summarization": 'JSONL {"text": …, "summary": …}, text or dialogue or document; or article, highlights',
}
"""Task -> file formats."""

MAX_NUMERIC_CLASSES = 20
"""Maximum number of classes; more distinct numbers are regression targets."""

_SQUAD = re.compile(rb'"(paragraphs|qas)"\s*:')


def find_task(paths: Sequence[Path], options: ReadOptions = DETECT, *, lenient: bool = False) -> TaskName:
    """Infer the task from file names, header rows or JSON keys, and the format of the first lines.

    Args:
        options: format and keys given by the user.
        lenient: replace what is not text; see `Encoding`.

    Raises:
        ConfigError: the task cannot be inferred.
        CorpusError: a file is missing, or its beginning is not readable as text.
    """
    if not paths:
        raise ConfigError("no file given.\n  Give the files to train on.")
    if STDIN in paths:
        raise _unknown("standard input", "it can be read only once, so it was not inspected")
    refuse_streams(paths, "training reads its text several times")
    check_readable(*paths, by_content=options.format is None)
    if options.format == "lines":
        return "translation" if len(paths) == 2 else "causal-lm"
    detected = {path: _task_of(path, options, lenient=lenient) for path in paths}
    tasks = set(detected.values())
    if tasks == {"causal-lm"} and len(paths) == 2:
        return "translation"
    if len(tasks) > 1 or (tasks == {"causal-lm"} and len(paths) > 2):
        details = "; ".join(f"{name(path)}: {task}" for path, task in detected.items())
        raise _unknown(f"{len(paths)} files", details)
    return tasks.pop()


def _unknown(files: str, reason: str) -> ConfigError:
    format_list = "\n".join(f"    {task:14} {format}" for task, format in TASK_FORMATS.items())
    return ConfigError(f"{files}: cannot infer the task: {reason}.\n  Use --task. File formats by task:\n{format_list}")


def _task_of(path: Path, options: ReadOptions, *, lenient: bool) -> TaskName:
    if PAIR_FORMATS[options.format or format_of(path)].holds_pairs_only:
        return "translation"
    field_keys = parse_keys(options.keys)
    match PAIR_FORMATS[options.format].suffixes[0] if options.format else suffix_of(path):
        case ".conll" | ".conllu" | ".bio":
            return "tagging"
        case ".json" if any(map(_SQUAD.search, islice(byte_lines(path), N_DETECTION_LINES))):
            return "question-answering"
        case ".jsonl" | ".json" | ".ndjson":
            return _task_of_objects(path, field_keys, options.languages, lenient=lenient)
        case ".csv":
            return _task_of_table(path, field_keys, options, lenient=lenient)
        case _ if {"src", "tgt"} <= field_keys.keys():  # of a table, or of the dev set of parallel text
            return "translation"
        case suffix:
            encoding = detect_encoding(path, SAMPLE_BYTES, lenient=lenient)
            lines = list(islice(read_lines(path, encoding.recode), N_DETECTION_LINES))
            if {"words", "tags"} & field_keys.keys() or (not field_keys and _is_tagging(lines)):
                return "tagging"
            has_tabs = suffix == ".tsv" or is_labeled(lines[0].split("\t")) or all("\t" in line for line in lines)
            is_table = field_keys or has_tabs or all(line.count("\t") == 1 for line in lines if line.strip())
            return _task_of_table(path, field_keys, options, lenient=lenient) if is_table else "causal-lm"


def _task_of_table(path: Path, field_keys: Mapping[str, str], options: ReadOptions, *, lenient: bool) -> TaskName:
    table = open_table(path, field_keys.values(), format=options.format, whole=False, lenient=lenient)
    indices = table.indices(field_keys)
    if {"src", "tgt"} & indices.keys():
        return "translation"
    if "summary" in indices:
        return "summarization"
    if table.has_header and not field_keys and pair_columns(table.names, options.languages):
        return "translation"
    if table.has_header and not field_keys and summary_keys(dict.fromkeys(table.names)):
        return "summarization"
    if "label" not in indices:
        guess = guess_columns(table.values(), has_names=table.has_header)
        if guess.problem and _are_pairs(table):
            return "translation"
        if not field_keys or "label" not in guess.fields:
            check_known(guess, path, table.outline(), may_be_pairs=True)
        indices = table.indices(guess.fields)
    cells = [row[indices["label"]] for row in table.sample if len(row) == len(table.names)]
    return task_of_labels([cell for cell in cells if cell.strip()], table.names[indices["label"]])


def _are_pairs(table: Table) -> bool:
    """Whether a table without a header has two tab-separated columns of texts, neither of which repeats."""
    if table.has_header or table.delimiter != "\t" or len(table.names) != 2:
        return False
    # Labels repeat often, sentences rarely.
    return not any(len(cells) >= 4 and len(set(cells)) <= max(2, len(cells) // 10) for cells in table.values().values())


def _task_of_objects(path: Path, field_keys: Mapping[str, str], languages: Sequence[str], *, lenient: bool) -> TaskName:
    records = read_each(path, field_keys, Encoding(lenient=lenient).recode)
    sample = [record for _, record in islice(records, N_DETECTION_LINES)]
    objects = [record for record in sample if not isinstance(record, CorpusError)]
    if not objects:
        reason, _, advice = str(sample[0]).partition("\n")
        raise _unknown(name(path), f"{reason.removeprefix(f'{name(path)}:1: ')}\n{advice}".rstrip("."))
    first = objects[0]
    keys = first.keys()
    if "task" in keys:
        return "multitask"
    if keys == {"src", "tgt"} or is_nested(first) or named_texts(first, languages):
        return "translation"
    if {"words", "tags"} <= keys or (not field_keys and tagging_keys(first)):
        return "tagging"
    if summary_keys(first):
        return "summarization"
    if keys == {"text"}:
        return "causal-lm"
    if is_labeled(keys):
        key = roles_of(keys)["label"][0]
        return task_of_labels([str(record.get(key)) for record in objects], key)
    guess = guess_columns(column_values(objects)) if not field_keys else None
    if guess and not guess.problem:
        key = guess.fields["label"]
        return task_of_labels([value for value in column_values(objects)[key] if value.strip()], key)
    suggested = None if field_keys else suggest_tagging_keys(first) or suggest_keys(objects)
    advice = f".\n  Give the keys of the fields, for example: {suggested}" if suggested else ""
    raise _unknown(name(path), f"its first line is {outline(first)}{advice}")


def task_of_labels(labels: Sequence[str], key: str = "") -> TaskName:
    """Regression if all labels are numbers, and some have fractions, they are many, or they are called a score."""
    numbers = [number for label in labels if (number := parse_number(label)) is not None]
    if not labels or len(numbers) < len(labels):
        return "classification"
    has_fractions = any(number % 1 for number in numbers)
    is_quantity = has_fractions or len(set(labels)) > MAX_NUMERIC_CLASSES or key.strip().lower() == "score"
    return "regression" if is_quantity else "classification"


def _is_tagging(lines: Sequence[str]) -> bool:
    """Whether lines are words with tags: rows with equal numbers of cells, and blank lines between sentences."""
    rows = [line for line in lines if line.strip() and not line.startswith(("-DOCSTART-", "#"))]
    if not rows:
        return False
    if all("\t" in line for line in rows):
        cells = [line.split("\t") for line in rows]
        has_blank = any(not line.strip() for line in lines)
        is_short = not any(" " in cell for row in cells for cell in row)
        has_sentences = has_blank and (len(cells[0]) > 2 or _are_tags([row[-1] for row in cells]))
        has_shape = is_short and (has_sentences or all(SPAN_TAG.fullmatch(row[-1]) for row in cells))
    else:
        cells = [line.strip(" ").split(" ") for line in rows]
        has_shape = all(SPAN_TAG.fullmatch(row[-1]) for row in cells)
    return has_shape and len({len(row) for row in cells}) == 1 and len(cells[0]) > 1


def _are_tags(cells: Sequence[str]) -> bool:
    """Whether cells are tags and not words, such as those of a list of misspelled and correct words: few different
    ones, of which one is frequent.
    """
    counts = Counter(cells)
    return 2 * len(counts) <= len(cells) <= 10 * max(counts.values())
