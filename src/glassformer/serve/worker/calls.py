"""Functions that are computed in a thread beside the decoding."""

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

from glassformer.errors import UserError
from glassformer.serve.messages import Done, Failed, Result


class Calls:
    """A thread that computes functions, one after another."""

    def __init__(self) -> None:
        self.waiting: queue.SimpleQueue[tuple[int, Callable[[], Result]]] = queue.SimpleQueue()
        self.returned: queue.SimpleQueue[Done | Failed | BaseException] = queue.SimpleQueue()
        self.unfinished: set[int] = set()
        """Jobs that were neither cancelled nor returned."""
        threading.Thread(target=self.compute, daemon=True).start()

    def add(self, job_id: int, function: Callable[[], Result]) -> None:
        """Compute a function."""
        self.unfinished.add(job_id)
        self.waiting.put((job_id, function))

    def cancel(self, job_id: int) -> None:
        """Forget a function. Without effect if it is unknown."""
        self.unfinished.discard(job_id)

    def compute(self) -> None:
        """Compute the functions."""
        while True:
            job_id, function = self.waiting.get()
            if job_id not in self.unfinished:
                continue
            try:
                self.returned.put(Done(job_id=job_id, result=function()))
            except UserError as error:
                self.returned.put(Failed(job_id=job_id, error=str(error)))
            except BaseException as error:  # raised by `replies` in the main thread, which ends the process
                self.returned.put(error)

    def replies(self) -> Iterator[Done | Failed]:
        """What was computed since the last call.

        Raises:
            BaseException: a function has failed unexpectedly.
        """
        with suppress(queue.Empty):
            while True:
                reply = self.returned.get_nowait()
                if isinstance(reply, BaseException):
                    raise reply
                if reply.job_id in self.unfinished:
                    self.unfinished.discard(reply.job_id)
                    yield reply
