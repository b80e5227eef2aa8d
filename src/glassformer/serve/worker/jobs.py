"""Requests of the server as computations."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from glassformer.config import JsonObject
from glassformer.corpora.terms import Glossary, Term, protect_pattern
from glassformer.decode_config import DecodeConfig
from glassformer.documents.inline import Detached, Inner
from glassformer.errors import UserError
from glassformer.generate.engine import RunningDecoding
from glassformer.generate.request import Decoding, Event
from glassformer.serve.messages import (
    AnyRequest,
    Call,
    Complete,
    Completed,
    Continue,
    Embed,
    Inspect,
    Requirements,
    Result,
    Translate,
    Translated,
    Usage,
)  # fmt: skip
from glassformer.serve.worker.results import (
    called,
    completed,
    continued,
    embedded,
    inspected,
    translated,
    whole_prompt,
)  # fmt: skip
from glassformer.serve.worker.served_model import ServedModel
from glassformer.tasks.causal_lm import DecoderTask, TextStream
from glassformer.tasks.code_positions import code_positions
from glassformer.tasks.continuations import continuations
from glassformer.tasks.feature_extraction import SentenceEmbedder
from glassformer.tasks.summarization import Summarizer
from glassformer.tasks.terms import Terms
from glassformer.tasks.text_to_text import TextToTextTask
from glassformer.tasks.translated import Translation

LINE_END = re.compile(r"\r?\n")


class Job(ABC):
    """A request that the engine of its model computes, together with others."""

    def __init__(self, model: ServedModel) -> None:
        assert model.engine
        self.model, self.engine = model, model.engine

    @property
    @abstractmethod
    def requests(self) -> Collection[int]:
        """Requests of the engine that are not done."""

    @abstractmethod
    def take(self, event: Event) -> str:
        """Take the event of a step for one of the requests. Returns the text that can be sent."""

    @abstractmethod
    def advance(self) -> Result | None:
        """Continue when all requests are done. Returns the result at the end; None: there may be new requests.

        Raises:
            UserError: the job cannot be computed.
        """

    def cancel(self) -> None:
        """Remove the requests from the engine."""
        for request in self.requests:
            self.engine.cancel(request)


class DecodingJob(Job):
    """A decoding, such as a translation.

    Args:
        result_of: the result from what the decoding returns.
    """

    def __init__(self, model: ServedModel, decoding: Decoding[Any], result_of: Callable[[Any], Result]) -> None:
        super().__init__(model)
        self.running, self.result_of = RunningDecoding(self.engine, decoding), result_of

    @property
    def requests(self) -> Collection[int]:
        return self.running.requests

    def take(self, event: Event) -> str:
        self.running.take(event)
        return ""

    def advance(self) -> Result | None:
        return None if self.running.advance() else self.result_of(self.running.result)


class StreamJob(Job):
    """Generation of one text, sent in parts.

    Raises:
        ContextLengthError: the text is too long.
    """

    def __init__(self, model: ServedModel, task: DecoderTask[Any], text: str, options: DecodeConfig) -> None:
        super().__init__(model)
        options = task.with_default_options(options)
        prompt, self.limit = whole_prompt(task, text, options)
        self.n_prompt = len(prompt)
        before = () if isinstance(task, Summarizer) else prompt[-1:]
        self.output = TextStream(task.tokenizer, options.stop, before)
        self.unfinished = {self.engine.submit(prompt, options, max_new_tokens=self.limit, index=0)}

    @property
    def requests(self) -> Collection[int]:
        return self.unfinished

    def take(self, event: Event) -> str:
        text = self.output.add(event.tokens)
        if self.output.is_stopped or event.hypotheses is not None:
            self.cancel()
            self.unfinished = set()
        return text

    def advance(self) -> Result | None:
        rest, n_tokens = self.output.end(), len(self.output.ids)
        is_cut = not self.output.is_stopped and n_tokens >= self.limit
        usage = Usage(prompt_tokens=self.n_prompt, completion_tokens=n_tokens)
        return Completed(text=rest, finish_reason="length" if is_cut else "stop", usage=usage)


def computation(
    request: AnyRequest, model: ServedModel, glossaries: Mapping[str, Glossary], memories: Mapping[str, Path]
) -> Job | Callable[[], Result]:
    """What computes a request: a job for the engine, or a function if nothing is generated token by token.

    Raises:
        UserError: the model, or its options, cannot be used for it.
    """
    task = model.task
    match request:
        case Translate() if isinstance(task, TextToTextTask):
            ends = LINE_END.findall(request.text)
            used = {"memory": (memories[name],)} if (name := request.requirements.memory) else {}
            options = decode_config(model, request.options | used)
            terms = terms_of(request.requirements, glossaries)
            decoding = task.decoding(LINE_END.split(request.text), options, terms=terms)
            spans = tuple(Inner(**span) for span in request.spans)
            return DecodingJob(
                model, decoding, lambda lines: with_positions(task, spans, translated(lines, ends), lines, options)
            )
        case Continue() if isinstance(task, TextToTextTask):
            options = decode_config(model, request.options)
            terms = terms_of(request.requirements, glossaries)
            found = continuations(task, request.text, request.prefix, request.n, options, terms)
            return DecodingJob(model, found, continued)
        case Complete() if isinstance(task, TextToTextTask):  # generated line by line, and cut then
            ends = LINE_END.findall(request.text)
            decoding = task.decoding(LINE_END.split(request.text), decode_config(model, request.options))
            return DecodingJob(
                model, decoding, lambda lines: completed(task.tokenizer, request, translated(lines, ends))
            )
        case Complete() if isinstance(task, DecoderTask):
            given = {"max_length": request.max_tokens, "stop": request.stop}
            limits = {name: value for name, value in given.items() if value}
            return StreamJob(model, task, request.text, decode_config(model, {**request.options, **limits}))
        case Call() if model.engine is None:
            return lambda: called(model.pipeline, request)
        case Embed() if isinstance(task, SentenceEmbedder):
            return lambda: embedded(task, request)
        case Inspect():
            model.check_inspection()
            return lambda: inspected(task, request)
        case _:
            raise UserError(f"the model was replaced: its task is now {task.name}, which cannot compute this request")


def with_positions(
    task: TextToTextTask[Any],
    spans: tuple[Inner, ...],
    result: Translated,
    lines: Sequence[Sequence[Translation]],
    options: DecodeConfig,
) -> Translated:
    """The translation of a line, and where spans that were taken out of the line belong in it."""
    if not spans:
        return result
    best = lines[0][0]
    sentence = Detached("", best.source, "", spans)
    (positions,) = code_positions(task, [sentence], [best], [best.alignment or ()], options.precision)
    return result.model_copy(update={"positions": positions})


def decode_config(model: ServedModel, options: JsonObject) -> DecodeConfig:
    """Options of decoding, in the precision of the model."""
    return DecodeConfig.resolve({**options, "precision": model.precision}, environment={})


def terms_of(requirements: Requirements, glossaries: Mapping[str, Glossary]) -> Terms | None:
    """The terms and protected spans of a translation."""
    glossary = glossaries[requirements.glossary] if requirements.glossary else None
    if pairs := requirements.terms:
        given = [Term(*(tuple(form.strip() for form in side.split("|")) for side in pair)) for pair in pairs]
        glossary = Glossary([*(glossary.terms if glossary else ()), *given])
    protect = protect_pattern(requirements.protect)
    return Terms(glossary, protect) if glossary or protect else None
