"""Work in another thread, such as writing a checkpoint while the training goes on."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor


class BackgroundJob:
    """At most one job in another thread. Its errors are raised by the methods of this class."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1)
        self.job: Future[object] | None = None

    def start(self, job: Callable[[], object]) -> None:
        """Start a job, after the previous one has ended."""
        self.wait()
        self.job = self.pool.submit(job)

    def wait(self) -> None:
        """Wait for the job, if there is one."""
        job, self.job = self.job, None
        if job:
            job.result()

    def close(self) -> None:
        """Wait for the job; an error of it is dropped."""
        self.pool.shutdown()
