"""Limits of the control groups of this process: those of a container, of a service, or of a job."""

import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


def groups(controller: str) -> Iterator[Path]:
    """The folders of the control groups of this process, the innermost first.

    Args:
        controller: name of the controller, where each has its own hierarchy (version 1).
    """
    with suppress(OSError):
        for line in MEMBERSHIP.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and controller not in controllers.split(","):
                continue
            folder = ROOT / controller if controllers else ROOT
            own = folder / path.strip("/")
            yield from (parent for parent in (own, *own.parents) if parent.is_relative_to(folder))


def numbers(path: Path) -> list[float]:
    """The numbers in a file; none if there is no such file, or no limit."""
    try:
        return [float(word) for word in path.read_text().split()]
    except (OSError, ValueError):
        return []


def free_bytes() -> int | None:
    """Memory that the control groups leave to this process. None: they have no limit."""
    found = []
    for group in groups("memory"):
        for limit, used, reclaimable in (
            ("memory.max", "memory.current", "inactive_file"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ):
            if most := numbers(group / limit):
                statistics: dict[str, str] = {}
                with suppress(OSError, ValueError):
                    statistics = dict(line.split(" ", 1) for line in (group / "memory.stat").read_text().splitlines())
                cached = int(statistics.get(reclaimable, 0))
                found.append(max(0, int(most[0] - sum(numbers(group / used)) + cached)))
    return min(found, default=None)


def n_cpus() -> int | None:
    """Number of processors whose time the control groups allow, rounded up. None: they have no limit."""
    found = []
    for group in groups("cpu"):
        quota, period = (numbers(group / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
        both = numbers(group / "cpu.max") or [*quota, *period]
        if len(both) == 2 and min(both) > 0:
            found.append(math.ceil(both[0] / both[1]))
    return min(found, default=None)
