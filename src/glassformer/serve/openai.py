"""The API of OpenAI: completions, chats and embeddings."""

import asyncio
import base64
import json
import secrets
import struct
import time
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.responses import StreamingResponse

from glassformer.config import JsonObject
from glassformer.serve.admission import Unit
from glassformer.serve.errors import ApiError, documented, error_response
from glassformer.serve.limits import MAX_TEXT_CHARACTERS
from glassformer.serve.messages import Complete, Completed, Embed, ModelInfo
from glassformer.serve.openai_requests import Chat, Completion, Embeddings, Generation, checked
from glassformer.serve.requests import described, json_object, read_body, warn
from glassformer.serve.security import charge
from glassformer.serve.service import Service, client_of, translate_errors
from glassformer.serve.translation import DEFAULT_BEAM

STREAM_DEADLINES = 4
"""A stream, which is read while it is generated, has so many times the deadline."""

GENERATES = ("text-generation", "summarization")
"""Pipelines of decoder-only models."""

ERROR: JsonObject = {
    "type": "object",
    "required": ["message", "type", "param", "code"],
    "properties": {
        "message": {"type": "string"},
        "type": {"type": "string"},
        "param": {"type": ["string", "null"]},
        "code": {"type": "string"},
    },
}
"""Schema of errors."""

STREAMED: dict[int | str, JsonObject] = {200: {"content": {"application/json": {}, "text/event-stream": {}}}}
"""Content types of what can be a stream."""

TEXT_TO_TEXT = ("translation", "text2text-generation")
"""Pipelines of encoder-decoder models."""


def generation_unit(
    service: Service, body: Generation, text: str, max_tokens: int | None, on_text: Callable[[str], None] | None = None
) -> Unit[Completed]:
    """A unit that generates text."""
    info = service.model(body.model)
    limits = {"max_tokens": max_tokens, "stop": body.stop}
    if info.pipeline in TEXT_TO_TEXT:
        completion = Complete(model=body.model, text=text, options={"beam": DEFAULT_BEAM}, **limits)
        return service.scheduler.unit(completion, text, beam=DEFAULT_BEAM)
    if info.pipeline not in GENERATES:
        raise ApiError(400, f"{body.model}: its task is {info.task}, which does not generate text", param="model")
    options: JsonObject = {}
    if body.temperature == 0:
        options["beam"] = 1
    else:
        given = {"temperature": body.temperature, "top_p": body.top_p, "top_k": body.top_k}
        options = {name: value for name, value in given.items() if value is not None}
    # Without a seed, each request has other random numbers.
    options["seed"] = secrets.randbits(62) if body.seed is None else body.seed
    completion = Complete(model=body.model, text=text, options=options, **limits)
    return service.scheduler.unit(completion, text, n_new_tokens=max_tokens or 256, on_text=on_text)


def usage_of(results: Sequence[Completed]) -> JsonObject:
    """Numbers of tokens."""
    prompt = sum(result.usage.prompt_tokens for result in results)
    completion = sum(result.usage.completion_tokens for result in results)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def check_length(texts: Sequence[str], field: str) -> int:
    """Number of characters of texts.

    Raises:
        ApiError: there are too many.
    """
    n = sum(map(len, texts))
    if n > MAX_TEXT_CHARACTERS:
        raise ApiError(400, f"{field}: {n:,} characters; at most {MAX_TEXT_CHARACTERS:,} at once", param=field)
    return n


def router(service: Service) -> APIRouter:
    """The routes."""
    routes = APIRouter(tags=["OpenAI"], responses=documented(ERROR))

    @routes.get("/v1/models")
    async def models() -> Any:
        return {"object": "list", "data": [model_record(info) for info in service.models.values()]}

    @routes.get("/v1/models/{name}")
    async def model(name: str) -> Any:
        return model_record(service.model(name))

    @routes.post("/v1/completions", openapi_extra=described(Completion), responses=STREAMED)
    async def completions(request: Request) -> Any:
        body = checked(Completion, json_object(await read_body(request)))
        service.model(body.model)
        charge(request, service, None, check_length(body.prompt, "prompt"))

        def choice(index: int, text: str, reason: str | None) -> JsonObject:
            return {"text": text, "index": index, "logprobs": None, "finish_reason": reason}

        head = {"id": f"cmpl-{secrets.token_hex(12)}", "object": "text_completion"}
        prefixes = body.prompt if body.echo else [""] * len(body.prompt)
        return await generate(request, service, body, body.prompt, body.max_tokens, head, choice, choice, prefixes)

    @routes.post("/v1/chat/completions", openapi_extra=described(Chat), responses=STREAMED)
    async def chat(request: Request) -> Any:
        return await answer_chat(request, checked(Chat, json_object(await read_body(request))))

    @routes.post("/models/{name}/v1/chat/completions", openapi_extra=described(Chat), responses=STREAMED)
    async def chat_of_model(name: str, request: Request) -> Any:
        return await answer_chat(request, checked(Chat, json_object(await read_body(request)), model=name))

    async def answer_chat(request: Request, body: Chat) -> Any:
        info = service.model(body.model)
        if info.pipeline in TEXT_TO_TEXT or info.pipeline == "summarization":
            text = next((message.text for message in reversed(body.messages) if message.role == "user"), "")
        else:
            text = "\n".join(message.text for message in body.messages if message.text)
        if not text.strip():
            raise ApiError(400, "messages: there is no message of the user with text", param="messages")
        charge(request, service, None, check_length([text], "messages"))

        def choice(index: int, text: str, reason: str | None) -> JsonObject:
            message = {"role": "assistant", "content": text, "refusal": None}
            return {"index": index, "message": message, "logprobs": None, "finish_reason": reason}

        def chunk(index: int, text: str, reason: str | None) -> JsonObject:
            delta = {"content": text} if text else {} if reason else {"role": "assistant", "content": ""}
            return {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}

        head = {"id": f"chatcmpl-{secrets.token_hex(12)}", "object": "chat.completion"}
        limit = body.max_completion_tokens or body.max_tokens
        return await generate(request, service, body, [text], limit, head, choice, chunk, [""])

    @routes.post("/v1/embeddings", openapi_extra=described(Embeddings))
    async def embeddings(request: Request, response: Response) -> Any:
        body = checked(Embeddings, json_object(await read_body(request)))
        info = service.model(body.model)
        charge(request, service, None, check_length(body.input, "input"))
        if not info.embeds:
            raise ApiError(400, f"{body.model}: its task is {info.task}, which has no embeddings", param="model")
        embed = Embed(model=body.model, texts=body.input)
        (result,) = await service.compute(request, [service.scheduler.unit(embed, "".join(body.input))])
        warn(response, result.notes)

        def encoded(vector: list[float]) -> Any:
            if body.encoding_format == "float":
                return vector
            return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()

        data = [
            {"object": "embedding", "index": i, "embedding": encoded(vector)} for i, vector in enumerate(result.vectors)
        ]
        usage = {"prompt_tokens": result.n_tokens, "total_tokens": result.n_tokens}
        return {"object": "list", "data": data, "model": body.model, "usage": usage}

    return routes


def model_record(info: ModelInfo) -> JsonObject:
    """A model in the form of the API."""
    return {"id": info.id, "object": "model", "created": info.created, "owned_by": "glassformer"}


Choice = Callable[[int, str, str | None], JsonObject]


async def generate(
    request: Request, service: Service, body: Generation, texts: Sequence[str], max_tokens: int | None,
    head: JsonObject, choice: Choice, chunk: Choice, prefixes: Sequence[str],
) -> Any:  # fmt: skip
    """Generate a text for each prompt, whole or as a stream."""
    head = {**head, "created": int(time.time()), "model": body.model}
    if not body.stream:
        parts: list[list[str]] = [[] for _ in texts]
        units = [generation_unit(service, body, text, max_tokens, parts[i].append) for i, text in enumerate(texts)]
        results = await service.compute(request, units)
        choices = [
            choice(i, "".join([prefixes[i], *parts[i], result.text]), result.finish_reason)
            for i, result in enumerate(results)
        ]
        return {**head, "choices": choices, "usage": usage_of(results)}
    if "chat" in head["object"]:
        head["object"] += ".chunk"
    arrived: asyncio.Queue[tuple[int, str] | None] = asyncio.Queue()

    def put(index: int, part: str) -> None:
        arrived.put_nowait((index, part))

    units = [generation_unit(service, body, text, max_tokens, partial(put, i)) for i, text in enumerate(texts)]
    deadline_s = STREAM_DEADLINES * service.settings.deadline_s
    service.admit(units, client_of(request), deadline_s)
    work = asyncio.ensure_future(service.scheduler.compute(units, client_of(request), deadline_s))
    work.add_done_callback(lambda _: arrived.put_nowait(None))

    async def first_part() -> tuple[int, str] | None:
        """What arrives first: an error before it is the answer to the request, and not a part of a stream."""
        first = await arrived.get()
        if first is None:
            await work
        return first

    async def events(part: tuple[int, str] | None) -> AsyncIterator[str]:
        def event(index: int, text: str, reason: str | None = None) -> str:
            return data({**head, "choices": [chunk(index, text, reason)]})

        try:
            for i, prefix in enumerate(prefixes):
                if prefix or "chat" in head["object"]:
                    yield event(i, prefix)
            while part is not None:
                yield event(*part)
                part = await arrived.get()
            try:
                results = await translate_errors(work)
            except ApiError as error:
                yield data(json.loads(bytes(error_response("/v1/", error).body)))
                return
            for i, result in enumerate(results):
                if result.text:
                    yield event(i, result.text)
                yield event(i, "", result.finish_reason)
            if body.stream_options and body.stream_options.include_usage:
                yield data({**head, "choices": [], "usage": usage_of(results)})
            yield "data: [DONE]\n\n"
        finally:
            work.cancel()

    try:
        first = await service.answer(request, first_part())
    except BaseException:
        work.cancel()
        raise
    return StreamingResponse(events(first), media_type="text/event-stream", headers={"Cache-Control": "no-store"})


def data(record: object) -> str:
    """An event of a stream. It has no line separators of Unicode, at which clients in Python may divide it."""
    return f"data: {json.dumps(record)}\n\n"
