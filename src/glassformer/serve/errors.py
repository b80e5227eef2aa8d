"""Errors of requests, in the form of each API."""

import re

from starlette.responses import JSONResponse

from glassformer.config import JsonObject


class ApiError(Exception):
    """A request cannot be answered.

    Args:
        status: HTTP status.
        message: what is wrong, and how to fix it.
        retry_after_s: seconds after which the request may be sent again.
        param: name of the field that is wrong.
        code: code of the error in the API of OpenAI. Default: the status.
    """

    def __init__(
        self, status: int, message: str, *, retry_after_s: int | None = None, param: str | None = None,
        code: str | None = None,
    ):  # fmt: skip
        super().__init__(message)
        self.status, self.message, self.retry_after_s = status, message, retry_after_s
        self.param, self.code = param, code


class Disconnected(Exception):
    """The client has gone."""


OPENAI_PATH = re.compile(r"(/models/[^/]+)?/v1/")
OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def error_response(path: str, error: ApiError) -> JSONResponse:
    """The answer for an error, in the form of the API of a path."""
    headers = {} if error.retry_after_s is None else {"Retry-After": str(error.retry_after_s)}
    status = error.status
    if OPENAI_PATH.match(path):
        status = 401 if status == 403 and "API key" in error.message else status
        kind = OPENAI_TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
        body: object = {
            "error": {"message": error.message, "type": kind, "param": error.param, "code": error.code or str(status)},
        }
    else:
        body = {"error": error.message}
    return JSONResponse(body, status, headers)


def documented(schema: JsonObject | None = None, *, key: str = "error") -> dict[int | str, JsonObject]:
    """The errors of an API for the OpenAPI description.

    Args:
        schema: JSON schema of the error. Default: a text.
        key: its key in the answer.
    """
    body = {"type": "object", "required": [key], "properties": {key: schema or {"type": "string"}}}
    content = {"application/json": {"schema": body}}
    return {
        "4XX": {"description": "The request cannot be answered; 429: too many characters a minute", "content": content},
        "5XX": {"description": "The server is overloaded (503, with Retry-After), or failed (500)", "content": content},
    }
