"""Processing of chunks by actors of a Ray cluster."""

import os
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from glassformer.bulk.chunks import Chunk, Outputs
from glassformer.bulk.workers import Answer, checked
from glassformer.config import JsonObject
from glassformer.errors import ConfigError, UserError

CONNECT_S = 10.0
"""Seconds in which a cluster must answer."""
LOCAL = "local"
"""In the place of an address: a cluster on this machine, for this run."""
IN_FLIGHT = 2
"""Number of chunks that an actor has at a time, so that it does not wait for the next one."""


def import_ray() -> Any:
    """The library.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        return import_module("ray")
    except ModuleNotFoundError:
        raise ConfigError(
            "--ray: needs Ray, which is not installed.\n  Install it: pip install 'glassformer[ray]'"
        ) from None


class Actor:
    """What Ray runs on a machine."""

    def __init__(self, open_answer: Callable[[], Answer], job: JsonObject) -> None:
        self.answer = open_answer()
        self.ready = self.answer(job)

    def ask(self, value: object = None) -> JsonObject:
        """What is answered to a chunk's items; to nothing, whether the job can be done."""
        return self.ready if value is None or "error" in self.ready else self.answer(value)


class Actors:
    """Processes chunks by actors, which Ray starts, and starts again if one ends."""

    def __init__(self, address: str, n: int, threads: int, open_answer: Callable[[], Answer], job: JsonObject) -> None:
        """
        Args:
            address: that of the cluster, or LOCAL.
            n: number of actors.
            threads: number of processors of each.
            open_answer: called by each actor; returns what answers the job, then the items of chunks.

        Raises:
            UserError: there is no such cluster, or the job cannot be done.
        """
        local: dict[str, Any] = {"num_cpus": n * threads, "include_dashboard": False} if address == LOCAL else {}
        if not local:
            send_token()
        self.ray = ray = import_ray()
        with ray_errors(ray):
            check_reachable(address)
            ray.init(None if local else address, log_to_driver=False, logging_level="error", **local)
            actor = ray.remote(Actor).options(num_cpus=threads, max_restarts=-1, max_task_retries=-1)
            self.actors = [actor.remote(open_answer, job) for _ in range(n)]
            checked(ray.get(self.actors[0].ask.remote()))

    def process(self, chunks: Iterable[Chunk]) -> Iterator[tuple[Chunk, Outputs]]:
        """See `Workers`."""
        ray = self.ray
        free = self.actors * IN_FLIGHT
        sent: dict[Any, tuple[Chunk, Any]] = {}

        def finished() -> tuple[Chunk, Outputs]:
            with ray_errors(ray):
                (reference, *_), _ = ray.wait(list(sent))
                chunk, actor = sent.pop(reference)
                answer = ray.get(reference)
            free.append(actor)
            return chunk, Outputs(**checked(answer))

        for chunk in chunks:
            if not free:
                yield finished()
            actor = free.pop(0)
            sent[actor.ask.remote(chunk.items)] = chunk, actor
        while sent:
            yield finished()

    def close(self) -> None:
        """See `Workers`."""
        self.ray.shutdown()


def send_token() -> None:
    """Let Ray send the token of a cluster if there is one. `ray start` wants one since Ray 2.59; `ray.init` sends none
    by default. A cluster without tokens ignores it."""
    names = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
    if any(name in os.environ for name in names) or (Path.home() / ".ray" / "auth_token").exists():
        os.environ.setdefault("RAY_AUTH_MODE", "token")


def check_reachable(address: str) -> None:
    """Check that something listens at an address HOST:PORT; Ray itself tries for minutes.

    Raises:
        OSError: nothing does.
    """
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "/" not in host:
        socket.create_connection((host, int(port)), CONNECT_S).close()


@contextmanager
def ray_errors(ray: Any) -> Iterator[None]:
    """Turn the errors of Ray into UserError."""
    try:
        yield
    except (ray.exceptions.RayError, OSError, RuntimeError, ValueError) as error:
        what = str(error).strip().partition("\n")[0]
        raise UserError(
            f"--ray: {what.rstrip('.') or type(error).__name__}.\n  Is the cluster there, and its token here"
            " (RAY_AUTH_TOKEN or ~/.ray/auth_token)? The same command goes on."
        ) from None
