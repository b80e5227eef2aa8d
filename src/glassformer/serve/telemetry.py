"""Traces and metrics by OpenTelemetry, if the environment has an address for them."""

import os
from collections.abc import MutableMapping
from importlib.util import find_spec
from inspect import signature
from typing import Any

from fastapi import FastAPI

from glassformer.errors import ConfigError

ADDRESSES = tuple(f"OTEL_EXPORTER_OTLP_{signal}ENDPOINT" for signal in ("", "TRACES_", "METRICS_"))
"""Environment variables of the addresses that traces and metrics are sent to."""


def is_requested() -> bool:
    """Whether traces or metrics are to be sent.

    Raises:
        ConfigError: they are, and the packages for it are not installed.
    """
    given = [name for name in ADDRESSES if os.environ.get(name)]
    if given and not (is_supported() and find_spec("opentelemetry.exporter")):
        raise ConfigError(
            f"{given[0]} is set, but OpenTelemetry is not installed.\n"
            "  Install it: pip install 'glassformer[serve,telemetry]', or unset the variable."
        )
    return bool(given)


def is_supported() -> bool:
    """Whether this version of FastAPI has OpenTelemetry."""
    return "telemetry" in signature(FastAPI.__init__).parameters


def has_query(scope: MutableMapping[str, Any]) -> bool:
    """Whether a request has a query, which may have a text to translate, and which a trace would contain."""
    return bool(scope.get("query_string"))


def fastapi_options() -> dict[str, Any]:
    """Options of FastAPI. Without an address, no provider of the process gets anything.

    Logs are never sent: they would contain the values of wrong fields.
    """
    sends = is_requested()
    spans = {"tracing": sends, "metrics": sends, "logs": False, "operation_spans": False}
    return {"telemetry": {**spans, "auto_configure": sends, "exclude": has_query}} if is_supported() else {}
