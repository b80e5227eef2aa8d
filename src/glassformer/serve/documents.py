"""Translation of files and of HTML."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import PurePath
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from pydantic import BeforeValidator, Field
from starlette.datastructures import UploadFile
from starlette.responses import Response

from glassformer.config import JsonObject
from glassformer.documents.document import Only
from glassformer.documents.exchange import SUFFIXES, Exchange, exchanged
from glassformer.documents.languages import differing
from glassformer.documents.notes import notes_of
from glassformer.documents.origin import Origin
from glassformer.documents.reader import AnyDocument, DocumentReader
from glassformer.errors import CorpusError
from glassformer.serve.errors import ApiError, documented
from glassformer.serve.limits import FILE_S, MAX_FILE_BYTES, MAX_FILE_SEGMENTS
from glassformer.serve.messages import Translated
from glassformer.serve.requests import FILE, check_text, described, parse, read_fields
from glassformer.serve.security import charge
from glassformer.serve.service import Service
from glassformer.serve.translation import (
    Control,
    Translate,
    check_confidence,
    detected,
    none_if_empty,
    translation_unit,
)


class TranslateFile(Control):
    """A request to translate a file."""

    source: str
    target: str
    api_key: str | None = None
    progress: Annotated[str | None, BeforeValidator(none_if_empty)] = Field(default=None, pattern=r"^[0-9a-f]{32}$")
    only: Annotated[Only, BeforeValidator(lambda value: value or "empty")] = "empty"
    to: Annotated[Exchange | None, BeforeValidator(none_if_empty)] = None
    min_confidence: Annotated[float | None, BeforeValidator(none_if_empty)] = Field(default=None, ge=0, le=1)


async def read_document(
    reader: DocumentReader, name: str, data: bytes, languages: tuple[str, str] = ("", "")
) -> AnyDocument:
    """The document of a file.

    Args:
        languages: source and target language; an empty text for one that the file says.

    Raises:
        ApiError: it cannot be read, or has too many texts.
    """
    try:
        document = await reader.read(name, data, languages)
    except CorpusError as error:
        raise ApiError(400, " ".join(str(error).split()), param="file") from None
    if len(document.segments) > MAX_FILE_SEGMENTS:
        raise ApiError(400, f"{name}: more than {MAX_FILE_SEGMENTS:,} sentences; split the file", param="file")
    return document


async def translated(
    request: Request,
    service: Service,
    documents: Sequence[tuple[AnyDocument, str]],
    body: Translate,
    *,
    to: Exchange | None = None,
    name: str = "",
    deadline_s: float | None = None,
    progress: list[int] | None = None,
    found: list[list[Translated]] | None = None,
) -> list[bytes]:
    """Documents in the other language.

    Args:
        documents: documents, and the name of the model of each.
        to: see `tasks.files.translate_document`, also for `name`.
        deadline_s: seconds in which a file must be translated. Default: that of other requests.
        progress: its first number becomes that of the segments that are translated.
        found: the translations of the segments of each document are added to it.

    Raises:
        ApiError: a model lacks what the request needs, or they cannot be computed.
    """
    for _, model in documents:
        check_confidence(service.model(model), body.min_confidence)
    units = [
        translation_unit(
            service,
            model,
            segment.text,
            body.model_copy(update={"min_confidence": None, "confidence": True})
            if is_marked(document, body, to)
            else body,
            spans=segment.detached.inner if segment.detached else (),
            protect=document.protect,
        )
        for document, model in documents
        for segment in document.segments
    ]

    def count(_: object) -> None:
        if progress:
            progress[0] += 1

    for unit in units:
        unit.done.add_done_callback(count)
    results = iter(await service.compute(request, units, deadline_s=deadline_s, files=deadline_s is not None))
    rendered = []
    for document, model in documents:
        own = [next(results) for _ in document.segments]
        if found is not None:
            found.append(own)
        positions = [result.positions or () for result in own]
        texts = [result.text for result in own]
        least = body.min_confidence if is_marked(document, body, to) else None
        origins = [origin_of(result, least) for result in own]
        languages = service.languages_of(service.model(model))
        if to:
            sources = [segment.text for segment in document.segments]
            rendered.append(exchanged(to, name, languages or ("", ""), sources, texts, origins))
            continue
        render = partial(document.render, texts, positions, languages, origins)
        rendered.append(await asyncio.to_thread(render))  # takes seconds
    return rendered


def origin_of(result: Translated, least: float | None) -> Origin:
    """Where a translation comes from.

    Args:
        least: confidence below which a person has to check it; None: it is not checked.
    """
    is_doubtful = least is not None and (result.confidence or 0) < least
    return Origin(is_doubtful, result.confidence, **(result.match or {}))


def is_marked(document: AnyDocument, body: Translate, to: Exchange | None) -> bool:
    """Whether less confident translations are marked in the file instead of left out."""
    return body.min_confidence is not None and bool(document.entries or to)


async def read_html(service: Service, texts: Sequence[str]) -> list[AnyDocument]:
    """The documents of texts in HTML.

    Raises:
        ApiError: see `read_document`.
    """
    return [await read_document(service.reader, "q.html", text.encode()) for text in texts]


def sample_of(document: AnyDocument) -> str:
    """Text by which the language of a document can be detected."""
    return "\n".join(segment.text for segment in document.segments[:100])


async def translate_html(
    request: Request,
    service: Service,
    texts: Sequence[str],
    documents: Sequence[AnyDocument],
    models: Sequence[str | None],
    body: Translate,
) -> list[Translated]:
    """The translations of texts in HTML.

    Args:
        documents: those of the texts.
        models: name of the model of each text; None for one that stays as it is.
    """
    body = body.model_copy(update={"alternatives": 0, "align": False, "confidence": False})
    given = [(document, model) for document, model in zip(documents, models, strict=True) if model]
    found: list[list[Translated]] = []
    rendered, units = iter(await translated(request, service, given, body, found=found)), iter(found)
    results = []
    for text, model in zip(texts, models, strict=True):
        if not model:
            results.append(Translated(text=text))
            continue
        own = next(units)
        missing = [term for each in own for term in each.missing]
        is_cut = any(each.truncated for each in own)
        read_as = [pair for each in own for pair in each.read_as]
        results.append(Translated(text=next(rendered).decode(), read_as=read_as, missing=missing, truncated=is_cut))
    return results


def router(service: Service) -> APIRouter:
    """The routes."""
    routes = APIRouter(tags=["LibreTranslate"], responses=documented())

    @routes.post(
        "/translate_file", openapi_extra=described(TranslateFile, FILE, file={"type": "string", "format": "binary"})
    )
    async def translate_file(request: Request) -> Any:
        fields = await read_fields(request, limit=MAX_FILE_BYTES)
        file = fields.pop("file", None)
        if not isinstance(file, UploadFile):
            raise ApiError(400, "Invalid request: missing file parameter", param="file")
        body = parse(TranslateFile, fields)
        body.check_names(service)
        path = PurePath(check_text((file.filename or "").replace("\\", "/"), "file"))
        stem, suffix = path.stem[:200], path.suffix
        name = f"{stem}{suffix}"
        data = await file.read()
        charge(request, service, body.api_key, len(data))
        target = service.code(body.target)
        asked = ("" if body.source == "auto" else service.code(body.source), target)
        document = (await read_document(service.reader, name, data, asked)).only(body.only)
        if document.languages and (other := differing(document.languages, asked)):
            raise ApiError(400, f"{name}: {other}, and the request is from {asked[0]} to {asked[1]}", param="file")
        declared = document.languages[0] if document.languages else ""
        if body.source == "auto" and declared:
            source = service.code(declared)
        elif body.source == "auto":
            source = detected(service, [sample_of(document)], target)[0]["language"]
        else:
            source = service.code(body.source)
        model = service.translator(source, target)
        progress, found = [0, len(document.segments)], list[list[Translated]]()
        if body.progress:
            service.progress[body.progress] = progress
        try:
            if model or body.to:
                if not model:
                    raise ApiError(400, f"{name}: is in {target} already: nothing to write as {body.to}", param="to")
                control = body.model_dump(include=set(Control.model_fields))
                least = body.min_confidence
                options = Translate(q="", source=source, target=target, min_confidence=least, **control)
                (data,) = await translated(
                    request, service, [(document, model)], options, to=body.to, name=name, deadline_s=FILE_S,
                    progress=progress, found=found,
                )  # fmt: skip
        finally:
            service.progress.pop(body.progress or "", None)
        suffix += SUFFIXES[body.to] if body.to else ""
        key = service.results.add(data, f"{stem}.{target}{suffix}", "application/octet-stream")
        answer: JsonObject = {"translatedFileUrl": f"{request.base_url}download_file/{key}{suffix.lower()}"}
        results = [result for own in found for result in own]
        n_cut = sum(result.truncated for result in results)
        pairs = zip(document.segments, results, strict=bool(results))  # none without a model
        n_empty = sum(bool(segment.text) and not result.text.strip() for segment, result in pairs)
        notes = [*document.notes, *notes_of(n_cut, n_empty, [r.missing for r in results], [r.read_as for r in results])]
        return answer | ({"notes": notes} if notes else {})

    @routes.get("/translate_file/progress/{key}", include_in_schema=False)
    async def file_progress(key: str) -> Any:
        done, total = service.progress.get(key, (0, 0))  # not begun, or done
        return {"done": done, "total": total}

    @routes.get(
        "/download_file/{key}", response_class=Response, responses={200: {"content": {"application/octet-stream": {}}}}
    )
    async def download(key: str) -> Response:
        result = service.results.find(key.partition(".")[0])
        disposition = f"attachment; filename*=UTF-8''{quote(result.name, safe='')}"
        headers = {"Content-Disposition": disposition, "Cache-Control": "private, no-store"}
        return Response(result.data, media_type=result.content_type, headers=headers)

    return routes
