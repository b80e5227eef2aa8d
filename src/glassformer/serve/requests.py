"""Bodies of requests: JSON, forms and files, read within limits."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import Request, Response
from pydantic import BaseModel, ValidationError
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect

from glassformer.config import JsonObject
from glassformer.serve.errors import ApiError, Disconnected
from glassformer.serve.limits import MAX_BODY_BYTES, MAX_DEPTH, MAX_FIELDS

ModelT = TypeVar("ModelT", bound=BaseModel)
Fields = dict[str, Any]
MAX_NOTES = 5
"""Most notes of an answer."""


def warn(response: Response, notes: Sequence[str]) -> None:
    """Say what a person should know about an answer, in the header `Warning` (RFC 7234)."""
    more = [f"{len(notes) - MAX_NOTES} more notes like these"] if len(notes) > MAX_NOTES else []
    if notes:
        response.headers["Warning"] = ", ".join(f"299 - {json.dumps(note)}" for note in [*notes[:MAX_NOTES], *more])


async def read_body(request: Request, limit: int = MAX_BODY_BYTES) -> bytes:
    """The body of a request.

    Raises:
        ApiError: it is larger than the limit, or compressed.
        Disconnected: the client has gone.
    """
    if (encoding := request.headers.get("content-encoding", "identity").strip().lower()) not in ("identity", ""):
        raise ApiError(415, f"the body is encoded as {encoding[:50]}; send it without Content-Encoding")
    too_large = ApiError(413, f"the body is larger than {limit:,} bytes; send less text at once")
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > limit:
        raise too_large
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > limit:
                raise too_large
    except ClientDisconnect:
        raise Disconnected from None
    return bytes(body)


async def read_fields(request: Request, *, limit: int = MAX_BODY_BYTES, lists: Sequence[str] = ("q",)) -> Fields:
    """The fields of a JSON object, of a form, or of the query string.

    Args:
        lists: fields of forms that become lists if they are repeated.

    Raises:
        ApiError: the body is damaged or too large.
    """
    body = await read_body(request, limit)
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    match kind.decode("latin-1"):
        case "application/x-www-form-urlencoded":
            try:
                text = body.decode()
                pairs: list[tuple[str, Any]] = parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS)
            except ValueError:
                raise ApiError(400, "Invalid request: the form is not text in UTF-8, or has too many fields") from None
        case "multipart/form-data":
            pairs = await multipart(request.headers, body, options)
        case _ if body:
            return json_object(body)
        case _:
            pairs = list(request.query_params.multi_items())
    fields: Fields = {}
    for name, value in pairs:
        if name in lists and name in fields:
            fields[name] = [*(fields[name] if isinstance(fields[name], list) else [fields[name]]), value]
        else:
            fields.setdefault(name, value)
    return fields


async def multipart(headers: Headers, body: bytes, options: Mapping[bytes, bytes]) -> list[tuple[str, Any]]:
    """The fields and files of a multipart form."""

    async def chunks() -> Any:
        yield body

    if not options.get(b"boundary"):
        raise ApiError(400, "Invalid request: a multipart form without a boundary")
    try:
        form = await MultiPartParser(headers, chunks(), max_files=1, max_fields=MAX_FIELDS).parse()
        return list(form.multi_items())
    except (MultiPartException, FormParserError, ValueError, LookupError):
        raise ApiError(400, "Invalid request: the multipart form is damaged") from None


def json_object(body: bytes) -> Fields:
    """The object of a JSON text.

    Raises:
        ApiError: it is something else.
    """
    try:
        value = json.loads(body)
        if depth_is_at_most(value, MAX_DEPTH):
            if isinstance(value, dict):
                return value
            raise ApiError(400, "Invalid request: expected a JSON object")
    except (ValueError, RecursionError):
        pass
    raise ApiError(400, "Invalid request: the body is not JSON, or too deeply nested")


def depth_is_at_most(value: Any, limit: int) -> bool:
    """Whether a JSON value has at most so many levels."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return limit > 0 and all(depth_is_at_most(item, limit - 1) for item in inner)
    return True


def check_text(text: str, field: str) -> str:
    """The text, if it can be encoded.

    Raises:
        ApiError: it has half of a surrogate pair, or NUL.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ApiError(400, f"Invalid request: {field} has half of a surrogate pair", param=field) from None
    if "\0" in text:
        raise ApiError(400, f"Invalid request: {field} has the character NUL", param=field)
    return text


def check_texts(value: Any, field: str = "") -> None:
    """Check all texts and numbers of a JSON value.

    Raises:
        ApiError: a text or a number that cannot be used.
    """
    if isinstance(value, str):
        check_text(value, field)
    elif isinstance(value, dict):
        for key, inner in value.items():
            check_text(str(key), field or "a key")
            check_texts(inner, field or str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            check_texts(inner, field)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ApiError(400, f"Invalid request: {field} is not a finite number", param=field)


def parse(model: type[ModelT], fields: Fields) -> ModelT:
    """The fields in the types of a model.

    Raises:
        ApiError: a field is missing or has a wrong value.
    """
    check_texts({name: value for name, value in fields.items() if not isinstance(value, UploadFile)})
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        detail = error.errors()[0]
        name = ".".join(str(part) for part in detail["loc"] if not isinstance(part, int)) or "body"
        name = name.partition(".")[0]
        if detail["type"] == "missing":
            raise ApiError(400, f"Invalid request: missing {name} parameter", param=name) from None
        problem = detail["msg"].removeprefix("Value error, ")
        raise ApiError(400, f"Invalid request: {name}: {problem}", param=name) from None


JSON = ("application/json",)
FORMS = (*JSON, "application/x-www-form-urlencoded", "multipart/form-data")
FILE = ("multipart/form-data",)


def described(model: type[BaseModel], kinds: Sequence[str] = JSON, **fields: JsonObject) -> JsonObject:
    """The body of a request for the OpenAPI description.

    Args:
        kinds: content types.
        fields: schemas of required fields that the model does not have.
    """
    schema = model.model_json_schema()
    schema = inlined(schema, schema.pop("$defs", {}))
    schema["properties"] |= fields
    schema["required"] = [*schema.get("required", []), *fields]
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}}


def inlined(value: Any, definitions: JsonObject) -> Any:
    """A JSON schema with definitions in place of the references to them."""
    if isinstance(value, dict):
        if "$ref" in value:
            return inlined(definitions[value["$ref"].rpartition("/")[2]], definitions)
        return {key: inlined(inner, definitions) for key, inner in value.items()}
    return [inlined(inner, definitions) for inner in value] if isinstance(value, list) else value
