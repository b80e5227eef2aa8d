"""Choice among implementations by measuring them on this machine, once: the choice is kept in the cache directory."""

import hashlib
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from glassformer.version import __version__

BUDGET_S = 0.6
"""Seconds after which no further round of a measurement begins. A first call prepares each candidate."""

MAX_ROUNDS = 7

NEAR_TIE = 0.05
"""A candidate that is slower than the fastest by at most this fraction counts as equally fast."""


MAX_WAITING = 0.1
"""Fraction of a measurement in which the main thread waits for a core; beyond it, the machine is busy."""

BUSY_CHOICE_S = 3600
"""Seconds for which the choice of a busy machine is kept."""


@dataclass(frozen=True)
class Choice:
    """The implementation that was chosen, and the rate of each that was measured."""

    name: str
    rates: dict[str, float]
    """Work per second of each candidate."""
    is_new: bool
    """Whether it was measured now, rather than read from the cache directory."""
    is_busy: bool = False
    """Whether other programs used the cores meanwhile: the choice is made again after BUSY_CHOICE_S."""

    @property
    def when(self) -> str:
        """When it was measured, in words."""
        when = "now" if self.is_new else "before"
        return f"{when} while the machine was busy (again after an hour)" if self.is_busy else when


def cache_directory() -> Path | None:
    """Folder for what can be computed again: $XDG_CACHE_HOME/glassformer, by default ~/.cache/glassformer. None: the
    user has no home."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "glassformer"
    except RuntimeError:
        return None


def processor() -> str:
    """Name of the processor, with its family and model where the system tells them."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        lines = []
    fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    names = [fields[name] for name in ("model name", "cpu family", "model") if name in fields]
    return " ".join(names) or platform.processor() or platform.machine()


def choose(
    subject: str, candidates: Mapping[str, Callable[[], object]], work: float, key: Mapping[str, object]
) -> Choice:
    """The fastest of several implementations. If several are equally fast, the first of them.

    The choice for an equal `key` on this processor is made once, so that the same command gives the same results: of
    several processes that measure at the same time, the first to finish decides.

    Args:
        subject: what is chosen, as a file name.
        candidates: name -> function that does the work once, the preferred one first.
        work: amount of work of one call, for the rates.
        key: what else the choice depends on, such as sizes, versions and the number of threads.
    """
    facts = json.dumps(
        [processor(), platform.machine(), __version__, list(candidates), key], sort_keys=True, default=str
    )
    folder = cache_directory()
    path = folder and folder / f"{subject}-{hashlib.sha256(facts.encode()).hexdigest()[:16]}.json"
    if path and (kept := read_choice(path, candidates)) is not None:
        return kept
    started, waited = time.perf_counter(), seconds_waited()
    seconds = measure(candidates)
    is_busy = seconds_waited() - waited > MAX_WAITING * (time.perf_counter() - started)
    limit = min(seconds.values()) * (1 + NEAR_TIE)
    name = next(name for name, s in seconds.items() if s <= limit)
    chosen = Choice(name, {name: work / s for name, s in seconds.items()}, is_new=True, is_busy=is_busy)
    if path is None:  # without a cache directory, each run measures
        return chosen
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent) as file:
            json.dump({"name": name, "rates": chosen.rates, "is_busy": is_busy, "facts": json.loads(facts)}, file)
            file.flush()
            os.link(file.name, path)  # FileExistsError: another process was first
            return chosen
    return read_choice(path, candidates) or chosen


def seconds_waited() -> float:
    """Time in which the main thread could have run but had no core, since its start; 0 if that is unknown."""
    try:
        return int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def read_choice(path: Path, candidates: Mapping[str, object]) -> Choice | None:
    """The choice in a file of the cache directory. None: there is none that can be used; a damaged file is deleted, and
    that of a busy machine after BUSY_CHOICE_S."""
    if not path.exists():
        return None
    try:
        record = json.loads(path.read_text())
        rates = {str(name): float(rate) for name, rate in record["rates"].items()}
        is_busy = bool(record["is_busy"])
        is_old = is_busy and time.time() - path.stat().st_mtime > BUSY_CHOICE_S
        if rates.keys() == candidates.keys() and record["name"] in candidates and not is_old:
            return Choice(record["name"], rates, is_new=False, is_busy=is_busy)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    with suppress(OSError):
        path.unlink()
    return None


def measure(candidates: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Shortest time of a call of each function, in seconds. The functions are called in turn."""
    started = time.perf_counter()
    for call in candidates.values():
        call()
    seconds: dict[str, float] = {}
    for _ in range(MAX_ROUNDS):
        for name, call in candidates.items():
            start = time.perf_counter()
            call()
            seconds[name] = min(time.perf_counter() - start, seconds.get(name, float("inf")))
        if time.perf_counter() - started > BUDGET_S:
            break
    return seconds
