"""Time limits of a connection, with timers that the test lets run out."""

import asyncio
from types import SimpleNamespace

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from glassformer.serve.limits import BODY_S, CLOSE_S
from glassformer.serve.protocol import LimitedProtocol

POST = b"POST /%s HTTP/1.1\r\nHost: localhost\r\n"


async def app(scope, receive, send):
    """Answers at once, or after the body at /read."""
    while scope["path"] == "/read" and (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 404, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


class Transport(asyncio.Transport):
    def __init__(self):
        super().__init__()
        self.answers, self.is_aborted = 0, False

    def write(self, data):
        self.answers += data.count(b"HTTP/1.1 404")

    def abort(self):
        self.is_aborted = True

    def is_closing(self):
        return self.is_aborted

    def get_write_buffer_size(self):
        return 0

    set_write_buffer_limits = pause_reading = resume_reading = close = lambda *_, **__: None


class Connection:
    """A connection whose time passes when the test says so."""

    def __init__(self):
        self.timers = []
        loop = SimpleNamespace(call_later=self.call_later, create_task=asyncio.get_running_loop().create_task)
        self.protocol = LimitedProtocol(Config(app, lifespan="off"), ServerState(), {}, _loop=loop)
        self.transport = Transport()
        self.protocol.connection_made(self.transport)

    def call_later(self, seconds, function, *arguments):
        timer = SimpleNamespace(seconds=seconds, run=lambda: function(*arguments))
        timer.cancel = lambda: timer in self.timers and self.timers.remove(timer)
        self.timers.append(timer)
        return timer

    async def send(self, data):
        self.protocol.data_received(data)
        for _ in range(5):
            await asyncio.sleep(0)

    def wait(self, seconds):
        for timer in [timer for timer in self.timers if timer.seconds <= seconds]:
            timer.cancel()
            timer.run()


def test_a_connection_is_kept_when_the_body_comes_after_the_answer():
    async def run():
        connection = Connection()
        await connection.send(POST % b"nope" + b"Content-Length: 3\r\n\r\n")
        assert connection.transport.answers == 1
        await connection.send(b"abc")
        assert [timer.seconds for timer in connection.timers] == [connection.protocol.timeout_keep_alive]
        await connection.send(POST % b"read" + b"Content-Length: 3\r\n\r\n")
        connection.wait(CLOSE_S)
        assert not connection.transport.is_aborted
        await connection.send(b"abc")
        assert connection.transport.answers == 2

    asyncio.run(run())


def test_a_connection_is_closed_when_the_body_does_not_come_after_the_answer():
    async def run():
        connection = Connection()
        await connection.send(POST % b"nope" + b"Content-Length: 3\r\n\r\na")
        connection.wait(CLOSE_S)
        assert connection.transport.is_aborted

    asyncio.run(run())


def test_the_body_of_a_request_that_waits_for_the_answer_to_another_has_its_own_time():
    async def run():
        connection = Connection()
        head = POST % b"read" + b"Content-Length: 3\r\n\r\n"
        await connection.send(head + b"abc" + head)
        assert connection.transport.answers == 1
        connection.wait(CLOSE_S)
        assert not connection.transport.is_aborted

    asyncio.run(run())


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (b"Content-Length: 9", BODY_S),
        (b"Content-Length: 2000000", 4 * BODY_S),
        (b"Transfer-Encoding: chunked", 4 * BODY_S),
    ],
)
def test_a_body_of_unknown_length_has_the_time_of_a_file(header, seconds):
    async def run():
        connection = Connection()
        await connection.send(POST % b"read" + header + b"\r\n\r\n")
        assert [timer.seconds for timer in connection.timers] == [seconds]

    asyncio.run(run())
