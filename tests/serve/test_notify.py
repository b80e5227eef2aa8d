"""Messages to the service manager, received as systemd receives them: at a datagram socket."""

import asyncio
import os
import signal
import socket
import sys
import time

import pytest

from glassformer.serve.messages import Configuration
from glassformer.serve.notify import keep_alive, notify, watchdog_s
from glassformer.serve.supervisor import Supervisor
from tests.serve.models import running

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="systemd")


@pytest.fixture
def manager(tmp_path, monkeypatch):
    """The socket of a service manager."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "notify"))
        receiver.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.delenv("WATCHDOG_PID", raising=False)
        yield receiver


def test_a_message_arrives_as_one_datagram(manager):
    notify("READY=1")
    assert manager.recv(100) == b"READY=1"


def test_an_address_that_begins_with_an_at_sign_is_abstract(monkeypatch, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(f"\0{tmp_path}")
        receiver.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{tmp_path}")
        notify("READY=1")
        assert receiver.recv(100) == b"READY=1"


def test_without_a_service_manager_nothing_is_sent(monkeypatch, caplog):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    notify("READY=1")
    assert not caplog.records


def test_a_socket_that_does_not_exist_is_a_warning(monkeypatch, caplog, tmp_path):
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "missing"))
    notify("READY=1")
    assert "READY=1 was not sent to NOTIFY_SOCKET" in caplog.text


@pytest.mark.parametrize(
    ("microseconds", "process", "seconds"),
    [("3000000", "own", 3.0), ("3000000", "", 3.0), ("3000000", "1", None), ("", "own", None), ("0", "", None)],
)
def test_the_period_of_the_watchdog_is_that_of_the_environment_for_this_process(
    monkeypatch, microseconds, process, seconds
):
    monkeypatch.setenv("WATCHDOG_USEC", microseconds)
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()) if process == "own" else process)
    assert watchdog_s() == seconds


def test_the_watchdog_is_told_nothing_while_the_models_do_not_answer(manager, monkeypatch):
    monkeypatch.setenv("WATCHDOG_USEC", "2000")
    states = [True, False, True, False]
    with pytest.raises(IndexError):  # after the last state
        asyncio.run(keep_alive(lambda: states.pop(0)))
    manager.setblocking(False)
    assert [manager.recv(100) for _ in range(2)] == [b"WATCHDOG=1"] * 2
    with pytest.raises(BlockingIOError):
        manager.recv(100)


def test_a_model_process_answers_until_it_is_silent_too_long():
    supervisor = Supervisor(Configuration(models={}, glossaries={}, memories={}, precision="auto", threads=1))
    assert not supervisor.answers
    supervisor.current = type("Process", (), {"answers_until": time.monotonic() + 60})()
    assert supervisor.answers
    supervisor.current.answers_until = time.monotonic() - 1
    assert not supervisor.answers


def test_a_server_says_that_it_is_ready_that_it_lives_and_that_it_stops(folder, manager, monkeypatch):
    monkeypatch.setenv("WATCHDOG_USEC", "200000")
    with running(folder, models=("en-de",)) as server:
        assert manager.recv(100) == b"READY=1"
        assert server.get("/health").status == 200
        assert [manager.recv(100) for _ in range(3)] == [b"WATCHDOG=1"] * 3
        server.process.send_signal(signal.SIGTERM)
        while (message := manager.recv(100)) == b"WATCHDOG=1":
            pass
        assert message == b"STOPPING=1"
