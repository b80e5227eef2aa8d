"""The loop of the model process, which computes the requests of the server in continuous batches.

It reads arrivals and cancellations, computes one step of all requests, and sends what is finished. Translations and
generated texts share one engine for each model; what is not generated token by token is computed in a thread beside it.
"""

import importlib
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from glassformer.corpora.terms import Glossary
from glassformer.errors import UserError
from glassformer.generate.engine import Engine
from glassformer.serve.channel import Channel, MessageTooLong
from glassformer.serve.limits import ENCODE_S, IMPORT_S, MAX_MESSAGE_BYTES
from glassformer.serve.messages import (
    Alive,
    AnyRequest,
    Begin,
    Cancel,
    Configuration,
    Continue,
    Done,
    Failed,
    Inspect,
    Part,
    Translate,
    Unloaded,
)  # fmt: skip
from glassformer.serve.worker.calls import Calls
from glassformer.serve.worker.jobs import Job, computation
from glassformer.serve.worker.results import ContextLengthError
from glassformer.serve.worker.served_model import ServedModel

ALIVE_S = 1.0
"""Seconds between messages that say that the process is alive."""

CALLS_S = 0.005
"""Seconds between looks at what the thread has computed."""


class Worker:
    """Computes requests.

    Args:
        channel: connection to the server.
        models: models by name.
        glossaries: glossaries by name.
        memories: files of translation memories by name.
    """

    def __init__(
        self,
        channel: Channel,
        models: Mapping[str, ServedModel],
        glossaries: Mapping[str, Glossary],
        memories: Mapping[str, Path],
    ) -> None:
        self.channel, self.models, self.glossaries, self.memories = channel, models, glossaries, memories
        self.jobs: dict[int, Job] = {}
        self.calls = Calls()

    def run(self) -> None:
        """Compute requests until the server has ended."""
        told_at = 0.0
        while True:
            timeout_s = 0 if self.jobs else CALLS_S if self.calls.unfinished else ALIVE_S
            for command in self.channel.receive(timeout_s):
                self.take(command)
            self.advance()
            for model in self.models.values():
                if model.engine and model.engine.n_unfinished:
                    self.step(model, model.engine)
            for reply in self.calls.replies():
                self.channel.send(Alive(silent_s=ENCODE_S))  # it may have a vector for each token
                self.end(reply)
            if (now := time.monotonic()) - told_at > ALIVE_S:
                self.channel.send(Alive())
                told_at = now

    def take(self, command: Configuration | Begin | Cancel) -> None:
        """Begin or cancel a job."""
        match command:
            case Begin():
                self.begin(command.job_id, command.request)
            case Cancel():
                self.calls.cancel(command.job_id)
                if job := self.jobs.pop(command.job_id, None):
                    job.cancel()
            case Configuration():
                raise ValueError("unexpected message: configuration")

    def begin(self, job_id: int, request: AnyRequest) -> None:
        """Begin a job."""
        missing = ""
        if isinstance(request, Translate | Continue):
            glossary, memory = request.requirements.glossary, request.requirements.memory
            missing = f"glossary {glossary}" if glossary and glossary not in self.glossaries else ""
            missing = f"memory {memory}" if memory and memory not in self.memories else missing
        if request.model not in self.models:
            missing = f"model {request.model}"
        if missing:
            reason = f"the {missing} cannot be loaded; the log of the server has the reason"
            self.channel.send(Unloaded(job_id=job_id, reason=reason))
            return
        try:
            begun = computation(request, self.models[request.model], self.glossaries, self.memories)
        except UserError as error:
            code = "context_length_exceeded" if isinstance(error, ContextLengthError) else None
            self.channel.send(Failed(job_id=job_id, error=str(error), code=code))
            return
        if isinstance(begun, Job):
            self.jobs[job_id] = begun
            return
        if isinstance(request, Inspect) and "torch" not in sys.modules:
            # In the thread, the import would stop this one as well, for seconds, at a time that is not known.
            self.channel.send(Alive(silent_s=IMPORT_S))
            importlib.import_module("torch")
        self.calls.add(job_id, begun)

    def advance(self) -> None:
        """Continue the jobs that have no requests, once each: a job that needs many turns lets others go on."""
        for job_id, job in list(self.jobs.items()):
            if job.requests:
                continue
            try:
                result = job.advance()
            except UserError as error:
                self.fail(job_id, error)
                continue
            if result is not None:
                del self.jobs[job_id]
                self.end(Done(job_id=job_id, result=result))

    def end(self, reply: Done | Failed) -> None:
        """Send how a job has ended. One with too large an answer has failed."""
        try:
            self.channel.send(reply)
        except MessageTooLong:
            limit = f"{MAX_MESSAGE_BYTES >> 20} MiB"
            error = f"the answer is larger than {limit}; send fewer or shorter texts at once"
            self.channel.send(Failed(job_id=reply.job_id, error=error))

    def step(self, model: ServedModel, engine: Engine) -> None:
        """A step of the requests of a model. If it cannot compute them, their jobs fail."""
        own = {job_id: job for job_id, job in self.jobs.items() if job.model is model}
        owners = {request: job_id for job_id, job in own.items() for request in job.requests}
        try:
            events = engine.step()
        except UserError as error:
            for job_id in own:
                self.fail(job_id, error)
            return
        for event in events:
            owner = owners.get(event.request_id)
            if owner is not None and (text := own[owner].take(event)):
                self.channel.send(Part(job_id=owner, text=text))

    def fail(self, job_id: int, error: UserError) -> None:
        """End a job with an error."""
        self.jobs.pop(job_id).cancel()
        self.channel.send(Failed(job_id=job_id, error=str(error)))
