"""tasks.multitask: JSON records to examples, and what each refusal says."""

import json
from pathlib import Path

import pytest

from glassformer.errors import CorpusError
from glassformer.tasks.multitask import Multitask


def read(folder: Path, record: dict) -> list[tuple[str, str]]:
    (folder / "a.jsonl").write_text(json.dumps(record) + "\n")
    return [(example.src, example.tgt) for example in Multitask.read([folder / "a.jsonl"], [])]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"task": "t", "src": "a  b", "tgt": "c"}, ("t: a b", "c")),
        ({"task": "t", "text": "a", "label": 3}, ("t sentence: a", "3")),
        ({"task": "t", "text": "a", "label": "x", "id": None}, ("t sentence: a", "x")),
        ({"task": "t", "text": "a", "text2": "b", "label": 0.5}, ("t sentence1: a sentence2: b", "0.5")),
        ({"task": "t", "question": "q", "context": "c", "answer": "a"}, ("t question: q context: c", "a")),
    ],
)
def test_the_source_begins_with_the_task_and_the_names_of_the_fields(tmp_path, record, expected):
    assert read(tmp_path, record) == [expected]


@pytest.mark.parametrize("label", [None, [], {}])
@pytest.mark.parametrize("second", [{}, {"text2": "b"}])
def test_a_label_is_a_text_or_a_number(tmp_path, label, second):
    with pytest.raises(
        CorpusError, match=r"a\.jsonl:1: expected task, src and tgt; .*\n.*The label is a text or a num"
    ):
        read(tmp_path, {"task": "t", "text": "a", **second, "label": label})


@pytest.mark.parametrize(
    ("record", "what"),
    [
        ({"task": "t", "src": "  ", "tgt": ""}, "text"),
        ({"task": "t", "src": "a", "tgt": " "}, "target"),
        ({"task": "t", "text": "a", "label": ""}, "target"),
        ({"task": "t", "text": "", "text2": "\t", "label": 1}, "text"),
        ({"task": "t", "question": "", "context": " ", "answer": "a"}, "text"),
    ],
)
def test_a_blank_text_or_target_is_refused(tmp_path, record, what):
    with pytest.raises(CorpusError, match=rf"a\.jsonl:1: no {what}: it is blank\.\n  Fix or delete the line"):
        read(tmp_path, record)
