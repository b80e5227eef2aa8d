"""The server process: starts the model process, listens, and ends both."""

import asyncio
import logging
import signal
import socket
import sys
from contextlib import suppress

import uvicorn

from glassformer.errors import ConfigError, UserError
from glassformer.serve.app import build_app
from glassformer.serve.limits import SEND_BUFFER_BYTES, STOP_S
from glassformer.serve.notify import keep_alive, notify
from glassformer.serve.protocol import LimitedProtocol
from glassformer.serve.service import Service
from glassformer.serve.settings import Settings
from glassformer.serve.telemetry import is_requested

log = logging.getLogger("glassformer.serve")


def serve(settings: Settings) -> None:
    """Serve models until SIGTERM or Ctrl-C.

    Raises:
        UserError: a model cannot be loaded, or the port is taken.
    """
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # a client that closes its connection must not end the server
    logging.basicConfig(stream=sys.stderr, format="%(message)s", level=logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    with listen(settings.host, settings.port) as listener:
        asyncio.run(run(settings, listener))


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises:
        ConfigError: the address cannot be used.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)  # with the protocol, asyncio sends small answers at once
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)  # that of the connections as well
        listener.bind(address)
        listener.listen(1024)
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"{host}:{port}: {getattr(error, 'strerror', None) or error}.\n  Choose another --port or --host."
        ) from None
    return listener


async def run(settings: Settings, listener: socket.socket) -> None:
    """Load the models, and answer requests."""
    service = Service(settings)
    config = uvicorn.Config(
        build_app(service), http=LimitedProtocol, log_config=None, access_log=False, ws="none",
        lifespan="on" if is_requested() else "off",
        timeout_graceful_shutdown=int(STOP_S), server_header=False, backlog=1024,
    )  # fmt: skip
    server = uvicorn.Server(config)
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[None] = loop.create_future()  # cancelled by a signal
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.cancel)
    starting = asyncio.ensure_future(service.start())
    await asyncio.wait([starting, stopped], return_when=asyncio.FIRST_COMPLETED)
    if stopped.done():
        notify("STOPPING=1")
        starting.cancel()
        with suppress(asyncio.CancelledError, UserError):
            await starting
        return
    await starting
    announce(service, listener)
    hangup = asyncio.Event()

    async def reload() -> None:
        while True:
            await hangup.wait()
            hangup.clear()
            await service.reload()

    loop.add_signal_handler(signal.SIGHUP, hangup.set)
    reloading = asyncio.ensure_future(reload())
    serving = asyncio.ensure_future(server._serve([listener]))  # `serve` would handle the signals
    notify("READY=1")
    watchdog = asyncio.ensure_future(keep_alive(lambda: service.supervisor.answers))
    await asyncio.wait([serving, stopped], return_when=asyncio.FIRST_COMPLETED)
    notify("STOPPING=1")
    watchdog.cancel()
    server.should_exit = True
    await serving
    reloading.cancel()
    await service.reader.close()
    await service.supervisor.stop()


def announce(service: Service, listener: socket.socket) -> None:
    """Say what is served, and what the folders lack."""
    host, port = listener.getsockname()[:2]
    for name, info in service.models.items():
        languages = service.languages_of(info)
        log.info("%s: %s%s", name, info.task, f", {languages[0]} to {languages[1]}" if languages else "")
        if info.pipeline == "translation":
            if not languages:
                log.info("  no languages: give --languages %s=SOURCE,TARGET, else only /models/%s has it", name, name)
            if "confidence" not in info.features:
                log.info("  no confidence: see glassformer calibrate")
            if languages and not info.detection:
                log.info("  no language detection: the folder was trained without it")
    log.info("http://%s:%d", f"[{host}]" if ":" in host else host, port)
    if service.settings.keys is None and host not in ("127.0.0.1", "::1"):
        log.warning("warning: everyone who reaches this address can use the models; --keys requires keys")
