"""Which request is computed when: admission by the expected time, and fair queues.

A request consists of units, one for each text. A unit costs the seconds that its model needs for it in a full batch. A
request is admitted if all its units can probably be computed before its deadline. A free place goes to the flow (a
client, or the files of a client) that has received least.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic

from glassformer.serve.limits import MAX_QUEUED
from glassformer.serve.messages import Request, ResultT
from glassformer.serve.supervisor import Supervisor

IN_FLIGHT_TOKENS = 1024
"""Source tokens that are given to the model process at a time: a full batch."""

CHARACTERS_PER_TOKEN = 4.0
SMOOTHING = 0.1
"""Weight of a new measurement of the speed."""

MEASURED_S = 0.5
"""Shortest time with a full queue after which the speed is measured."""

MARGIN = 0.8
"""Part of the time until the deadline that the expected time may have."""

MIN_RETRY_S = 1


class Overloaded(Exception):
    """A request cannot be computed before its deadline."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__("the server is overloaded")
        self.retry_after_s = max(MIN_RETRY_S, round(retry_after_s))


class TooLong(Exception):
    """A request would probably take longer than its deadline if there were no others."""


@dataclass(eq=False)
class Unit(Generic[ResultT]):
    """A text to compute."""

    request: Request[ResultT]
    n_tokens: float
    """Estimated length of the source, in tokens."""
    seconds: float
    """Estimated time in a full batch."""
    on_text: Callable[[str], None] | None = None
    done: asyncio.Future[ResultT] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    job_id: int | None = None

    def __post_init__(self) -> None:
        self.done.add_done_callback(lambda done: done.cancelled() or done.exception())  # not every error is awaited


@dataclass(eq=False)
class Flow:
    """Units of one client that wait."""

    units: deque[Unit[Any]] = field(default_factory=deque)
    seconds: float = 0.0
    """Estimated time of the units."""
    received: float = 0.0
    """Estimated time of what was computed for the client, from the time when it began to wait."""


def estimated_tokens(text: str) -> float:
    """Estimate of the length of a text in tokens."""
    return len(text) / CHARACTERS_PER_TOKEN + 2


class Scheduler:
    """Gives units to the model process in a fair order."""

    def __init__(self, supervisor: Supervisor) -> None:
        self.supervisor = supervisor
        self.flows: dict[str, Flow] = {}
        self.in_flight: set[Unit[Any]] = set()
        """Units that the model process computes."""
        self.received = 0.0
        """What the flow that was served last had received before: new flows begin with it."""
        self.speed = 1.0
        """Estimated seconds computed in a second."""
        self.full_since: float | None = None
        self.full_seconds = 0.0
        """Estimated seconds computed since then."""

    def unit(
        self, request: Request[ResultT], text: str, *, n_new_tokens: float | None = None, beam: int = 1,
        on_text: Callable[[str], None] | None = None,
    ) -> Unit[ResultT]:  # fmt: skip
        """A unit for a request to the model process.

        Args:
            text: what is read.
            n_new_tokens: number of tokens that are generated. Default: as many as are read.
        """
        n_tokens = estimated_tokens(text)
        speed = next((info.speed for info in self.supervisor.infos if info.id == request.model), 1000.0)
        return Unit(request, n_tokens, (n_new_tokens or n_tokens) * beam / speed, on_text)

    @property
    def n_waiting(self) -> int:
        """Number of units that wait."""
        return sum(len(flow.units) for flow in self.flows.values())

    def wait_s(self, client: str, seconds: float) -> float:
        """Expected time until units of a client are computed, if all clients get equal shares.

        Args:
            seconds: estimated time of the units.
        """
        own = (self.flows[client].seconds if client in self.flows else 0.0) + seconds
        others = sum(min(own, flow.seconds) for name, flow in self.flows.items() if name != client)
        begun = sum(unit.seconds for unit in self.in_flight)
        return (own + others + begun / 2) / self.speed

    def admit(self, units: Sequence[Unit[Any]], client: str, deadline_s: float) -> None:
        """Check that units can be computed in time.

        Args:
            client: name of the flow.
            deadline_s: seconds in which they must be done.

        Raises:
            TooLong: they could not if there were no others.
            Overloaded: they cannot.
        """
        seconds, limit_s = sum(unit.seconds for unit in units), MARGIN * deadline_s
        # A measured speed below 1 may have passed: a server that has nothing else to compute tries.
        if seconds / max(self.speed, 1.0) > limit_s:
            raise TooLong
        wait_s, is_idle = self.wait_s(client, seconds), not (self.in_flight or self.n_waiting)
        if (wait_s > limit_s and not is_idle) or self.n_waiting + len(units) > MAX_QUEUED:
            raise Overloaded(wait_s - limit_s)

    async def compute(self, units: Sequence[Unit[ResultT]], client: str, deadline_s: float) -> list[ResultT]:
        """Compute units that were admitted. If the caller is cancelled, they are.

        Args:
            client: name of the flow.
            deadline_s: seconds in which they must be done.

        Raises:
            Overloaded: they were not computed in this time.
            Refused: the model process refused one of them.
            Unavailable: the model process ended twice while it computed one of them.
        """
        with self.queued(units, client):
            try:
                async with asyncio.timeout(deadline_s):
                    return list(await asyncio.gather(*(unit.done for unit in units)))
            except TimeoutError:
                raise Overloaded(MIN_RETRY_S) from None

    @contextmanager
    def queued(self, units: Sequence[Unit[Any]], client: str) -> Iterator[None]:
        """Queue units; at the end, those that are not done are cancelled."""
        flow = self.flows.setdefault(client, Flow(received=self.received))
        if not flow.units:
            flow.received = max(flow.received, self.received)
        flow.units.extend(units)
        flow.seconds += sum(unit.seconds for unit in units)
        self.dispatch()
        try:
            yield
        finally:
            waiting = {unit for unit in units if unit.job_id is None}
            if waiting:
                flow.units = deque(unit for unit in flow.units if unit not in waiting)
                flow.seconds -= sum(unit.seconds for unit in waiting)
            for unit in units:
                if unit.job_id is not None and unit in self.in_flight:
                    self.supervisor.cancel(unit.job_id)
                    self.in_flight.discard(unit)
                unit.done.cancel()
            if not flow.units and self.flows.get(client) is flow:
                del self.flows[client]
            self.dispatch()

    def dispatch(self) -> None:
        """Give units to the model process while there is room."""
        n_tokens = sum(unit.n_tokens for unit in self.in_flight)
        while waiting := [flow for flow in self.flows.values() if flow.units]:
            flow = min(waiting, key=lambda flow: flow.received)
            unit = flow.units[0]
            if self.in_flight and n_tokens + unit.n_tokens > IN_FLIGHT_TOKENS:
                break
            flow.units.popleft()
            flow.seconds -= unit.seconds
            self.received = flow.received
            flow.received += unit.seconds
            n_tokens += unit.n_tokens
            unit.job_id, job = self.supervisor.submit(unit.request, unit.on_text)
            self.in_flight.add(unit)
            job.result.add_done_callback(partial(self.finish, unit))
        self.measure(is_full=bool(waiting))

    def finish(self, unit: Unit[ResultT], result: asyncio.Future[ResultT]) -> None:
        """Take the result of a unit."""
        if unit not in self.in_flight:
            return
        self.in_flight.discard(unit)
        if not unit.done.done():
            if result.cancelled():
                unit.done.cancel()
            elif error := result.exception():
                unit.done.set_exception(error)
            else:
                unit.done.set_result(result.result())
        if self.full_since is not None:
            self.full_seconds += unit.seconds
        self.dispatch()

    def measure(self, *, is_full: bool) -> None:
        """Measure the speed while units wait."""
        now = time.monotonic()
        if self.full_since is None:
            if is_full:
                self.full_since, self.full_seconds = now, 0.0
            return
        elapsed_s = now - self.full_since
        if elapsed_s > MEASURED_S:
            self.speed += SMOOTHING * (max(self.full_seconds / elapsed_s, 0.01) - self.speed)
            self.full_since, self.full_seconds = now, 0.0
        if not is_full:
            self.full_since = None
