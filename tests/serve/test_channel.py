"""Messages between the processes."""

import asyncio
import json
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import UserError
from glassformer.serve import channel, supervisor
from glassformer.serve.channel import HEADER, Channel, decode, encode
from glassformer.serve.messages import (
    COMMANDS,
    REPLIES,
    Alive,
    Begin,
    Call,
    Called,
    Cancel,
    Complete,
    Configuration,
    Continue,
    Done,
    Embedded,
    Failed,
    Part,
    Requirements,
    Translate,
    Translated,
    Unloaded,
)  # fmt: skip
from glassformer.serve.worker.loop import Worker

TEXT = st.text()
SCALARS = st.none() | st.booleans() | st.integers(-9, 1 << 62) | TEXT
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner))
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
OPTIONS = st.dictionaries(TEXT, st.integers(-9, 1 << 62) | NUMBERS)
REQUIREMENTS = st.builds(Requirements)
REQUESTS = (
    st.builds(Translate, options=OPTIONS, requirements=REQUIREMENTS)
    | st.builds(Continue, options=OPTIONS, requirements=REQUIREMENTS)
    | st.builds(Complete, options=OPTIONS)
    | st.builds(Call, inputs=VALUES, parameters=OPTIONS)
)
WORDS = st.lists(st.tuples(TEXT, NUMBERS))
TRANSLATED = st.builds(Translated, words=WORDS, confidence=NUMBERS, continuations=st.none())
RESULTS = (
    TRANSLATED
    | st.builds(Translated, words=st.none(), continuations=st.lists(TRANSLATED, max_size=2))
    | st.builds(Called, output=VALUES)
    | st.builds(Embedded, vectors=st.lists(st.lists(NUMBERS)))
)
COMMAND = st.builds(Begin, request=REQUESTS) | st.builds(Cancel)
REPLY = st.builds(Done, result=RESULTS) | st.builds(Part) | st.builds(Failed) | st.builds(Unloaded) | st.just(Alive())


@given(
    st.tuples(st.just(COMMANDS), st.lists(COMMAND, max_size=5))
    | st.tuples(st.just(REPLIES), st.lists(REPLY, max_size=5)),
    st.integers(1, 20),
)
def test_messages_are_those_that_were_sent_in_whatever_pieces_they_arrive(sent, size):
    expected, messages = sent
    data = b"".join(map(encode, messages))
    received, found = bytearray(), []
    for start in range(0, len(data), size):
        received += data[start : start + size]
        found += decode(received, expected)
    assert found == messages
    assert not received


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({"type": "nothing"}, "nothing"),
        ({"type": "begin", "job_id": 1}, "begin.request: Field required"),
        ({"type": "begin", "job_id": 1, "request": {"type": "embed", "model": "m", "texts": 5}}, "texts: Input"),
        ({"type": "cancel", "job_id": 1, "secret": "secret"}, "cancel.secret: Extra inputs"),
        ({"type": "alive"}, "alive"),
        (["secret"], "message: "),
    ],
)  # fmt: skip
def test_a_message_that_is_not_expected_is_one_clear_error_without_its_text(message, error):
    data = json.dumps(message).encode()
    with pytest.raises(ValueError, match="unexpected message: ") as refused:
        list(decode(bytearray(HEADER.pack(len(data)) + data), COMMANDS))
    assert error in str(refused.value)
    assert "secret" not in str(refused.value).replace("cancel.secret", "")


def test_an_answer_that_is_too_large_is_an_error_of_its_request(monkeypatch):
    monkeypatch.setattr(channel, "MAX_MESSAGE_BYTES", 200)
    ours, theirs = socket.socketpair()
    with ThreadPoolExecutor(1) as thread, theirs, ours:
        worker = Worker(Channel(theirs), {}, {}, {})
        large = "x" * 201
        worker.jobs = {1: SimpleNamespace(requests=(), advance=lambda: Translated(text=large))}
        worker.calls.add(2, lambda: Called(output=[large]))
        worker.calls.add(3, lambda: Called(output=["x"]))
        running = thread.submit(worker.run)
        received, ended = bytearray(), []
        while len(ended) < 3:
            received += ours.recv(1 << 16)
            ended += [message for message in decode(received, REPLIES) if not isinstance(message, Alive)]
        ours.shutdown(socket.SHUT_WR)
        assert isinstance(running.exception(), EOFError)
    error = "the answer is larger than 64 MiB; send fewer or shorter texts at once"
    assert sorted(ended, key=lambda message: message.job_id) == [
        Failed(job_id=1, error=error), Failed(job_id=2, error=error), Done(job_id=3, result=Called(output=["x"])),
    ]  # fmt: skip


WRONG_WORKER = """
import socket, sys, time
connection = socket.socket(fileno=int(sys.argv[-1]))
connection.recv(9)
for message in {messages!r}:
    connection.sendall(message)
    time.sleep(0.2)
connection.recv(1 << 20)
"""


def worker(tmp_path, monkeypatch, *messages):
    """A supervisor of a process that sends these messages."""
    data = [json.dumps(message).encode() for message in messages]
    framed = [HEADER.pack(len(text)) + text for text in data]
    script = tmp_path / "worker"
    script.write_text(f"#!{sys.executable}\n{WRONG_WORKER.format(messages=framed)}")
    script.chmod(0o700)
    monkeypatch.setattr(supervisor, "sys", SimpleNamespace(executable=str(script)))
    return supervisor.Supervisor(Configuration(models={}, glossaries={}, memories={}, precision="fp32", threads=1))


def test_a_first_message_that_is_not_expected_is_one_clear_error(tmp_path, monkeypatch):
    with pytest.raises(UserError, match=r"the model process: unexpected message: ready\.models: Field required"):
        asyncio.run(worker(tmp_path, monkeypatch, {"type": "ready"}).start())


def test_a_later_message_that_is_not_expected_restarts_the_process(tmp_path, monkeypatch, caplog):
    ready = {"type": "ready", "models": [], "failures": {}}
    found = worker(tmp_path, monkeypatch, ready, {"type": "part", "job_id": "x", "text": "secret"})

    async def run():
        await found.start()
        while not (found.n_restarts and found.current):
            await asyncio.sleep(0.01)
        await found.stop()

    asyncio.run(run())
    assert "model process: unexpected message: part.job_id: Input should be a valid integer" in caplog.text
    assert "secret" not in caplog.text
