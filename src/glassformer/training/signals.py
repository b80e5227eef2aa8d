"""Signals as a flag that is read between steps."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(BaseException):
    """A signal arrived within `Stop.interrupting`."""


class Stop:
    """The signal that asked the training to stop, if one did."""

    signum: int | None = None
    is_interrupting = False

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Within this context a signal raises Interrupted at once, instead of at the end of the update."""
        self.is_interrupting = True
        try:
            yield
        finally:
            self.is_interrupting = False


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
        if stop.is_interrupting:
            raise Interrupted

    for signum in before:
        signal.signal(signum, ask)
    try:
        yield stop
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
