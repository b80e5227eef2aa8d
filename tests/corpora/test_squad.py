"""corpora.questions: SQuAD's JSON to questions with answers that stand where they say."""

import copy
import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer import limits
from glassformer.corpora.squad import read_questions
from glassformer.errors import CorpusError

CONTEXT = "Die 3 Söhne aßen 𝟛 Äpfel, die Töchter 3 Birnen."


def squad(*qas: dict, context: str = CONTEXT) -> dict:
    return {"version": "v2.0", "data": [{"title": "t", "paragraphs": [{"context": context, "qas": list(qas)}]}]}


def question(*answers: tuple[str, int], id: str = "q1", **more) -> dict:
    listed = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": id, "question": "Wer?", "answers": listed, **more}


def write(path: Path, content: object) -> Path:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def answers(path: Path) -> list[tuple[tuple[str, int], ...]]:
    return [each.answers for each in read_questions([path])]


@given(st.text(min_size=1, max_size=13), st.integers(0, 12), st.integers(1, 13))
@settings(max_examples=40)
def test_a_correct_start_is_kept(tmp_path_factory, context, start, length):
    text = context[start : start + length]
    if text.strip() and "\0" not in context:
        path = tmp_path_factory.mktemp("q") / "a.json"
        assert answers(write(path, squad(question((text, start)), context=context))) == [((text, start),)]


@pytest.mark.parametrize("start", [4, 38])
def test_the_given_start_is_kept_among_several_occurrences(tmp_path, start):
    assert answers(write(tmp_path / "a.json", squad(question(("3", start))))) == [(("3", start),)]


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
@pytest.mark.parametrize("indent", [None, 2])
def test_questions_have_context_and_location(tmp_path, name, indent):
    data = squad(question(("Söhne", 6)), question(("Äpfel", 19), ("𝟛 Äpfel", 17), id="q2"))
    path = write(tmp_path / name, b"\xef\xbb\xbf" + json.dumps(data, indent=indent).encode())
    first, second = read_questions([path])
    assert (first.id, first.question, first.context, first.index) == ("q1", "Wer?", CONTEXT, 1)
    assert (second.answers, second.path, second.index) == ((("Äpfel", 19), ("𝟛 Äpfel", 17)), str(path), 2)


def test_an_impossible_question_has_no_answers(tmp_path):
    plausible = question(is_impossible=True, plausible_answers=[{"text": "Söhne", "answer_start": 6}])
    bare = {"id": "q2", "question": "Wer?", "is_impossible": True}
    assert answers(write(tmp_path / "a.json", squad(plausible, bare, question(id="q3")))) == [(), (), ()]


@pytest.mark.parametrize("start", [5, 0, 997, -2])
def test_a_wrong_start_is_corrected_if_the_answer_occurs_once(tmp_path, start):
    assert answers(write(tmp_path / "a.json", squad(question(("Söhne", start))))) == [(("Söhne", 6),)]


# answers -> what is said
MISPLACED = {
    "nowhere": (("Tochter", 30), "'Tochter' is not at 30 of its context: 'Töchter' is there.\n  The text occurs"),
    "several": (("3", 5), "'3' is not at 5 of its context: ' ' is there.\n  The text occurs several times"),
    "beyond": (("Tochter", 997), "nothing is there"),
    "negative": (("Tochter", -3), "nothing is there"),
    "empty": (("", 3), "an empty answer"),
}  # fmt: skip


@pytest.mark.parametrize("fault", MISPLACED)
def test_an_answer_at_a_wrong_position_is_an_error_with_file_question_and_the_text_there(tmp_path, fault):
    answer, expected_message = MISPLACED[fault]
    path = write(tmp_path / "a.json", squad(question(("Söhne", 6)), question(answer, id="5ad3")))
    with pytest.raises(CorpusError) as caught:
        answers(path)
    assert str(caught.value).startswith(f"{path}: question 5ad3: ")
    assert expected_message in str(caught.value)


def without(path: tuple[str | int, ...], value: object = None) -> dict:
    """The sound file with one key taken out, or set to another value."""
    data = copy.deepcopy(squad(question(("Söhne", 6))))
    *parents, last = path
    record = data
    for key in parents:
        record = record[key]
    if value is None:
        del record[last]
    else:
        record[last] = value
    return data


PARAGRAPH = ("data", 0, "paragraphs", 0)
ANSWER = (*PARAGRAPH, "qas", 0, "answers", 0)
SHAPES = {
    "no data": (without(("data",)), ": expected the key 'data' of type list"),
    "array": ([squad()], ": expected the key 'data' of type list, found list"),
    "no paragraphs": (without(("data", 0, "paragraphs")), ": data[0]: expected the key 'paragraphs'"),
    "no context": (without((*PARAGRAPH, "context")), ": data[0].paragraphs[0]: expected the key 'context' of type str"),
    "no id": (without((*PARAGRAPH, "qas", 0, "id")), ": data[0].paragraphs[0].qas[0]: expected the key 'id'"),
    "no answers": (without((*PARAGRAPH, "qas", 0, "answers")), ": question q1: expected the key 'answers'"),
    "start as text": (without((*ANSWER, "answer_start"), "6"), "expected the key 'answer_start' of type int"),
    "start as truth": (without((*ANSWER, "answer_start"), True), ": question q1: expected the key 'answer_start'"),
    "surrogate": (without((*PARAGRAPH, "context"), "\ud800"), ": context: an unpaired surrogate"),
    "contradiction": (without((*PARAGRAPH, "qas", 0, "is_impossible"), True), "but it has answers: 'Söhne'"),
    "cut": (b'{"data": [\n', ":2: not JSON: "),
    "deep": (b"[" * 99_991, "not usable JSON"),
    "latin-1": (b'{"data":\n "\xe9"}', ":2: not UTF-8: byte 0xe9 at byte 11"),
    "utf-16": ('{"data": []}'.encode("utf-16"), ":1: UTF-16"),
    "empty": (b"", ":1: not JSON"),
}  # fmt: skip


@pytest.mark.parametrize("fault", SHAPES)
def test_a_file_of_another_format_is_an_error_with_its_location(tmp_path, fault):
    content, expected_message = SHAPES[fault]
    path = write(tmp_path / "a.json", content)
    with pytest.raises(CorpusError) as caught:
        answers(path)
    assert str(caught.value).startswith(str(path))
    assert expected_message in str(caught.value)
    assert "\n  " in str(caught.value)


def test_a_file_over_the_limit_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MAX_JSON_BYTES", 97)
    with pytest.raises(CorpusError, match="more than 97 bytes"):
        answers(write(tmp_path / "a.json.gz", squad()))


def test_an_id_may_be_a_number(tmp_path):
    (example,) = read_questions([write(tmp_path / "a.json", squad(question(("Die", 0), id=51870)))])
    assert example.id == "51870"
