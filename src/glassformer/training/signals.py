"""Handling of Ctrl-C and SIGTERM in training: a signal sets a flag, which the training reads after each update."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(BaseException):
    """A signal arrived within `StopSignal.interrupting`, in this process or in another one."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum


class StopSignal:
    """The signal that was received, if any."""

    signum: int | None = None
    is_interrupting = False

    def wait(self, duration_s: float) -> int | None:
        """Wait for so many seconds, or until a signal arrives. Returns the signal."""
        end_s = time.monotonic() + duration_s
        while self.signum is None and time.monotonic() < end_s:
            time.sleep(0.1)
        return self.signum

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Within this context, a signal also raises Interrupted, so that a long validation ends at once.

        Raises:
            Interrupted: a signal arrived before, or inside.
        """
        self.is_interrupting = True
        try:
            if self.signum is not None:
                raise Interrupted(self.signum)
            yield
        finally:
            self.is_interrupting = False


class Stopped(BaseException):
    """Training was stopped by a signal, and a checkpoint was saved. The exit code is 128 + signum."""

    def __init__(self, signum: int, message: str) -> None:
        super().__init__(message)
        self.signum = signum


@contextmanager
def stop_on_signal() -> Iterator[StopSignal]:
    """Within this context, the first Ctrl-C or SIGTERM sets `signum`; a second one has its usual effect.

    Within `StopSignal.interrupting`, the first one also raises Interrupted. In other threads than the main thread,
    Python cannot handle signals, and the context has no effect.
    """
    stop = StopSignal()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    previous_handlers = {signum: signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM)}

    def handle(signum: int, frame: FrameType | None) -> None:
        stop.signum = signum
        for handled, handler in previous_handlers.items():
            signal.signal(handled, handler)
        if stop.is_interrupting:
            raise Interrupted(signum)

    for signum in previous_handlers:
        signal.signal(signum, handle)
    try:
        yield stop
    finally:
        for signum, handler in previous_handlers.items():
            signal.signal(signum, handler)
