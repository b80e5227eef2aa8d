"""The API of LibreTranslate, with further optional fields."""

import json
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, BeforeValidator, Field

from glassformer.config import JsonObject
from glassformer.serve.admission import Unit
from glassformer.serve.errors import ApiError
from glassformer.serve.languages import name_of
from glassformer.serve.limits import (
    MAX_ALTERNATIVES,
    MAX_BEAM,
    MAX_SUGGESTIONS_BYTES,
    MAX_TERMS,
    MAX_TEXT_CHARACTERS,
    MAX_TEXTS,
)
from glassformer.serve.requests import parse, read_fields
from glassformer.serve.security import charge
from glassformer.serve.service import Service

DEFAULT_BEAM = 4


def none_if_empty(value: Any) -> Any:
    """Forms send empty fields."""
    return None if value == "" else value


Texts = str | list[str]
Pair = Annotated[list[Annotated[str, Field(max_length=200, pattern=r"\S")]], Field(min_length=2, max_length=2)]


class Translate(BaseModel):
    """A request to translate."""

    q: Texts
    source: str
    target: str
    format: Literal["text", "html"] = "text"
    alternatives: Annotated[int, BeforeValidator(lambda v: v or 0)] = Field(default=0, ge=0, le=MAX_ALTERNATIVES)
    api_key: str | None = None
    beam: Annotated[int | None, BeforeValidator(none_if_empty)] = Field(default=None, ge=1, le=MAX_BEAM)
    glossary: str | None = None
    terms: list[Pair] = Field(default=[], max_length=MAX_TERMS)
    protect: bool = False
    prefix: str = ""
    align: bool = False
    confidence: bool = False
    min_confidence: Annotated[float | None, BeforeValidator(none_if_empty)] = Field(default=None, ge=0, le=1)


class Detect(BaseModel):
    """A request to detect the language."""

    q: Texts
    api_key: str | None = None


class Suggest(BaseModel):
    """A corrected translation."""

    q: str
    s: str
    source: str
    target: str
    api_key: str | None = None


def described(model: type[BaseModel]) -> JsonObject:
    """The body of a request for the OpenAPI description."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    kinds = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data")
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}}


def checked_texts(q: Texts) -> list[str]:
    """The texts of a request.

    Raises:
        ApiError: there are none, or too many.
    """
    texts = [q] if isinstance(q, str) else q
    if not texts or q == "":
        raise ApiError(400, "Invalid request: missing q parameter", param="q")
    if len(texts) > MAX_TEXTS:
        raise ApiError(400, f"Invalid request: {len(texts):,} texts; at most {MAX_TEXTS:,} at once", param="q")
    n = sum(map(len, texts))
    if n > MAX_TEXT_CHARACTERS:
        raise ApiError(400, f"Invalid request: request ({n:,}) exceeds text limit ({MAX_TEXT_CHARACTERS:,})", param="q")
    return texts


def translation_unit(service: Service, model: str, text: str, body: Translate, *, align: bool = False) -> Unit:
    """A unit for the translation of a text."""
    features = service.model(model)["features"]
    beam = max(body.beam or DEFAULT_BEAM, body.alternatives + 1)
    options: JsonObject = {"beam": beam, "nbest": body.alternatives + 1}
    if body.prefix:
        options["prefix"] = body.prefix
    if (body.align or align) and "align" in features:
        options["align"] = True
    if "confidence" in features and (body.confidence or body.min_confidence is not None):
        options["confidence"] = True
        options["min_confidence"] = body.min_confidence
    message: JsonObject = {"kind": "translate", "model": model, "text": text, "options": options}
    if body.glossary:
        message["glossary"] = body.glossary
    if body.terms:
        message["terms"] = body.terms
    if body.protect:
        message["protect"] = True
    return service.scheduler.unit(message, text, beam=beam)


def detected(service: Service, texts: Sequence[str]) -> list[JsonObject]:
    """The language of each text, with its probability in percent."""
    if not service.profiles.languages:
        raise ApiError(
            400,
            "auto is not supported: the models were trained without language detection",
            param="source",
        )
    best = [service.profiles.detect(text)[0] for text in texts]
    return [{"confidence": round(100 * p, 1), "language": language} for language, p in best]


def router(service: Service) -> APIRouter:
    """The routes."""
    routes = APIRouter(tags=["LibreTranslate"])

    @routes.get("/languages")
    async def languages() -> Any:
        targets: dict[str, list[str]] = {code: [code] for code in service.codes}
        for source, target in service.pairs:
            targets[source].append(target)
        rows = [{"code": code, "name": name_of(code), "targets": found} for code, found in targets.items()]
        return sorted(rows, key=lambda row: str(row["name"]))

    @routes.get("/frontend/settings")
    async def settings() -> Any:
        source, target = next(iter(service.pairs), (None, None))
        languages = {
            side: {"code": code, "name": name_of(code)} if code else None
            for side, code in (("source", source), ("target", target))
        }
        return {
            "apiKeys": service.settings.keys is not None,
            "charLimit": MAX_TEXT_CHARACTERS,
            "filesTranslation": True,
            "frontendTimeout": 500,
            "keyRequired": service.settings.keys is not None,
            "language": languages,
            "suggestions": service.settings.corrections is not None,
            "supportedFilesFormat": [],
        }

    @routes.get("/health")
    async def health() -> Any:
        return {"status": "ok"}

    @routes.post("/translate", openapi_extra=described(Translate))
    async def translate(request: Request) -> Any:
        body = parse(Translate, await read_fields(request))
        texts = checked_texts(body.q)
        charge(request, service, body.api_key, sum(map(len, texts)))
        if body.glossary and body.glossary not in service.settings.glossaries:
            known = ", ".join(service.settings.glossaries) or "none"
            raise ApiError(400, f"there is no glossary {body.glossary[:100]!r}; there are: {known}", param="glossary")
        if body.prefix and (len(texts) > 1 or "\n" in texts[0] or body.format == "html"):
            raise ApiError(400, "Invalid request: prefix: only for one line of text", param="prefix")
        target = service.code(body.target)
        found = detected(service, texts) if body.source == "auto" else None
        sources = [row["language"] for row in found] if found else [service.code(body.source)] * len(texts)
        models = [service.translator(source, target) for source in sources]
        if body.format == "html":
            raise ApiError(400, "html: not yet")
        else:
            units = [translation_unit(service, m, t, body) for t, m in zip(texts, models, strict=True) if m]
            results = iter(await service.compute(request, units))
            answers = [next(results) if m else {"text": t, "others": []} for t, m in zip(texts, models, strict=True)]
        return response(body, answers, found)

    @routes.post("/detect", openapi_extra=described(Detect))
    async def detect(request: Request) -> Any:
        body = parse(Detect, await read_fields(request))
        texts = checked_texts(body.q)
        charge(request, service, body.api_key, 0)
        if not service.profiles.languages:
            detected(service, texts)
        ranked = service.profiles.detect("\n".join(texts))
        return [{"confidence": round(100 * p, 1), "language": language} for language, p in ranked if p >= 0.001]

    @routes.post("/suggest", openapi_extra=described(Suggest))
    async def suggest(request: Request) -> Any:
        body = parse(Suggest, await read_fields(request))
        charge(request, service, body.api_key, 0)
        if service.settings.corrections is None:
            raise ApiError(403, "Suggestions are disabled on this server.")
        source, target = service.code(body.source), service.code(body.target)
        for name, text in (("q", body.q), ("s", body.s)):
            if not text.strip():
                raise ApiError(400, f"Invalid request: missing {name} parameter", param=name)
        path = service.settings.corrections / f"corrections.{source}-{target}.jsonl"
        line = json.dumps({"src": " ".join(body.q.split()), "tgt": " ".join(body.s.split())}, ensure_ascii=False) + "\n"
        try:
            if path.exists() and path.stat().st_size + len(line) > MAX_SUGGESTIONS_BYTES:
                raise ApiError(403, "the file of corrections is full")
            descriptor = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
            try:
                os.write(descriptor, line.encode())
            finally:
                os.close(descriptor)
        except OSError as error:
            raise ApiError(503, f"the correction cannot be stored: {error.strerror}", retry_after_s=60) from None
        return {"success": True}

    return routes


def response(body: Translate, answers: Sequence[JsonObject], found: Sequence[JsonObject] | None) -> JsonObject:
    """The answer to a request, whose values are lists if its texts are a list."""
    is_list = isinstance(body.q, list)

    def values(function: Callable[[JsonObject], Any]) -> Any:
        results = [function(answer) for answer in answers]
        return results if is_list else results[0]

    result: JsonObject = {"translatedText": values(lambda answer: answer["text"])}
    if found is not None:
        result["detectedLanguage"] = list(found) if is_list else found[0]
    if body.alternatives:
        result["alternatives"] = values(lambda answer: distinct(answer["others"], answer["text"]))
    for name in ("alignment", "words", "confidence"):
        wanted = body.align if name == "alignment" else body.confidence
        if wanted and any(name in answer for answer in answers):
            result[name] = values(partial(field_of, name))
    for name in ("missing", "untranslated"):
        if any(answer.get(name) for answer in answers):
            result[name] = values(partial(field_of, name))
    return result


def field_of(name: str, answer: JsonObject) -> Any:
    """A field of an answer, if it has it."""
    return answer.get(name)


def distinct(texts: Sequence[str], first: str) -> list[str]:
    """The texts that differ from the first and from one another."""
    return [text for text in dict.fromkeys(texts) if text != first]
