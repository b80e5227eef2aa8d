"""The application: routes of all APIs, the page, and their errors."""

import logging
import time

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from glassformer.serve import apertium, documents, huggingface, libretranslate, metrics, openai
from glassformer.serve.errors import ApiError, Disconnected, error_response
from glassformer.serve.security import Gate
from glassformer.serve.service import Service
from glassformer.serve.telemetry import fastapi_options
from glassformer.serve.web import page
from glassformer.version import __version__

log = logging.getLogger("glassformer.serve")


def build_app(service: Service) -> ASGIApp:
    """The ASGI application of a server."""
    app = FastAPI(
        title="glassformer", version=__version__, openapi_url="/spec", docs_url=None, redoc_url=None,
        description="Translation, text generation and text analysis by the models of this server, with the APIs of"
        " LibreTranslate, OpenAI, Hugging Face and Apertium.",
        **fastapi_options(),
    )  # fmt: skip
    for module in (libretranslate, documents, openai, huggingface, apertium):
        app.include_router(module.router(service))

    @app.get("/", include_in_schema=False)
    async def read_page() -> Response:
        html, policy = page()
        headers = {"Content-Security-Policy": policy, "Cache-Control": "no-cache"}
        return Response(html, media_type="text/html; charset=utf-8", headers=headers)

    @app.get("/metrics", include_in_schema=False)
    async def read_metrics() -> Response:
        metrics.WAITING.set(service.scheduler.n_waiting)
        metrics.RUNNING.set(len(service.scheduler.in_flight))
        metrics.RESTARTS.set(service.supervisor.n_restarts)
        return Response(generate_latest(metrics.REGISTRY), media_type=CONTENT_TYPE_LATEST)

    @app.get("/results/{key}", include_in_schema=False)
    async def read_result(key: str) -> Response:
        result = service.results.find(key)
        headers = {"Cache-Control": "private, no-store", "Content-Security-Policy": result.policy}
        return Response(result.data, media_type=result.content_type, headers=headers)

    @app.exception_handler(ApiError)
    async def api_error(request: Request, error: ApiError) -> JSONResponse:
        return error_response(request.url.path, error)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> JSONResponse:
        found = error_response(request.url.path, ApiError(error.status_code, str(error.detail)))
        found.headers.update(error.headers or {})
        if error.status_code == 405:  # several routes may have the path
            allowed = [
                method
                for method in ("GET", "POST")
                if any(route.matches({**request.scope, "method": method})[0] == Match.FULL for route in app.routes)
            ]
            found.headers["Allow"] = ", ".join(allowed)
        return found

    @app.exception_handler(RequestValidationError)
    async def validation_error(request: Request, error: RequestValidationError) -> JSONResponse:
        detail = error.errors()[0]
        where = ".".join(str(part) for part in detail["loc"][1:])
        return error_response(
            request.url.path, ApiError(400, f"Invalid request: {where}: {detail['msg']}", param=where)
        )

    @app.exception_handler(Disconnected)
    async def disconnected(request: Request, error: Disconnected) -> Response:
        return Response(status_code=499)

    return Gate(Measured(app), (*service.settings.public_names, service.settings.host), service.settings.cors)


class Measured:
    """Counts requests by route, and answers unexpected errors in the form of the API."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, start = 0, time.perf_counter()

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, observed)
        except Exception:
            if not status:
                error = ApiError(500, "the server failed on this request; its log has the reason")
                await error_response(scope["path"], error)(scope, receive, observed)
            log.exception("%s: failed", route_of(scope))
        finally:
            route = route_of(scope)
            metrics.REQUESTS.labels(route, status).inc()
            metrics.SECONDS.labels(route).observe(time.perf_counter() - start)


def route_of(scope: Scope) -> str:
    """The route of a request: a path of the application, with the names of its parameters."""
    return str(getattr(scope.get("route"), "path", "other"))
