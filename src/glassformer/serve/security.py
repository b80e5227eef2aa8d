"""Who may use the server: hosts, origins, keys."""

import ipaddress
import re

from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from glassformer.serve import metrics
from glassformer.serve.errors import ApiError, error_response
from glassformer.serve.service import Service

COMPUTING_GET = ("/translate",)
"""Addresses at which GET computes something (the API of Apertium)."""

DEFAULT_HEADERS = b"Content-Type, Authorization"
"""Headers that pages of named origins may send, unless they ask for others, such as those of the client of OpenAI."""

LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")


def host_name(netloc: str) -> str:
    """The host of a netloc, without the port."""
    name, _, port = netloc.rpartition(":")
    return (name if name and port.isdigit() else netloc).lower()


def is_address(host: str) -> bool:
    """Whether a host is an IP address."""
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def charge(request: Request, service: Service, given: str | None, n_characters: int) -> None:
    """Check the key of a request, and count characters against its rate.

    Args:
        given: the key in the body. Else that of the header Authorization is used.

    Raises:
        ApiError: the key is missing or unknown, or its rate is exceeded.
    """
    metrics.CHARACTERS.inc(n_characters)
    if service.settings.keys is None:
        return
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    text = given or (token if scheme.lower() == "bearer" else "")
    if not text:
        raise ApiError(403, "Please contact the server operator to get an API key: this server requires one")
    key = service.settings.keys.find(text)
    if key is None:
        raise ApiError(403, "Invalid API key")
    request.state.key_name = key.name
    if (seconds := key.take(n_characters)) > 0:
        message = f"Slowdown: more than {key.characters_per_minute:,} characters in a minute"
        raise ApiError(429, message, retry_after_s=int(seconds) + 1)


class Gate:
    """Refuses hosts and origins that are not allowed, and adds headers to all answers.

    Args:
        names: allowed host names.
        origins: origins of pages on other servers that may use the APIs.
    """

    def __init__(self, app: ASGIApp, names: tuple[str, ...], origins: tuple[str, ...]) -> None:
        self.app = app
        self.names = {name.lower() for name in (*LOCAL_NAMES, *names)}
        self.origins = set(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}  # uvicorn, which has the original, leaves the body out
        headers = dict(scope["headers"])
        origin = headers.get(b"origin", b"").decode("latin-1")
        netloc = headers.get(b"host", b"").decode("latin-1").lower()
        host = host_name(netloc)
        is_named = origin in self.origins or "*" in self.origins
        # The image or the link of a page has no origin, but browsers say that it is of another site.
        is_foreign = headers.get(b"sec-fetch-site") in (b"cross-site", b"same-site")
        own = origin.lower().partition("://")[2] == netloc if origin else not is_foreign
        path = scope["path"] = re.sub("/{2,}", "/", scope["path"])  # the address that a client was given may end in /
        only_reads = scope["method"] == "GET" and path not in COMPUTING_GET
        extra = [(b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer")]
        if origin and is_named:
            extra += [(b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"Origin")]
            extra.append((b"access-control-expose-headers", b"Warning, Retry-After"))

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        # The page of a stranger can give its own name the address of this machine, but no address another name.
        if host not in self.names and not is_address(host):
            error = ApiError(400, "Invalid request: this host name is not allowed; start the server with --public-name")
            await error_response(scope["path"], error)(scope, receive, send_with_headers)
        elif not (own or is_named or only_reads):
            error = ApiError(403, "Invalid request: pages of this origin may not use the server; start it with --cors")
            await error_response(scope["path"], error)(scope, receive, send_with_headers)
        elif scope["method"] == "OPTIONS" and is_named and origin:
            extra += [
                (b"access-control-allow-methods", b"GET, POST, OPTIONS"),
                (b"access-control-allow-headers", headers.get(b"access-control-request-headers", DEFAULT_HEADERS)),
                (b"access-control-max-age", b"600"),
            ]
            await send_with_headers({"type": "http.response.start", "status": 204, "headers": []})
            await send_with_headers({"type": "http.response.body", "body": b""})
        else:
            await self.app(scope, receive, send_with_headers)
