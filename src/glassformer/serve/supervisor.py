"""The model process as the server sees it: started, watched, restarted, and replaced without a lost request."""

import asyncio
import logging
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, cast

from glassformer.errors import UserError
from glassformer.serve.channel import decode, encode
from glassformer.serve.limits import MAX_CRASHES, SILENCE_S, START_S
from glassformer.serve.messages import (
    REPLIES,
    Alive,
    AnyRequest,
    Begin,
    Cancel,
    Command,
    Configuration,
    Done,
    Failed,
    Failures,
    ModelInfo,
    Part,
    Ready,
    Reply,
    Request,
    ResultT,
    Unloaded,
)  # fmt: skip

log = logging.getLogger("glassformer.serve")

RETRY_S = 2.0
"""Seconds between attempts to start a model process that fails to start."""


class Unavailable(Exception):
    """A request cannot be computed now."""


class Refused(Exception):
    """A request cannot be computed: its message is for the client.

    Args:
        code: code of the error in the API of OpenAI, if it has one.
    """

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code


@dataclass(eq=False)
class Submitted(Generic[ResultT]):
    """A request that was submitted to the model process, whichever process computes it."""

    request: Request[ResultT]
    result: asyncio.Future[ResultT]
    on_text: Callable[[str], None] | None = None
    """Called with each part of a generated text."""
    n_received: int = 0
    """Number of characters of the parts that were received."""
    n_repeated: int = 0
    """Number of characters of the parts that the current process has sent: what was received before is skipped."""
    n_crashes: int = 0


@dataclass(eq=False)
class ModelProcess:
    """A model process and its connection."""

    process: asyncio.subprocess.Process
    writer: asyncio.StreamWriter
    loaded: Ready
    jobs: dict[int, Submitted[Any]] = field(default_factory=dict)
    answers_until: float = 0.0
    """Time until which it must send a message."""

    def send(self, command: Command) -> None:
        """Send a message; what the process does not get because it ends is sent again to the next one."""
        if not self.writer.is_closing():
            self.writer.write(encode(command))


def first_reply(received: bytearray) -> Reply | None:
    """The first message of a process; None if it has not arrived.

    Raises:
        UserError: it is not one that is expected.
    """
    try:
        return next(decode(received, REPLIES), None)
    except ValueError as error:
        raise UserError(f"the model process: {error}.") from None


class Supervisor:
    """Keeps a model process running.

    Args:
        config: configuration of the model process.
        silence_s: seconds without a message after which the process is restarted.
    """

    def __init__(self, config: Configuration, silence_s: float = SILENCE_S) -> None:
        self.config, self.silence_s = config, silence_s
        self.current: ModelProcess | None = None
        self.waiting: dict[int, Submitted[Any]] = {}
        """Jobs that wait for a process."""
        self.replaced: list[ModelProcess] = []
        """Processes that end after their jobs."""
        self.n_jobs = self.n_restarts = 0
        self.is_stopping = False
        self.has_failed = False
        """The last attempt to start a process in place of one that ended has failed."""
        self.is_refused = False
        """The last reload was refused."""
        self.on_use: Callable[[], None] = lambda: None
        """Called when another process is used."""
        self.tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Start the process, and wait until it has loaded the models.

        Raises:
            UserError: a model cannot be loaded.
        """
        self.use(await self.launch())

    async def launch(
        self, check: Callable[[list[ModelInfo]], None] = lambda infos: None, *, partial: bool = False
    ) -> tuple[ModelProcess, asyncio.StreamReader, bytearray]:
        """Start a process, and wait until it has loaded the models.

        Args:
            check: called with the descriptions of the models; raises UserError if the process is not to be used.
            partial: one model is sufficient. Default: all models and glossaries must be loaded.

        Raises:
            UserError: a model cannot be loaded, or the check failed.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "glassformer.serve.worker", str(theirs.fileno()),
                stdin=asyncio.subprocess.DEVNULL, pass_fds=[theirs.fileno()],
                process_group=0,  # Ctrl-C does not reach it
            )  # fmt: skip
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            writer.write(encode(self.config))
            received = bytearray()
            async with asyncio.timeout(START_S):
                while (ready := first_reply(received)) is None:
                    data = b""
                    with suppress(ConnectionError):
                        data = await reader.read(1 << 16)
                    if not data:
                        raise UserError(
                            "the model process ended while it loaded the models.\n  Its error is printed above; if"
                            " there is none, the memory was insufficient: serve fewer or smaller models."
                        )
                    received += data
            if not isinstance(ready, Ready):
                raise UserError(f"the model process has sent {ready.type} before it was ready.")
            failures = ready.failures
            errors = [
                error for kind in (failures.models, failures.glossaries, failures.memories) for error in kind.values()
            ]
            if errors and not (partial and ready.models):
                raise UserError("\n".join(errors))
            for error in errors:
                log.error("%s\n  The others are served. After the repair: kill -HUP.", error)
            check(ready.models)
        except BaseException:
            writer.close()
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            raise
        return ModelProcess(process, writer, ready), reader, received

    def use(self, launched: tuple[ModelProcess, asyncio.StreamReader, bytearray]) -> None:
        """Send jobs to this process from now on."""
        model_process, reader, received = launched
        self.current = model_process
        self.heard(model_process)
        self.on_use()
        self.spawn(self.read(model_process, reader, received))
        self.spawn(self.watch(model_process))
        waiting, self.waiting = self.waiting, {}
        for job_id, job in waiting.items():
            self.give(job_id, job)

    def spawn(self, coroutine: Any) -> None:
        """Run a coroutine beside the requests."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    @property
    def infos(self) -> list[ModelInfo]:
        """Descriptions of the models; empty while there is no process."""
        return self.current.loaded.models if self.current else []

    @property
    def answers(self) -> bool:
        """Whether the current process has sent a message in time; not while it is being replaced after a crash."""
        return self.current is not None and time.monotonic() <= self.current.answers_until

    @property
    def failures(self) -> Failures:
        """What the current process could not load."""
        return self.current.loaded.failures if self.current else Failures()

    def submit(
        self, request: Request[ResultT], on_text: Callable[[str], None] | None = None
    ) -> tuple[int, Submitted[ResultT]]:
        """Compute a request. Its future raises `Refused` or `Unavailable`."""
        job_id, self.n_jobs = self.n_jobs, self.n_jobs + 1
        job: Submitted[ResultT] = Submitted(request, asyncio.get_running_loop().create_future(), on_text)
        if self.current is None:
            self.waiting[job_id] = job
        else:
            self.give(job_id, job)
        return job_id, job

    def give(self, job_id: int, job: Submitted[Any]) -> None:
        """Send a job to the current process."""
        assert self.current
        job.n_repeated = 0
        self.current.jobs[job_id] = job
        self.current.send(Begin(job_id=job_id, request=cast(AnyRequest, job.request)))

    def cancel(self, job_id: int) -> None:
        """Cancel a job. Without effect if it is done."""
        self.waiting.pop(job_id, None)
        for model_process in self.processes():
            if job := model_process.jobs.pop(job_id, None):
                job.result.cancel()
                model_process.send(Cancel(job_id=job_id))

    def processes(self) -> list[ModelProcess]:
        """The current process, and those that were replaced and have jobs."""
        return [*([self.current] if self.current else []), *self.replaced]

    def heard(self, model_process: ModelProcess, silent_s: float = 0.0) -> None:
        """A message of a process has arrived, which may then send nothing for a while."""
        until = time.monotonic() + max(self.silence_s, silent_s)
        model_process.answers_until = max(model_process.answers_until, until)

    async def read(self, model_process: ModelProcess, reader: asyncio.StreamReader, received: bytearray) -> None:
        """Take the messages of a process until it ends."""
        try:
            while data := await reader.read(1 << 18):
                self.heard(model_process)
                received += data
                for reply in decode(received, REPLIES):
                    self.take(model_process, reply)
        except OSError:  # the process has ended
            pass
        except ValueError as error:
            log.error("model process: %s", error)
        await self.ended(model_process)

    def take(self, model_process: ModelProcess, reply: Reply) -> None:
        """Give a message to its job."""
        match reply:
            case Alive():
                self.heard(model_process, reply.silent_s)
            case Ready():
                raise ValueError("unexpected message: ready")
            case Part():
                if job := model_process.jobs.get(reply.job_id):
                    text = reply.text[max(0, job.n_received - job.n_repeated) :]
                    job.n_repeated += len(reply.text)
                    job.n_received = max(job.n_received, job.n_repeated)
                    if text and job.on_text:
                        job.on_text(text)
            case Done() | Failed() | Unloaded():
                job = model_process.jobs.pop(reply.job_id, None)
                if job is None or job.result.done():
                    return
                if isinstance(reply, Done):
                    job.result.set_result(reply.result)
                elif isinstance(reply, Failed):
                    job.result.set_exception(Refused(reply.error, reply.code))
                else:
                    job.result.set_exception(Unavailable(reply.reason))

    async def watch(self, model_process: ModelProcess) -> None:
        """Kill the process if it is silent."""
        while model_process.process.returncode is None:
            await asyncio.sleep(self.silence_s / 5)
            if time.monotonic() > model_process.answers_until:
                log.error("the model process does not answer: it is restarted")
                with suppress(ProcessLookupError):
                    model_process.process.kill()
                return

    async def ended(self, model_process: ModelProcess) -> None:
        """After the end of a process: start another, and give it the jobs."""
        model_process.writer.close()
        with suppress(ProcessLookupError):
            model_process.process.kill()
        await model_process.process.wait()
        jobs, model_process.jobs = model_process.jobs, {}
        for job_id, job in jobs.items():
            job.n_crashes += 1
            if job.result.done():
                continue
            if self.is_stopping or job.n_crashes >= MAX_CRASHES:
                job.result.set_exception(Unavailable("the model process ended while it computed this request"))
            elif self.current not in (None, model_process):
                self.give(job_id, job)
            else:
                self.waiting[job_id] = job
        if self.is_stopping or self.current is not model_process:
            return
        self.current = None
        log.error("the model process ended: it is restarted")
        while not self.is_stopping:
            self.n_restarts += 1
            try:
                launched = await self.launch(partial=True)
                self.has_failed = self.is_refused = False
                log.info("the models were loaded again")
                if self.current is None:
                    self.use(launched)
                else:  # a reload was faster
                    launched[0].writer.close()
                return
            except (UserError, OSError, TimeoutError) as error:
                self.has_failed = True
                log.error("%s", error)
                for job in self.waiting.values():
                    if not job.result.done():
                        job.result.set_exception(Unavailable("the models cannot be loaded"))
                self.waiting.clear()
                await asyncio.sleep(RETRY_S)

    async def reload(self, check: Callable[[list[ModelInfo]], None]) -> None:
        """Load the models again in a new process, which gets all jobs from then on. The old one ends after its jobs.

        Args:
            check: see `launch`.
        """
        try:
            launched = await self.launch(check)
        except (UserError, OSError, TimeoutError) as error:
            self.is_refused = True
            log.error("the models are not replaced: %s", error)
            return
        self.is_refused = self.has_failed = False
        old, self.current = self.current, None
        self.use(launched)
        log.info("the models were loaded again")
        if old:
            self.spawn(self.drain(old))

    async def drain(self, model_process: ModelProcess) -> None:
        """End a process after its jobs."""
        self.replaced.append(model_process)
        while model_process.jobs:
            await asyncio.sleep(0.05)
        self.replaced.remove(model_process)
        model_process.writer.close()

    async def stop(self) -> None:
        """End the process."""
        self.is_stopping = True
        tasks = list(self.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for model_process in self.processes():
            model_process.writer.close()
            try:
                async with asyncio.timeout(2):
                    await model_process.process.wait()
            except TimeoutError:
                model_process.process.kill()
                await model_process.process.wait()
