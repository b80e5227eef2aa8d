"""Asking an endpoint: what is repeated, what is refused, and that nothing is asked twice."""

import signal
import subprocess
import sys
import threading
import time

import pytest

from glassformer.errors import ConfigError, UserError
from glassformer.synthetic import endpoint
from glassformer.synthetic.answers import Answer, Answers
from glassformer.synthetic.ask import ask
from glassformer.synthetic.endpoint import MAX_REFUSED, EndpointOptions, EndpointTeacher, cleaned
from tests.synthetic.endpoint import serving

SOURCES = [f"sentence {i}" for i in range(40)]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(endpoint, "FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(endpoint, "MAX_WAIT_S", 0.02)


def teacher(server, **options) -> EndpointTeacher:
    return EndpointTeacher(EndpointOptions(server.url, "name", "Translate: {text}", **options))


def upper(message, n):
    return message.removeprefix("Translate: ").upper()


def test_each_different_source_is_asked_once(tmp_path):
    messages = []
    with serving(upper) as server:
        found = ask(teacher(server, api_key="secret"), [*SOURCES, *SOURCES[:5]], tmp_path, messages.append)
    assert [answer.texts for answer in found] == [(source.upper(),) for source in [*SOURCES, *SOURCES[:5]]]
    assert server.asked == {f"Translate: {source}": 1 for source in SOURCES}
    assert server.keys == {"Bearer secret"}
    assert server.bodies[0]["temperature"] == 0
    assert server.bodies[0]["model"] == "name"
    assert "120 tokens of requests and 80 of answers" in messages[-1]


def test_no_more_is_asked_than_a_kill_may_lose():
    with serving(upper) as server:
        answers = teacher(server, connections=3).answers(SOURCES)
        for _ in range(5):
            next(answers)
        n_asked = 4 + 3  # four are taken, and one for each connection
        deadline_s = time.monotonic() + 30
        while sum(server.asked.values()) < n_asked and time.monotonic() < deadline_s:
            time.sleep(0.01)
        time.sleep(0.3)  # all would be asked if writing an answer took so long
        assert sum(server.asked.values()) == n_asked
        assert len(list(answers)) == len(SOURCES) - 5


def test_what_is_known_is_not_asked_again_and_another_prompt_is(tmp_path):
    with serving(upper) as server:
        ask(teacher(server), SOURCES[:10], tmp_path, lambda message: None)
        ask(teacher(server), SOURCES, tmp_path, lambda message: None)
        assert set(server.asked.values()) == {1}
        other = EndpointTeacher(EndpointOptions(server.url, "name", "Other: {text}"))
        ask(other, SOURCES[:2], tmp_path, lambda message: None)
    assert server.asked["Other: sentence 0"] == 1


def test_an_answer_that_was_cut_off_in_the_file_is_asked_again(tmp_path):
    with serving(upper) as server:
        ask(teacher(server), SOURCES, tmp_path, lambda message: None)
        path = tmp_path / "answers.jsonl"
        content = path.read_bytes()
        path.write_bytes(content[:-7])
        found = ask(teacher(server), SOURCES, tmp_path, lambda message: None)
    assert all(answer.texts for answer in found)
    assert sorted(server.asked.values()) == [1] * 39 + [2]
    assert sorted(path.read_bytes().split(b"\n")) == sorted(content.split(b"\n"))


def test_a_damaged_line_is_named(tmp_path):
    answers = Answers(tmp_path / "answers.jsonl", "teacher")
    answers.add([("a", Answer(("b",))), ("c", Answer(("d",), True, -0.5, (1, 2)))])
    answers.close()
    again = Answers(tmp_path / "answers.jsonl", "teacher")
    assert again.get("c") == Answer(("d",), True, -0.5, (1, 2))
    again.close()
    lines = (tmp_path / "answers.jsonl").read_text().split("\n")
    (tmp_path / "answers.jsonl").write_text("\n".join([lines[0], "nonsense", lines[1], ""]))
    with pytest.raises(UserError, match=r"answers.jsonl:2: damaged.\n  Delete this line"):
        Answers(tmp_path / "answers.jsonl", "teacher")


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_failures_that_may_pass_are_repeated(tmp_path, status):
    def reply(message, n):
        return (status, {"Retry-After": "0.01"}) if n < 3 else upper(message, n)

    messages = []
    with serving(reply) as server:
        found = ask(asked := teacher(server, connections=1), SOURCES[:4], tmp_path, messages.append)
    assert all(answer.texts for answer in found)
    assert set(server.asked.values()) == {3}
    assert messages[1] == f"  {asked.address}: status {status}: reason {status}; trying again"
    assert "trying again" not in messages[2]  # the seven others came within ten seconds


def test_after_several_tries_the_failure_is_reported_and_the_answers_are_kept(tmp_path):
    def reply(message, n):
        return (503, {}) if message.endswith("7") else upper(message, n)

    with serving(reply) as server:
        with pytest.raises(UserError, match=r"no answer after 6 tries: status 503: reason 503.\n  The answers so far"):
            ask(teacher(server, connections=1), SOURCES[:8], tmp_path, lambda message: None)
        server.reply = upper
        ask(teacher(server), SOURCES[:8], tmp_path, lambda message: None)
    assert server.asked["Translate: sentence 0"] == 1


def test_nobody_at_the_address(tmp_path):
    options = EndpointOptions("http://127.0.0.1:9/v1", "name", "{text}")
    with pytest.raises(UserError, match=r"127.0.0.1:9/v1/chat/completions: no answer after 6 tries: .*refused"):
        ask(EndpointTeacher(options), SOURCES[:1], tmp_path, lambda message: None)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_request_that_is_refused_is_not_repeated(tmp_path, status):
    with (
        serving(lambda message, n: (status, {})) as server,
        pytest.raises(UserError, match=rf"status {status}: reason {status}.*\n  Check the address, --endpoint-mod"),
    ):
        ask(teacher(server, connections=1), SOURCES, tmp_path, lambda message: None)
    assert max(server.asked.values()) == 1


def test_single_texts_that_are_refused_are_left_out(tmp_path):
    def reply(message, n):
        return (413, {}) if message.endswith("9") else upper(message, n)

    with serving(reply) as server:
        found = ask(teacher(server, connections=1), SOURCES, tmp_path, lambda message: None)
    assert [i for i, answer in enumerate(found) if not answer.texts] == [9, 19, 29, 39]


@pytest.mark.parametrize("connections", [1, 8])
def test_a_text_that_is_refused_first_is_left_out(tmp_path, connections):
    def reply(message, n):
        return (413, {}) if message.endswith(" 0") else upper(message, n)

    with serving(reply) as server:
        found = ask(teacher(server, connections=connections), SOURCES, tmp_path, lambda message: None)
        assert [i for i, answer in enumerate(found) if not answer.texts] == [0]
        again = ask(teacher(server), [*SOURCES, "new 0"], tmp_path, lambda message: None)
    assert not again[-1].texts
    assert max(server.asked.values()) == 1


def test_a_server_that_refuses_all_texts_is_asked_for_few(tmp_path):
    with (
        serving(lambda message, n: (413, {})) as server,
        pytest.raises(UserError, match="refuses the request: status 413"),
    ):
        ask(teacher(server, connections=1), SOURCES, tmp_path, lambda message: None)
    assert len(server.asked) == MAX_REFUSED


@pytest.mark.parametrize("content", [b"<html>", b"[]", b'{"choices": []}', b'{"error": "x"}', b'"text"'])
def test_something_that_is_no_completion(tmp_path, content):
    with (
        serving(lambda message, n: content) as server,
        pytest.raises(UserError, match="answers with something that is no chat completion"),
    ):
        ask(teacher(server), SOURCES[:1], tmp_path, lambda message: None)


def test_an_answer_without_text_is_empty_and_one_at_the_limit_is_truncated(tmp_path):
    def reply(message, n):
        content = None if message.endswith("0") else "half"
        return {"choices": [{"message": {"content": content}, "finish_reason": "length"}]}

    with serving(reply) as server:
        found = ask(teacher(server), SOURCES[:2], tmp_path, lambda message: None)
    assert found == [Answer(("",), is_truncated=True), Answer(("half",), is_truncated=True)]


def test_an_endpoint_that_does_not_answer_in_time(tmp_path):

    def reply(message, n):
        if n == 1:
            time.sleep(0.5)
        return upper(message, n)

    with serving(reply) as server:
        found = ask(teacher(server, timeout_s=0.2, connections=1), SOURCES[:1], tmp_path, lambda message: None)
    assert found[0].texts == ("SENTENCE 0",)


def test_requests_are_spread_over_time(tmp_path):

    with serving(upper) as server:
        started_s = time.monotonic()
        ask(teacher(server, per_minute=1200), SOURCES[:10], tmp_path, lambda message: None)
    assert time.monotonic() - started_s >= 9 * 0.05


@pytest.mark.parametrize("prompt", ["Translate", "{text} {text}"])
def test_a_prompt_without_a_place_for_the_text(prompt):
    with pytest.raises(ConfigError, match=r"must contain \{text\} once"):
        EndpointTeacher(EndpointOptions("http://x", "name", prompt))


def test_the_address_may_be_the_server_the_version_or_the_route():
    for url in ("http://x", "http://x/", "http://x/v1", "http://x/v1/chat/completions"):
        assert EndpointTeacher(EndpointOptions(url, "m", "{text}")).address == "http://x/v1/chat/completions"
    with pytest.raises(ConfigError, match="not an address"):
        EndpointTeacher(EndpointOptions("ftp://x", "m", "{text}"))


@pytest.mark.parametrize(
    ("answer", "source", "expected"),
    [
        ('"Ein Hund."', "A dog.", "Ein Hund."),
        ("„Ein Hund.“", "A dog.", "Ein Hund."),
        ('"Ein Hund."', '"A dog."', '"Ein Hund."'),
        ('"Ja", sagte er, "nein"', "Yes, he said, no", '"Ja", sagte er, "nein"'),
        ("<think>\nA dog is…\n</think>\n\nEin Hund.", "A dog.", "Ein Hund."),
        ('""', "A dog.", '""'),
    ],
)
def test_quotation_marks_and_thoughts_are_taken_off(answer, source, expected):
    assert cleaned(answer, source) == expected


def test_an_interrupted_program_does_not_wait_for_requests(tmp_path):

    is_over = threading.Event()

    def reply(message, n):
        if not message.endswith(" 0"):
            is_over.wait(60)
        return upper(message, n)

    with serving(reply) as server:
        try:
            answers = teacher(server, connections=4).answers(SOURCES)
            assert next(answers)[0][0] == SOURCES[0]
            started_s = time.monotonic()
            answers.close()
            assert time.monotonic() - started_s < 20
        finally:
            is_over.set()


def test_a_teacher_can_be_asked_again(tmp_path):
    with serving(upper) as server:
        asked = teacher(server)
        for part in (SOURCES[:3], SOURCES[3:6]):
            assert all(answer.texts for answer in ask(asked, part, tmp_path, lambda message: None))


CLOSED = """
import signal, socket, threading
from glassformer.synthetic.endpoint import EndpointOptions, EndpointTeacher

def close_all(listener):
    while True:
        connection, _ = listener.accept()
        connection.recv(1000)
        connection.close()  # while the rest is being sent

listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=close_all, args=(listener,), daemon=True).start()
signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as in the command line
options = EndpointOptions(f"http://127.0.0.1:{listener.getsockname()[1]}", "name", "{text}", connections=1)
next(EndpointTeacher(options).answers(["a" * 20_000_000], lambda message: print(message, flush=True)))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="a signal of POSIX")
def test_a_server_that_closes_a_connection_does_not_end_the_program():
    process = subprocess.Popen([sys.executable, "-c", CLOSED], stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    process.kill()
    process.communicate()
    assert "trying again" in line


@pytest.mark.parametrize("key", ["sk-1\r", "sk 1", "“sk-1”", "sk-1\n"])
def test_a_key_that_no_header_can_have_is_refused_without_showing_it(key):
    with pytest.raises(ConfigError, match="OPENAI_API_KEY") as caught:
        EndpointTeacher(EndpointOptions("http://127.0.0.1", "name", "{text}", key))
    assert "sk" not in str(caught.value)


def test_half_a_character_in_an_answer_is_replaced(tmp_path):
    with serving(lambda message, n: "a \ud83d") as server:
        found = ask(teacher(server), SOURCES[:1], tmp_path, lambda message: None)
    assert [answer.texts for answer in found] == [("a \ufffd",)]
