"""Signals as a flag that is read between steps."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stop:
    """Which signal asked to stop, if one did."""

    signum: int | None = None


class Stopped(BaseException):
    """Training stopped on a signal, after saving. The exit code is 128 + signum."""

    def __init__(self, signum: int, message: str) -> None:
        super().__init__(message)
        self.signum = signum


@contextmanager
def stop_on_signal() -> Iterator[Stop]:
    """Ctrl-C and SIGTERM set the flag; a second one acts as it always does. Only the main thread can ask for this."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {signum: signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM)}

    def ask(signum: int, frame: FrameType | None) -> None:
        stop.signum = signum
        for known, handler in before.items():
            signal.signal(known, handler)

    for signum in before:
        signal.signal(signum, ask)
    try:
        yield stop
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
