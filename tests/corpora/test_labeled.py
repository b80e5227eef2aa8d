"""corpora.labeled: JSONL, TSV and CSV to texts with labels, and what each refusal says."""

import csv
import gzip
import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.corpora.detect import find_task
from glassformer.corpora.labeled import Labeled, read_labeled
from glassformer.errors import ColumnsError, ConfigError, CorpusError

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=7)
LABEL = TEXT.map(str.strip).filter(bool)
RECORDS = st.lists(st.tuples(TEXT, TEXT, LABEL), min_size=1, max_size=5)
quick = settings(max_examples=40)


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def fields(*paths: Path, keys: tuple[str, ...] = ()) -> list[tuple[str, str | None, str, int]]:
    return [(e.text, e.text2, e.label, e.line) for e in read_labeled(paths, keys)]


def refusal(path: Path, keys: tuple[str, ...] = ()) -> str:
    with pytest.raises(CorpusError) as caught:
        fields(path, keys=keys)
    return str(caught.value)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("labeled")


@given(RECORDS)
@quick
def test_csv_reads_what_csv_writes(folder, records):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("text", "text2", "label"), *records])
    assert [each[:3] for each in fields(write(folder / "a.csv", text.getvalue()))] == records


@given(RECORDS)
@quick
def test_jsonl_reads_what_json_writes(folder, records):
    lines = [json.dumps(dict(zip(("text", "text2", "label"), record, strict=True))) for record in records]
    assert [each[:3] for each in fields(write(folder / "a.jsonl", "\n".join(lines)))] == records


@pytest.mark.parametrize(
    ("keys", "line", "expected"),
    [
        (("text=4", "label=2"), "gj04\t0\t*\tThey slept it.\n", ("They slept it.", None, "0", 1)),
        (("text=3", "label=1"), "HUM\tHUM:ind\tWho slept ?\n", ("Who slept ?", None, "HUM", 1)),
        (("label=1,text=2",), 'pos\tan " odd " film\n', ('an " odd " film', None, "pos", 1)),
        (("text=1", "text2=2", "label=3"), "one\ttwo\t3.5\r\n", ("one", "two", "3.5", 1)),
    ],
)
def test_numbers_name_the_columns_of_a_file_without_header(tmp_path, keys, line, expected):
    assert fields(write(tmp_path / "a.tsv", line), keys=keys) == [expected]


def test_a_header_row_names_the_columns_in_any_order_and_case(tmp_path):
    path = write(tmp_path / "a.tsv", "idx\tLabel\tSentence2\tSentence1\n7\tyes\tb\ta\n")
    assert fields(path) == [("a", "b", "yes", 2)]


def test_a_quoted_cell_may_contain_newlines_and_the_line_is_that_of_its_start(tmp_path):
    path = write(tmp_path / "a.csv", 'text,label\r\n"one\r\ntwo, ""three""",x\r\nfour,y\r\n')
    assert fields(path) == [('one\ntwo, "three"', None, "x", 2), ("four", None, "y", 4)]


def test_quotes_in_tsv_are_text(tmp_path):
    assert fields(write(tmp_path / "a.tsv", 'text\tlabel\n"one\tx\n'))[0][0] == '"one'


@pytest.mark.parametrize(("label", "spelled"), [("7", "7"), ("2.50", "2.5"), ("true", "true"), ('" a "', "a")])
def test_a_json_label_is_formatted_as_json(tmp_path, label, spelled):
    path = write(tmp_path / "a.jsonl", '{"id": 1, "text": "one", "label": ' + label + "}")
    assert fields(path) == [("one", None, spelled, 1)]


def test_files_follow_each_other_and_gzip_reads_like_plain(tmp_path):
    packed = write(tmp_path / "a.tsv.gz", gzip.compress(b"text\tlabel\none\tx\n"))
    plain = write(tmp_path / "b.jsonl", '{"sentence": "", "class": "y", "text2": null}')
    assert [(e.text, e.path) for e in read_labeled([packed, plain])] == [("one", str(packed)), ("", str(plain))]


def test_a_number_is_read_from_the_label():
    assert Labeled("one", None, "-2.5e1", "a", 3).number() == -25


@pytest.mark.parametrize("label", ["high", "nan", "inf", ""])
def test_a_label_that_is_not_a_number_is_an_error(label):
    with pytest.raises(CorpusError, match=r"a:3: the label .* is not a finite number"):
        Labeled("one", None, label, "a", 3).number()


# name, content, keys -> the line named, what is said, how to mend it
BROKEN = {
    "few cells": ("a.tsv", "text\tlabel\none\tx\ntwo\n", (), 3, "expected 2 columns (text, label), found 1", "'two'"),
    "many cells": ("a.csv", "text,label\none,two,x\n", (), 2, "expected 2 columns (text, label), found 3", "'one'"),
    "open quote": ("a.csv", 'text,label\none,x\n"two,x\nthree,y\n', (), 3, "not CSV: unexpected end", "quote missing"),
    "stray quote": ("a.csv", 'text,label\n"one" two,x\n', (), 2, "not CSV: ',' expected after '\"'", "twice"),
    "no label": ("a.tsv", "text\tlabel\none\t \n", (), 2, "no label; the text begins 'one'", "delete"),
    "not json": ("a.jsonl", '{"text": "one", "label": 1}\nx\n', (), 2, "expected one JSON object per line", "Fix"),
    "array": ("a.jsonl", "[1]\n", (), 1, "expected one JSON object per line, found list", "Fix"),
    "no key": ("a.jsonl", '{"text": "one"}\n', (), 1, "nothing names the label", "{text: str}"),
    "null label": ("a.jsonl", '{"text": "one", "label": null}\n', (), 1, "nothing names the label", "--keys"),
    "list label": ("a.jsonl", '{"text": "one", "label": ["x"]}\n', (), 1, "the label: list instead of a string", ""),
    "endless label": ("a.jsonl", '{"text": "one", "label": 1e999}\n', (), 1, "the label: float instead of", ""),
    "half a character": ("a.jsonl", '{"text": "\\ud800", "label": 1}\n', (), 1, "the text: an unpaired surrogate", ""),
    "nul": ("a.jsonl", '{"text": "\\u0000", "label": 1}\n', (), 1, "the text: a NUL character", ""),
    "other keys": ("a.jsonl", '{"text": "a", "label": 1}\n{"text": "a", "text2": "b", "label": 1}', (), 2,
                   "earlier lines have the keys text, label, this one text, text2, label", "all without"),
}  # fmt: skip


@pytest.mark.parametrize("fault", BROKEN)
def test_an_invalid_line_is_reported_with_location_and_advice(tmp_path, fault):
    file, content, keys, line, expected_message, remedy = BROKEN[fault]
    path = write(tmp_path / file, content)
    message = refusal(path, keys)
    assert message.startswith(f"{path}:{line}: ")
    assert expected_message in message
    assert remedy in message.split("\n", 1)[1]


@pytest.mark.parametrize(
    "keys", [("text=1",), ("label=2",), ("text=1", "text=2", "label=3"), ("text=1", "label=2", "src=3"), ("label",)]
)
def test_keys_without_one_text_and_one_label_are_an_error_before_reading(tmp_path, keys):
    with pytest.raises(ConfigError, match=r"--keys .*\n  \w"):
        read_labeled([tmp_path / "absent.tsv"], keys)


def test_a_missing_second_file_is_reported_before_the_first_is_read(tmp_path):
    with pytest.raises(CorpusError, match=r"b\.tsv: no such file"):
        read_labeled([write(tmp_path / "a.tsv", "x\n"), tmp_path / "b.tsv"])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("one\tx\n", "no column looks like the label"),
        ("text\tlabel\tscore\na\tb\tc\n", "label and score both name the label"),
        ("text\ttweet\tlabel\na b c\td e f\tx\n", None),
    ],
)
def test_unknown_columns_are_an_error_with_header_and_rows(tmp_path, content, problem):
    path = write(tmp_path / "a.tsv", content)
    if problem is None:
        assert fields(path) == [("a b c", None, "x", 2)]
        return
    with pytest.raises(ColumnsError, match=problem) as caught:
        fields(path)
    assert "Row: " + content.split("\n")[content.startswith("text")].replace("\t", " | ") in str(caught.value)


def test_blank_rows_are_blank_texts(tmp_path):
    assert fields(write(tmp_path / "a.csv", "text,label\n\nb,x\n,\n")) == [
        ("", None, "", 2), ("b", None, "x", 3), ("", None, "", 4)
    ]  # fmt: skip


def test_rows_that_cannot_be_used_are_counted_and_skipped_on_request(tmp_path):
    path = write(tmp_path / "a.csv", "text,label\na,x\nb,\nc\nd,y\n")
    message = refusal(path)
    assert message.startswith(f"{path}:3: no label; the text begins 'b'")
    assert "2 of 4 rows cannot be used. To leave them out: --skip-bad." in message
    logged: list[str] = []
    kept = [e.text for e in read_labeled([path], skip_bad=True, log=logged.append)]
    assert kept == ["a", "d"]
    assert logged == [
        f"warning: 2 of 4 rows cannot be used and were left out (--skip-bad). The first: {path}:3: no label;"
        " the text begins 'b'."
    ]


def test_malformed_lines_of_jsonl_are_counted_and_skipped_on_request(tmp_path):
    path = write(
        tmp_path / "a.jsonl", '{"text": "a", \n{"text": "b", "label": "x"}\n[1]\n{"text": "c", "label": "y"}\n'
    )
    assert "2 of 4 rows cannot be used. To leave them out: --skip-bad." in refusal(path)
    logged: list[str] = []
    assert [e.text for e in read_labeled([path], skip_bad=True, log=logged.append)] == ["b", "c"]
    assert logged[0].startswith("warning: 2 of 4 rows cannot be used and were left out (--skip-bad). The first: ")
    assert f"{path}:1: expected one JSON object per line (JSONDecodeError" in logged[0]
    assert find_task([path]) == "classification"


def test_of_several_columns_that_may_be_the_label_the_suggested_one_is_in_every_row_and_a_number(tmp_path):
    """A code of the source, the label and a mark that only some rows have, as in CoLA."""
    codes = ["gj04", "cj99"]
    rows = [f"{codes[i > 20]}\t{i % 2}\t{'*' * (i % 3)}\tthe sentence number {i} is new\n" for i in range(40)]
    path = write(tmp_path / "a.tsv", "".join(rows))
    with pytest.raises(ColumnsError, match="1 or 2 or 3 may be the label") as caught:
        fields(path)
    assert caught.value.keys == "--keys text=4 label=2"
