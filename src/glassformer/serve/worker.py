"""The model process: loads the models, and computes the requests of the server in continuous batches.

It reads arrivals and cancellations, computes one step of all requests, and sends what is finished. Translations and
generated texts share one engine for each model; what is not generated token by token is computed in a thread beside it.
"""

import os
import queue
import re
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from glassformer.config import DecodeConfig, JsonObject
from glassformer.corpora.terms import Glossary, Term, protect_pattern
from glassformer.errors import UserError
from glassformer.generate.engine import Engine
from glassformer.generate.request import Decoding, Event
from glassformer.generate.search import Hypothesis
from glassformer.serve.channel import Channel, Message
from glassformer.serve.results import ContextLengthError, continued, inspected, joined, limited, plain, whole_prompt
from glassformer.serve.served_model import ServedModel
from glassformer.tasks.causal_lm import DecoderTask, TextStream
from glassformer.tasks.continuations import continuations
from glassformer.tasks.feature_extraction import SentenceEmbedder
from glassformer.tasks.terms import Terms
from glassformer.tasks.translated import Translation
from glassformer.tasks.translation import TextToTextTask
from glassformer.threads import set_n_threads

ALIVE_S = 1.0
"""Seconds between messages that say that the process is alive."""

NICENESS = 5
"""The server process, which has little to compute, comes first: it answers in time when all cores are busy."""

LINE_END = re.compile(r"\r?\n")


@dataclass
class Job:
    """A request that is being computed."""

    job_id: int
    model: ServedModel
    requests: dict[int, int] = field(default_factory=dict)
    """Requests of the engine that are not done -> index of their source."""


@dataclass
class DecodingJob(Job):
    """A computation that yields sources, such as translation."""

    decoding: Decoding[Any] | None = None
    result_of: Callable[[Any], JsonObject] = dict
    """The result from what the decoding returns."""
    hypotheses: list[list[Hypothesis]] = field(default_factory=list)


@dataclass
class StreamJob(Job):
    """Generation of one text, sent in parts."""

    output: TextStream | None = None
    n_prompt: int = 0
    limit: int = 0


class Worker:
    """The loop of the model process.

    Args:
        channel: connection to the server.
        models: models by name.
        glossaries: glossaries by name.
    """

    def __init__(self, channel: Channel, models: dict[str, ServedModel], glossaries: dict[str, Glossary]) -> None:
        self.channel, self.models, self.glossaries = channel, models, glossaries
        self.jobs: dict[int, Job] = {}
        self.owners: dict[tuple[str, int], Job] = {}
        """Model and request of its engine -> the job."""
        self.calls: queue.SimpleQueue[tuple[int, Callable[[], JsonObject]]] = queue.SimpleQueue()
        self.returned: queue.SimpleQueue[Message | BaseException] = queue.SimpleQueue()
        self.called: set[int] = set()
        """Jobs of the thread that were neither cancelled nor sent."""
        self.ready: list[DecodingJob] = []
        """Jobs whose decodings wait for nothing, and go on after a step of the others."""
        threading.Thread(target=self.call_functions, daemon=True).start()

    def run(self) -> None:
        """Compute requests until the server has ended."""
        told_at = 0.0
        while True:
            is_busy = bool(self.ready) or any(m.engine and m.engine.n_unfinished for m in self.models.values())
            for message in self.channel.receive(0 if is_busy else 0.005 if self.called else ALIVE_S):
                self.take(message)
            for model in self.models.values():
                if model.engine and model.engine.n_unfinished:
                    self.step(model, model.engine)
            self.go_on()
            self.send_returned()
            if (now := time.monotonic()) - told_at > ALIVE_S:
                self.channel.send({"alive": True})
                told_at = now

    def go_on(self) -> None:
        """Continue the decodings that wait for nothing, unless they were cancelled."""
        ready, self.ready = self.ready, []
        for job in ready:
            if self.jobs.get(job.job_id) is job:
                self.advance(job, [])

    def take(self, message: Message) -> None:
        """Begin or cancel a job."""
        job_id = int(message["id"])
        if message["kind"] == "cancel":
            self.end(job_id, cancel=True)
            return
        for kind, known in (("model", self.models), ("glossary", self.glossaries)):
            if (name := message.get(kind)) and name not in known:
                reason = f"the {kind} {name} cannot be loaded; the log of the server has the reason"
                self.channel.send({"id": job_id, "unavailable": reason})
                return
        try:
            self.begin(job_id, message, self.models[message["model"]])
        except ContextLengthError as error:
            self.channel.send({"id": job_id, "error": str(error), "code": "context_length_exceeded"})
        except UserError as error:
            self.channel.send({"id": job_id, "error": str(error)})

    def begin(self, job_id: int, message: Message, model: ServedModel) -> None:
        """Begin a job.

        Raises:
            UserError: its options cannot be used.
        """
        task = model.task
        match message["kind"]:
            case "translate":
                assert isinstance(task, TextToTextTask)
                options = DecodeConfig.resolve({**message["options"], "precision": model.precision}, environment={})
                ends = LINE_END.findall(message["text"])
                lines = LINE_END.split(message["text"])
                decoding = task.decoding(lines, options, terms=self.terms(message))
                limits = message.get("limits")

                def result_of(nbest: list[list[Translation]]) -> JsonObject:
                    record = joined(nbest, ends)
                    return limited(task.tokenizer, message["text"], record, **limits) if limits else record

                self.jobs[job_id] = job = DecodingJob(job_id, model, decoding=decoding, result_of=result_of)
                self.advance(job, None)
            case "continue":
                assert isinstance(task, TextToTextTask)
                options = DecodeConfig.resolve({**message["options"], "precision": model.precision}, environment={})
                decoding_after = continuations(
                    task, message["text"], message["prefix"], message["n"], options, self.terms(message)
                )
                self.jobs[job_id] = job = DecodingJob(job_id, model, decoding=decoding_after, result_of=continued)
                self.advance(job, None)
            case "complete":
                assert isinstance(task, DecoderTask)
                given = DecodeConfig.resolve({**message["options"], "precision": model.precision}, environment={})
                c = task.with_default_options(given)
                prompt, limit = whole_prompt(task, message["text"], c)
                output = TextStream(task.tokenizer, c.stop)
                self.jobs[job_id] = stream = StreamJob(job_id, model, output=output, n_prompt=len(prompt), limit=limit)
                assert model.engine
                request = model.engine.submit(prompt, c, max_new_tokens=limit, index=0)
                stream.requests = {request: 0}
                self.owners[model.name, request] = stream
            case "call":
                inputs, parameters = message["inputs"], message["parameters"]
                self.call(job_id, lambda: {"output": plain(model.pipeline(inputs, **parameters))})
            case "embed":
                assert isinstance(task, SentenceEmbedder)
                texts = message["texts"]
                n_tokens = sum(len(ids) for ids in task.tokenizer.encode_batch(texts))
                self.call(job_id, lambda: {"vectors": task(texts).tolist(), "n_tokens": n_tokens})
            case "inspect":
                model.check_inspection()
                self.call(job_id, lambda: inspected(task, message["text"]))

    def terms(self, message: Message) -> Terms | None:
        """The terms and protected spans of a translation."""
        glossary = self.glossaries[message["glossary"]] if message.get("glossary") else None
        if pairs := message.get("terms"):
            given = [Term(*(tuple(form.strip() for form in side.split("|")) for side in pair)) for pair in pairs]
            glossary = Glossary([*(glossary.terms if glossary else ()), *given])
        protect = protect_pattern(message.get("protect", []))
        return Terms(glossary, protect) if glossary or protect else None

    def call(self, job_id: int, function: Callable[[], JsonObject]) -> None:
        """Compute a function in the thread, and send its result."""
        self.called.add(job_id)
        self.calls.put((job_id, function))

    def call_functions(self) -> None:
        """The thread that computes what is not generated token by token."""
        while True:
            job_id, function = self.calls.get()
            if job_id not in self.called:
                continue
            try:
                self.returned.put({"id": job_id, "result": function()})
            except UserError as error:
                self.returned.put({"id": job_id, "error": str(error)})
            except BaseException as error:  # raised by the main thread, which ends the process
                self.returned.put(error)

    def send_returned(self) -> None:
        """Send the results of the thread."""
        with suppress(queue.Empty):
            while True:
                message = self.returned.get_nowait()
                if isinstance(message, BaseException):
                    raise message
                if message["id"] in self.called:
                    self.called.discard(message["id"])
                    self.channel.send(message)

    def step(self, model: ServedModel, engine: Engine) -> None:
        """A step of the requests of a model. If it cannot compute them, their jobs fail."""
        try:
            events = engine.step()
        except UserError as error:
            for job in [job for job in self.jobs.values() if job.model is model]:
                self.fail(job, error)
            return
        for event in events:
            if owner := self.owners.get((model.name, event.request_id)):
                self.deliver(owner, event)

    def deliver(self, job: Job, event: Event) -> None:
        """Give the event of a step to its job."""
        if isinstance(job, StreamJob):
            assert job.output
            if part := job.output.add(event.tokens):
                self.channel.send({"id": job.job_id, "text": part})
            if job.output.is_stopped or event.hypotheses is not None:
                rest, n_tokens = job.output.end(), len(job.output.ids)
                is_cut = not job.output.is_stopped and n_tokens >= job.limit
                self.end(job.job_id, cancel=event.hypotheses is None)
                usage = {"prompt_tokens": job.n_prompt, "completion_tokens": n_tokens}
                result = {"text": rest, "finish_reason": "length" if is_cut else "stop", "usage": usage}
                self.channel.send({"id": job.job_id, "result": result})
        elif isinstance(job, DecodingJob) and event.hypotheses is not None:
            del self.owners[job.model.name, event.request_id]
            job.hypotheses[job.requests.pop(event.request_id)] = event.hypotheses
            if not job.requests:
                self.advance(job, job.hypotheses)

    def advance(self, job: DecodingJob, hypotheses: list[list[Hypothesis]] | None) -> None:
        """Continue a decoding with the hypotheses of its sources, until it yields again or has its result."""
        assert job.decoding
        assert job.model.engine
        try:
            sources = job.decoding.send(hypotheses) if hypotheses is not None else next(job.decoding)
            job.hypotheses = [[] for _ in sources.ids]
            job.requests = job.model.engine.submit_all(sources)
        except StopIteration as end:
            value = end.value
        except UserError as error:
            self.fail(job, error)
            return
        else:
            self.owners |= {(job.model.name, request): job for request in job.requests}
            if not job.requests:
                self.ready.append(job)
            return
        # Not above: with the exception, the traceback of an error would have the text.
        self.end(job.job_id)
        self.channel.send({"id": job.job_id, "result": job.result_of(value)})

    def fail(self, job: Job, error: UserError) -> None:
        """End a job with an error."""
        self.end(job.job_id, cancel=True)
        self.channel.send({"id": job.job_id, "error": str(error)})

    def end(self, job_id: int, *, cancel: bool = False) -> None:
        """Forget a job, if it has not ended."""
        self.called.discard(job_id)
        job = self.jobs.pop(job_id, None)
        if job is None:
            return
        for request in job.requests:
            self.owners.pop((job.model.name, request), None)
            if cancel and job.model.engine:
                job.model.engine.cancel(request)


Loaded = TypeVar("Loaded")


def load_each(paths: dict[str, str], read: Callable[[str, Path], Loaded], failed: dict[str, str]) -> dict[str, Loaded]:
    """What can be loaded of several files or folders by name. The errors of the others are added to `failed`."""
    loaded: dict[str, Loaded] = {}
    for name, path in paths.items():
        try:
            loaded[name] = read(name, Path(path))
        except UserError as error:
            failed[name] = str(error)
    return loaded


def main() -> None:
    """Entry point of the process: the file descriptor of its connection is the argument."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.nice(NICENESS)
    warnings.simplefilter("ignore")
    sys.setswitchinterval(0.001)
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    (config,) = channel.receive(60)
    if config["threads"]:
        set_n_threads(config["threads"])
    failed: dict[str, dict[str, str]] = {"models": {}, "glossaries": {}}
    models = load_each(
        config["models"], lambda name, folder: ServedModel(name, folder, config["precision"]), failed["models"]
    )
    glossaries = load_each(config["glossaries"], lambda _, path: Glossary.read(path), failed["glossaries"])
    channel.send({"ready": [model.info() for model in models.values()], "failed": failed})
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        Worker(channel, models, glossaries).run()


if __name__ == "__main__":
    main()
