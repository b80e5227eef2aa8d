"""What processes chunks: this process, or several others."""

import json
import queue
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any

from glassformer.bulk.chunks import Chunk, Outputs, Process
from glassformer.config import JsonObject
from glassformer.errors import ConfigError, UserError

MAX_TRIES = 3
"""Number of processes that may end during one chunk before the run ends."""

Answer = Callable[[Any], JsonObject]
"""Answers the job with {} if it can be done, and then the items of each chunk with the fields of `Outputs`; or either
with {"error", "exit_code"}, those of a UserError."""


def checked(answer: JsonObject) -> JsonObject:
    """An answer.

    Raises:
        UserError: it is an error.
    """
    if "error" in answer:
        raise (ConfigError if answer["exit_code"] == ConfigError.exit_code else UserError)(answer["error"])
    return answer


class ThisProcess:
    """Processes chunks one after another."""

    def __init__(self, compute: Process) -> None:
        self.compute = compute

    def process(self, chunks: Iterable[Chunk]) -> Iterator[tuple[Chunk, Outputs]]:
        """See `Workers`."""
        for chunk in chunks:
            yield chunk, self.compute(chunk.items)

    def close(self) -> None:
        """See `Workers`."""


class Ended(Exception):
    """A process ended instead of answering."""


class Worker:
    """A process that reads JSON from its standard input, a value on each line, and answers each with another.

    It ends when this process does: its standard input ends then.
    """

    def __init__(self, command: Sequence[str], job: JsonObject) -> None:
        """
        Args:
            command: the program; what it answers is an `Answer`.
            job: what it gets first.
        """
        self.command, self.job = command, job
        self.child: subprocess.Popen[str] | None = None
        self.is_closed = False

    def start(self) -> None:
        """Start the process, if there is none.

        Raises:
            UserError: it cannot do the job.
            Ended: it ended.
        """
        if self.is_closed:
            raise Ended
        if self.child is None:
            self.child = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", errors="surrogatepass",
                start_new_session=True,  # Ctrl-C is for this process
            )  # fmt: skip
            self.ask(self.job)

    def ask(self, value: object) -> Any:
        """What the process answers.

        Raises:
            UserError: the process says so.
            Ended: it ended.
        """
        child = self.child
        if child is None or child.stdin is None or child.stdout is None:
            raise Ended
        answer = ""
        with suppress(OSError, ValueError):  # closed by its end, or by `close`
            child.stdin.write(json.dumps(value) + "\n")
            child.stdin.flush()
            answer = child.stdout.readline()
        if not answer.endswith("\n"):
            self.end()
            code = child.wait()
            raise Ended(f"exit code {code}" if code > 0 else f"signal {-code}")
        return checked(json.loads(answer))

    def outputs(self, chunk: Chunk) -> Outputs:
        """The outputs of a chunk. If the process ends, another one is started.

        Raises:
            UserError: several processes ended.
        """
        n_ended = 0
        while True:
            try:
                self.start()
                return Outputs(**self.ask(chunk.items))
            except Ended as error:
                n_ended += 1
                if self.is_closed or n_ended == MAX_TRIES:
                    raise UserError(
                        f"{chunk.describe()}: {n_ended} workers ended ({error}).\n"
                        "  Is there too little memory? Use fewer --workers. The same command goes on."
                    ) from None
                print(f"warning: {chunk.describe()}: a worker ended ({error}): done again", file=sys.stderr)

    def close(self) -> None:
        """End the process, for good."""
        self.is_closed = True
        self.end()

    def end(self) -> None:
        """End the process, if there is one."""
        if (child := self.child) is not None:
            self.child = None
            child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    with suppress(OSError):  # what was not sent is lost with the process
                        pipe.close()


class Processes:
    """Processes chunks in several processes."""

    def __init__(self, n: int, command: Sequence[str], job: JsonObject) -> None:
        """
        Args:
            n: number of processes.
            command, job: see `Worker`.

        Raises:
            UserError: the job cannot be done.
        """
        self.workers = [Worker(command, job) for _ in range(n)]
        try:
            self.workers[0].start()  # an error of the job is printed once
        except Ended as error:
            raise UserError(f"a worker ended when it started ({error}).\n  Is there too little memory?") from None
        except UserError:
            self.close()
            raise

    def process(self, chunks: Iterable[Chunk]) -> Iterator[tuple[Chunk, Outputs]]:
        """See `Workers`."""
        idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        for worker in self.workers:
            idle.put(worker)

        def work(chunk: Chunk) -> tuple[Chunk, Outputs]:
            worker = idle.get()
            try:
                return chunk, worker.outputs(chunk)
            finally:
                idle.put(worker)

        pending: set[Future[tuple[Chunk, Outputs]]] = set()
        with ThreadPoolExecutor(len(self.workers)) as pool:
            try:
                for chunk in chunks:
                    pending.add(pool.submit(work, chunk))
                    while len(pending) > len(self.workers):  # one waits, so that no worker does
                        done, pending = wait(pending, return_when=FIRST_COMPLETED)
                        yield from (future.result() for future in done)
                while pending:
                    done, pending = wait(pending, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            finally:
                for future in pending:
                    future.cancel()
                if pending:
                    self.close()

    def close(self) -> None:
        """See `Workers`."""
        for worker in self.workers:
            worker.close()
