"""The API of LibreTranslate, with further optional fields."""

import json
import os
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel

from glassformer.config import JsonObject
from glassformer.documents.reader import FORMATS
from glassformer.serve.documents import read_html, sample_of, translate_html
from glassformer.serve.errors import ApiError, documented
from glassformer.serve.languages import name_of
from glassformer.serve.limits import MAX_SUGGESTIONS_BYTES, MAX_TEXT_CHARACTERS
from glassformer.serve.messages import Translated
from glassformer.serve.requests import FORMS, described, parse, read_fields
from glassformer.serve.security import charge
from glassformer.serve.service import Service
from glassformer.serve.translation import Texts, Translate, check_detection, checked_texts, detected, translation_unit


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


def router(service: Service) -> APIRouter:
    """The routes."""
    routes = APIRouter(tags=["LibreTranslate"], responses=documented())

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
            "glossaries": list(service.settings.glossaries),
            "keyRequired": service.settings.keys is not None,
            "language": languages,
            "memories": list(service.settings.memories),
            "suggestions": service.settings.corrections is not None,
            "supportedFilesFormat": list(FORMATS),
        }

    @routes.get("/health")
    async def health() -> Any:
        if service.supervisor.has_failed:
            raise ApiError(503, "the models cannot be loaded; the log of the server has the reason", retry_after_s=5)
        problems = service.problems
        return {"status": "degraded", "problems": problems} if problems else {"status": "ok"}

    @routes.post("/translate", openapi_extra=described(Translate, FORMS))
    async def translate(request: Request) -> Any:
        body = parse(Translate, await read_fields(request))
        texts = checked_texts(body.q)
        charge(request, service, body.api_key, sum(map(len, texts)))
        body.check_names(service)
        if len(texts) > 1 or "\n" in texts[0] or body.format == "html":
            if body.prefix:
                raise ApiError(400, "Invalid request: prefix: only for one line of text", param="prefix")
            body = body.model_copy(update={"prefix": None})
        target = service.code(body.target)
        documents = await read_html(service, texts) if body.format == "html" else None
        samples = list(map(sample_of, documents)) if documents else texts
        found = detected(service, samples, target) if body.source == "auto" else None
        sources = [row["language"] for row in found] if found else [service.code(body.source)] * len(texts)
        models = [service.translator(source, target) for source in sources]
        if documents:
            answers = await translate_html(request, service, texts, documents, models, body)
        else:
            units = [translation_unit(service, m, t, body) for t, m in zip(texts, models, strict=True) if m]
            results = iter(await service.compute(request, units))
            answers = [next(results) if m else Translated(text=t) for t, m in zip(texts, models, strict=True)]
        return response(body, answers, found)

    @routes.post("/detect", openapi_extra=described(Detect, FORMS))
    async def detect(request: Request) -> Any:
        body = parse(Detect, await read_fields(request))
        texts = checked_texts(body.q)
        charge(request, service, body.api_key, 0)
        check_detection(service)
        ranked = service.profiles.detect("\n".join(texts))
        return [{"confidence": round(100 * p, 1), "language": language} for language, p in ranked if p >= 0.001]

    @routes.post("/suggest", openapi_extra=described(Suggest, FORMS))
    async def suggest(request: Request) -> Any:
        if service.settings.corrections is None:
            raise ApiError(403, "Suggestions are disabled on this server.")
        body = parse(Suggest, await read_fields(request))
        charge(request, service, body.api_key, 0)
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


def response(body: Translate, answers: Sequence[Translated], found: Sequence[JsonObject] | None) -> JsonObject:
    """The answer to a request, whose values are lists if its texts are a list."""
    is_list = isinstance(body.q, list)

    def values(function: Callable[[Translated], Any]) -> Any:
        results = [function(answer) for answer in answers]
        return results if is_list else results[0]

    result: JsonObject = {"translatedText": values(lambda answer: answer.text)}
    if found is not None:
        result["detectedLanguage"] = list(found) if is_list else found[0]
    if body.alternatives:
        result["alternatives"] = values(lambda answer: distinct(answer.others, answer.text))
    for name in ("alignment", "words", "confidence"):
        wanted = body.align if name == "alignment" else body.confidence
        if wanted and any(getattr(answer, name) is not None for answer in answers):
            result[name] = values(attrgetter(name))
    if (continuations := answers[0].continuations) is not None:
        result["continuations"] = [continuation_record(continuation) for continuation in continuations]
    for name in ("read_as", "missing", "untranslated", "truncated", "match"):
        if any(getattr(answer, name) for answer in answers):
            result["readAs" if name == "read_as" else name] = values(attrgetter(name))
    return result


def continuation_record(continuation: Translated) -> JsonObject:
    """A translation that continues a prefix, with what was requested or is missing."""
    record: JsonObject = {"text": continuation.text, "alignment": continuation.alignment, "words": continuation.words}
    record["missing"] = continuation.missing or None
    return {name: value for name, value in record.items() if value is not None}


def distinct(texts: Sequence[str], first: str) -> list[str]:
    """The texts that differ from the first and from one another."""
    return [text for text in dict.fromkeys(texts) if text != first]
