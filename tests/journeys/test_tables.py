"""Tables whose rows get the outputs of a model as columns."""

import csv
import json
from pathlib import Path

import pytest

from glassformer.corpora.table_texts import read_rows
from tests.journeys.conftest import SMALL, glassformer, write_lines
from tests.journeys.test_bad_input import refused

TEXTS = ["a lovely warm film", 'a "dull", long film\nin two lines', "", "so dull and so long"]


@pytest.fixture(scope="module")
def opinions(tmp_path_factory) -> Path:
    """A classifier."""
    folder = tmp_path_factory.mktemp("opinions")
    rows = [
        f"{'lovely warm' if i % 2 else 'dull long'} film number {i},{'good' if i % 2 else 'bad'}" for i in range(60)
    ]
    table = write_lines(folder / "reviews.csv", ["review,opinion", *rows])
    done = glassformer("train", table, "--out", folder / "model", "--steps", 60, *SMALL)
    assert done.returncode == 0, done.stderr
    return folder / "model"


def write_table(path, rows, delimiter=","):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)
    return path


def table(path, delimiter=","):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file, delimiter=delimiter))


def classes(model, texts):
    """Class and probability of each text, as standard input gives them."""
    lines = "".join(" ".join(text.split("\n")) + "\n" for text in texts)
    records = [json.loads(line) for line in glassformer("classify", model, "--json", stdin=lines).stdout.splitlines()]
    return [
        [record["output"], str(round(max(record["probabilities"].values()), 4)) if record["probabilities"] else ""]
        for record in records
    ]


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_a_table_gets_the_class_of_each_row_and_its_probability(opinions, tmp_path, delimiter):
    rows = [[str(i), text, "x, y; z"] for i, text in enumerate(TEXTS)]
    file = write_table(tmp_path / "new.csv", [["id", "review", "note"], *rows], delimiter)
    done = glassformer("classify", opinions, file, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "header row; text = column 'review'" in done.stderr
    found = table(tmp_path / "out" / "new.csv", delimiter)
    assert found[0] == ["id", "review", "note", "prediction", "probability"]
    assert found[1:] == [row + added for row, added in zip(rows, classes(opinions, TEXTS), strict=True)]
    assert {row[3] for row in found[1:]} == {"good", "bad", ""}


@pytest.mark.parametrize("header", [["id", "review", "note"], None])
def test_tsv_with_a_header_or_more_columns_is_a_table(opinions, tmp_path, header):
    texts = [
        "a lovely warm film",
        'a "dull", long film',
        "",
        "so dull and so long",
        "a warm and lovely film of many words",
    ]
    rows = [[str(i), text, f"{i % 2}"] for i, text in enumerate(texts)]
    file = write_lines(tmp_path / "new.tsv", ["\t".join(row) for row in ([header] if header else []) + rows])
    done = glassformer("classify", opinions, file, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    found = [line.split("\t") for line in (tmp_path / "out" / "new.tsv").read_text().splitlines()]
    if header:
        assert found.pop(0) == [*header, "prediction", "probability"]
    assert found == [row + added for row, added in zip(rows, classes(opinions, texts), strict=True)]


def test_tsv_of_two_columns_without_a_header_is_lines(opinions, tmp_path):
    file = write_lines(tmp_path / "new.tsv", ["a lovely film\tof many words", "a dull film\tof many words"])
    done = glassformer("classify", opinions, file, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "new.tsv").read_text().splitlines() == glassformer(
        "classify", opinions, stdin=file.read_text()
    ).stdout.splitlines()


def test_a_question_and_its_context_are_found_by_their_names(tmp_path):
    file = write_table(
        tmp_path / "q.csv", [["id", "Context", "question"], ["1", "Ann lives here .", "Who lives here?"]]
    )
    objects = write_lines(tmp_path / "q.jsonl", ['{"question": "Who lives here?", "context": "Ann lives here ."}'])
    for path in (file, objects):
        assert [row.text for row in read_rows(path, (), lambda message: None)][
            -1
        ] == "Who lives here?\tAnn lives here ."


def test_blank_lines_of_a_table_stay_blank_rows(opinions, tmp_path):
    (tmp_path / "new.csv").write_text("id,review\n1,a lovely film\n\n2,a dull film\n\n")
    done = glassformer("classify", opinions, tmp_path / "new.csv", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert [row[:2] for row in table(tmp_path / "out" / "new.csv")[1:]] == [
        *(["1", "a lovely film"], ["", ""], ["2", "a dull film"], ["", ""]),
    ]


def test_columns_are_named_by_keys_and_several_processes_write_the_same(opinions, tmp_path):
    texts = [f"{'lovely' if i % 3 else 'dull'} film {i}" for i in range(1500)]
    rows = [["when", "said by", "said"], *(["2026", "Ann and Bob and Eve", text] for text in texts)]
    file = write_table(tmp_path / "said.csv", rows)
    for out, workers in (("one", ()), ("two", ("--workers", 2))):
        done = glassformer(
            "classify", opinions, file, "--keys", "text=said", "--out", tmp_path / out, *workers, "--threads", 2
        )
        assert done.returncode == 0, done.stderr
    one, two = ((tmp_path / out / "said.csv").read_bytes() for out in ("one", "two"))
    assert one == two
    assert [row[3] for row in table(tmp_path / "one" / "said.csv")[1:]] == [row[0] for row in classes(opinions, texts)]


def test_objects_of_json_get_keys(opinions, tmp_path):
    objects = [{"id": i, "review": text, "more": {"a": [1, None]}} for i, text in enumerate(TEXTS)]
    file = write_lines(tmp_path / "new.jsonl", [json.dumps(each) for each in objects])
    done = glassformer("run", opinions, file, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in (tmp_path / "out" / "new.jsonl").read_text().splitlines()]
    added = [[each.pop("prediction"), str(each.pop("probability"))] for each in found]
    assert found == objects
    assert added == classes(opinions, TEXTS)


def test_a_translator_writes_a_column(model, tmp_path):
    file = write_table(tmp_path / "text.csv", [["text"], ["The cat slept."], ["A dog."]])
    assert glassformer("run", model, file, "--out", tmp_path / "out").returncode == 0
    lines = glassformer("run", model, stdin="The cat slept.\nA dog.\n").stdout.splitlines()
    assert [row[1] for row in table(tmp_path / "out" / "text.csv")] == ["prediction", *lines]
    refused(glassformer("translate", model, file, "--out", tmp_path / "out2"), 2, "a table, which `run` translates")
    catalogue = tmp_path / "texts.json"
    catalogue.write_text('{"title": "The cat slept."}')
    assert glassformer("translate", model, catalogue, "--out", tmp_path / "out3").returncode == 0
    assert json.loads((tmp_path / "out3" / "texts.json").read_text()) == {"title": " ".join(lines[0].split())}


def test_a_table_whose_text_is_not_known_is_named_and_others_are_done(opinions, tmp_path):
    texts = ["the first of many", "another long text here", "and a third one too"]
    write_table(tmp_path / "odd.csv", [["title", "body", "summary text"], texts, texts])
    write_table(tmp_path / "bad.csv", [["text", "x"], ["a film", "1"], ["a film", "1", "2"]])
    write_table(tmp_path / "good.csv", [["text"], ["a film"]])
    files = [tmp_path / f"{name}.csv" for name in ("odd", "bad", "good")]
    done = glassformer("classify", opinions, *files, "--out", tmp_path / "out")
    assert done.returncode == 1
    assert "body or summary text may be the text" in done.stderr
    assert "--keys text=COLUMN" in done.stderr
    assert "bad.csv:3: expected 2 columns" in done.stderr
    assert [path.name for path in (tmp_path / "out").glob("*.csv")] == ["good.csv"]


def test_a_first_row_that_is_not_taken_for_names_is_mentioned(opinions, tmp_path):
    write_table(tmp_path / "rows.csv", [["1", "a lovely film of many words"], ["2", "a dull film of many words"]])
    done = glassformer("classify", opinions, tmp_path / "rows.csv", "--out", tmp_path / "out")
    assert "no header row; text = column '2'. If the first row has the names" in done.stderr
    assert [len(row) for row in table(tmp_path / "out" / "rows.csv")] == [4, 4]


def test_options_that_do_not_fit_a_table_are_refused(opinions, tmp_path):
    file = write_table(tmp_path / "new.csv", [["text"], ["a film"]])
    lines = write_lines(tmp_path / "new.txt", ["a film"])
    command = ["classify", opinions, file, "--out", tmp_path / "out"]
    refused(glassformer(*command, "--json"), 2, "gets its outputs as columns")
    refused(glassformer(*command[:2], tmp_path, *command[3:], "--json"), 2, "gets its outputs as columns")
    refused(
        glassformer(*command[:2], lines, *command[3:], "--keys", "text=a"),
        2,
        "--keys: for tables (.csv, .jsonl, .ndjson, .json, .tsv)",
    )
    refused(glassformer("classify", opinions, "--keys", "text=a", stdin="a film\n"), 2, "--keys: for files")
    again = glassformer("classify", opinions, write_table(tmp_path / "done.csv", [["text", "prediction"], ["a", "b"]]),
                        "--out", tmp_path / "out")  # fmt: skip
    refused(again, 1, "has a column 'prediction'", "Rename it")
    done = glassformer(*command, "--keys", "label=a")
    assert done.returncode == 1
    assert "expected text, text and text2" in done.stderr
    done = glassformer("classify", opinions, file)
    refused(done, 2, f"{file} --out FOLDER")
    assert " < " not in done.stderr


def test_a_table_on_standard_input_is_mentioned(opinions):
    for header, is_mentioned in (("id,review", True), ('"id";"text"', True), ("review, please", False), ("a,b", False)):
        done = glassformer("classify", opinions, stdin=f"{header}\n1,a film\n")
        assert done.stdout.count("\n") == 2
        assert ("names of columns" in done.stderr) == is_mentioned, header


def test_unquoted_tsv_stays_without_quotes(tmp_path):
    file = write_lines(tmp_path / "new.tsv", ["id\ttext", '1\tHe said "yes".', "2\t"])
    head, first, second = read_rows(file, [], lambda message: None)
    assert head.extended({"prediction": ""}) == "id\ttext\tprediction"
    assert first.extended({"prediction": 'Il a dit\t"oui".'}) == '1\tHe said "yes".\tIl a dit "oui".'
    assert second.extended({"prediction": ""}) == "2\t\t"
    quoted = write_lines(tmp_path / "quoted.tsv", ["id\ttext", '1\t"a\tb"'])
    (_, row) = read_rows(quoted, [], lambda message: None)
    assert row.extended({"prediction": 'a "b"'}) == '1\t"a\tb"\t"a ""b"""'
